#include "store/tree_build.h"

#include "store/node_layout.h"
#include "store/tree_path.h"

#define FULL ((int)NT_NODE_SIZE * 15 / 16)

static nt_bench *bench_of(const nt_build *build) { return nt_arena_scratch(build->arena); }

static int refuse(nt_build *build, nt_build_fault fault) {
    build->fault = fault;
    return 0;
}

static int inline_length(const nt_entry *entry) { return (int)nt_min(entry->len, NT_NODE_INLINE); }

static int trailer(const nt_entry *entry) { return entry->more ? NT_TRAILER : 0; }

/* The number of bytes in common, at most `most`; 8 readable bytes follow both. */
static inline int common(const uint8_t *a, const uint8_t *b, int most) {
    for (int i = 0; i < most; i += 8) {
        uint64_t differ = nt_load64(a + i) ^ nt_load64(b + i);
        if (differ == 0) continue;
        i += __builtin_ctzll(differ) >> 3;
        return i < most ? i : most;
    }
    return most;
}

/* ---- Above the leaves ---- */

/* Adds a separator, and the child right of it, at the end of an inner node; 0 where it is full. */
static int append(nt_build *build, nt_tnode *inner, const nt_entry *entry) {
    nt_bench *bench = bench_of(build);
    int n = nt_node_count(inner);
    if (nt_node_used(inner, 1) >= FULL) return 0;
    if (nt_node_insert(inner, 1, n, entry)) return 1;
    uint64_t first = nt_child_pack(nt_inner_child(inner, 0), nt_inner_count(inner, 0));
    uint8_t *bytes = bench->upper_bytes;
    nt_node_decode(inner, 1, bench->upper, &bytes);
    bench->upper[n] = *entry;
    if (nt_node_size(bench->upper, n + 1, 1) > FULL) return 0;
    nt_node_build(inner, bench->upper, n + 1, 1, first);
    return 1;
}

/* Puts a new root above the old one, which has `count` keys, and its new neighbour. */
static int grow_root(nt_build *build, const nt_entry *entry, uint64_t count) {
    int height = nt_root_height(build->root) + 1;
    uint32_t id = height > NT_PATH_MAX ? 0 : nt_arena_new(build->arena);
    if (id == 0) return 0;
    nt_node_build(nt_node_at(build->arena, id), entry, 1, 1,
                  nt_child_pack(nt_root_id(build->root), (uint32_t)count));
    build->spine[height - 1] = id;
    build->root = nt_root_of(id, height);
    return 1;
}

/* Puts a leaf of `count` keys at the end of the tree. A node that is full is left behind, and one that has
 * only the new child goes on beside it. 0 where memory is short. */
static int link_leaf(nt_build *build, uint32_t leaf, uint32_t count) {
    nt_arena *arena = build->arena;
    if (build->root == 0) {
        build->root = nt_root_of(leaf, 0);
        return 1;
    }
    int height = nt_root_height(build->root), level = 0;
    uint64_t before = nt_tree_count(arena, build->root);
    nt_entry entry = build->separator;
    entry.value = nt_child_pack(leaf, count);
    while (level < height && !append(build, nt_node_at(arena, build->spine[level]), &entry)) {
        uint32_t id = nt_arena_new(arena);
        if (id == 0) return 0;
        nt_node_build(nt_node_at(arena, id), NULL, 0, 1, entry.value);
        entry.value = nt_child_pack(id, count);
        build->spine[level++] = id;
    }
    if (level == height) return grow_root(build, &entry, before);
    for (level++; level < height; level++) {
        nt_tnode *inner = nt_node_at(arena, build->spine[level]);
        nt_inner_add(inner, nt_node_count(inner), (int)count);
    }
    return 1;
}

/* ---- Leaves ---- */

/* Makes the entries on the bench a leaf. */
static int end_leaf(nt_build *build) {
    uint32_t id = nt_arena_new(build->arena);
    if (id == 0) return 0;
    nt_node_build(nt_node_at(build->arena, id), bench_of(build)->entries, build->leaf.n, 0, 0);
    return link_leaf(build, id, (uint32_t)build->leaf.n);
}

/* Ends the leaf on the bench, and begins the next one with the entry behind it. */
static int turn_page(nt_build *build) {
    nt_bench *bench = bench_of(build);
    nt_entry *next = &bench->entries[build->leaf.n];
    if (!end_leaf(build) || !nt_entry_separate(build->arena, next - 1, next, &build->separator,
                                               build->separator_room))
        return 0;
    memmove(bench->bytes, next->at, (size_t)inline_length(next) + 8);
    bench->entries[0] = *next;
    bench->entries[0].at = bench->bytes;
    build->room = bench->bytes;
    build->leaf.n = 0;
    return 1;
}

