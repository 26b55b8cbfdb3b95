/* generate: keys and values of the model test. */
#ifndef TESTS_MODEL_GENERATE_H
#define TESTS_MODEL_GENERATE_H

#include "model/random.h"
#include "ntee.h"

enum { GENERATE_KEY_MAX = NTEE_KEY_MAX, GENERATE_VALUE_MAX = 4 << 20 };

/* Key families; each episode mixes some of them. */
enum {
    KEYS_NUMBERED = 1,  /* "user:000123" */
    KEYS_NESTED = 2,    /* short strings over a tiny alphabet: prefixes of each other, NUL and 0xFF in them */
    KEYS_DEEP = 4,      /* 200 to 300 common bytes, then a little */
    KEYS_BINARY = 8,    /* any bytes */
    KEYS_HUGE = 16      /* rarely up to the limit */
};

/* Writes a key of one of the families in `families` to `out` (GENERATE_KEY_MAX bytes); its length. */
size_t generate_key(rng *r, unsigned families, uint64_t spread, uint8_t *out);

/* Writes a value to `out` (GENERATE_VALUE_MAX bytes); its length, and what the store should call it. */
size_t generate_value(rng *r, uint8_t *out, ntee_kind *kind);

#endif
