#include "store/node_layout.h"

/* Copies a prefix, 32 or 64 bytes at once: what is too much is written over next, or is slack. */
static inline void spill_prefix(uint8_t *to, const uint8_t *from, int len) {
    memcpy(to, from, 32);
    if (len <= 32) return;
    memcpy(to + 32, from + 32, 32);
    if (__builtin_expect(len > 64, 0)) memcpy(to + 64, from + 64, (size_t)len - 64);
}

/* The same from the suffix heap: near the node's end exactly, as the writer may be writing what is behind. */
static inline void spill_tail(uint8_t *to, const uint8_t *from, int len, const uint8_t *end) {
    if (__builtin_expect(len <= 32 && from + 32 <= end, 1)) {
        memcpy(to, from, 32);
    } else {
        memcpy(to, from, (size_t)len);
    }
}

/* ORs len bytes of a node; reads up to 7 before them. */
static uint8_t or_bytes(const uint8_t *at, int len) {
    uint64_t seen = 0;
    int i = 0;
    for (; i + 8 <= len; i += 8) seen |= nt_load64(at + i);
    if (i < len) seen |= nt_load64(at + len - 8) >> (64 - 8 * (len - i));
    seen |= seen >> 32;
    seen |= seen >> 16;
    return (uint8_t)(seen | seen >> 8);
}

/* ORs the heads of entries low to high - 1. */
static uint8_t or_heads(const nt_tnode *leaf, int low, int high) {
    const int32_t *heads = nt_heads(leaf);
    uint32_t seen = 0;
    for (int i = low; i < high; i++) seen |= (uint32_t)heads[i] ^ 0x80000000u;
    seen |= seen >> 16;
    return (uint8_t)(seen | seen >> 8);
}

static size_t key_length(const nt_tnode *leaf, const nt_tail *t) {
    return t->more ? nt_load32(t->at + t->len + 4) : (size_t)(leaf->plen + t->held + t->len);
}

size_t nt_leaf_key_length(const nt_tnode *leaf, int i) {
    nt_tail t = nt_tail_of(leaf, nt_leaf_slots(leaf), i);
    return key_length(leaf, &t);
}

/* Writes exactly the key. */
static size_t write_key(const nt_arena *arena, const nt_tnode *leaf, int i, uint8_t *out) {
    nt_tail t = nt_tail_of(leaf, nt_leaf_slots(leaf), i);
    uint8_t head[NT_HEAD];
    nt_head_store(head, nt_heads(leaf)[i]);
    memcpy(out, leaf->data, leaf->plen);
    out += leaf->plen;
    memcpy(out, head, (size_t)t.held);
    out += t.held;
    memcpy(out, t.at, (size_t)t.len);
    size_t len = key_length(leaf, &t);
    if (t.more) nt_chain_read(arena, nt_load32(t.at + t.len), out + t.len, len - NT_NODE_INLINE);
    return len;
}

void nt_leaf_key(const nt_arena *arena, const nt_tnode *leaf, int i, uint8_t *out) {
    write_key(arena, leaf, i, out);
}

static int any_long(const nt_tnode *leaf, int low, int high) {
    if (!nt_varied(leaf)) return 0;
    const uint16_t *slots = nt_leaf_slots(leaf);
    unsigned all = 0;
    for (int i = low; i < high; i++) all |= slots[i];
    return (all & NT_SLOT_LONG) != 0;
}

/* Where the suffixes of entries low to high - 1 begin, and how many bytes they have. */
static const uint8_t *suffixes(const nt_tnode *leaf, int low, int high, int *len) {
    const uint16_t *slots = nt_leaf_slots(leaf);
    nt_tail first = nt_tail_of(leaf, slots, low), last = nt_tail_of(leaf, slots, high - 1);
    *len = (int)(first.at + first.len + (first.more ? NT_TRAILER : 0) - last.at);
    return last.at;
}

