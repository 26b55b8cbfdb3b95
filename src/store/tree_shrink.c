#include "store/tree_path.h"

#define JOINED ((int)NT_NODE_SIZE * 7 / 8) /* two nodes become one where it has no more than that */

static uint64_t packed_child(const nt_tnode *inner, int i) {
    return nt_child_pack(nt_inner_child(inner, i), nt_inner_count(inner, i));
}

/* Two neighbours under one node, taken apart together on the bench: of inner nodes with the separator
 * between them. */
typedef struct pair {
    nt_tnode *above;
    int inner;         /* whether the two are */
    int i;             /* the left one is child i of `above`, the separator is its separator i */
    uint32_t left, right;
    nt_entry separator;
    int n, left_n;     /* entries on the bench, and of them the left node's */
    uint64_t first;    /* an inner pair's first child */
    uint8_t room[NT_NODE_INLINE + 8];
} pair;

static void open_pair(nt_arena *arena, nt_tnode *above, int i, int inner, pair *p) {
    nt_bench *bench = nt_arena_scratch(arena);
    p->above = above;
    p->inner = inner;
    p->i = i;
    p->left = nt_inner_child(above, i);
    p->right = nt_inner_child(above, i + 1);
    p->first = 0;
    nt_node_entry(above, 1, i, &p->separator, p->room);
    const nt_tnode *left = nt_node_at(arena, p->left), *right = nt_node_at(arena, p->right);
    uint8_t *bytes = bench->bytes;
    p->n = p->left_n = nt_node_decode(left, inner, bench->entries, &bytes);
    if (inner) {
        p->first = packed_child(left, 0);
        bench->entries[p->n] = p->separator;
        bench->entries[p->n++].value = packed_child(right, 0);
    }
    p->n += nt_node_decode(right, inner, bench->entries + p->n, &bytes);
}

static uint32_t count_entries(const nt_entry *entries, int n, int inner, uint64_t first) {
    if (!inner) return (uint32_t)n;
    uint32_t sum = (uint32_t)(first >> 32);
    for (int i = 0; i < n; i++) sum += (uint32_t)(entries[i].value >> 32);
    return sum;
}

/* Makes the two one, in the node `own` of this turn, which is one of them. */
static void join_pair(nt_arena *arena, pair *p, uint32_t own) {
    nt_bench *bench = nt_arena_scratch(arena);
    uint32_t count = nt_inner_count(p->above, p->i) + nt_inner_count(p->above, p->i + 1);
    nt_node_build(nt_node_at(arena, own), bench->entries, p->n, p->inner, p->first);
    nt_arena_retire(arena, own == p->left ? p->right : p->left);
    if (!p->inner) nt_chain_retire(arena, p->separator.more); /* an inner one's went down */
    nt_node_remove(p->above, 1, p->i, 0);
    nt_inner_set(p->above, p->i, own, count);
}

/* Gives `above` another separator between the two, where it has room. */
static int replace_separator(nt_arena *arena, pair *p, const nt_entry *separator) {
    nt_bench *bench = nt_arena_scratch(arena);
    uint64_t first = packed_child(p->above, 0);
    uint8_t *bytes = bench->upper_bytes;
    int n = nt_node_decode(p->above, 1, bench->upper, &bytes);
    uint64_t value = bench->upper[p->i].value;
    bench->upper[p->i] = *separator;
    bench->upper[p->i].value = value;
    if (nt_node_size(bench->upper, n, 1) > (int)NT_NODE_SIZE) return 0;
    nt_node_build(p->above, bench->upper, n, 1, first);
    return 1;
}

/* Lets the two have about half of the bytes each. 1: done, or not to be done (they stay as they are);
 * 0: memory is short. */
