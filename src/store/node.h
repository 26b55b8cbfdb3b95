/*
 * node: what is inside one node of a tree, for the tree modules alone (others see it through tree.h).
 *
 * A leaf holds keys with their 48-bit values; an inner node holds n separators and n + 1 children, each with
 * the number of keys below it. A separator is greater than every key to its left and not greater than any
 * to its right. An inner node may have one child and no separator. Where a byte lies is known to the node*.c
 * files alone (node_layout.h).
 *
 * Of a key over NT_NODE_INLINE bytes a node holds the first NT_NODE_INLINE, and the rest lies in a chain of
 * overflow nodes of the same arena. A chain never changes. It belongs to the one place in the newest version
 * that names it, a leaf's entry or a separator: copies of the node in newer versions share it, and it is
 * retired when the entry goes from the tree.
 *
 * Functions that take `inner` want 1 for an inner node, 0 for a leaf: a node does not say which it is, its
 * depth does.
 */
#ifndef NT_STORE_NODE_H
#define NT_STORE_NODE_H

#include "base/bytes.h"
#include "store/arena.h"

#define NT_NODE_INLINE 240u /* bytes of a key in a node, at most */
#define NT_NODE_ENTRIES 104 /* more than any node can hold */

typedef struct nt_tnode nt_tnode;

/* A key to search for, made ready. It refers to the caller's key, which is never read past its end. */
typedef struct nt_probe {
    const uint8_t *key;
    uint32_t len;
    uint32_t inl;  /* bytes of it in `head` */
    uint32_t bump; /* added to the last byte of a key over NT_NODE_INLINE */
    uint8_t room[8]; /* a read that ends in `head` may begin here */
    uint8_t head[NT_NODE_INLINE + 32]; /* at least 8 zero bytes follow the key */
} nt_probe;

/* One entry outside of a node. */
typedef struct nt_entry {
    const uint8_t *at; /* the first min(len, NT_NODE_INLINE) bytes of the key */
    uint32_t len;      /* of the whole key */
    uint32_t more;     /* the chain with the rest, or 0 */
    uint64_t value;    /* leaf: the value; inner: the child on the right, nt_child_pack */
} nt_entry;

/* Room for the entries of two nodes and a new one, and for another node: nt_arena_scratch as the tree uses
 * it. */
typedef struct nt_bench {
    nt_entry entries[2 * NT_NODE_ENTRIES];
    nt_entry upper[NT_NODE_ENTRIES];
    uint8_t bytes[2 * NT_NODE_ENTRIES * (NT_NODE_INLINE + 8)];
    uint8_t upper_bytes[NT_NODE_ENTRIES * (NT_NODE_INLINE + 8)];
} nt_bench;

static inline uint64_t nt_child_pack(uint32_t child, uint32_t count) {
    return child | (uint64_t)count << 32;
}

/* Asks the processor for a whole node. Always inline: a compiler that meets the call first finds that it does
 * nothing, and removes it. */
__attribute__((always_inline)) static inline void nt_node_prefetch(const void *node) {
    const uint8_t *line = node;
    for (unsigned i = 0; i < NT_NODE_SIZE; i += 256) {
        __builtin_prefetch(line + i);
        __builtin_prefetch(line + i + 64);
        __builtin_prefetch(line + i + 128);
        __builtin_prefetch(line + i + 192);
    }
}

static inline nt_tnode *nt_node_at(const nt_arena *arena, uint32_t id) { return nt_arena_node(arena, id); }

/* ---- Search (node.c) ---- */

/* A probe for `key`, which must stay where it is. */
void nt_probe_set(nt_probe *probe, const void *key, size_t len);
/* A probe that is greater than every key that begins with `prefix` and less than all that follow.
 * 0 where there is none: nothing follows. */
int nt_probe_set_after(nt_probe *probe, const void *prefix, size_t len);

/* The index of the first key that is not less than the probe (n where there is none); *equal: it is the
 * probe. */
int nt_leaf_search(const nt_arena *arena, const nt_tnode *leaf, const nt_probe *probe, int *equal);
/* The value of the probe's key, or UINT64_MAX. */
uint64_t nt_leaf_find(const nt_arena *arena, const nt_tnode *leaf, const nt_probe *probe);
/* The child that the probe belongs into, and *i, its index. */
uint32_t nt_inner_search(const nt_arena *arena, const nt_tnode *inner, const nt_probe *probe, int *i);

/* ---- Reading (node.c) ---- */

/* Keys of a leaf, separators of an inner node. */
int nt_node_count(const nt_tnode *node);
/* Bytes of NT_NODE_SIZE that are taken. */
int nt_node_used(const nt_tnode *node, int inner);
/* The value of entry i. */
uint64_t nt_leaf_value(const nt_tnode *leaf, int i);
/* Copies values[from], from + step, ... */
void nt_leaf_values(const nt_tnode *leaf, int from, int count, int step, uint64_t *values);
uint32_t nt_inner_child(const nt_tnode *inner, int i);
uint32_t nt_inner_count(const nt_tnode *inner, int i);
/* The keys below the children before child i; with i = n + 1, all. */
uint64_t nt_inner_before(const nt_tnode *inner, int i);
/* Entry i. `room` has NT_NODE_INLINE + 8 bytes for the key. */
void nt_node_entry(const nt_tnode *node, int inner, int i, nt_entry *entry, uint8_t *room);
/* What is wrong with the inside of a node, or NULL. */
const char *nt_node_check(const nt_tnode *node, int inner);

