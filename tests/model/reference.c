#include "model/reference.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *need(void *memory) {
    if (memory == NULL) {
        fputs("out of memory\n", stderr);
        abort();
    }
    return memory;
}

entry *entry_new(const void *key, size_t key_len, const void *value, size_t value_len, ntee_kind kind) {
    entry *e = need(malloc(sizeof *e + key_len + value_len));
    e->refs = 1;
    e->kind = kind;
    e->key_len = key_len;
    e->value_len = value_len;
    memcpy(e->bytes, key, key_len);
    if (value_len > 0) memcpy(e->bytes + key_len, value, value_len);
    return e;
}

void entry_drop(entry *e) {
    if (--e->refs == 0) free(e);
}

static int compare(const void *a, size_t a_len, const void *b, size_t b_len) {
    size_t shorter = a_len < b_len ? a_len : b_len;
    int c = shorter > 0 ? memcmp(a, b, shorter) : 0;
    if (c != 0) return c;
    return a_len < b_len ? -1 : a_len > b_len;
}

static int begins_with(const entry *e, const void *prefix, size_t prefix_len) {
    return e->key_len >= prefix_len && (prefix_len == 0 || memcmp(e->bytes, prefix, prefix_len) == 0);
}

size_t reference_rank(const reference *ref, const void *key, size_t key_len, int inclusive) {
    size_t low = 0, high = ref->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int c = compare(ref->at[middle]->bytes, ref->at[middle]->key_len, key, key_len);
        if (c < 0 || (c == 0 && inclusive)) low = middle + 1;
        else high = middle;
    }
    return low;
}

size_t reference_rank_after_prefix(const reference *ref, const void *prefix, size_t prefix_len) {
    size_t low = reference_rank(ref, prefix, prefix_len, 0), high = ref->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (begins_with(ref->at[middle], prefix, prefix_len)) low = middle + 1;
        else high = middle;
    }
    return low;
}

entry *reference_find(const reference *ref, const void *key, size_t key_len) {
    size_t rank = reference_rank(ref, key, key_len, 0);
    if (rank == ref->count) return NULL;
    entry *e = ref->at[rank];
    return compare(e->bytes, e->key_len, key, key_len) == 0 ? e : NULL;
}

void reference_put(reference *ref, entry *e) {
    size_t rank = reference_rank(ref, e->bytes, e->key_len, 0);
    if (rank < ref->count &&
        compare(ref->at[rank]->bytes, ref->at[rank]->key_len, e->bytes, e->key_len) == 0) {
        entry_drop(ref->at[rank]);
        ref->at[rank] = e;
        return;
    }
    if (ref->count == ref->cap) {
        ref->cap = ref->cap * 2 + 64;
        ref->at = need(realloc(ref->at, ref->cap * sizeof(entry *)));
    }
    memmove(ref->at + rank + 1, ref->at + rank, (ref->count - rank) * sizeof(entry *));
    ref->at[rank] = e;
    ref->count++;
}

int reference_delete(reference *ref, const void *key, size_t key_len) {
    size_t rank = reference_rank(ref, key, key_len, 0);
    if (rank == ref->count) return 0;
    entry *e = ref->at[rank];
    if (compare(e->bytes, e->key_len, key, key_len) != 0) return 0;
    entry_drop(e);
    ref->count--;
    memmove(ref->at + rank, ref->at + rank + 1, (ref->count - rank) * sizeof(entry *));
    return 1;
}

void reference_copy(reference *to, const reference *from) {
    to->cap = to->count = from->count;
    to->at = need(malloc((from->count + 1) * sizeof(entry *)));
    if (from->count > 0) memcpy(to->at, from->at, from->count * sizeof(entry *));
    for (size_t i = 0; i < to->count; i++) to->at[i]->refs++;
}

void reference_clear(reference *ref) {
    for (size_t i = 0; i < ref->count; i++) entry_drop(ref->at[i]);
    free(ref->at);
    *ref = (reference){NULL, 0, 0};
}
