/*
 * reference: what a store should hold, as a sorted array.
 *
 * Entries never change and are counted, so that a frozen copy is an array of pointers.
 */
#ifndef TESTS_MODEL_REFERENCE_H
#define TESTS_MODEL_REFERENCE_H

#include <stddef.h>
#include <stdint.h>

#include "ntee.h"

typedef struct entry {
    uint32_t refs;
    ntee_kind kind;
    size_t key_len;
    size_t value_len;
    uint8_t bytes[]; /* key, value */
} entry;

typedef struct reference {
    entry **at;
    size_t count;
    size_t cap;
} reference;

static inline const uint8_t *entry_value(const entry *e) { return e->bytes + e->key_len; }

/* An entry with one reference; copies key and value. */
entry *entry_new(const void *key, size_t key_len, const void *value, size_t value_len, ntee_kind kind);
void entry_drop(entry *e);

/* The number of keys less than `key`; with `inclusive`, less or equal. */
size_t reference_rank(const reference *ref, const void *key, size_t key_len, int inclusive);
/* The number of keys before the first one that comes after all keys beginning with `prefix`. */
size_t reference_rank_after_prefix(const reference *ref, const void *prefix, size_t prefix_len);
entry *reference_find(const reference *ref, const void *key, size_t key_len);
/* Takes over the caller's reference. */
void reference_put(reference *ref, entry *e);
/* 1 where the key was there. */
int reference_delete(reference *ref, const void *key, size_t key_len);
/* A frozen copy; end it with reference_clear. */
void reference_copy(reference *to, const reference *from);
void reference_clear(reference *ref);

#endif