/* ---- Emitting the keys of a leaf (node_emit.c) ---- */

/* How many of `most` entries from `from` on, going up or down, fit into `room` bytes at 2 bytes and the key
 * each. */
int nt_leaf_fit(const nt_tnode *leaf, int from, int most, int up, size_t room);
/* Writes the keys of `count` entries from `from` on, going up or down: the bytes one behind the other from
 * *bytes on, the lengths (u16, low 16 bits) downwards from *lens, and moves both; ORs all key bytes into
 * *seen. Between the two it may write up to 64 bytes too many where `slack` is set. */
void nt_leaf_emit(const nt_arena *arena, const nt_tnode *leaf, int from, int count, int up, int slack,
                  uint8_t **bytes, uint8_t **lens, uint8_t *seen);
/* The length of key i, and the key copied to `out`. */
size_t nt_leaf_key_length(const nt_tnode *leaf, int i);
void nt_leaf_key(const nt_arena *arena, const nt_tnode *leaf, int i, uint8_t *out);

/* ---- Changing a node of this turn (node_edit.c) ---- */

/* Copies everything but the birth, used bytes only. */
void nt_node_copy(nt_tnode *to, const nt_tnode *from, int inner);
void nt_leaf_set(nt_tnode *leaf, int i, uint64_t value);
void nt_inner_set(nt_tnode *inner, int i, uint32_t child, uint32_t count);
void nt_inner_set_child(nt_tnode *inner, int i, uint32_t child);
void nt_inner_add(nt_tnode *inner, int i, int difference);
/* Inserts an entry (an inner node's: the separator, and the child right of it) at i. 0, and nothing
 * changed, where that takes a new layout: no room, another prefix, other lengths. */
int nt_node_insert(nt_tnode *node, int inner, int i, const nt_entry *entry);
/* Removes entry i; of an inner node, with it the child on its right, or else (left) the child on its left. */
void nt_node_remove(nt_tnode *node, int inner, int i, int left);

/* Takes a node apart: entries whose key bytes are written to *bytes, which moves behind them: NT_NODE_INLINE
 * + 8 bytes an entry at most. Returns n. */
int nt_node_decode(const nt_tnode *node, int inner, nt_entry *entries, uint8_t **bytes);
/* The bytes that a node of these entries takes. */
int nt_node_size(const nt_entry *entries, int n, int inner);
/* Makes a node of entries that fit. `first`: an inner node's first child, packed. */
void nt_node_build(nt_tnode *node, const nt_entry *entries, int n, int inner, uint64_t first);
/* Where to split entries: a leaf's right half begins there; of an inner node that separator goes up.
 * Both halves fit. edge: -1 or 1 where the new entry is the tree's first or last, so that keys put in
 * order fill nodes. 0 where there is no such place (never after one insertion into a node that fit). */
int nt_node_cut(const nt_entry *entries, int n, int inner, int edge);

/* ---- Chains, and entries outside of nodes (node_chain.c) ---- */

/* A chain of these bytes (at least one), or 0 where memory is short. */
uint32_t nt_chain_new(nt_arena *arena, const uint8_t *bytes, size_t len);
void nt_chain_retire(nt_arena *arena, uint32_t chain);
/* The number of nodes in the chain of a key of `len` bytes. */
uint32_t nt_chain_nodes(uint32_t len);
/* The next node of a chain, or 0. */
uint32_t nt_chain_next(const nt_arena *arena, uint32_t chain);
/* Copies `len` bytes of a chain. */
void nt_chain_read(const nt_arena *arena, uint32_t chain, uint8_t *out, size_t len);
/* Compares the key in NT_NODE_INLINE bytes and a chain, of `len` bytes, with a probe that is over
 * NT_NODE_INLINE and begins with the same NT_NODE_INLINE bytes. */
int nt_chain_compare(const nt_arena *arena, uint32_t chain, uint32_t len, const nt_probe *probe);

/* Compares two keys. */
int nt_entry_compare(const nt_arena *arena, const nt_entry *a, const nt_entry *b);
/* The shortest separator between a key and the one after it. Its bytes go to `room` (NT_NODE_INLINE). 0 where
 * memory is short: it may need a chain of its own. */
int nt_entry_separate(nt_arena *arena, const nt_entry *before, const nt_entry *after, nt_entry *separator,
                      uint8_t *room);

#ifdef NT_TESTING
/* The two ways of counting the heads less than one: n <= 128 sorted heads, and 256 readable bytes from the
 * middle one on. */
int nt_node_less_portable(const int32_t *heads, int n, int32_t head);
int nt_node_less(const int32_t *heads, int n, int32_t head);
#endif

#endif
