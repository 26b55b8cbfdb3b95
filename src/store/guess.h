/*
 * guess: where a key's record probably is.
 *
 * A get looks at two places in memory that are far from everything else: the leaf that names the record, and
 * the record. The second is known when the first is there. A guess says where the record may be before the
 * leaf has come, so that both are on their way at once. Nothing ever depends on it: a guess that is wrong or
 * missing costs a little time. So nothing is done about puts and deletes, and readers alone fill the table,
 * each with what it has just found; a key that nobody reads takes no place, and writers pay nothing.
 *
 * The table is buckets of four words of 32 bits. The low bits of a word are the number of a cache line of the
 * log, the others a part of the key's hash; 0 is no guess, since the log's header is there. When the store
 * grows, buckets are added in segments, which stay where they are, and words get more bits for the line; what
 * was known under the old shape is forgotten then.
 *
 * nt_guess_fit: one thread at a time. All else: any thread beside it.
 */
#ifndef NT_STORE_GUESS_H
#define NT_STORE_GUESS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"

#define NT_GUESS_LINE_SHIFT 6
#define NT_GUESS_WAYS 4u         /* words of a bucket */
#define NT_GUESS_FIRST_SHIFT 13u /* the first segment has so many buckets, as a power of two */
#define NT_GUESS_SEGMENTS 12u    /* the last one ends at 2^24 buckets, 2^26 words */
#define NT_GUESS_BITS 22u        /* of a line's number, at least: 256 MiB */

typedef _Atomic uint32_t nt_guess_word;

typedef struct nt_guess {
    _Atomic uint64_t shape; /* buckets - 1, and above 32 bits how many a line's number has; 0: no table */
    _Atomic(nt_guess_word *) segments[NT_GUESS_SEGMENTS];
} nt_guess; /* zeroed: no table */

/* One key's place in the table. */
typedef struct nt_guess_place {
    nt_guess_word *bucket; /* NULL: there is no table */
    uint32_t of_line;      /* mask of the bits of a word that are the line's */
    uint32_t tag;          /* the others */
    uint32_t line;         /* what was guessed */
} nt_guess_place;

/* Makes the table large enough for so many keys and for a log of so many bytes. Few keys have none, as the
 * processor's caches hold their records. Where memory is short, the table stays as it is. */
void nt_guess_fit(nt_guess *guess, uint64_t keys, uint64_t log_bytes);
/* Frees the table. Nobody uses it. */
void nt_guess_free(nt_guess *guess);

/* The bucket of a hash. */
static inline nt_guess_word *nt_guess_bucket(const nt_guess *guess, uint32_t mask, uint64_t hash) {
    uint32_t low = (uint32_t)hash & ((1u << NT_GUESS_FIRST_SHIFT) - 1u);
    uint32_t high = ((uint32_t)hash & mask) >> NT_GUESS_FIRST_SHIFT;
    unsigned segment = 63u - (unsigned)__builtin_clzll((uint64_t)high * 2u + 1u); /* by high's topmost bit */
    uint32_t begin = (1u << segment >> 1) << NT_GUESS_FIRST_SHIFT; /* the buckets of the segments before */
    nt_guess_word *words = atomic_load_explicit(&guess->segments[segment], memory_order_relaxed);
    return words + NT_GUESS_WAYS * (size_t)((high << NT_GUESS_FIRST_SHIFT | low) - begin);
}

/* Finds a key's place, and asks the processor for it. Always inline, else it looks like a function that does
 * nothing. */
__attribute__((always_inline)) static inline void nt_guess_begin(const nt_guess *guess, const void *key,
                                                                 size_t key_len, nt_guess_place *place) {
    uint64_t shape = atomic_load_explicit(&guess->shape, memory_order_acquire);
    *place = (nt_guess_place){0};
    if (!shape) return;
    uint64_t hash = nt_hash64(key, key_len, 0);
    place->bucket = nt_guess_bucket(guess, (uint32_t)shape, hash);
    place->of_line = (uint32_t)(((uint64_t)1 << (shape >> 32)) - 1u);
    place->tag = (uint32_t)(hash >> 32) & ~place->of_line;
    __builtin_prefetch((const void *)(uintptr_t)place->bucket);
}

/* The offset in the log of the cache line where the record may begin: any line where nothing is known of the
 * key, as that is cheaper than a branch. There is a table. */
static inline uint64_t nt_guess_offset(nt_guess_place *place) {
    uint32_t found = 0;
    for (unsigned i = 0; i < NT_GUESS_WAYS; i++) {
        uint32_t word = atomic_load_explicit(&place->bucket[i], memory_order_relaxed);
        found = (word & ~place->of_line) == place->tag ? word : found;
    }
    place->line = found & place->of_line;
    return (uint64_t)place->line << NT_GUESS_LINE_SHIFT;
}

/* Says where the record is, after nt_guess_offset: 1 where that was the guess, else it is learned. */
static inline int nt_guess_end(nt_guess_place *place, uint64_t offset) {
    uint32_t line = (uint32_t)(offset >> NT_GUESS_LINE_SHIFT) & place->of_line, word = line | place->tag;
    if (line == place->line) return 1;
    unsigned at = NT_GUESS_WAYS;
    for (unsigned i = 0; i < NT_GUESS_WAYS; i++) {
        uint32_t there = atomic_load_explicit(&place->bucket[i], memory_order_relaxed);
        if (there == 0 || (there & ~place->of_line) == place->tag) at = i;
    }
    /* Full: one in eight gets in, else keys that are read in turn would drive each other out. */
    if (at == NT_GUESS_WAYS) {
        if (line % 8) return 0;
        at = line / 8 % NT_GUESS_WAYS;
    }
    atomic_store_explicit(&place->bucket[at], word, memory_order_relaxed);
    return 0;
}

#endif
