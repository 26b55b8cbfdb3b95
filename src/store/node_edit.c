#include "store/node_layout.h"

/* ---- Small changes ---- */

/* Copies what is between two places of a node, to the same places of another; rather too much than byte by
 * byte, since what is too much is as good there as here. */
static inline void copy_part(nt_tnode *to, const nt_tnode *from, int begin, int end) {
    uint8_t *out = nt_base(to);
    const uint8_t *in = nt_base(from);
    for (int i = begin & ~31; i < end; i += 32) memcpy(out + i, in + i, 32);
}

void nt_node_copy(nt_tnode *to, const nt_tnode *from, int inner) {
    int end = nt_arrays_end(from->plen, from->n, inner, nt_varied(from));
    memcpy(nt_base(to) + sizeof(to->node), nt_base(from) + sizeof(to->node), NT_HEADER - sizeof(to->node));
    copy_part(to, from, NT_HEADER, end);
    copy_part(to, from, from->heap, NT_SIZE);
}

void nt_leaf_set(nt_tnode *leaf, int i, uint64_t value) { nt_store48(nt_values(leaf) + 6 * i, value); }

void nt_inner_set(nt_tnode *inner, int i, uint32_t child, uint32_t count) {
    nt_children(inner)[i] = child;
    nt_counts(inner)[i] = count;
}

void nt_inner_set_child(nt_tnode *inner, int i, uint32_t child) { nt_children(inner)[i] = child; }

void nt_inner_add(nt_tnode *inner, int i, int difference) { nt_counts(inner)[i] += (uint32_t)difference; }

/* ---- Arrays: opening and closing a gap ----
 *
 * The arrays of a node lie one behind the other, so when each grows by one element, each moves by the widths
 * of those before it. */

typedef struct array {
    int width;
    int extra; /* it has n + extra elements */
} array;

static const array leaf_arrays[] = {{4, 0}, {2, 0}, {6, 0}};
static const array leaf_arrays_uniform[] = {{4, 0}, {6, 0}};
static const array inner_arrays[] = {{4, 0}, {4, 1}, {4, 1}, {2, 0}};

static const array *arrays_of(int inner, int varied, int *count) {
    *count = inner ? (varied ? 4 : 3) : (varied ? 3 : 2);
    return inner ? inner_arrays : varied ? leaf_arrays : leaf_arrays_uniform;
}

/* Makes room for element `i` (children and counts: i + 1) in all arrays of n elements. */
static void open_gap(uint8_t *base, const array *arrays, int count, int n, int i) {
    int old[4], at = 0, moved = 0;
    for (int a = 0; a < count; a++) {
        old[a] = at;
        at += arrays[a].width * (n + arrays[a].extra);
        moved += arrays[a].width;
    }
    for (int a = count - 1; a >= 0; a--) { /* from the back, so that nothing is written over */
        int width = arrays[a].width, head = width * (i + arrays[a].extra);
        int tail = width * (n + arrays[a].extra) - head;
        uint8_t *from = base + old[a];
        memmove(from + head + moved, from + head, (size_t)tail);
        moved -= width;
        if (moved) memmove(from + moved, from, (size_t)head);
    }
}

/* The inverse: removes element i, of children and counts element i + right. */
static void close_gap(uint8_t *base, const array *arrays, int count, int n, int i, int right) {
    int from = 0, to = 0;
    for (int a = 0; a < count; a++) {
        int width = arrays[a].width, extra = arrays[a].extra;
        int head = width * (i + (extra ? right : 0)), all = width * (n + extra);
        if (from != to) memmove(base + to, base + from, (size_t)head);
        memmove(base + to + head, base + from + head + width, (size_t)(all - head - width));
        from += all;
        to += all - width;
    }
}

/* The parts of an entry's key behind a node's prefix. */
typedef struct parts {
    int held;
    int tail;      /* bytes of the suffix heap, trailer included */
    int rest;      /* inline bytes */
    int32_t head;
} parts;

static parts parts_of(const nt_entry *entry, int plen) {
    parts p;
    uint8_t head[NT_HEAD] = {0};
    p.rest = (int)nt_min(entry->len, NT_NODE_INLINE) - plen;
    p.held = p.rest < NT_HEAD ? p.rest : NT_HEAD;
    p.tail = p.rest - p.held + (entry->more ? NT_TRAILER : 0);
    if (p.held == NT_HEAD) {
        p.head = nt_head_load(entry->at + plen);
    } else {
        for (int i = 0; i < p.held; i++) head[i] = entry->at[plen + i];
        p.head = nt_head_load(head);
    }
    return p;
}

