#include "store/node_layout.h"

#if defined(__SSE2__) && !defined(NT_NO_SIMD)
#include <emmintrin.h>
#define SIMD 1
#else
#define SIMD 0
#endif

_Static_assert(sizeof(nt_tnode) == NT_NODE_SIZE, "a node is a node");
_Static_assert(offsetof(nt_tnode, data) == NT_HEADER, "the header has its size");
_Static_assert(sizeof(nt_bench) <= NT_ARENA_SCRATCH, "the bench fits the scratch room");

/* ---- Probes ---- */

/* Copies len bytes, len <= NT_NODE_INLINE, reading not one more: short keys without a call. */
static inline void copy_key(uint8_t *to, const uint8_t *from, size_t len) {
    if (len >= 16 && len <= 32) {
        uint64_t w[4];
        memcpy(w, from, 16);
        memcpy(w + 2, from + len - 16, 16);
        memcpy(to, w, 16);
        memcpy(to + len - 16, w + 2, 16);
    } else if (len >= 8 && len < 16) {
        uint64_t first = nt_load64(from), last = nt_load64(from + len - 8);
        nt_store64(to, first);
        nt_store64(to + len - 8, last);
    } else if (len > 0) {
        memcpy(to, from, len);
    }
}

static inline void set_probe(nt_probe *probe, const uint8_t *key, size_t len) {
    probe->key = key;
    probe->len = (uint32_t)len;
    probe->inl = (uint32_t)nt_min(len, NT_NODE_INLINE);
    probe->bump = 0;
    copy_key(probe->head, key, probe->inl);
    nt_store64(probe->head + probe->inl, 0);
}

void nt_probe_set(nt_probe *probe, const void *key, size_t len) { set_probe(probe, key, len); }

int nt_probe_set_after(nt_probe *probe, const void *prefix, size_t len) {
    const uint8_t *key = prefix;
    while (len > 0 && key[len - 1] == 0xFF) len--; /* the next one after "a\xFF" is "b" */
    if (len == 0) return 0;
    set_probe(probe, key, len);
    if (len > NT_NODE_INLINE) {
        probe->bump = 1;
    } else {
        probe->head[len - 1]++;
    }
    return 1;
}

/* ---- Search ---- */

/* The number of n sorted heads that are less than `head`; n <= 128. */
#if !SIMD || defined(NT_TESTING)
static inline int less_portable(const int32_t *heads, int n, int32_t head) {
    const int32_t *at = heads;
    while (n > 8) {
        int half = n >> 1;
        at += at[half - 1] < head ? half : 0;
        n -= half;
    }
    int less = 0;
    for (int i = 0; i < n; i++) less += at[i] < head;
    return (int)(at - heads) + less;
}
#endif

#if SIMD
static inline uint64_t less_mask16(const int32_t *at, __m128i head) {
    __m128i a = _mm_cmpgt_epi32(head, _mm_loadu_si128((const __m128i *)(const void *)at));
    __m128i b = _mm_cmpgt_epi32(head, _mm_loadu_si128((const __m128i *)(const void *)(at + 4)));
    __m128i c = _mm_cmpgt_epi32(head, _mm_loadu_si128((const __m128i *)(const void *)(at + 8)));
    __m128i d = _mm_cmpgt_epi32(head, _mm_loadu_si128((const __m128i *)(const void *)(at + 12)));
    __m128i bytes = _mm_packs_epi16(_mm_packs_epi32(a, b), _mm_packs_epi32(c, d));
    return (uint64_t)(uint32_t)_mm_movemask_epi8(bytes);
}

/* One halving without a branch, then 64 heads at once. It reads past the heads, but not past the node. */
static inline int less(const int32_t *heads, int n, int32_t head) {
    int half = n >> 1;
    const int32_t *at = heads;
    if (half > 0) at += -(int)(at[half - 1] < head) & half;
    n -= half;
    __m128i wide = _mm_set1_epi32(head);
    uint64_t mask = less_mask16(at, wide) | less_mask16(at + 16, wide) << 16 |
                    less_mask16(at + 32, wide) << 32 | less_mask16(at + 48, wide) << 48;
    if (n < 64) mask &= ((uint64_t)1 << n) - 1u;
    /* Sorted, so the bits are a block from 0 up: count the trailing ones. */
    return (int)(at - heads) + (~mask == 0 ? 64 : __builtin_ctzll(~mask));
}
#else
static inline int less(const int32_t *heads, int n, int32_t head) { return less_portable(heads, n, head); }
#endif

