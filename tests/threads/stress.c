/*
 * stress: readers, writers, syncs and the background at the same time; for ThreadSanitizer, and for what it
 * cannot see.
 *
 * Keys belong to groups. A group is only written as a whole, in one batch, with one number for all of its
 * keys, and the numbers of a group only grow. So whoever looks at a state sees one number in a group, and
 * never a smaller one later. Single keys are put, deleted and put anew, with numbers that grow as well.
 *
 *     NT_SEED=n; NT_SECONDS=n  for each configuration; NT_TEST_DIR=dir
 */
#define _DEFAULT_SOURCE
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "model/random.h"
#include "ntee.h"

#ifdef NT_TESTING
#include <sched.h>

#include "base/os.h"

/* Now and then whoever passes a yield point lets the others go first. */
static void wait_here(const char *where) {
    static atomic_uint calls;
    unsigned call = atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
    (void)where;
    if (mix(call, 77) % 16 == 0) usleep(call % 64);
    else if (call % 4 == 0) sched_yield();
}

static nt_os waiting;
#endif

enum {
    WRITERS = 2,
    READERS = 4,
    GROUPS = 4,
    GROUP_KEYS = 8,
    SINGLES = 64,
    VALUE_MOST = 70000,
    PAGE_SIZE = 4096
};

typedef struct test {
    uint64_t seed;
    char base[300];
    char path[340];
    uint32_t flags;
    ntee *db;
    atomic_int stop;
    atomic_ullong writes, reads, scans, syncs;
    /* What the writers have reached: each group and single key belongs to one writer. */
    uint64_t group[WRITERS][GROUPS];
    uint64_t single[WRITERS][SINGLES];
    int there[WRITERS][SINGLES];
} test;

typedef struct worker {
    test *t;
    int number;
    rng random;
    uint8_t *value;
    uint8_t *page;
    uint64_t seen_group[WRITERS][GROUPS]; /* the largest numbers that this reader has seen */
    uint64_t seen_single[WRITERS][SINGLES];
} worker;

static void fail(const test *t, const char *format, ...) {
    va_list args;
    va_start(args, format);
    printf("stress: FAILED with flags %u: ", t->flags);
    vprintf(format, args);
    va_end(args);
    printf("; last error: %s\nreplay: NT_SEED=%llu\n", ntee_last_error()->message,
           (unsigned long long)t->seed);
    fflush(stdout);
    abort();
}

static void expect(const test *t, ntee_status status, const char *what) {
    if (status != NTEE_OK) fail(t, "%s: %s", what, ntee_status_name(status));
}

/* ---- Keys and values ----------------------------------------------------------------------------- */

static size_t group_key(int writer, int group, int key, char out[40]) {
    return (size_t)snprintf(out, 40, "g%d.%d.%d", writer, group, key);
}

static size_t single_key(int writer, int single, char out[40]) {
    return (size_t)snprintf(out, 40, "single key %d.%d", writer, single);
}

/* The value of number n under a key: the number, and what follows from both. */
static size_t make_value(const char *key, size_t key_len, uint64_t n, uint8_t *out) {
    uint64_t hash = n;
    for (size_t i = 0; i < key_len; i++) hash = mix(hash, (uint64_t)key[i]);
    size_t len = 8 + hash % 100;
    if (hash % 64 == 0) len = 8 + hash / 64 % 5000;
    if (hash % 4096 == 1) len = 65000 + hash / 4096 % 5000;
    memcpy(out, &n, 8);
    memset(out + 8, (int)(hash >> 32 & 255), len - 8);
    return len;
}

/* The number of a value that was read. */
static uint64_t check_value(const test *t, const char *key, size_t key_len, const uint8_t *value,
                            size_t len) {
    uint64_t hash, n;
    if (len < 8) fail(t, "a value of %zu bytes", len);
    memcpy(&n, value, 8);
    hash = n;
    for (size_t i = 0; i < key_len; i++) hash = mix(hash, (uint64_t)key[i]);
    size_t wanted = 8 + hash % 100;
    if (hash % 64 == 0) wanted = 8 + hash / 64 % 5000;
    if (hash % 4096 == 1) wanted = 65000 + hash / 4096 % 5000;
    if (len != wanted) fail(t, "key %.*s: a value of %zu bytes, not %zu", (int)key_len, key, len, wanted);
    for (size_t i = 8; i < len; i++)
        if (value[i] != (uint8_t)(hash >> 32 & 255)) fail(t, "key %.*s: a wrong value", (int)key_len, key);
    return n;
}