static void write_tail(uint8_t *to, const nt_entry *entry, int plen, const parts *p) {
    int len = p->rest - p->held;
    memcpy(to, entry->at + plen + p->held, (size_t)len);
    if (entry->more) {
        nt_store32(to + len, entry->more);
        nt_store32(to + len + 4, entry->len);
    }
}

static uint16_t slot_of(int at, const parts *p, const nt_entry *entry) {
    return (uint16_t)((unsigned)at | (unsigned)p->held << 12 | (entry->more ? NT_SLOT_LONG : 0u));
}

int nt_node_insert(nt_tnode *node, int inner, int i, const nt_entry *entry) {
    int n = node->n, plen = node->plen, varied = nt_varied(node);
    if (n == 0 || nt_min(entry->len, NT_NODE_INLINE) < (size_t)plen) return 0;
    if (memcmp(node->data, entry->at, (size_t)plen) != 0) return 0;
    parts p = parts_of(entry, plen);
    if (!varied && (p.rest != node->uniform || entry->more)) return 0;
    if (nt_arrays_end(plen, n + 1, inner, varied) + p.tail > node->heap) return 0;

    uint16_t *slots = nt_slots(node, inner);
    int end = !varied ? NT_SIZE - i * p.tail : i ? nt_slot_at(slots[i - 1]) : NT_SIZE;
    if (p.tail > 0) {
        uint8_t *heap = nt_base(node) + node->heap;
        memmove(heap - p.tail, heap, (size_t)(end - node->heap));
        write_tail(nt_base(node) + end - p.tail, entry, plen, &p);
        node->heap = (uint16_t)(node->heap - p.tail);
    }
    int count;
    const array *arrays = arrays_of(inner, varied, &count);
    open_gap((uint8_t *)nt_heads(node), arrays, count, n, i);
    node->n = (uint16_t)(n + 1);
    nt_heads(node)[i] = p.head;
    if (varied) {
        slots = nt_slots(node, inner);
        slots[i] = slot_of(end - p.tail, &p, entry);
        for (int j = i + 1; j <= n; j++) slots[j] = (uint16_t)(slots[j] - p.tail);
    }
    if (inner) {
        nt_inner_set(node, i + 1, (uint32_t)entry->value, (uint32_t)(entry->value >> 32));
    } else {
        nt_leaf_set(node, i, entry->value);
    }
    return 1;
}

void nt_node_remove(nt_tnode *node, int inner, int i, int left) {
    int n = node->n, varied = nt_varied(node);
    uint16_t *slots = nt_slots(node, inner);
    nt_tail t = nt_tail_of(node, slots, i);
    int tail = t.len + (t.more ? NT_TRAILER : 0), at = (int)(t.at - nt_base(node));
    if (tail > 0) {
        uint8_t *heap = nt_base(node) + node->heap;
        memmove(heap + tail, heap, (size_t)(at - node->heap));
        node->heap = (uint16_t)(node->heap + tail);
    }
    if (varied) {
        for (int j = i + 1; j < n; j++) slots[j] = (uint16_t)(slots[j] + tail);
    }
    int count;
    const array *arrays = arrays_of(inner, varied, &count);
    close_gap((uint8_t *)nt_heads(node), arrays, count, n, i, !left);
    node->n = (uint16_t)(n - 1);
}

/* ---- Taking apart and building ---- */

/* Copies len bytes, mostly few, as whole words. It reads and writes up to 7 bytes too many, which is for the
 * writer's thread alone: it may read what it writes elsewhere. */
static inline void copy_words(uint8_t *to, const uint8_t *from, int len) {
    for (int i = 0; i < len; i += 8) nt_store64(to + i, nt_load64(from + i));
}

int nt_node_decode(const nt_tnode *node, int inner, nt_entry *entries, uint8_t **room) {
    const uint16_t *slots = nt_slots(node, inner);
    const int32_t *heads = nt_heads(node);
    uint8_t *bytes = *room;
    int plen = node->plen;
    for (int i = 0; i < node->n; i++) {
        nt_entry *entry = &entries[i];
        nt_tail t = nt_tail_of(node, slots, i);
        copy_words(bytes, node->data, plen);
        nt_head_store(bytes + plen, heads[i]);
        copy_words(bytes + plen + t.held, t.at, t.len);
        entry->at = bytes;
        entry->len = (uint32_t)(plen + t.held + t.len);
        entry->more = 0;
        if (t.more) {
            entry->more = nt_load32(t.at + t.len);
            entry->len = nt_load32(t.at + t.len + 4);
        }
        entry->value = inner ? nt_child_pack(nt_children(node)[i + 1], nt_counts(node)[i + 1])
                             : nt_load48(nt_values(node) + 6 * i);
        bytes += plen + t.held + t.len + 8;
    }
    *room = bytes;
    return node->n;
}