#ifdef NT_TESTING
int nt_node_less_portable(const int32_t *heads, int n, int32_t head) { return less_portable(heads, n, head); }
int nt_node_less(const int32_t *heads, int n, int32_t head) { return less(heads, n, head); }
#endif

/* Compares the node's prefix with the probe's beginning, which has at least that many bytes. */
static inline int compare_prefix(const nt_tnode *node, const nt_probe *probe) {
    int plen = node->plen;
#if SIMD
    const __m128i *a = (const __m128i *)(const void *)node->data;
    const __m128i *b = (const __m128i *)(const void *)probe->head;
    uint32_t same = (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_loadu_si128(a), _mm_loadu_si128(b)));
    same |= (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_loadu_si128(a + 1), _mm_loadu_si128(b + 1))) << 16;
    uint32_t differ = ~same & (plen >= 32 ? ~0u : (1u << plen) - 1u);
    if (differ) {
        int i = __builtin_ctz(differ);
        return node->data[i] - probe->head[i];
    }
    return plen > 32 ? memcmp(node->data + 32, probe->head + 32, (size_t)plen - 32) : 0;
#else
    return memcmp(node->data, probe->head, (size_t)plen);
#endif
}

/* Compares len bytes, 8 at a time; may read up to 7 bytes before both. Never past the end: behind a node may
 * be one that the writer is writing. */
static inline int compare_bytes(const uint8_t *a, const uint8_t *b, int len) {
    int i = 0;
    uint64_t x, y;
    for (; i + 8 <= len; i += 8) {
        x = nt_load64be(a + i);
        y = nt_load64be(b + i);
        if (x != y) return x < y ? -1 : 1;
    }
    if (i == len) return 0;
    uint64_t mask = UINT64_MAX >> (64 - 8 * (len - i));
    x = nt_load64be(a + len - 8) & mask;
    y = nt_load64be(b + len - 8) & mask;
    return x < y ? -1 : x > y;
}

/* Compares entry i, whose head is equal to the probe's, with the probe. `rest` is what of the probe's inline
 * bytes follows the prefix. */
static inline int compare_tail(const nt_arena *arena, const nt_tnode *node, const uint16_t *slots, int i,
                               const nt_probe *probe, int rest) {
    nt_tail t = nt_tail_of(node, slots, i);
    int held = rest < NT_HEAD ? rest : NT_HEAD;
    if (t.held != held) return t.held - held;
    int len = rest - held;
    int c = compare_bytes(t.at, probe->head + node->plen + held, t.len < len ? t.len : len);
    if (c != 0) return c;
    if (t.len != len) return t.len - len;
    int more = probe->len > NT_NODE_INLINE;
    if (__builtin_expect(!t.more && !more, 1)) return 0;
    if (!t.more || !more) return t.more - more;
    return nt_chain_compare(arena, nt_load32(t.at + t.len), nt_load32(t.at + t.len + 4), probe);
}

