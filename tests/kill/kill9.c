/*
 * kill9: a process with one to four writing threads is killed with SIGKILL at any moment, also while it
 * opens the store; whatever it had acknowledged over a pipe has to be there, in order, and what was under
 * way whole or absent.
 *
 *     NT_SEED=n  replays the choices (not the moments); NT_ROUNDS=n; NT_TEST_DIR=dir
 */
#define _DEFAULT_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kill/script.h"
#include "model/random.h"

enum { ROUNDS_QUICK = 3000, ROUNDS_LONG = 200000, ROUNDS_A_STORE = 25 };

typedef struct ack {
    uint32_t thread; /* THREADS_MOST: the store is open */
    uint32_t unused;
    uint64_t n;
} ack;

typedef struct test {
    uint64_t seed;       /* of the scripts: one for each store */
    uint64_t run_seed;
    uint64_t round;
    rng random;
    char base[300];
    char path[340];
    uint32_t flags;
    int threads;
    uint64_t a_session;  /* operations of each thread between two opens */
    int acks;            /* the pipe */
    progress done[THREADS_MOST];
    uint64_t acknowledged, before_open, found_in_flight, lost_in_flight;
    uint8_t *value, *wanted;
} test;

static void fail(const test *t, const char *what) {
    printf("kill9: FAILED in round %llu: %s; last error: %s\nreplay: NT_SEED=%llu\nthe store: %s\n",
           (unsigned long long)t->round, what, ntee_last_error()->message, (unsigned long long)t->run_seed,
           t->path);
    fflush(stdout);
    abort();
}

static ntee *open_store(const test *t, uint32_t flags, ntee_status *status) {
    ntee_options options = {.size = sizeof options, .flags = flags, .sync_interval_ms = 2};
    ntee *db = NULL;
    *status = ntee_open(t->path, &options, &db);
    return db;
}

/* ---- The process that is killed -------------------------------------------------------------------- */

typedef struct writer {
    test *t;
    ntee *db;
    int thread;
} writer;

static void acknowledge(const test *t, int thread, uint64_t n) {
    ack a = {.thread = (uint32_t)thread, .n = n};
    if (write(t->acks, &a, sizeof a) != sizeof a) _exit(3);
}

static void *write_some(void *arg) {
    writer *w = arg;
    test *t = w->t;
    progress *p = &t->done[w->thread];
    uint8_t *scratch = malloc(VALUE_MOST);
    for (uint64_t i = 0; i < t->a_session && scratch; i++) {
        if (script_do(w->db, t->seed, w->thread, p, scratch) != NTEE_OK) _exit(4);
        script_advance(t->seed, w->thread, p);
        acknowledge(t, w->thread, p->count);
    }
    free(scratch);
    return NULL;
}

static void live(test *t) {
    for (;;) {
        pthread_t threads[THREADS_MOST];
        writer writers[THREADS_MOST];
        ntee_status status;
        ntee *db = open_store(t, t->flags, &status);
        if (status != NTEE_OK) _exit(5);
        acknowledge(t, THREADS_MOST, 0);
        for (int i = 0; i < t->threads; i++) {
            writers[i] = (writer){t, db, i};
            if (pthread_create(&threads[i], NULL, write_some, &writers[i])) _exit(6);
        }
        for (int i = 0; i < t->threads; i++) pthread_join(threads[i], NULL);
        if (ntee_close(db) != NTEE_OK) _exit(7);
    }
}

/* ---- The one that looks afterwards ------------------------------------------------------------------ */

/* What a thread's keys hold: the numbers of the operations that wrote them. */
static void read_thread(test *t, ntee *db, int thread, progress *found) {
    for (int key = 0; key < OWN_KEYS; key++) {
        char name[32];
        size_t len = 0, name_len = script_key(thread, key, name);
        ntee_status status = ntee_get(db, name, name_len, t->value, VALUE_MOST, &len, NULL);
        found->key[key] = 0;
        if (status == NTEE_NOT_FOUND) continue;
        if (status != NTEE_OK) fail(t, "get fails");
        if (len >= 16) memcpy(&found->key[key], t->value, 8);
        size_t wanted = script_value(t->seed, thread, key, found->key[key], t->wanted);
        if (len != wanted || memcmp(t->value, t->wanted, len) != 0) fail(t, "a value that nobody wrote");
    }
}

static int same(const progress *a, const progress *b) { return memcmp(a->key, b->key, sizeof a->key) == 0; }

static void check_thread(test *t, int thread, const progress *found) {
    progress next = t->done[thread];
    script_advance(t->seed, thread, &next);
    if (same(found, &next)) {
        t->done[thread] = next;
        t->found_in_flight++;
    } else if (same(found, &t->done[thread])) {
        t->lost_in_flight++;
    } else {
        fail(t, "a thread's keys are not those after what it had acknowledged");
    }
}

