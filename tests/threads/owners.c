/*
 * owners: threads and processes race to open, destroy and drop stores. Never do two own the same directory,
 * and who owns it finds it whole. Other threads open and close stores of their own meanwhile.
 *
 *     NT_SEED=n; NT_ROUNDS=n  times that the directory is owned; NT_TEST_DIR=dir
 */
#define _DEFAULT_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "model/random.h"
#include "ntee.h"

enum { PROCESSES = 3, RACERS = 3, LONERS = 1, ROUNDS_QUICK = 2000, ROUNDS_LONG = 200000, STORES = 3 };

/* What all processes see. */
typedef struct shared {
    atomic_int owners[STORES];
    atomic_ullong owned;
    atomic_ullong refused;
    atomic_ullong destroyed;
    atomic_ullong failures;
    uint64_t rounds;
    uint64_t seed;
    char base[300];
} shared;

static shared *all;

typedef struct racer {
    int number;
    rng random;
} racer;

static void fail(const char *what, ntee_status status) {
    printf("owners: FAILED: %s (%s: %s)\nreplay: NT_SEED=%llu\n", what, ntee_status_name(status),
           ntee_last_error()->message, (unsigned long long)all->seed);
    fflush(stdout);
    atomic_fetch_add(&all->failures, 1);
}

/* What an owner may count on. */
static void own(racer *r, ntee *db, int store, const char *path) {
    char key[40], value[8];
    size_t len = 0;
    ntee *second = NULL;
    int key_len = snprintf(key, sizeof key, "%d.%d", (int)getpid(), r->number);
    if (atomic_fetch_add(&all->owners[store], 1) != 0) fail("two owners", NTEE_OK);
    ntee_status status = ntee_put(db, key, (size_t)key_len, "mine", 4, NULL);
    if (status != NTEE_OK) fail("put", status);
    status = ntee_open(path, NULL, &second);
    if (status != NTEE_LOCKED) fail("a second open", status);
    status = ntee_destroy(path);
    if (status != NTEE_LOCKED) fail("destroy of an open store", status);
    if (rng_one_in(&r->random, 2)) usleep((useconds_t)rng_below(&r->random, 300));
    status = ntee_get(db, key, (size_t)key_len, value, sizeof value, &len, NULL);
    if (status != NTEE_OK || len != 4) fail("get", status);
    if (access(path, F_OK)) fail("the directory is gone", NTEE_OK);
    if (atomic_fetch_add(&all->owners[store], -1) != 1) fail("two owners at the end", NTEE_OK);
}

static void race_once(racer *r) {
    char path[340];
    int store = (int)rng_below(&r->random, STORES);
    ntee_options options = {.size = sizeof options, .flags = rng_one_in(&r->random, 2) ? NTEE_NO_MMAP : 0};
    ntee *db = NULL;
    snprintf(path, sizeof path, "%s/shared/%d", all->base, store);
    if (rng_one_in(&r->random, 4)) {
        ntee_status status = ntee_destroy(path);
        if (status != NTEE_OK && status != NTEE_LOCKED) fail("destroy", status);
        atomic_fetch_add(&all->destroyed, status == NTEE_OK);
        return;
    }
    ntee_status status = ntee_open(path, &options, &db);
    if (status == NTEE_LOCKED) {
        atomic_fetch_add(&all->refused, 1);
        usleep((useconds_t)rng_below(&r->random, 100));
        return;
    }
    if (status != NTEE_OK) {
        fail("open", status);
        return;
    }
    own(r, db, store, path);
    atomic_fetch_add(&all->owned, 1);
    status = rng_one_in(&r->random, 4) ? ntee_drop(db) : ntee_close(db);
    if (status != NTEE_OK) fail("close or drop", status);
}

static int goes_on(void) {
    return atomic_load(&all->owned) < all->rounds && atomic_load(&all->failures) < 10;
}

static void *race(void *arg) {
    while (goes_on()) race_once(arg);
    return NULL;
}

/* A store that nobody else touches: opened and closed, each time with one key more. */
static void *be_alone(void *arg) {
    racer *r = arg;
    char path[340];
    uint64_t count = 0, rounds = 0;
    ntee *db;
    snprintf(path, sizeof path, "%s/alone.%d.%d", all->base, (int)getpid(), r->number);
    for (; goes_on(); rounds++) {
        ntee_status status = ntee_open(path, NULL, &db);
        if (status != NTEE_OK) {
            fail("open of a store of its own", status);
            return NULL;
        }
        status = ntee_count(db, NULL, &count);
        if (status != NTEE_OK || count != rounds) fail("count of a store of its own", status);
        status = ntee_put(db, &rounds, sizeof rounds, "", 0, NULL);
        if (status == NTEE_OK) status = ntee_close(db);
        if (status != NTEE_OK) fail("a store of its own", status);
    }
    if (ntee_destroy(path) != NTEE_OK || access(path, F_OK) == 0)
        fail("destroy of a store of its own", NTEE_OK);
    return NULL;
}

static int run_process(int number) {
    pthread_t threads[RACERS + LONERS];
    racer racers[RACERS + LONERS];
    for (int i = 0; i < RACERS + LONERS; i++) {
        racers[i] = (racer){i, {mix(mix(all->seed, (uint64_t)number), (uint64_t)i)}};
        if (pthread_create(&threads[i], NULL, i < RACERS ? race : be_alone, &racers[i])) return 1;
    }
    for (int i = 0; i < RACERS + LONERS; i++) pthread_join(threads[i], NULL);
    return 0;
}

static int clean_up(void) {
    char path[340];
    for (int i = 0; i < STORES; i++) {
        snprintf(path, sizeof path, "%s/shared/%d", all->base, i);
        if (ntee_destroy(path) != NTEE_OK || access(path, F_OK) == 0) fail("destroy at the end", NTEE_OK);
    }
    snprintf(path, sizeof path, "%s/shared", all->base);
    return rmdir(path) == 0 && rmdir(all->base) == 0;
}

int main(void) {
    const char *given = getenv("NT_TEST_DIR"), *temporary = getenv("TMPDIR");
    double started = seconds_now();
    all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) return 2;
    all->seed = seed_from_environment();
    all->rounds = number_from_environment("NT_ROUNDS", is_long() ? ROUNDS_LONG : ROUNDS_QUICK);
    snprintf(all->base, sizeof all->base, "%s/ntee-owners-XXXXXX",
             given       ? given
             : temporary ? temporary
                         : "/tmp");
    if (!mkdtemp(all->base)) return 2;
    printf("owners: NT_SEED=%llu, %llu rounds\n", (unsigned long long)all->seed,
           (unsigned long long)all->rounds);
    fflush(stdout);
    for (int i = 1; i < PROCESSES; i++) {
        pid_t child = fork();
        if (child < 0) return 2;
        if (child == 0) _exit(run_process(i));
    }
    if (run_process(0)) fail("no thread", NTEE_OK);
    for (int i = 1; i < PROCESSES; i++) {
        int status;
        if (wait(&status) < 0 || status != 0) fail("another process died", NTEE_OK);
    }
    if (!clean_up()) fail("something is left behind", NTEE_OK);
    printf("owners: owned %llu times, refused %llu times, destroyed %llu times, %llu failures, %.1f s\n",
           atomic_load(&all->owned), atomic_load(&all->refused), atomic_load(&all->destroyed),
           atomic_load(&all->failures), seconds_now() - started);
    return atomic_load(&all->failures) != 0;
}
