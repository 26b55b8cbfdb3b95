#include "store/tree_path.h"

static void make_gap(nt_entry *entries, int n, int i) {
    memmove(entries + i + 1, entries + i, (size_t)(n - i) * sizeof(*entries));
}

/* A split of one node as the level above has to know it. */
typedef struct split {
    nt_entry separator;     /* with the new node on the right as its value */
    uint32_t left_count;    /* keys that stayed */
    uint8_t room[2][NT_NODE_INLINE]; /* the separator's bytes, of the two levels in turn */
} split;

/* Whether the entry at the end of the path is the tree's last (1), its first (-1), or neither. */
static int edge_of(const nt_arena *arena, const nt_path *path) {
    int first = 1, last = 1;
    for (int level = 0; level <= path->depth; level++) {
        first &= path->at[level] == 0;
        last &= path->at[level] == nt_node_count(nt_node_at(arena, path->ids[level]));
    }
    return last ? 1 : first ? -1 : 0;
}

/* Puts an entry into a leaf that has no room for it as it is laid out. 1: done; 0: memory is short;
 * -1: it was split. */
static int grow_leaf(nt_arena *arena, nt_tnode *leaf, int i, const nt_entry *entry, int edge, split *s) {
    nt_bench *bench = nt_arena_scratch(arena);
    nt_entry *entries = bench->entries;
    uint8_t *bytes = bench->bytes;
    int n = nt_node_decode(leaf, 0, entries, &bytes);
    make_gap(entries, n++, i);
    entries[i] = *entry;
    if (nt_node_size(entries, n, 0) <= (int)NT_NODE_SIZE) {
        nt_node_build(leaf, entries, n, 0, 0);
        return 1;
    }
    int cut = nt_node_cut(entries, n, 0, edge);
    uint32_t right = nt_arena_new(arena);
    if (cut == 0 || right == 0) return 0;
    if (!nt_entry_separate(arena, &entries[cut - 1], &entries[cut], &s->separator, s->room[0])) return 0;
    nt_node_build(leaf, entries, cut, 0, 0);
    nt_node_build(nt_node_at(arena, right), entries + cut, n - cut, 0, 0);
    s->separator.value = nt_child_pack(right, (uint32_t)(n - cut));
    s->left_count = (uint32_t)cut;
    return -1;
}

static uint32_t count_children(uint64_t first, const nt_entry *entries, int n) {
    uint32_t sum = (uint32_t)(first >> 32);
    for (int i = 0; i < n; i++) sum += (uint32_t)(entries[i].value >> 32);
    return sum;
}

/* The same one level up: puts the separator of a split below into an inner node, right of child i. */
static int grow_inner(nt_arena *arena, nt_tnode *inner, int i, int edge, int level, split *s) {
    nt_bench *bench = nt_arena_scratch(arena);
    nt_entry *entries = bench->entries;
    nt_inner_set(inner, i, nt_inner_child(inner, i), s->left_count);
    if (nt_node_insert(inner, 1, i, &s->separator)) return 1;
    uint64_t first = nt_child_pack(nt_inner_child(inner, 0), nt_inner_count(inner, 0));
    uint8_t *bytes = bench->bytes;
    int n = nt_node_decode(inner, 1, entries, &bytes);
    make_gap(entries, n++, i);
    entries[i] = s->separator;
    if (nt_node_size(entries, n, 1) <= (int)NT_NODE_SIZE) {
        nt_node_build(inner, entries, n, 1, first);
        return 1;
    }
    int cut = nt_node_cut(entries, n, 1, edge);
    uint32_t right = nt_arena_new(arena);
    if (cut == 0 || right == 0) return 0;
    nt_entry up = entries[cut];
    nt_node_build(inner, entries, cut, 1, first);
    nt_node_build(nt_node_at(arena, right), entries + cut + 1, n - cut - 1, 1, up.value);
    s->left_count = count_children(first, entries, cut);
    uint32_t right_count = count_children(up.value, entries + cut + 1, n - cut - 1);
    /* `up` may be the separator from below, whose bytes lie in the other room. */
    uint8_t *room = s->room[level & 1];
    memcpy(room, up.at, nt_min(up.len, NT_NODE_INLINE));
    s->separator = (nt_entry){room, up.len, up.more, nt_child_pack(right, right_count)};
    return -1;
}

/* Puts a new root above a root that was split. */
static int grow_root(nt_arena *arena, nt_root *root, const split *s) {
    int height = nt_root_height(*root) + 1;
    uint32_t id = height > NT_PATH_MAX ? 0 : nt_arena_new(arena);
    if (id == 0) return 0;
    nt_node_build(nt_node_at(arena, id), &s->separator, 1, 1,
                  nt_child_pack(nt_root_id(*root), s->left_count));
    *root = nt_root_of(id, height);
    return 1;
}

int nt_tree_grow(nt_arena *arena, nt_root *root, nt_path *path, const nt_entry *entry) {
    split s;
    int edge = edge_of(arena, path), level = path->depth;
    int done = grow_leaf(arena, nt_node_at(arena, path->ids[level]), path->at[level], entry, edge, &s);
    for (int up = 1; done < 0 && level > 0; up++) {
        level--;
        done = grow_inner(arena, nt_node_at(arena, path->ids[level]), path->at[level], edge, up, &s);
    }
    return done < 0 ? grow_root(arena, root, &s) : done;
}