/* ---- Writers ------------------------------------------------------------------------------------- */

static void write_group(worker *w, ntee_batch *batch) {
    test *t = w->t;
    char key[40];
    int group = (int)rng_below(&w->random, GROUPS);
    uint64_t n = ++t->group[w->number][group];
    ntee_batch_clear(batch);
    for (int i = 0; i < GROUP_KEYS; i++) {
        size_t key_len = group_key(w->number, group, i, key);
        size_t len = make_value(key, key_len, n, w->value);
        expect(t, ntee_batch_put(batch, key, key_len, w->value, len, NULL), "batch_put");
    }
    expect(t, ntee_write(t->db, batch), "write");
}

static void write_single(worker *w) {
    test *t = w->t;
    char key[40];
    int single = (int)rng_below(&w->random, SINGLES);
    size_t key_len = single_key(w->number, single, key);
    int *there = &t->there[w->number][single];
    if (*there && rng_one_in(&w->random, 3)) {
        expect(t, ntee_delete(t->db, key, key_len), "delete");
        *there = 0;
        return;
    }
    size_t len = make_value(key, key_len, ++t->single[w->number][single], w->value);
    ntee_status status = *there ? ntee_put(t->db, key, key_len, w->value, len, NULL)
                                : ntee_put_if_absent(t->db, key, key_len, w->value, len, NULL);
    expect(t, status, "put");
    *there = 1;
    /* What was written is seen by whoever wrote it. */
    expect(t, ntee_has(t->db, key, key_len), "has after put");
}

static void *run_writer(void *arg) {
    worker *w = arg;
    ntee_batch *batch = ntee_batch_new();
    while (!atomic_load(&w->t->stop)) {
        if (rng_one_in(&w->random, 3)) write_group(w, batch);
        else write_single(w);
        atomic_fetch_add(&w->t->writes, 1);
    }
    ntee_batch_free(batch);
    return NULL;
}

static void *run_syncer(void *arg) {
    worker *w = arg;
    while (!atomic_load(&w->t->stop)) {
        expect(w->t, ntee_sync(w->t->db), "sync");
        atomic_fetch_add(&w->t->syncs, 1);
        usleep((useconds_t)rng_below(&w->random, 3000));
    }
    return NULL;
}

/* ---- Readers ------------------------------------------------------------------------------------- */

static void grow(const worker *w, uint64_t *seen, uint64_t n, const char *what) {
    if (n < *seen)
        fail(w->t, "%s: number %llu after %llu", what, (unsigned long long)n, (unsigned long long)*seen);
    *seen = n;
}

static void read_single(worker *w) {
    test *t = w->t;
    char key[40];
    size_t len = 0;
    int writer = (int)rng_below(&w->random, WRITERS), single = (int)rng_below(&w->random, SINGLES);
    size_t key_len = single_key(writer, single, key);
    ntee_status status = ntee_get(t->db, key, key_len, w->value, VALUE_MOST, &len, NULL);
    if (status == NTEE_NOT_FOUND) return;
    expect(t, status, "get");
    grow(w, &w->seen_single[writer][single], check_value(t, key, key_len, w->value, len), key);
}

static void count_group(worker *w) {
    char prefix[40];
    uint64_t count = 0;
    int n = snprintf(prefix, sizeof prefix, "g%d.%d.", (int)rng_below(&w->random, WRITERS),
                     (int)rng_below(&w->random, GROUPS));
    ntee_range range = {.lower = prefix, .lower_len = (size_t)n, .flags = NTEE_PREFIX};
    expect(w->t, ntee_count(w->t->db, &range, &count), "count");
    if (count != 0 && count != GROUP_KEYS) fail(w->t, "%llu keys of a group", (unsigned long long)count);
}