/* The place of a probe among equal heads from i on, of which entry i - 1 is the first and less. */
static int search_run(const nt_arena *arena, const nt_tnode *node, const uint16_t *slots, int i,
                      const nt_probe *probe, int rest, int *equal) {
    const int32_t *heads = nt_heads(node);
    int32_t head = heads[i];
    int low = i, high = i + 1;
    while (high < node->n && heads[high] == head) high++;
    while (low < high) {
        int middle = (low + high) >> 1;
        int c = compare_tail(arena, node, slots, middle, probe, rest);
        if (c == 0) {
            *equal = 1;
            return middle;
        }
        if (c < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

__attribute__((always_inline)) static inline int search(const nt_arena *arena, const nt_tnode *node,
                                                        int inner, const nt_probe *probe, int *equal) {
    int n = node->n, plen = node->plen;
    *equal = 0;
    if (plen) {
        if (__builtin_expect(probe->inl < (uint32_t)plen, 0)) {
            return memcmp(node->data, probe->head, probe->inl) < 0 ? n : 0;
        }
        int c = compare_prefix(node, probe);
        if (__builtin_expect(c != 0, 0)) return c < 0 ? n : 0;
    }
    int32_t head = nt_head_load(probe->head + plen);
    const int32_t *heads = nt_heads(node);
    int i = less(heads, n, head);
    if (i < n && heads[i] == head) {
        const uint16_t *slots = nt_slots(node, inner);
        int rest = (int)probe->inl - plen;
        int c = compare_tail(arena, node, slots, i, probe, rest);
        *equal = c == 0;
        if (c >= 0) return i;
        i++;
        if (i < n && heads[i] == head) return search_run(arena, node, slots, i, probe, rest, equal);
    }
    return i;
}

int nt_leaf_search(const nt_arena *arena, const nt_tnode *leaf, const nt_probe *probe, int *equal) {
    return search(arena, leaf, 0, probe, equal);
}

uint64_t nt_leaf_find(const nt_arena *arena, const nt_tnode *leaf, const nt_probe *probe) {
    int equal;
    int i = search(arena, leaf, 0, probe, &equal);
    return equal ? nt_load48(nt_values(leaf) + 6 * i) : UINT64_MAX;
}

uint32_t nt_inner_search(const nt_arena *arena, const nt_tnode *inner, const nt_probe *probe, int *i) {
    int equal;
    *i = search(arena, inner, 1, probe, &equal);
    *i += equal;
    return nt_children(inner)[*i];
}

/* ---- Reading ---- */

int nt_node_count(const nt_tnode *node) { return node->n; }

int nt_node_used(const nt_tnode *node, int inner) {
    return nt_arrays_end(node->plen, node->n, inner, nt_varied(node)) + NT_SIZE - node->heap;
}

uint64_t nt_leaf_value(const nt_tnode *leaf, int i) { return nt_load48(nt_values(leaf) + 6 * i); }

void nt_leaf_values(const nt_tnode *leaf, int from, int count, int step, uint64_t *values) {
    const uint8_t *at = nt_values(leaf) + 6 * from;
    for (int i = 0; i < count; i++) values[i] = nt_load48(at + 6 * step * i);
}

uint32_t nt_inner_child(const nt_tnode *inner, int i) { return nt_children(inner)[i]; }

uint32_t nt_inner_count(const nt_tnode *inner, int i) { return nt_counts(inner)[i]; }

uint64_t nt_inner_before(const nt_tnode *inner, int i) {
    const uint32_t *counts = nt_counts(inner);
    uint64_t sum = 0;
    for (int j = 0; j < i; j++) sum += counts[j];
    return sum;
}

void nt_node_entry(const nt_tnode *node, int inner, int i, nt_entry *entry, uint8_t *room) {
    nt_tail t = nt_tail_of(node, nt_slots(node, inner), i);
    int plen = node->plen;
    memcpy(room, node->data, (size_t)plen);
    nt_head_store(room + plen, nt_heads(node)[i]);
    memcpy(room + plen + t.held, t.at, (size_t)t.len);
    entry->at = room;
    entry->len = (uint32_t)(plen + t.held + t.len);
    entry->more = 0;
    if (t.more) {
        entry->more = nt_load32(t.at + t.len);
        entry->len = nt_load32(t.at + t.len + 4);
    }
    entry->value = inner ? nt_child_pack(nt_children(node)[i + 1], nt_counts(node)[i + 1])
                         : nt_load48(nt_values(node) + 6 * i);
}

const char *nt_node_check(const nt_tnode *node, int inner) {
    int n = node->n, varied = nt_varied(node), at = NT_SIZE;
    if (n >= NT_NODE_ENTRIES || node->plen > NT_NODE_INLINE) return "node: count or prefix out of range";
    if (nt_arrays_end(node->plen, n, inner, varied) > node->heap || node->heap > NT_SIZE) {
        return "node: arrays and heap overlap";
    }
    for (int i = 0; i < n; i++) {
        nt_tail t = nt_tail_of(node, nt_slots(node, inner), i);
        if (t.held > NT_HEAD || t.len < 0 || (t.held < NT_HEAD && t.len > 0)) return "node: bad slot";
        uint8_t head[NT_HEAD];
        nt_head_store(head, nt_heads(node)[i]);
        for (int j = t.held; j < NT_HEAD; j++) {
            if (head[j] != 0) return "node: head not padded with zeros";
        }
        int inl = node->plen + t.held + t.len;
        int most = (int)NT_NODE_INLINE;
        if (inl > most || (t.more && inl != most)) return "node: bad key length";
        at -= t.len + (t.more ? NT_TRAILER : 0);
        if (t.at != nt_base(node) + at) return "node: hole in the heap";
    }
    return at == node->heap ? NULL : "node: heap does not begin with the last key";
}
