/*
 * model: a store against a sorted array, for a million random operations.
 *
 * Episodes go through the combinations of: mapped or not, the two tiers, functions or ntee_run, the real
 * file system or the fake one. After every episode, reopening and crash the whole store is compared.
 *
 *     NT_SEED=n    replays a run (or, with NT_EPISODE=n, one episode of it)
 *     NT_OPS=n     operations in all; NT_TEST_DIR=dir  where the stores lie
 */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <unistd.h>

#include "api/handle.h"
#include "model/checks.h"
#include "model/generate.h"
#include "model/place.h"

enum { EPISODES = 32, BATCH_MOST = 24, OPS_QUICK = 3000000, OPS_LONG = 100000000 };

static void open_store(model *m, uint32_t extra) {
    ntee_options options = {.size = sizeof options, .flags = m->flags | extra, .sync_interval_ms = 5};
    expect(m, ntee_open(m->place.path, &options, &m->d.db), NTEE_OK, "open");
}

static void check_all(model *m) {
    check_scan(m, &(ntee_scan_options){.size = sizeof(ntee_scan_options), .flags = NTEE_VALUES}, 1 << 16);
    check_counts(m);
}

/* ---- Writes -------------------------------------------------------------------------------------- */

/* A key that is there (mostly) or any key. */
static size_t pick_key(model *m, uint8_t *out, unsigned percent_there) {
    if (m->ref.count > 0 && rng_below(&m->random, 100) < percent_there) {
        const entry *e = m->ref.at[rng_below(&m->random, m->ref.count)];
        memcpy(out, e->bytes, e->key_len);
        return e->key_len;
    }
    return generate_key(&m->random, m->families, m->spread, out);
}

static void put(model *m, int type, unsigned percent_there) {
    ntee_kind kind;
    write_item item = {.type = type, .key = m->key, .value = m->value};
    item.key_len = pick_key(m, m->key, percent_there);
    item.value_len = generate_value(&m->random, m->value, &kind);
    int there = reference_find(&m->ref, m->key, item.key_len) != NULL;
    ntee_status wanted = there && type == DRIVER_PUT_IF_ABSENT ? NTEE_EXISTS : NTEE_OK;
    expect(m, driver_write(&m->d, &item), wanted, "put");
    if (wanted == NTEE_OK)
        reference_put(&m->ref, entry_new(m->key, item.key_len, m->value, item.value_len, kind));
}

static void delete(model *m, unsigned percent_there) {
    write_item item = {.type = DRIVER_DELETE, .key = m->key};
    item.key_len = pick_key(m, m->key, percent_there);
    int there = reference_delete(&m->ref, m->key, item.key_len);
    expect(m, driver_write(&m->d, &item), there ? NTEE_OK : NTEE_NOT_FOUND, "delete");
}

static void batch(model *m) {
    write_item items[BATCH_MOST] = {{0}};
    size_t count = rng_below(&m->random, BATCH_MOST + 1);
    size_t used = 0;
    int64_t effective, counted = 0;
    for (size_t i = 0; i < count; i++) {
        uint8_t *key = m->batch_bytes + used;
        ntee_kind kind = NTEE_BINARY;
        int deletes = rng_one_in(&m->random, 3);
        size_t key_len = pick_key(m, key, 50);
        uint8_t *value = key + key_len;
        size_t value_len = deletes ? 0 : generate_value(&m->random, value, &kind);
        items[i] = (write_item){deletes ? DRIVER_DELETE : DRIVER_PUT, key, key_len, value, value_len};
        used += key_len + value_len;
        if (deletes) {
            counted += reference_delete(&m->ref, key, key_len);
        } else {
            reference_put(&m->ref, entry_new(key, key_len, value, value_len, kind));
            counted++;
        }
    }
    expect(m, driver_batch(&m->d, items, count, &effective), NTEE_OK, "batch");
    if (effective >= 0 && effective != counted)
        fail(m, "a batch of %lld effects reports %lld", (long long)counted, (long long)effective);
}