static int inline_length(const nt_entry *entry) { return (int)nt_min(entry->len, NT_NODE_INLINE); }

static int common_length(const nt_entry *a, const nt_entry *b) {
    int len = inline_length(a) < inline_length(b) ? inline_length(a) : inline_length(b), i = 0;
    while (i < len && a->at[i] == b->at[i]) i++;
    return i;
}

static int shared_prefix(const nt_entry *entries, int n) {
    return n ? common_length(&entries[0], &entries[n - 1]) : 0;
}

static int is_varied(const nt_entry *entries, int n) {
    int varied = n == 0;
    for (int i = 0; i < n; i++) varied |= entries[i].more != 0 || entries[i].len != entries[0].len;
    return varied;
}

/* Bytes of the heap that an entry takes in a node with this prefix. */
static int heap_room(const nt_entry *entry, int plen) {
    int rest = inline_length(entry) - plen;
    return (rest > NT_HEAD ? rest - NT_HEAD : 0) + (entry->more ? NT_TRAILER : 0);
}

int nt_node_size(const nt_entry *entries, int n, int inner) {
    int plen = shared_prefix(entries, n), heap = 0;
    for (int i = 0; i < n; i++) heap += heap_room(&entries[i], plen);
    return nt_arrays_end(plen, n, inner, is_varied(entries, n)) + heap;
}

void nt_node_build(nt_tnode *node, const nt_entry *entries, int n, int inner, uint64_t first) {
    int plen = shared_prefix(entries, n), varied = is_varied(entries, n), at = NT_SIZE;
    node->n = (uint16_t)n;
    node->plen = (uint16_t)plen;
    node->uniform = (uint16_t)(varied ? NT_VARIED : (unsigned)(inline_length(&entries[0]) - plen));
    if (n) memcpy(node->data, entries[0].at, (size_t)plen);
    if (inner) nt_inner_set(node, 0, (uint32_t)first, (uint32_t)(first >> 32));
    int32_t *heads = nt_heads(node);
    uint16_t *slots = nt_slots(node, inner);
    for (int i = 0; i < n; i++) {
        const nt_entry *entry = &entries[i];
        parts p = parts_of(entry, plen);
        at -= p.tail;
        write_tail(nt_base(node) + at, entry, plen, &p);
        heads[i] = p.head;
        if (varied) slots[i] = slot_of(at, &p, entry);
        if (inner) {
            nt_inner_set(node, i + 1, (uint32_t)entry->value, (uint32_t)(entry->value >> 32));
        } else {
            nt_leaf_set(node, i, entry->value);
        }
    }
    node->heap = (uint16_t)at;
}

/* ---- Where to split ---- */

static int halves_fit(const nt_entry *entries, int n, int inner, int cut) {
    if (cut < 1 || cut >= n - inner) return 0;
    return nt_node_size(entries, cut, inner) <= NT_SIZE &&
           nt_node_size(entries + cut + inner, n - cut - inner, inner) <= NT_SIZE;
}

/* The first entry of the second half, by bytes. */
static int middle(const nt_entry *entries, int n, int inner) {
    int plen = shared_prefix(entries, n), each = nt_entry_room(inner, is_varied(entries, n)), all = 0;
    for (int i = 0; i < n; i++) all += each + heap_room(&entries[i], plen);
    int i = 0;
    for (int sum = 0; i < n - 1 && sum < all / 2; i++) sum += each + heap_room(&entries[i], plen);
    return i;
}

/* The length of the separator that a cut gives the node above. */
static int separator_length(const nt_entry *entries, int inner, int cut) {
    return inner ? (int)entries[cut].len : common_length(&entries[cut - 1], &entries[cut]);
}

int nt_node_cut(const nt_entry *entries, int n, int inner, int edge) {
    if (edge != 0) {
        int cut = edge < 0 ? 1 : n - 1 - inner;
        if (halves_fit(entries, n, inner, cut)) return cut;
    }
    /* Near the middle the shortest separator wins: short ones make wide inner nodes. */
    int center = middle(entries, n, inner), window = n / 16, best = 0, shortest = INT32_MAX;
    for (int k = 0; k <= 2 * window; k++) {
        int cut = center + (k & 1 ? (k + 1) / 2 : -(k / 2));
        if (cut < 1 || cut >= n - inner) continue;
        int length = separator_length(entries, inner, cut);
        if (length < shortest && halves_fit(entries, n, inner, cut)) {
            shortest = length;
            best = cut;
        }
    }
    for (int k = 1; best == 0 && k < n; k++) {
        if (halves_fit(entries, n, inner, center - k)) best = center - k;
        else if (halves_fit(entries, n, inner, center + k)) best = center + k;
    }
    return best;
}
