/* checks: the state of a model run, and the comparisons that every operation ends in. */
#ifndef TESTS_MODEL_CHECKS_H
#define TESTS_MODEL_CHECKS_H

#include "model/driver.h"
#include "model/place.h"
#include "model/reference.h"

enum { HELD_MOST = 4 };

/* A scan that stays open, and what it should see. */
typedef struct held {
    int open;
    int ended;
    int down;
    cursor c;
    reference frozen;
    size_t low, high; /* what is still to come */
} held;

typedef struct model {
    rng random;
    driver d;
    reference ref;
    place place;
    held held[HELD_MOST];
    uint32_t flags;
    unsigned families;
    uint64_t spread;
    uint64_t crowd;
    uint64_t seed;
    uint64_t episode;
    uint64_t operation;
    uint8_t *key;
    uint8_t *value;
    uint8_t *batch_bytes;
} model;

/* Prints what went wrong and how to see it again, and ends the process. */
void fail(const model *m, const char *format, ...) __attribute__((format(printf, 2, 3), noreturn));
void expect(const model *m, ntee_status got, ntee_status wanted, const char *what);

/* The entries [low, high) of a range. */
void reference_span(const reference *ref, const ntee_range *range, size_t *low, size_t *high);

/* Compares a whole scan with the reference, in pages of `cap` bytes. */
void check_scan(model *m, const ntee_scan_options *options, size_t cap);
/* Compares the count of all keys and the statistics. */
void check_counts(model *m);

void held_open(model *m, held *h, const ntee_scan_options *options, size_t cap);
void held_page(model *m, held *h);
void held_close(held *h);

#endif
