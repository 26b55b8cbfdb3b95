#include "data.h"

#include "platform.h"

#include <stdio.h>
#include <stdlib.h>

uint64_t bench_scatter(uint64_t number) {
    number += 0x9e3779b97f4a7c15u;
    number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9u;
    number = (number ^ (number >> 27)) * 0x94d049bb133111ebu;
    return number ^ (number >> 31);
}

static void key_of(uint64_t number, bench_key *key) {
    static const char digits[] = "0123456789abcdef";
    for (int i = 0; i < BENCH_KEY_LEN; i++) key->bytes[i] = digits[(number >> (60 - 4 * i)) & 15];
}

static void value_of(unsigned number, char *value) {
    char text[BENCH_VALUE_LEN + 1];
    int len = snprintf(text, sizeof text,
                       "{\"id\":\"%08x\",\"endpoint\":\"/api/v1/resource/%03u\","
                       "\"status\":%u,\"ms\":%u,\"text\":\"",
                       (unsigned)bench_scatter(number), number % 500, 200 + number % 300, 1000 + number);
    memset(value, 'x', BENCH_VALUE_LEN);
    memcpy(value, text, (size_t)len);
    memcpy(value + BENCH_VALUE_LEN - 2, "\"}", 2);
}

static void shuffle(bench_key *keys, size_t n, uint64_t seed) {
    for (size_t i = n; i > 1; i--) {
        size_t j = (size_t)(bench_scatter(seed + i) % i);
        bench_key held = keys[i - 1];
        keys[i - 1] = keys[j];
        keys[j] = held;
    }
}

static int compare_keys(const void *a, const void *b) { return memcmp(a, b, BENCH_KEY_LEN); }

static bench_key *copy_keys(const bench_key *keys, size_t n) {
    bench_key *copy = bench_alloc(n * sizeof *copy);
    memcpy(copy, keys, n * sizeof *copy);
    return copy;
}

static uint64_t hash_in_order(const bench_key *keys, size_t n) {
    bench_key *sorted = copy_keys(keys, n);
    qsort(sorted, n, sizeof *sorted, compare_keys);
    bench_scan scan = {0, 0};
    for (size_t i = 0; i < n; i++) bench_scan_see(&scan, sorted[i].bytes);
    free(sorted);
    return scan.hash;
}

void bench_data_make(bench_data *data, size_t n) {
    data->n = n;
    data->values = bench_alloc(BENCH_VALUES * sizeof *data->values);
    for (unsigned i = 0; i < BENCH_VALUES; i++) value_of(i, data->values[i]);
    data->put_order = bench_alloc(n * sizeof *data->put_order);
    data->value_sum = 0;
    for (size_t i = 0; i < n; i++) {
        key_of(bench_scatter(i), &data->put_order[i]);
        data->value_sum += bench_value_word(bench_value(data, i));
    }
    for (unsigned thread = 0; thread < 2; thread++) {
        data->get_order[thread] = copy_keys(data->put_order, n);
        shuffle(data->get_order[thread], n, (uint64_t)(thread + 1) << 40);
    }
    data->scan_hash = hash_in_order(data->put_order, n);
}

void bench_data_free(bench_data *data) {
    free(data->values);
    free(data->put_order);
    free(data->get_order[0]);
    free(data->get_order[1]);
}
