#include "kill/script.h"

#include <stdio.h>

#include "model/random.h"

typedef struct step {
    int is_batch;
    int deletes[OWN_KEYS]; /* of a batch: which keys it deletes; of one write: whether it deletes */
    int key;
} step;

static step make_step(uint64_t seed, int thread, uint64_t n) {
    rng r = {mix(mix(seed, (uint64_t)thread), n)};
    step s = {.is_batch = rng_one_in(&r, 4), .key = (int)rng_below(&r, OWN_KEYS)};
    for (int i = 0; i < OWN_KEYS; i++) s.deletes[i] = rng_one_in(&r, 5);
    return s;
}

size_t script_key(int thread, int key, char out[32]) {
    return (size_t)snprintf(out, 32, "thread %d key %d", thread, key);
}

static size_t value_size(rng *r) {
    uint64_t pick = rng_below(r, 2000);
    if (pick == 0) return 1200000 + rng_below(r, 1000);
    if (pick < 20) return 60000 + rng_below(r, 9000);
    if (pick < 200) return 1000 + rng_below(r, 8000);
    return 24 + rng_below(r, 200);
}

size_t script_value(uint64_t seed, int thread, int key, uint64_t n, uint8_t *out) {
    rng r = {mix(mix(seed, n), (uint64_t)(thread * OWN_KEYS + key))};
    size_t size = value_size(&r);
    uint64_t head[2] = {n, (uint64_t)(thread * OWN_KEYS + key)};
    memcpy(out, head, sizeof head);
    rng_fill(&r, out + sizeof head, size - sizeof head);
    return size;
}

void script_advance(uint64_t seed, int thread, progress *p) {
    uint64_t n = ++p->count;
    step s = make_step(seed, thread, n);
    if (!s.is_batch) {
        p->key[s.key] = s.deletes[0] ? 0 : n;
        return;
    }
    for (int i = 0; i < OWN_KEYS; i++) p->key[i] = s.deletes[i] ? 0 : n;
}

static ntee_status do_batch(ntee *db, uint64_t seed, int thread, uint64_t n, const step *s,
                            uint8_t *scratch) {
    char key[32];
    ntee_batch *batch = ntee_batch_new();
    ntee_status status = batch ? NTEE_OK : NTEE_NOMEM;
    for (int i = 0; i < OWN_KEYS && status == NTEE_OK; i++) {
        size_t key_len = script_key(thread, i, key);
        if (s->deletes[i]) {
            status = ntee_batch_delete(batch, key, key_len);
        } else {
            size_t size = script_value(seed, thread, i, n, scratch);
            status = ntee_batch_put(batch, key, key_len, scratch, size, NULL);
        }
    }
    if (status == NTEE_OK) status = ntee_write(db, batch);
    ntee_batch_free(batch);
    return status;
}

ntee_status script_do(ntee *db, uint64_t seed, int thread, const progress *p, uint8_t *scratch) {
    uint64_t n = p->count + 1;
    step s = make_step(seed, thread, n);
    char key[32];
    if (s.is_batch) return do_batch(db, seed, thread, n, &s, scratch);
    size_t key_len = script_key(thread, s.key, key);
    if (s.deletes[0]) {
        ntee_status status = ntee_delete(db, key, key_len);
        int there = p->key[s.key] != 0;
        return status == (there ? NTEE_OK : NTEE_NOT_FOUND) ? NTEE_OK : NTEE_CORRUPT;
    }
    return ntee_put(db, key, key_len, scratch, script_value(seed, thread, s.key, n, scratch), NULL);
}