static int share_pair(nt_arena *arena, pair *p, uint32_t own) {
    nt_bench *bench = nt_arena_scratch(arena);
    nt_entry *entries = bench->entries, separator;
    uint8_t room[NT_NODE_INLINE];
    int inner = p->inner, cut = nt_node_cut(entries, p->n, inner, 0);
    if (cut == 0 || cut == p->left_n) return 1;
    if (inner) {
        separator = entries[cut];
    } else if (!nt_entry_separate(arena, &entries[cut - 1], &entries[cut], &separator, room)) {
        return 0;
    }
    if (!replace_separator(arena, p, &separator)) {
        if (!inner) nt_chain_retire(arena, separator.more);
        return 1;
    }
    if (!inner) nt_chain_retire(arena, p->separator.more);

    uint32_t other = own == p->left ? p->right : p->left, mine = other;
    if (((const nt_node *)nt_arena_node(arena, other))->birth != nt_arena_turn(arena)) {
        mine = nt_arena_new(arena);
        if (mine == 0) return 0;
        nt_arena_retire(arena, other);
    }
    uint32_t left = own == p->left ? own : mine, right = own == p->left ? mine : own;
    const nt_entry *rest = entries + cut + inner;
    int rest_n = p->n - cut - inner;
    uint64_t first = inner ? separator.value : 0;
    nt_node_build(nt_node_at(arena, left), entries, cut, inner, p->first);
    nt_node_build(nt_node_at(arena, right), rest, rest_n, inner, first);
    nt_inner_set(p->above, p->i, left, count_entries(entries, cut, inner, p->first));
    nt_inner_set(p->above, p->i + 1, right, count_entries(rest, rest_n, inner, first));
    return 1;
}

int nt_tree_relieve(nt_arena *arena, nt_tnode *above, int i, int inner, uint32_t own) {
    nt_bench *bench = nt_arena_scratch(arena);
    pair p;
    int last = nt_node_count(above);
    for (int left = 1; left >= 0; left--) {
        int at = left ? i - 1 : i;
        if (at < 0 || at + 1 > last) continue;
        open_pair(arena, above, at, inner, &p);
        if (nt_node_size(bench->entries, p.n, inner) <= JOINED) {
            join_pair(arena, &p, own);
            return 1;
        }
    }
    return last == 0 ? 1 : share_pair(arena, &p, own); /* the pair that was looked at last */
}

/* Takes child i, which is empty, out of the node above. 1 where that is without children now. */
static int remove_child(nt_arena *arena, nt_tnode *above, int i) {
    nt_entry separator;
    uint8_t room[NT_NODE_INLINE + 8];
    if (nt_node_count(above) == 0) return 1;
    int at = i > 0 ? i - 1 : 0;
    nt_node_entry(above, 1, at, &separator, room);
    nt_chain_retire(arena, separator.more);
    nt_node_remove(above, 1, at, i == 0);
    return 0;
}

/* Takes off roots with one child, or an empty one. */
static void lower_root(nt_arena *arena, nt_root *root) {
    for (;;) {
        uint32_t id = nt_root_id(*root);
        int height = nt_root_height(*root);
        const nt_tnode *node = nt_node_at(arena, id);
        if (nt_node_count(node) > 0) return;
        *root = height > 0 ? nt_root_of(nt_inner_child(node, 0), height - 1) : 0;
        nt_arena_retire(arena, id);
        if (height == 0) return;
    }
}

int nt_tree_shrink(nt_arena *arena, nt_root *root, nt_path *path) {
    int empty = nt_node_count(nt_node_at(arena, path->ids[path->depth])) == 0;
    for (int level = path->depth; level > 0; level--) {
        nt_tnode *node = nt_node_at(arena, path->ids[level]);
        nt_tnode *above = nt_node_at(arena, path->ids[level - 1]);
        int i = path->at[level - 1], inner = level < path->depth;
        if (empty) {
            nt_arena_retire(arena, path->ids[level]);
            empty = remove_child(arena, above, i);
        } else if (nt_node_used(node, inner) >= NT_TREE_LOW) {
            return 1;
        } else if (!nt_tree_relieve(arena, above, i, inner, path->ids[level])) {
            return 0;
        }
    }
    if (empty && path->depth > 0) { /* every node of the path had one child only */
        nt_arena_retire(arena, path->ids[0]);
        *root = 0;
    } else {
        lower_root(arena, root);
    }
    return 1;
}
