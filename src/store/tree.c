#include "store/tree.h"

#include "store/tree_path.h"

/* ---- Reading ---- */

/* The leaf that the probe belongs into. *before, unless NULL: the number of keys in the leaves before it. */
static inline const nt_tnode *descend(const nt_arena *arena, nt_root root, const nt_probe *probe,
                                      uint64_t *before) {
    const nt_tnode *node = nt_node_at(arena, nt_root_id(root));
    for (int height = nt_root_height(root); height > 0; height--) {
        int i;
        const nt_tnode *child = nt_node_at(arena, nt_inner_search(arena, node, probe, &i));
        nt_node_prefetch(child);
        if (before) *before += nt_inner_before(node, i);
        node = child;
    }
    return node;
}

void nt_tree_find_begin(const nt_arena *arena, nt_root root, const void *key, size_t key_len,
                        nt_lookup *lookup) {
    lookup->leaf = NULL;
    if (root == 0) return;
    nt_probe_set(&lookup->probe, key, key_len);
    lookup->leaf = descend(arena, root, &lookup->probe, NULL);
}

uint64_t nt_tree_find_end(const nt_arena *arena, const nt_lookup *lookup) {
    return lookup->leaf ? nt_leaf_find(arena, lookup->leaf, &lookup->probe) : NT_TREE_NONE;
}

uint64_t nt_tree_find(const nt_arena *arena, nt_root root, const void *key, size_t key_len) {
    nt_lookup lookup;
    nt_tree_find_begin(arena, root, key, key_len, &lookup);
    return nt_tree_find_end(arena, &lookup);
}

/* The number of keys below a node. */
static uint64_t count_below(const nt_tnode *node, int inner) {
    return inner ? nt_inner_before(node, nt_node_count(node) + 1) : (uint64_t)nt_node_count(node);
}

uint64_t nt_tree_count(const nt_arena *arena, nt_root root) {
    return root ? count_below(nt_node_at(arena, nt_root_id(root)), nt_root_height(root) > 0) : 0;
}

static uint64_t rank_of(const nt_arena *arena, nt_root root, const nt_probe *probe, int inclusive) {
    uint64_t before = 0;
    int equal;
    const nt_tnode *leaf = descend(arena, root, probe, &before);
    int i = nt_leaf_search(arena, leaf, probe, &equal);
    return before + (uint64_t)(i + (equal && inclusive));
}

uint64_t nt_tree_rank(const nt_arena *arena, nt_root root, const void *key, size_t key_len,
                      int inclusive) {
    nt_probe probe;
    if (root == 0) return 0;
    nt_probe_set(&probe, key, key_len);
    return rank_of(arena, root, &probe, inclusive);
}

uint64_t nt_tree_rank_after_prefix(const nt_arena *arena, nt_root root, const void *prefix,
                                   size_t prefix_len) {
    nt_probe probe;
    if (root == 0) return 0;
    if (!nt_probe_set_after(&probe, prefix, prefix_len)) return nt_tree_count(arena, root);
    return rank_of(arena, root, &probe, 0);
}

/* ---- Writing ---- */

/* The way to the leaf of the probe. */
static inline void find_way(const nt_arena *arena, nt_root root, const nt_probe *probe, nt_way *way) {
    uint32_t id = nt_root_id(root);
    const nt_tnode *node = nt_node_at(arena, id);
    int depth = nt_root_height(root);
    way->root = root;
    way->depth = depth;
    for (int level = 0; level < depth; level++) {
        way->ids[level] = id;
        id = nt_inner_search(arena, node, probe, &way->at[level]);
        node = nt_node_at(arena, id);
        nt_node_prefetch(node);
    }
    way->ids[depth] = id;
}

void nt_tree_seek(const nt_arena *arena, nt_root root, const void *key, size_t key_len, nt_way *way) {
    nt_probe probe;
    way->root = 0;
    if (root == 0) return;
    nt_probe_set(&probe, key, key_len);
    find_way(arena, root, &probe, way);
}

/* Ends the way to the probe's leaf at the probe's place in it. 1 where it is there. */
static int end_path(const nt_arena *arena, const nt_probe *probe, nt_path *path) {
    int equal;
    const nt_tnode *leaf = nt_node_at(arena, path->ids[path->depth]);
    path->at[path->depth] = nt_leaf_search(arena, leaf, probe, &equal);
    return equal;
}

/* The way to the probe's place. 1 where it is there. */
static int find_path(const nt_arena *arena, nt_root root, const nt_probe *probe, nt_path *path) {
    find_way(arena, root, probe, path);
    return end_path(arena, probe, path);
}

/* The same, with the way to the leaf found before. */
static int take_path(const nt_arena *arena, const nt_way *way, const nt_probe *probe, nt_path *path) {
    path->depth = way->depth;
    for (int level = 0; level <= way->depth; level++) {
        path->ids[level] = way->ids[level];
        path->at[level] = way->at[level];
    }
    return end_path(arena, probe, path);
}

