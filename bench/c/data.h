/*
 * data: the keys and values that every engine is given, the same in every run.
 *
 * Keys are 16 hexadecimal digits in random order. Values are JSON objects of 120 bytes, of which there are
 * a few hundred, so that making a put's arguments costs no cache misses.
 */
#ifndef BENCH_DATA_H
#define BENCH_DATA_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { BENCH_KEY_LEN = 16, BENCH_VALUE_LEN = 120, BENCH_VALUES = 512 };

typedef struct bench_key {
    char bytes[BENCH_KEY_LEN];
} bench_key;

typedef struct bench_data {
    size_t n;
    bench_key *put_order;    /* the keys in the order in which they are put */
    bench_key *get_order[2]; /* the same keys in two other random orders, one for each thread */
    char (*values)[BENCH_VALUE_LEN];
    uint64_t value_sum; /* sum of bench_value_word over the values that put_order's keys get */
    uint64_t scan_hash; /* what bench_scan_see makes of all keys in ascending order */
} bench_data;

/* Makes the data for n keys; bench_data_free frees what it holds. */
void bench_data_make(bench_data *data, size_t n);
void bench_data_free(bench_data *data);

/* A bijection of 64-bit numbers that scatters them. */
uint64_t bench_scatter(uint64_t number);

/* The value of the i-th put. */
static inline const char *bench_value(const bench_data *data, size_t i) {
    return data->values[i % BENCH_VALUES];
}

static inline uint64_t bench_load64(const void *at) {
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

/* Eight bytes of a value that differ between values. */
static inline uint64_t bench_value_word(const char *value) { return bench_load64(value + 7); }

/* What a scan of keys saw. */
typedef struct bench_scan {
    uint64_t count;
    uint64_t hash; /* depends on the order */
} bench_scan;

/* Notes one key, of at least 8 bytes. */
static inline void bench_scan_see(bench_scan *scan, const void *key) {
    scan->hash = scan->hash * 31 + bench_load64(key);
    scan->count++;
}

#endif
