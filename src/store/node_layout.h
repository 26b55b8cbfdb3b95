/*
 * node_layout: where the bytes of a node lie; for the node*.c files alone.
 *
 *   nt_node       birth, and the arena's own words
 *   u16 n         entries
 *   u16 plen      length of the prefix that all keys of the node have in common (it may be shorter than it
 *                 could be); of a key over NT_NODE_INLINE only those bytes count
 *   u16 uniform   NT_VARIED, or the length of what follows the prefix in every key: then there are no slots
 *   u16 heap      where the suffix heap begins
 *   prefix        plen bytes, padded to 4
 *   i32 head[n]   the next 4 key bytes, zero-padded, as a big-endian number with the top bit flipped, so that
 *                 they compare as signed numbers do
 *   leaf:         u16 slot[n] unless uniform, 6-byte value[n]
 *   inner:        u32 child[n + 1], u32 count[n + 1], u16 slot[n] unless uniform
 *   free room
 *   suffix heap   what follows the head of each key; grows down, in key order, without holes. Entry 0's is
 *                 the last one. A long key's suffix ends in a trailer: u32 chain, u32 length of the key.
 *   slot          bits 0-11 where the suffix begins (the entry before it begins where this one ends), bits
 *                 12-14 key bytes in the head (0 to 4), bit 15 long key
 *
 * Keys with equal heads are in the order of (bytes in the head, suffix, suffix length, long or not, chain):
 * with fewer bytes in the head a key is the beginning of the other, as the padding is equal.
 */
#ifndef NT_STORE_NODE_LAYOUT_H
#define NT_STORE_NODE_LAYOUT_H

#include "store/node.h"

#define NT_HEADER 32 /* bytes before the prefix */

struct nt_tnode {
    nt_node node;
    uint16_t n;
    uint16_t plen;
    uint16_t uniform;
    uint16_t heap;
    uint8_t data[NT_NODE_SIZE - NT_HEADER];
};

#define NT_VARIED 0xFFFFu
#define NT_HEAD 4       /* key bytes in a head */
#define NT_TRAILER 8    /* bytes behind a long key's suffix */
#define NT_SLOT_LONG 0x8000u
#define NT_SIZE ((int)NT_NODE_SIZE)

static inline int nt_varied(const nt_tnode *node) { return node->uniform == NT_VARIED; }

static inline int nt_prefix_room(int plen) { return (plen + 3) & ~3; }

static inline uint8_t *nt_base(const nt_tnode *node) { return (uint8_t *)(uintptr_t)node; }

static inline int32_t *nt_heads(const nt_tnode *node) {
    return (int32_t *)(void *)(nt_base(node) + NT_HEADER + nt_prefix_room(node->plen));
}

static inline uint16_t *nt_leaf_slots(const nt_tnode *leaf) {
    return (uint16_t *)(void *)(nt_heads(leaf) + leaf->n);
}

static inline uint8_t *nt_values(const nt_tnode *leaf) {
    return (uint8_t *)nt_leaf_slots(leaf) + (nt_varied(leaf) ? 2 * leaf->n : 0);
}

static inline uint32_t *nt_children(const nt_tnode *inner) {
    return (uint32_t *)(void *)(nt_heads(inner) + inner->n);
}

static inline uint32_t *nt_counts(const nt_tnode *inner) { return nt_children(inner) + inner->n + 1; }

static inline uint16_t *nt_inner_slots(const nt_tnode *inner) {
    return (uint16_t *)(void *)(nt_counts(inner) + inner->n + 1);
}

static inline uint16_t *nt_slots(const nt_tnode *node, int inner) {
    return inner ? nt_inner_slots(node) : nt_leaf_slots(node);
}

/* Bytes of an entry in the arrays, and where the arrays of n entries end. */
static inline int nt_entry_room(int inner, int varied) {
    return NT_HEAD + (inner ? 8 : 6) + (varied ? 2 : 0);
}

static inline int nt_arrays_end(int plen, int n, int inner, int varied) {
    return NT_HEADER + nt_prefix_room(plen) + n * nt_entry_room(inner, varied) + (inner ? 8 : 0);
}

static inline int32_t nt_head_load(const uint8_t *key) { return (int32_t)(nt_load32be(key) ^ 0x80000000u); }

static inline void nt_head_store(uint8_t *key, int32_t head) {
    nt_store32be(key, (uint32_t)head ^ 0x80000000u);
}

static inline int nt_slot_at(uint16_t slot) { return slot & 0xFFF; }
static inline int nt_slot_held(uint16_t slot) { return slot >> 12 & 7; }

/* The tail of a key: what follows prefix and head. */
typedef struct nt_tail {
    const uint8_t *at;
    int len;  /* key bytes */
    int held; /* key bytes in the head */
    int more; /* a trailer follows */
} nt_tail;

/* Where the rest of entry i's key lies. */
static inline nt_tail nt_tail_of(const nt_tnode *node, const uint16_t *slots, int i) {
    nt_tail t;
    if (!nt_varied(node)) {
        int rest = node->uniform;
        t.held = rest < NT_HEAD ? rest : NT_HEAD;
        t.len = rest - t.held;
        t.at = nt_base(node) + NT_SIZE - (i + 1) * t.len;
        t.more = 0;
        return t;
    }
    uint16_t slot = slots[i];
    int end = i ? nt_slot_at(slots[i - 1]) : NT_SIZE;
    t.held = nt_slot_held(slot);
    t.more = (slot & NT_SLOT_LONG) != 0;
    t.len = end - nt_slot_at(slot) - (t.more ? NT_TRAILER : 0);
    t.at = nt_base(node) + nt_slot_at(slot);
    return t;
}

#endif
