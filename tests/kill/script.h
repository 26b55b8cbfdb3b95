/*
 * script: what each thread of the killed process does, as a function of the seed: its n-th operation, and
 * with it the state that it must have left after n of them.
 */
#ifndef TESTS_KILL_SCRIPT_H
#define TESTS_KILL_SCRIPT_H

#include <stddef.h>
#include <stdint.h>

#include "ntee.h"

enum { THREADS_MOST = 4, OWN_KEYS = 8, VALUE_MOST = 1300000 };

/* The number of the operation that wrote each of a thread's keys; 0: the key is not there. */
typedef struct progress {
    uint64_t count; /* operations done */
    uint64_t key[OWN_KEYS];
} progress;

/* The name of a thread's key. */
size_t script_key(int thread, int key, char out[32]);
/* The value that a thread's n-th operation gives a key; its length. */
size_t script_value(uint64_t seed, int thread, int key, uint64_t n, uint8_t *out);
/* Goes on by one operation, without a store. */
void script_advance(uint64_t seed, int thread, progress *p);
/* Does the operation after `p` in a store. NTEE_OK where the answer is the right one. `scratch` has
 * VALUE_MOST bytes. */
ntee_status script_do(ntee *db, uint64_t seed, int thread, const progress *p, uint8_t *scratch);

#endif