/* The leaf with one more entry, which is behind its own on the bench. */
static inline nt_build_leaf leaf_with(const nt_build *build, const nt_entry *entries, const nt_entry *entry) {
    nt_build_leaf leaf = build->leaf;
    int length = inline_length(entry);
    if (leaf.n++ == 0) return (nt_build_leaf){1, length, entry->more != 0, length, length + trailer(entry)};
    leaf.plen = common(entries[0].at, entry->at, length < leaf.plen ? length : leaf.plen);
    leaf.varied |= entry->more != 0 || entry->len != entries[0].len;
    if (length < leaf.shortest) leaf.shortest = length;
    leaf.bytes += length + trailer(entry);
    return leaf;
}

static inline int fits(const nt_build_leaf *leaf, const nt_entry *entries) {
    int heads = leaf->plen + (leaf->shortest - leaf->plen < NT_HEAD ? 0 : NT_HEAD);
    if (nt_arrays_end(leaf->plen, leaf->n, 0, leaf->varied) + leaf->bytes - leaf->n * heads <= FULL) return 1;
    /* Exact where no key is shorter than prefix and head; else that was too much. */
    return heads == leaf->plen && nt_node_size(entries, leaf->n, 0) <= FULL;
}

/* Whether an entry is greater than the one ahead of it on the bench. */
static inline int ascends(const nt_arena *arena, const nt_entry *entry) {
    const nt_entry *last = entry - 1;
    int a = inline_length(last), b = inline_length(entry), most = a < b ? a : b;
    int same = common(last->at, entry->at, most);
    if (same < most) return last->at[same] < entry->at[same];
    if (entry->more && last->more) return nt_entry_compare(arena, last, entry) < 0;
    return last->len < entry->len;
}

void nt_build_begin(nt_build *build, nt_arena *arena) {
    build->fault = NT_BUILD_FINE;
    build->arena = arena;
    build->count = 0;
    build->root = 0;
    build->leaf.n = 0;
    build->room = bench_of(build)->bytes;
}

int nt_build_add(nt_build *build, const void *key, size_t key_len, uint64_t value) {
    nt_entry *entries = bench_of(build)->entries, *entry = &entries[build->leaf.n];
    size_t inl = nt_min(key_len, NT_NODE_INLINE);
    if (key_len > NT_TREE_KEY_MAX || build->count == UINT32_MAX) return refuse(build, NT_BUILD_ORDER);
    if (inl) memcpy(build->room, key, inl);
    nt_store64(build->room + inl, 0);
    *entry = (nt_entry){.at = build->room, .len = (uint32_t)key_len, .value = value};
    if (key_len > NT_NODE_INLINE) {
        entry->more = nt_chain_new(build->arena, (const uint8_t *)key + inl, key_len - inl);
        if (entry->more == 0) return refuse(build, NT_BUILD_MEMORY);
    }
    nt_build_leaf leaf = leaf_with(build, entries, entry);
    if (leaf.n > 1) {
        if (!ascends(build->arena, entry)) return refuse(build, NT_BUILD_ORDER);
        if (!fits(&leaf, entries)) {
            if (!turn_page(build)) return refuse(build, NT_BUILD_MEMORY);
            leaf = leaf_with(build, entries, entries);
        }
    }
    build->leaf = leaf;
    build->room += inl + 8;
    build->count++;
    return 1;
}

/* Goes down the right edge of the tree, where nodes may have few entries or none, and lets those share with
 * their neighbours. (No two become one: the left one was left behind because the next entry was too much for
 * it.) */
static int mend(nt_build *build) {
    nt_arena *arena = build->arena;
    uint32_t id = nt_root_id(build->root);
    for (int height = nt_root_height(build->root); height > 0; height--) {
        nt_tnode *node = nt_node_at(arena, id);
        int last = nt_node_count(node), inner = height > 1;
        id = nt_inner_child(node, last);
        if (last > 0 && nt_node_used(nt_node_at(arena, id), inner) < NT_TREE_LOW &&
            !nt_tree_relieve(arena, node, last, inner, id))
            return 0;
    }
    return 1;
}

int nt_build_end(nt_build *build, nt_root *root) {
    if (build->leaf.n > 0 && (!end_leaf(build) || !mend(build))) return refuse(build, NT_BUILD_MEMORY);
    *root = build->root;
    return 1;
}