/* Makes every node of the path one of this turn, and adds `difference` to the counts along it. */
static int own_path(nt_arena *arena, nt_root *root, nt_path *path, int difference) {
    uint64_t turn = nt_arena_turn(arena);
    nt_tnode *above = NULL;
    for (int level = 0; level <= path->depth; level++) {
        uint32_t id = path->ids[level];
        nt_tnode *node = nt_node_at(arena, id);
        int inner = level < path->depth;
        if (((const nt_node *)(const void *)node)->birth != turn) {
            uint32_t copy_id = nt_arena_new(arena);
            if (copy_id == 0) return 0;
            nt_tnode *copy = nt_node_at(arena, copy_id);
            nt_node_copy(copy, node, inner);
            nt_arena_retire(arena, id);
            path->ids[level] = copy_id;
            node = copy;
            if (above) {
                nt_inner_set_child(above, path->at[level - 1], copy_id);
            } else {
                *root = nt_root_of(copy_id, path->depth);
            }
        }
        if (inner && difference) nt_inner_add(node, path->at[level], difference);
        above = node;
    }
    return 1;
}

/* An entry for a key that is put in: with its chain, where it is long. */
static int make_entry(nt_arena *arena, const nt_probe *probe, uint64_t value, nt_entry *entry) {
    *entry = (nt_entry){.at = probe->head, .len = probe->len, .value = value};
    if (probe->len <= NT_NODE_INLINE) return 1;
    entry->more = nt_chain_new(arena, probe->key + NT_NODE_INLINE, probe->len - NT_NODE_INLINE);
    return entry->more != 0;
}

static int plant(nt_arena *arena, nt_root *root, const nt_entry *entry) {
    uint32_t id = nt_arena_new(arena);
    if (id == 0) return 0;
    nt_node_build(nt_node_at(arena, id), entry, 1, 0, 0);
    *root = nt_root_of(id, 0);
    return 1;
}

int nt_tree_put_on(nt_arena *arena, nt_root *root, const nt_way *way, const void *key, size_t key_len,
                   uint64_t value, uint64_t *old) {
    nt_probe probe;
    nt_path path;
    nt_entry entry;
    *old = NT_TREE_NONE;
    nt_probe_set(&probe, key, key_len);
    if (*root == 0) return make_entry(arena, &probe, value, &entry) && plant(arena, root, &entry);
    int there = way && way->root == *root ? take_path(arena, way, &probe, &path)
                                          : find_path(arena, *root, &probe, &path);
    if (!own_path(arena, root, &path, !there)) return 0;
    nt_tnode *leaf = nt_node_at(arena, path.ids[path.depth]);
    int i = path.at[path.depth];
    if (there) {
        *old = nt_leaf_value(leaf, i);
        nt_leaf_set(leaf, i, value);
        return 1;
    }
    if (!make_entry(arena, &probe, value, &entry)) return 0;
    return nt_node_insert(leaf, 0, i, &entry) || nt_tree_grow(arena, root, &path, &entry);
}

int nt_tree_put(nt_arena *arena, nt_root *root, const void *key, size_t key_len, uint64_t value,
                uint64_t *old) {
    return nt_tree_put_on(arena, root, NULL, key, key_len, value, old);
}

int nt_tree_delete(nt_arena *arena, nt_root *root, const void *key, size_t key_len, uint64_t *old) {
    nt_probe probe;
    nt_path path;
    nt_entry entry;
    uint8_t room[NT_NODE_INLINE + 8];
    *old = NT_TREE_NONE;
    if (*root == 0) return 1;
    nt_probe_set(&probe, key, key_len);
    if (!find_path(arena, *root, &probe, &path)) return 1;
    if (!own_path(arena, root, &path, -1)) return 0;
    nt_tnode *leaf = nt_node_at(arena, path.ids[path.depth]);
    int i = path.at[path.depth];
    *old = nt_leaf_value(leaf, i);
    if (key_len > NT_NODE_INLINE) {
        nt_node_entry(leaf, 0, i, &entry, room);
        nt_chain_retire(arena, entry.more);
    }
    nt_node_remove(leaf, 0, i, 0);
    return nt_tree_shrink(arena, root, &path);
}

/* Retires the chains that a node names. */
static void retire_chains(nt_arena *arena, const nt_tnode *node, int inner) {
    nt_entry entry;
    uint8_t room[NT_NODE_INLINE + 8];
    for (int i = 0; i < nt_node_count(node); i++) {
        nt_node_entry(node, inner, i, &entry, room);
        nt_chain_retire(arena, entry.more);
    }
}

int nt_tree_clear(nt_arena *arena, nt_root *root) {
    nt_path path;
    if (*root == 0) return 1;
    int level = 0, depth = nt_root_height(*root);
    path.ids[0] = nt_root_id(*root);
    path.at[0] = 0;
    while (level >= 0) {
        const nt_tnode *node = nt_node_at(arena, path.ids[level]);
        if (level < depth && path.at[level] <= nt_node_count(node)) {
            path.ids[level + 1] = nt_inner_child(node, path.at[level]++);
            path.at[++level] = 0;
            continue;
        }
        retire_chains(arena, node, level < depth);
        nt_arena_retire(arena, path.ids[level--]);
    }
    *root = 0;
    return 1;
}