/* Calls that must be refused, and change nothing. */
static void refused(model *m) {
    ntee *db = m->d.db;
    uint8_t *big = m->batch_bytes;
    ntee_put_options ttl = {.size = sizeof ttl, .ttl_ms = 1};
    ntee_scan *scan;
    ntee *again;
    ntee_scan_options options = {.size = sizeof options, .flags = 64};
    expect(m, ntee_put(db, "", 0, "x", 1, NULL), NTEE_INVALID, "put of an empty key");
    expect(m, ntee_put(db, NULL, 4, "x", 1, NULL), NTEE_INVALID, "put of a NULL key");
    expect(m, ntee_put(db, big, NTEE_KEY_MAX + 1, "x", 1, NULL), NTEE_TOO_LARGE, "put of a long key");
    expect(m, ntee_put(db, "k", 1, NULL, 4, NULL), NTEE_INVALID, "put of a NULL value");
    expect(m, ntee_put(db, "k", 1, "x", (size_t)NTEE_VALUE_MAX + 1, NULL), NTEE_TOO_LARGE, "put of 4 GiB");
    expect(m, ntee_put(db, "k", 1, "x", 1, &ttl), NTEE_INVALID, "put with a ttl");
    expect(m, ntee_delete(db, big, NTEE_KEY_MAX + 1), NTEE_TOO_LARGE, "delete of a long key");
    expect(m, ntee_has(db, "", 0), NTEE_INVALID, "has of an empty key");
    expect(m, ntee_scan_open(db, &options, &scan), NTEE_INVALID, "scan with an unknown flag");
    expect(m, ntee_open(m->place.path, NULL, &again), NTEE_LOCKED, "a second open");
    expect(m, ntee_destroy(m->place.path), NTEE_LOCKED, "destroy of an open store");
}

/* ---- Reads --------------------------------------------------------------------------------------- */

static void get(model *m, unsigned percent_there) {
    size_t key_len = pick_key(m, m->key, percent_there);
    const entry *e = reference_find(&m->ref, m->key, key_len);
    size_t cap = rng_one_in(&m->random, 6) ? rng_below(&m->random, 64) : 4096, len;
    ntee_kind kind;
    ntee_status status = driver_get(&m->d, m->key, key_len, cap, &len, &kind);
    expect(m, status, e ? NTEE_OK : NTEE_NOT_FOUND, "get");
    if (!e) return;
    if (len != e->value_len || memcmp(m->d.out, entry_value(e), len) != 0 || kind != e->kind)
        fail(m, "get gives another value (%zu bytes, kind %d; wanted %zu, %d)", len, (int)kind,
             e->value_len, (int)e->kind);
}

static void has(model *m) {
    size_t key_len = pick_key(m, m->key, 50);
    int there = reference_find(&m->ref, m->key, key_len) != NULL;
    expect(m, driver_has(&m->d, m->key, key_len), there ? NTEE_OK : NTEE_NOT_FOUND, "has");
}

static void get_many(model *m) {
    write_item keys[BATCH_MOST] = {{0}};
    const entry *wanted[BATCH_MOST];
    size_t count = rng_below(&m->random, BATCH_MOST + 1), used = 0;
    ntee_page page;
    if (!m->d.framed) return;
    for (size_t i = 0; i < count; i++) {
        uint8_t *key = m->batch_bytes + used;
        keys[i] = (write_item){.key = key, .key_len = pick_key(m, key, 80)};
        wanted[i] = reference_find(&m->ref, key, keys[i].key_len);
        used += keys[i].key_len;
    }
    expect(m, driver_get_many(&m->d, keys, count, &page), NTEE_OK, "get_many");
    if (page.count != count) fail(m, "get_many gives %zu of %zu", (size_t)page.count, count);
    for (size_t i = 0; i < count; i++) {
        ntee_entry e = {0};
        if (!ntee_page_next(&page, &e)) fail(m, "a get_many page ends at %zu", i);
        if (!wanted[i] && e.kind != NTEE_MISSING) fail(m, "get_many finds a key that is not there");
        if (wanted[i] && (e.kind != wanted[i]->kind || e.value_len != wanted[i]->value_len ||
                          memcmp(e.value, entry_value(wanted[i]), e.value_len) != 0))
            fail(m, "get_many gives another value");
    }
}

