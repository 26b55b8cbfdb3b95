#include "store/node.h"

#define LINK_BYTES (NT_NODE_SIZE - 32u)

typedef struct chain_node {
    nt_node node;
    uint32_t next; /* 0: the last one */
    uint32_t unused;
    uint8_t bytes[LINK_BYTES];
} chain_node;

_Static_assert(sizeof(chain_node) == NT_NODE_SIZE, "a link of a chain is a node");

static chain_node *link_at(const nt_arena *arena, uint32_t id) { return nt_arena_node(arena, id); }

uint32_t nt_chain_new(nt_arena *arena, const uint8_t *bytes, size_t len) {
    uint32_t first = 0, last = 0;
    while (len > 0) {
        size_t part = nt_min(len, LINK_BYTES);
        uint32_t id = nt_arena_new(arena);
        if (id == 0) return 0; /* the links so far go with the turn */
        chain_node *link = link_at(arena, id);
        link->next = 0;
        link->unused = 0;
        memcpy(link->bytes, bytes, part);
        if (first == 0) {
            first = id;
        } else {
            link_at(arena, last)->next = id;
        }
        last = id;
        bytes += part;
        len -= part;
    }
    return first;
}

/* A chain of the first `len` bytes of another one and one byte more, or 0 where memory is short. */
static uint32_t extend(nt_arena *arena, uint32_t from, size_t len, uint8_t last_byte) {
    uint32_t first = 0, last = 0;
    for (size_t left = len + 1; left > 0;) {
        size_t part = nt_min(left, LINK_BYTES);
        uint32_t id = nt_arena_new(arena);
        if (id == 0) return 0;
        chain_node *link = link_at(arena, id);
        link->next = 0;
        link->unused = 0;
        size_t shared = left > part ? part : part - 1;
        if (shared) memcpy(link->bytes, link_at(arena, from)->bytes, shared);
        if (shared < part) link->bytes[shared] = last_byte;
        if (first == 0) {
            first = id;
        } else {
            link_at(arena, last)->next = id;
        }
        last = id;
        left -= part;
        if (left > 1) from = link_at(arena, from)->next;
    }
    return first;
}

void nt_chain_retire(nt_arena *arena, uint32_t chain) {
    while (chain != 0) {
        uint32_t next = link_at(arena, chain)->next;
        nt_arena_retire(arena, chain);
        chain = next;
    }
}

uint32_t nt_chain_nodes(uint32_t len) {
    return len <= NT_NODE_INLINE ? 0 : (len - NT_NODE_INLINE + LINK_BYTES - 1u) / LINK_BYTES;
}

uint32_t nt_chain_next(const nt_arena *arena, uint32_t chain) { return link_at(arena, chain)->next; }

void nt_chain_read(const nt_arena *arena, uint32_t chain, uint8_t *out, size_t len) {
    while (len > 0) {
        size_t part = nt_min(len, LINK_BYTES);
        const chain_node *link = link_at(arena, chain);
        memcpy(out, link->bytes, part);
        chain = link->next;
        out += part;
        len -= part;
    }
}

int nt_chain_compare(const nt_arena *arena, uint32_t chain, uint32_t len, const nt_probe *probe) {
    size_t left = len - NT_NODE_INLINE, wanted = probe->len - NT_NODE_INLINE;
    const uint8_t *bytes = probe->key + NT_NODE_INLINE;
    /* The probe's last byte is compared by itself, as it may stand for the one after it. */
    while (left > 0 && wanted > 1) {
        const chain_node *link = link_at(arena, chain);
        size_t part = nt_min(nt_min(left, wanted - 1), LINK_BYTES);
        int c = memcmp(link->bytes, bytes, part);
        if (c != 0) return c;
        left -= part;
        wanted -= part;
        bytes += part;
        if (part < LINK_BYTES) {
            if (left == 0) return -1;
            c = link->bytes[part] - (bytes[0] + (int)probe->bump);
            return c != 0 ? c : left > 1;
        }
        chain = link->next;
    }
    if (left == 0) return -1;
    int c = link_at(arena, chain)->bytes[0] - (bytes[0] + (int)probe->bump);
    return c != 0 ? c : left > 1;
}

/* ---- Entries outside of nodes ---- */

static size_t inline_length(const nt_entry *entry) { return nt_min(entry->len, NT_NODE_INLINE); }

/* The number of bytes in common, and in *difference which of the next bytes is greater (0: one key ends). */
static size_t common(const nt_arena *arena, const nt_entry *a, const nt_entry *b, int *difference) {
    size_t len = nt_min(inline_length(a), inline_length(b)), i = 0;
    *difference = 0;
    while (i < len && a->at[i] == b->at[i]) i++;
    if (i < len) *difference = a->at[i] - b->at[i];
    if (i < NT_NODE_INLINE || !a->more || !b->more) return i;
    uint32_t x = a->more, y = b->more;
    size_t left = nt_min(a->len, b->len) - NT_NODE_INLINE;
    while (left > 0) {
        const chain_node *p = link_at(arena, x), *q = link_at(arena, y);
        size_t part = nt_min(left, LINK_BYTES);
        size_t k = 0;
        while (k < part && p->bytes[k] == q->bytes[k]) k++;
        i += k;
        if (k < part) {
            *difference = p->bytes[k] - q->bytes[k];
            return i;
        }
        left -= part;
        x = p->next;
        y = q->next;
    }
    return i;
}

int nt_entry_compare(const nt_arena *arena, const nt_entry *a, const nt_entry *b) {
    int difference;
    common(arena, a, b, &difference);
    if (difference != 0) return difference;
    return a->len < b->len ? -1 : a->len > b->len;
}

/* Byte i of a key over NT_NODE_INLINE, i >= NT_NODE_INLINE. */
static uint8_t chain_byte(const nt_arena *arena, const nt_entry *entry, size_t i) {
    uint32_t chain = entry->more;
    for (i -= NT_NODE_INLINE; i >= LINK_BYTES; i -= LINK_BYTES) chain = link_at(arena, chain)->next;
    return link_at(arena, chain)->bytes[i];
}

int nt_entry_separate(nt_arena *arena, const nt_entry *before, const nt_entry *after, nt_entry *separator,
                      uint8_t *room) {
    int difference;
    size_t len = common(arena, before, after, &difference);
    /* One byte more than the two have in common, of the later one, is greater than the first. */
    memcpy(room, after->at, nt_min(len + 1, NT_NODE_INLINE));
    separator->at = room;
    separator->len = (uint32_t)len + 1u;
    separator->more = 0;
    if (len + 1 <= NT_NODE_INLINE) return 1;
    separator->more = extend(arena, after->more, len - NT_NODE_INLINE, chain_byte(arena, after, len));
    return separator->more != 0;
}
