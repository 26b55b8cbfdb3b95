/*
 * random: the random numbers of the model, fault, kill and thread tests, and what they take from the
 * environment.
 *
 * NT_SEED replays a run; NT_LONG=1 selects the long tiers.
 */
#ifndef TESTS_MODEL_RANDOM_H
#define TESTS_MODEL_RANDOM_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct rng {
    uint64_t state;
} rng;

static inline uint64_t mix(uint64_t a, uint64_t b) {
    uint64_t x = (a ^ (b * 0x9E3779B97F4A7C15u)) + 0x632BE59BD9B4E019u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

static inline uint64_t rng_next(rng *r) {
    r->state += 0x9E3779B97F4A7C15u;
    return mix(r->state, 1);
}

/* 0 to n - 1. */
static inline uint64_t rng_below(rng *r, uint64_t n) { return rng_next(r) % n; }

/* 1 in `n`. */
static inline int rng_one_in(rng *r, uint64_t n) { return rng_next(r) % n == 0; }

/* low to high, both included. */
static inline uint64_t rng_between(rng *r, uint64_t low, uint64_t high) {
    return low + rng_next(r) % (high - low + 1);
}

static inline void rng_fill(rng *r, void *out, size_t len) {
    uint8_t *to = out;
    while (len > 0) {
        uint64_t word = rng_next(r);
        size_t part = len < 8 ? len : 8;
        memcpy(to, &word, part);
        to += part;
        len -= part;
    }
}

/* A number from the environment, or `otherwise`. */
static inline uint64_t number_from_environment(const char *name, uint64_t otherwise) {
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

static inline uint64_t seed_from_environment(void) {
    struct timespec now = {0, 0};
    timespec_get(&now, TIME_UTC);
    uint64_t fresh = mix((uint64_t)now.tv_sec, (uint64_t)now.tv_nsec) & 0xFFFFFFFFu;
    return number_from_environment("NT_SEED", fresh);
}

static inline int is_long(void) { return number_from_environment("NT_LONG", 0) != 0; }

static inline double seconds_now(void) {
    struct timespec now = {0, 0};
    timespec_get(&now, TIME_UTC);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

#endif
