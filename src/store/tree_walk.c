#include "store/tree_walk.h"

#include "store/tree_path.h"

_Static_assert(NT_TREE_HEIGHT_MAX == NT_PATH_MAX, "a walk has room for every path");

#define SLACK 64u

static const nt_tnode *leaf_of(const nt_walk *walk) { return nt_node_at(walk->arena, walk->leaf); }

static const nt_tnode *inner_of(const nt_walk *walk, int level) {
    return nt_node_at(walk->arena, walk->ids[level]);
}

static void start(nt_walk *walk, const nt_arena *arena, nt_root root) {
    walk->arena = arena;
    walk->root = root;
    walk->depth = nt_root_height(root);
    walk->leaf = 0;
    walk->position = 0;
}

/* Goes down from a node at `level` to its first or last leaf. */
static void go_down(nt_walk *walk, uint32_t id, int level, int last) {
    for (; level < walk->depth; level++) {
        const nt_tnode *node = nt_node_at(walk->arena, id);
        int at = last ? nt_node_count(node) : 0;
        walk->ids[level] = id;
        walk->at[level] = (uint16_t)at;
        id = nt_inner_child(node, at);
    }
    walk->leaf = id;
    walk->position = last ? nt_node_count(leaf_of(walk)) : 0;
}

void nt_walk_first(nt_walk *walk, const nt_arena *arena, nt_root root) {
    start(walk, arena, root);
    if (root) go_down(walk, nt_root_id(root), 0, 0);
}

void nt_walk_last(nt_walk *walk, const nt_arena *arena, nt_root root) {
    start(walk, arena, root);
    if (root) go_down(walk, nt_root_id(root), 0, 1);
}

void nt_walk_seek(nt_walk *walk, const nt_arena *arena, nt_root root, const void *key, size_t key_len,
                  int place) {
    nt_probe probe;
    int equal;
    start(walk, arena, root);
    if (root == 0) return;
    if (place != NT_WALK_AFTER_PREFIX) {
        nt_probe_set(&probe, key, key_len);
    } else if (!nt_probe_set_after(&probe, key, key_len)) {
        nt_walk_last(walk, arena, root);
        return;
    }
    uint32_t id = nt_root_id(root);
    for (int level = 0; level < walk->depth; level++) {
        const nt_tnode *node = nt_node_at(arena, id);
        int at;
        walk->ids[level] = id;
        id = nt_inner_search(arena, node, &probe, &at);
        walk->at[level] = (uint16_t)at;
        nt_node_prefetch(nt_node_at(arena, id));
    }
    walk->leaf = id;
    walk->position = nt_leaf_search(arena, leaf_of(walk), &probe, &equal);
    if (equal && place == NT_WALK_AFTER) walk->position++;
}

/* The deepest level at which there is a child further up (down), or -1. */
static int turning_level(const nt_walk *walk, int up) {
    int level = walk->depth - 1;
    while (level >= 0 && walk->at[level] == (up ? nt_node_count(inner_of(walk, level)) : 0)) level--;
    return level;
}

/* Moves to the next leaf up (down), before its first (after its last) entry. 0 where there is none. */
static int change_leaf(nt_walk *walk, int up) {
    int level = turning_level(walk, up);
    if (level < 0) return 0;
    int step = up ? 1 : -1, at = walk->at[level] + step;
    walk->at[level] = (uint16_t)at;
    go_down(walk, nt_inner_child(inner_of(walk, level), at), level + 1, !up);
    /* The leaf after the next one may be on its way while this one and the next are read. */
    const nt_tnode *above = inner_of(walk, walk->depth - 1);
    int ahead = walk->at[walk->depth - 1] + 2 * step;
    if (ahead >= 0 && ahead <= nt_node_count(above)) {
        nt_node_prefetch(nt_node_at(walk->arena, nt_inner_child(above, ahead)));
    }
    return 1;
}

/* Entries between the place and the end of the leaf. */
static int left_in_leaf(const nt_walk *walk, int up) {
    return up ? nt_node_count(leaf_of(walk)) - walk->position : walk->position;
}

uint64_t nt_walk_next(nt_walk *walk) {
    if (walk->leaf == 0) return NT_TREE_NONE;
    while (left_in_leaf(walk, 1) == 0) {
        if (!change_leaf(walk, 1)) return NT_TREE_NONE;
    }
    return nt_leaf_value(leaf_of(walk), walk->position++);
}

uint64_t nt_walk_prev(nt_walk *walk) {
    if (walk->leaf == 0) return NT_TREE_NONE;
    while (left_in_leaf(walk, 0) == 0) {
        if (!change_leaf(walk, 0)) return NT_TREE_NONE;
    }
    return nt_leaf_value(leaf_of(walk), --walk->position);
}

size_t nt_walk_key_length(const nt_walk *walk, int went_up) {
    return nt_leaf_key_length(leaf_of(walk), walk->position - (went_up ? 1 : 0));
}

void nt_walk_key(const nt_walk *walk, int went_up, uint8_t *out) {
    nt_leaf_key(walk->arena, leaf_of(walk), walk->position - (went_up ? 1 : 0), out);
}

/* Takes entries of this leaf, 0 where not even one fits. */
static int take_from_leaf(nt_walk *walk, int up, int most, nt_key_sink *sink) {
    const nt_tnode *leaf = leaf_of(walk);
    int from = up ? walk->position : walk->position - 1, slack = 1;
    size_t room = (size_t)(sink->lens - sink->bytes);
    int count = room > SLACK ? nt_leaf_fit(leaf, from, most, up, room - SLACK) : 0;
    if (count == 0) { /* near the end one at a time, exactly */
        slack = 0;
        count = nt_leaf_fit(leaf, from, 1, up, room);
    }
    nt_leaf_emit(walk->arena, leaf, from, count, up, slack, &sink->bytes, &sink->lens, &sink->seen);
    walk->position += up ? count : -count;
    return count;
}

int nt_walk_take_keys(nt_walk *walk, int up, nt_key_sink *sink) {
    if (walk->leaf == 0) return 0;
    while (sink->budget > 0) {
        int left = left_in_leaf(walk, up);
        if (left == 0) {
            if (!change_leaf(walk, up)) return 0;
            continue;
        }
        int most = sink->budget < (uint64_t)left ? (int)sink->budget : left;
        int count = take_from_leaf(walk, up, most, sink);
        if (count == 0) return 1;
        sink->budget -= (uint64_t)count;
        sink->count += (uint64_t)count;
    }
    return left_in_leaf(walk, up) > 0 || turning_level(walk, up) >= 0;
}

size_t nt_walk_take_values(nt_walk *walk, int up, uint64_t *values, size_t max) {
    size_t taken = 0;
    if (walk->leaf == 0) return 0;
    while (taken < max) {
        int left = left_in_leaf(walk, up);
        if (left == 0) {
            if (!change_leaf(walk, up)) break;
            continue;
        }
        int count = (size_t)left < max - taken ? left : (int)(max - taken);
        int from = up ? walk->position : walk->position - 1;
        nt_leaf_values(leaf_of(walk), from, count, up ? 1 : -1, values + taken);
        walk->position += up ? count : -count;
        taken += (size_t)count;
    }
    return taken;
}