/* A range with every kind of bound, often from keys that are there; keys go to the scratch memory. */
static void random_scan(model *m, ntee_scan_options *options) {
    uint8_t *lower = m->batch_bytes, *upper = lower + GENERATE_KEY_MAX, *after = upper + GENERATE_KEY_MAX;
    rng *r = &m->random;
    ntee_range *range = &options->range;
    *options = (ntee_scan_options){.size = sizeof *options};
    if (rng_one_in(r, 3)) {
        range->flags = NTEE_PREFIX;
        range->lower = lower;
        range->lower_len = rng_below(r, pick_key(m, lower, 70) + 1);
    } else {
        range->lower = rng_below(r, 3) ? lower : NULL;
        range->upper = rng_below(r, 3) ? upper : NULL;
        range->lower_len = range->lower ? pick_key(m, lower, 70) : 0;
        range->upper_len = range->upper ? pick_key(m, upper, 70) : 0;
        if (rng_one_in(r, 3)) range->flags |= NTEE_LOWER_GT;
        if (rng_one_in(r, 3)) range->flags |= NTEE_UPPER_LTE;
    }
    options->after = rng_one_in(r, 4) ? after : NULL;
    options->after_len = options->after ? pick_key(m, after, 70) : 0;
    if (rng_below(r, 100)) options->limit = rng_between(r, 1, 24);
    if (rng_one_in(r, 2)) options->flags |= NTEE_REVERSE;
    if (rng_one_in(r, 2)) options->flags |= NTEE_VALUES;
}

static size_t random_page(model *m) {
    return 8 * rng_between(&m->random, 0, rng_one_in(&m->random, 8) ? 8 : 600);
}

static void scan(model *m) {
    ntee_scan_options options;
    random_scan(m, &options);
    check_scan(m, &options, random_page(m));
}

static void count(model *m) {
    ntee_scan_options options;
    uint64_t got;
    random_scan(m, &options);
    size_t low, high;
    reference_span(&m->ref, &options.range, &low, &high);
    expect(m, driver_count(&m->d, &options.range, &got), NTEE_OK, "count");
    if (got != high - low) fail(m, "count gives %llu, not %zu", (unsigned long long)got, high - low);
}

/* Scans that stay open while others write: compared with a frozen copy. */
static void held_scan(model *m) {
    held *h = &m->held[rng_below(&m->random, HELD_MOST)];
    if (!h->open) {
        ntee_scan_options options;
        random_scan(m, &options);
        options.limit = 0;
        held_open(m, h, &options, random_page(m));
    } else if (rng_one_in(&m->random, 12)) {
        held_close(h);
    } else {
        held_page(m, h);
    }
}

/* ---- The store as a whole ------------------------------------------------------------------------- */

static void close_all_held(model *m) {
    for (int i = 0; i < HELD_MOST; i++) held_close(&m->held[i]);
}

static void reopen(model *m) {
    close_all_held(m);
    if (rng_one_in(&m->random, 4)) m->flags ^= NTEE_NO_MMAP;
    if (rng_one_in(&m->random, 4)) {
        place_crash(&m->place, m->d.db);
    } else {
        expect(m, ntee_close(m->d.db), NTEE_OK, "close");
    }
    if (rng_one_in(&m->random, 3)) {
        open_store(m, NTEE_READ_ONLY);
        check_all(m);
        expect(m, ntee_put(m->d.db, "k", 1, "x", 1, NULL), NTEE_READONLY, "put on a read-only store");
        expect(m, ntee_delete(m->d.db, "k", 1), NTEE_READONLY, "delete on a read-only store");
        expect(m, ntee_close(m->d.db), NTEE_OK, "close of a read-only store");
    }
    open_store(m, 0);
    check_all(m);
}

/* The fake file system has no threads: the background's steps are taken here. */
static void step(model *m) {
    if (!m->place.fs) return;
    nt_log_prepare(m->d.db->db.log);
    if (rng_one_in(&m->random, 2)) nt_background_step(&m->d.db->background);
}