static void check_entry(worker *w, const ntee_entry *e, uint64_t now[WRITERS][GROUPS],
                        int count[WRITERS][GROUPS]) {
    char key[41] = {0};
    int writer, group, item;
    if (e->key_len > 40) fail(w->t, "a scan gives a key that nobody wrote");
    memcpy(key, e->key, e->key_len);
    uint64_t n = check_value(w->t, key, e->key_len, e->value, e->value_len);
    if (sscanf(key, "g%d.%d.%d", &writer, &group, &item) != 3) return;
    if (count[writer][group]++ && now[writer][group] != n)
        fail(w->t, "%s: two states in one scan, %llu and %llu", key, (unsigned long long)n,
             (unsigned long long)now[writer][group]);
    now[writer][group] = n;
}

/* All of a state, page by page, slowly: the pages stay of one state, whatever is written meanwhile. */
static void scan_all(worker *w, uint32_t flags) {
    test *t = w->t;
    uint64_t now[WRITERS][GROUPS] = {{0}};
    int count[WRITERS][GROUPS] = {{0}};
    ntee_scan_options options = {.size = sizeof options, .flags = NTEE_VALUES | flags};
    size_t cap = PAGE_SIZE;
    ntee_scan *scan;
    ntee_page page;
    ntee_entry e = {0};
    expect(t, ntee_scan_open(t->db, &options, &scan), "scan_open");
    do {
        ntee_status status = ntee_scan_page(scan, w->page, cap, &page);
        if (status == NTEE_SHORT_BUFFER && cap < VALUE_MOST + PAGE_SIZE) {
            cap = VALUE_MOST + PAGE_SIZE;
            page.more = 1;
            continue;
        }
        expect(t, status, "scan_page");
        while (ntee_page_next(&page, &e)) check_entry(w, &e, now, count);
        if (rng_one_in(&w->random, 20)) usleep(500);
    } while (page.more);
    ntee_scan_close(scan);
    for (int i = 0; i < WRITERS * GROUPS; i++) {
        int in_group = count[i / GROUPS][i % GROUPS];
        if (in_group && in_group != GROUP_KEYS) fail(t, "a scan gives %d keys of a group", in_group);
        grow(w, &w->seen_group[i / GROUPS][i % GROUPS], now[i / GROUPS][i % GROUPS], "group");
    }
    atomic_fetch_add(&t->scans, 1);
}

static void *run_reader(void *arg) {
    worker *w = arg;
    while (!atomic_load(&w->t->stop)) {
        uint64_t pick = rng_below(&w->random, 100);
        if (pick < 90) read_single(w);
        else if (pick < 97) count_group(w);
        else scan_all(w, pick == 99 ? NTEE_REVERSE : 0);
        atomic_fetch_add(&w->t->reads, 1);
    }
    return NULL;
}

/* ---- Configurations ------------------------------------------------------------------------------ */

static ntee *open_store(const test *t, uint32_t flags) {
    ntee_options options = {.size = sizeof options, .flags = flags, .sync_interval_ms = 3};
    ntee *db;
    expect(t, ntee_open(t->path, &options, &db), "open");
    return db;
}

/* After all: exactly what was written last. */
static void check_end(test *t, worker *w) {
    char key[40];
    uint64_t n, records = 0;
    ntee_stats_t stats = {.size = sizeof stats};
    for (int writer = 0; writer < WRITERS; writer++) {
        for (int i = 0; i < SINGLES; i++) {
            size_t len = 0, key_len = single_key(writer, i, key);
            ntee_status status = ntee_get(t->db, key, key_len, w->value, VALUE_MOST, &len, NULL);
            if (status != (t->there[writer][i] ? NTEE_OK : NTEE_NOT_FOUND)) fail(t, "%s: there or not", key);
            if (status == NTEE_NOT_FOUND) continue;
            n = check_value(t, key, key_len, w->value, len);
            if (n != t->single[writer][i]) fail(t, "%s: not the last value", key);
            records++;
        }
        for (int i = 0; i < GROUPS * GROUP_KEYS; i++) {
            size_t len = 0, key_len = group_key(writer, i / GROUP_KEYS, i % GROUP_KEYS, key);
            uint64_t wanted = t->group[writer][i / GROUP_KEYS];
            if (wanted == 0) continue;
            expect(t, ntee_get(t->db, key, key_len, w->value, VALUE_MOST, &len, NULL), "get at the end");
            if (check_value(t, key, key_len, w->value, len) != wanted) fail(t, "%s: not the last value", key);
            records++;
        }
    }
    expect(t, ntee_stats(t->db, &stats), "stats");
    if (stats.records != records) fail(t, "%llu records", (unsigned long long)stats.records);
}