int nt_leaf_fit(const nt_tnode *leaf, int from, int most, int up, size_t room) {
    if (most == 0) return 0;
    if (!nt_varied(leaf)) {
        size_t each = (size_t)(leaf->plen + leaf->uniform + 2);
        return (size_t)most * each <= room ? most : (int)(room / each);
    }
    int step = up ? 1 : -1, low = up ? from : from - most + 1, len;
    suffixes(leaf, low, low + most, &len);
    size_t all = (size_t)(most * (leaf->plen + NT_HEAD + 2) + len);
    if (all <= room && !any_long(leaf, low, low + most)) return most;
    const uint16_t *slots = nt_leaf_slots(leaf);
    for (int k = 0; k < most; k++) {
        nt_tail t = nt_tail_of(leaf, slots, from + k * step);
        size_t need = key_length(leaf, &t) + 2;
        if (need > room) return k;
        room -= need;
    }
    return most;
}

static void emit_uniform(const nt_tnode *leaf, int from, int count, int step, uint8_t **bytes,
                         uint8_t **lens) {
    int plen = leaf->plen, rest = leaf->uniform, held = rest < NT_HEAD ? rest : NT_HEAD, tail = rest - held;
    const int32_t *heads = nt_heads(leaf) + from;
    const uint8_t *end = nt_base(leaf) + NT_SIZE, *at = end - (from + 1) * tail;
    uint8_t *out = *bytes, *len = *lens;
    uint16_t length = (uint16_t)(plen + rest);
    if (plen <= 16 && tail <= 16) { /* the usual short key: two copies of 16 bytes */
        uint64_t first = nt_load64(leaf->data), second = nt_load64(leaf->data + 8);
        for (int k = 0; k < count; k++) {
            nt_store64(out, first);
            nt_store64(out + 8, second);
            nt_head_store(out + plen, heads[k * step]);
            if (__builtin_expect(at + 16 <= end, 1)) {
                memcpy(out + plen + held, at, 16);
            } else {
                memcpy(out + plen + held, at, (size_t)tail);
            }
            out += length;
            at -= tail * step;
            len -= 2;
            nt_store16(len, length);
        }
    } else {
        for (int k = 0; k < count; k++) {
            spill_prefix(out, leaf->data, plen);
            nt_head_store(out + plen, heads[k * step]);
            spill_tail(out + plen + held, at, tail, end);
            out += length;
            at -= tail * step;
            len -= 2;
            nt_store16(len, length);
        }
    }
    *bytes = out;
    *lens = len;
}

/* None of the entries is a long key. */
static void emit_varied(const nt_tnode *leaf, int from, int count, int step, uint8_t **bytes,
                        uint8_t **lens) {
    const uint16_t *slots = nt_leaf_slots(leaf);
    const int32_t *heads = nt_heads(leaf);
    const uint8_t *base = nt_base(leaf), *end = base + NT_SIZE;
    int plen = leaf->plen, before = from ? nt_slot_at(slots[from - 1]) : NT_SIZE;
    uint8_t *out = *bytes, *len = *lens;
    for (int i = from, k = 0; k < count; k++, i += step) {
        int at = nt_slot_at(slots[i]), held = nt_slot_held(slots[i]), tail = before - at;
        spill_prefix(out, leaf->data, plen);
        nt_head_store(out + plen, heads[i]);
        spill_tail(out + plen + held, base + at, tail, end);
        int length = plen + held + tail;
        out += length;
        len -= 2;
        nt_store16(len, (uint16_t)length);
        before = step > 0 ? at : i > 1 ? nt_slot_at(slots[i - 2]) : NT_SIZE;
    }
    *bytes = out;
    *lens = len;
}

void nt_leaf_emit(const nt_arena *arena, const nt_tnode *leaf, int from, int count, int up, int slack,
                  uint8_t **bytes, uint8_t **lens, uint8_t *seen) {
    if (count == 0) return;
    int step = up ? 1 : -1, low = up ? from : from - count + 1, high = low + count;
    if (!slack || any_long(leaf, low, high)) {
        for (int k = 0; k < count; k++) {
            size_t len = write_key(arena, leaf, from + k * step, *bytes);
            for (size_t i = 0; i < len; i++) *seen |= (*bytes)[i];
            *bytes += len;
            *lens -= 2;
            nt_store16(*lens, (uint16_t)len);
        }
        return;
    }
    int len;
    const uint8_t *tails = suffixes(leaf, low, high, &len);
    *seen |= or_bytes(leaf->data, leaf->plen) | or_heads(leaf, low, high) | or_bytes(tails, len);
    if (nt_varied(leaf)) {
        emit_varied(leaf, from, count, step, bytes, lens);
    } else {
        emit_uniform(leaf, from, count, step, bytes, lens);
    }
}