static void one_operation(model *m) {
    uint64_t pick = rng_below(&m->random, 10000);
    int crowded = m->ref.count > m->crowd;
    if (pick < 2500) put(m, DRIVER_PUT, crowded ? 95 : 30);
    else if (pick < 2900) put(m, DRIVER_PUT_IF_ABSENT, 60);
    else if (pick < 4200) delete(m, crowded ? 100 : 60);
    else if (pick < 4400) batch(m);
    else if (pick < 6400) get(m, 90);
    else if (pick < 6900) get(m, 20);
    else if (pick < 7500) has(m);
    else if (pick < 7700) get_many(m);
    else if (pick < 8500) scan(m);
    else if (pick < 9000) count(m);
    else if (pick < 9300) held_scan(m);
    else if (pick < 9500) check_counts(m);
    else if (pick < 9900) step(m);
    else if (pick < 9960) expect(m, driver_sync(&m->d), NTEE_OK, "sync");
    else if (pick < 9992) refused(m);
    else if (pick < 9994) check_all(m);
    else if (rng_one_in(&m->random, 4)) reopen(m);
}

static void choose(model *m, uint64_t episode, const char *directories[2]) {
    m->flags = (episode & 1 ? NTEE_NO_MMAP : 0u) | (episode & 2 ? NTEE_SYNC_EVERY_WRITE : 0u);
    m->d.framed = (episode & 4) != 0;
    int fake = (episode & 8) != 0;
    static const uint64_t crowds[] = {40, 400, 3000, 12000};
    m->crowd = crowds[rng_below(&m->random, 4)];
    m->spread = m->crowd * 2;
    m->families =
        1u << rng_below(&m->random, 4) | 1u << rng_below(&m->random, 5) | 1u << rng_below(&m->random, 4);
    place_begin(&m->place, fake ? NULL : directories[(episode >> 1) & 1], rng_next(&m->random));
}

static void run_episode(model *m, uint64_t seed, uint64_t episode, uint64_t operations,
                        const char *directories[2]) {
    m->seed = seed;
    m->episode = episode;
    m->random = (rng){mix(seed, episode)};
    m->d = (driver){.random = &m->random};
    choose(m, episode, directories);
    open_store(m, 0);
    for (m->operation = 0; m->operation < operations; m->operation++) one_operation(m);
    check_all(m);
    close_all_held(m);
    expect(m, ntee_close(m->d.db), NTEE_OK, "the last close");
    open_store(m, 0);
    check_all(m);
    expect(m, ntee_close(m->d.db), NTEE_OK, "the very last close");
    place_end(&m->place);
    reference_clear(&m->ref);
    driver_end(&m->d);
}

static const char *directory(const char *wanted) {
    const char *given = getenv("NT_TEST_DIR"), *temporary = getenv("TMPDIR");
    if (given) return given;
    if (wanted && access(wanted, W_OK) == 0) return wanted;
    return temporary ? temporary : "/tmp";
}

int main(void) {
    static model m;
    uint64_t seed = seed_from_environment();
    uint64_t operations = number_from_environment("NT_OPS", is_long() ? OPS_LONG : OPS_QUICK);
    uint64_t only = number_from_environment("NT_EPISODE", UINT64_MAX);
    /* The durable tier is tried in memory, where a sync takes no time. */
    const char *directories[2] = {directory(NULL), directory("/dev/shm")};
    double started = seconds_now();
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("model: NT_SEED=%llu, %llu operations in %d episodes\n", (unsigned long long)seed,
           (unsigned long long)operations, EPISODES);
    m.key = malloc(GENERATE_KEY_MAX + 1);
    m.value = malloc(GENERATE_VALUE_MAX);
    m.batch_bytes = calloc(BATCH_MOST, GENERATE_KEY_MAX + (size_t)GENERATE_VALUE_MAX);
    if (!m.key || !m.value || !m.batch_bytes) return 2;
    for (uint64_t episode = 0; episode < EPISODES; episode++)
        if (only == UINT64_MAX || only == episode)
            run_episode(&m, seed, episode, operations / EPISODES, directories);
    printf("model: %llu operations, 0 mismatches, %.1f s\n", (unsigned long long)operations,
           seconds_now() - started);
    free(m.key);
    free(m.value);
    free(m.batch_bytes);
    return 0;
}