static void run_configuration(test *t, uint32_t flags, uint64_t milliseconds) {
    static worker workers[WRITERS + READERS + 1];
    pthread_t threads[WRITERS + READERS + 1];
    t->flags = flags;
    snprintf(t->path, sizeof t->path, "%s/%u", t->base, flags);
    t->db = open_store(t, flags);
    atomic_store(&t->stop, 0);
    atomic_store(&t->writes, 0), atomic_store(&t->reads, 0), atomic_store(&t->scans, 0),
        atomic_store(&t->syncs, 0);
    memset(t->group, 0, sizeof t->group);
    memset(t->single, 0, sizeof t->single);
    memset(t->there, 0, sizeof t->there);
    for (int i = 0; i < WRITERS + READERS + 1; i++) {
        worker *w = &workers[i];
        memset(w, 0, sizeof *w);
        w->t = t;
        w->number = i;
        w->random = (rng){mix(mix(t->seed, flags), (uint64_t)i)};
        w->value = malloc(VALUE_MOST);
        w->page = malloc(VALUE_MOST + PAGE_SIZE);
        void *(*run)(void *) = i < WRITERS ? run_writer : i < WRITERS + READERS ? run_reader : run_syncer;
        if (!w->value || !w->page || pthread_create(&threads[i], NULL, run, w)) fail(t, "no thread");
    }
    usleep((useconds_t)(milliseconds * 1000));
    atomic_store(&t->stop, 1);
    for (int i = 0; i < WRITERS + READERS + 1; i++) pthread_join(threads[i], NULL);
    check_end(t, &workers[0]);
    expect(t, ntee_close(t->db), "close");
    t->db = open_store(t, flags ^ NTEE_NO_MMAP);
    check_end(t, &workers[0]);
    expect(t, ntee_drop(t->db), "drop");
    for (int i = 0; i < WRITERS + READERS + 1; i++) {
        free(workers[i].value);
        free(workers[i].page);
    }
    printf("stress: flags %u: %llu writes, %llu reads (%llu scans), %llu syncs, 0 wrong\n", flags,
           atomic_load(&t->writes), atomic_load(&t->reads), atomic_load(&t->scans), atomic_load(&t->syncs));
    fflush(stdout);
}

int main(void) {
    static test t;
    static const uint32_t flags[] = {0, NTEE_NO_MMAP, NTEE_SYNC_EVERY_WRITE,
                                     NTEE_SYNC_EVERY_WRITE | NTEE_NO_MMAP};
    const char *given = getenv("NT_TEST_DIR"), *temporary = getenv("TMPDIR");
    uint64_t milliseconds = number_from_environment("NT_SECONDS", is_long() ? 1800 : 0) * 1000;
    t.seed = seed_from_environment();
#ifdef NT_TESTING
    waiting = nt_os_posix;
    waiting.yield = wait_here;
    nt_os_now = &waiting;
#endif
    if (milliseconds == 0) milliseconds = 3000;
    snprintf(t.base, sizeof t.base, "%s/ntee-stress-XXXXXX", given ? given : temporary ? temporary : "/tmp");
    if (!mkdtemp(t.base)) fail(&t, "no directory");
    printf("stress: NT_SEED=%llu, %.1f s each\n", (unsigned long long)t.seed, (double)milliseconds / 1000);
    for (int i = 0; i < 4; i++) run_configuration(&t, flags[i], milliseconds);
    if (rmdir(t.base)) fail(&t, "the directory is not empty");
    return 0;
}