static void check(test *t) {
    uint32_t read_only = rng_one_in(&t->random, 2) ? NTEE_READ_ONLY : 0;
    uint32_t no_mmap = rng_one_in(&t->random, 2) ? NTEE_NO_MMAP : 0;
    progress found = {0};
    uint64_t count = 0, there = 0;
    ntee_status status;
    ntee *db = open_store(t, read_only | no_mmap, &status);
    if (status != NTEE_OK && !(read_only && status == NTEE_NOT_FOUND)) fail(t, "the store does not open");
    for (int i = 0; i < THREADS_MOST; i++) {
        if (db) read_thread(t, db, i, &found);
        check_thread(t, i, &found);
        for (int key = 0; key < OWN_KEYS; key++) there += found.key[key] != 0;
    }
    if (db && (ntee_count(db, NULL, &count) != NTEE_OK || count != there)) fail(t, "keys that nobody wrote");
    if (db && ntee_close(db) != NTEE_OK) fail(t, "close");
}

static void take_acks(test *t, int from) {
    ack a;
    int opened = 0;
    for (;;) {
        ssize_t n = read(from, &a, sizeof a);
        if (n < 0 && errno == EINTR) continue;
        if (n != (ssize_t)sizeof a) break;
        if (a.thread == THREADS_MOST) {
            opened = 1;
            continue;
        }
        if (a.thread > THREADS_MOST || a.n != t->done[a.thread].count + 1)
            fail(t, "acknowledgements out of order");
        script_advance(t->seed, (int)a.thread, &t->done[a.thread]);
        t->acknowledged++;
    }
    t->before_open += !opened;
}

static void round_of(test *t) {
    static const uint64_t sessions[] = {1, 5, 40, 400, 100000};
    uint64_t micros = rng_between(&t->random, 100, 20000);
    int ends[2], status;
    t->flags = (rng_one_in(&t->random, 2) ? NTEE_NO_MMAP : 0u) |
               (rng_one_in(&t->random, 2) ? NTEE_SYNC_EVERY_WRITE : 0u);
    t->threads = (int)rng_between(&t->random, 1, THREADS_MOST);
    t->a_session = sessions[rng_below(&t->random, 5)];
    if (rng_one_in(&t->random, 3)) micros = rng_between(&t->random, 100, 1500);
    if (pipe(ends)) fail(t, "no pipe");
    pid_t child = fork();
    if (child < 0) fail(t, "no process");
    if (child == 0) {
        close(ends[0]);
        t->acks = ends[1];
        live(t);
    }
    close(ends[1]);
    /* The pipe holds about 4,000 acknowledgements; a writer that fills it waits, and is killed then. */
    usleep((useconds_t)micros);
    kill(child, SIGKILL);
    if (waitpid(child, &status, 0) != child) fail(t, "waitpid");
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) {
        printf("kill9: the writer ended by itself, with %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
        fail(t, "the writer met an error");
    }
    take_acks(t, ends[0]);
    close(ends[0]);
    check(t);
}

static void fresh_store(test *t) {
    if (t->path[0] && ntee_destroy(t->path) != NTEE_OK) fail(t, "destroy");
    memset(t->done, 0, sizeof t->done);
    t->seed = rng_next(&t->random);
    snprintf(t->path, sizeof t->path, "%s/%llu", t->base, (unsigned long long)t->round);
}

int main(void) {
    static test t;
    const char *given = getenv("NT_TEST_DIR"), *temporary = getenv("TMPDIR");
    uint64_t rounds = number_from_environment("NT_ROUNDS", is_long() ? ROUNDS_LONG : ROUNDS_QUICK);
    double started = seconds_now();
    t.run_seed = seed_from_environment();
    t.random = (rng){t.run_seed};
    t.value = malloc(VALUE_MOST);
    t.wanted = malloc(VALUE_MOST);
    snprintf(t.base, sizeof t.base, "%s/ntee-kill-XXXXXX", given ? given : temporary ? temporary : "/tmp");
    if (!t.value || !t.wanted || !mkdtemp(t.base)) fail(&t, "no memory or no directory");
    printf("kill9: NT_SEED=%llu, %llu rounds\n", (unsigned long long)t.run_seed, (unsigned long long)rounds);
    fflush(stdout);
    for (t.round = 0; t.round < rounds; t.round++) {
        if (t.round % ROUNDS_A_STORE == 0) fresh_store(&t);
        round_of(&t);
    }
    if (ntee_destroy(t.path) != NTEE_OK || rmdir(t.base)) fail(&t, "destroy");
    printf("kill9: %llu kills (%llu while the store was opened), %llu acknowledged operations, 0 lost; in "
           "flight: "
           "%llu whole, %llu absent; %.1f s\n",
           (unsigned long long)rounds, (unsigned long long)t.before_open,
           (unsigned long long)t.acknowledged, (unsigned long long)t.found_in_flight,
           (unsigned long long)t.lost_in_flight, seconds_now() - started);
    free(t.value);
    free(t.wanted);
    return 0;
}
