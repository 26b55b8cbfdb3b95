/*
 * full: a real disk that runs full. Given a directory on a small file system of its own:
 *
 *     full DIR ROUNDS [no-mmap]
 *
 * Each round fills the store until a put answers NTEE_FULL, checks that everything acknowledged is there, deletes with
 * no byte free, fills what that leaves, reopens, checks again. Never a signal, never another error.
 * NT_SEED=n replays a run.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/bytes.h"
#include "model/random.h"
#include "ntee.h"

enum { KEYS = 400, DELETES = 100 };

static uint64_t seed, written, refused, deletes, rounds, failures;
static uint32_t number[KEYS]; /* of each key's value; 0: none */
static char store[256], filler[256];
static uint32_t flags;

static void fail(const char *what, int key) {
    if (++failures <= 20)
        printf("round %llu, key %d: %s: %s (NT_SEED=%llu)\n", (unsigned long long)rounds, key, what,
               ntee_last_error()->message, (unsigned long long)seed);
}

static size_t value_of(uint32_t n, uint8_t *out) {
    size_t len = 8 + mix(n, 1) % (n % 10 ? 2000 : 60000);
    for (size_t i = 0; i < len; i += 8) nt_store64(out + i, mix(n, i));
    return len;
}

static ntee *open_store(void) {
    ntee_options options = {.size = sizeof options, .flags = flags, .sync_interval_ms = 5};
    ntee *db = NULL;
    if (ntee_open(store, &options, &db) != NTEE_OK) fail("open", -1);
    return db;
}

/* A file of another program takes what is left. */
static void take_the_rest(void) {
    static const uint8_t zeros[65536];
    int fd = open(filler, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (fd < 0) return;
    for (size_t n = sizeof zeros; n > 0;)
        if (write(fd, zeros, n) <= 0) n /= 2;
    close(fd);
}

static void fill(ntee *db, rng *r) {
    static uint8_t value[65536];
    for (int full = 0; full < 20;) {
        int key = (int)rng_below(r, KEYS);
        uint32_t n = (uint32_t)++written;
        ntee_status status = ntee_put(db, &key, sizeof key, value, value_of(n, value), NULL);
        if (status == NTEE_OK) {
            number[key] = n;
            continue;
        }
        if (status != NTEE_FULL) fail("a put on a full disk", key);
        refused++;
        full++;
    }
}

static void check(ntee *db) {
    static uint8_t got[65536 + 8], want[65536 + 8];
    for (int key = 0; key < KEYS; key++) {
        size_t len = 0;
        ntee_status status = ntee_get(db, &key, sizeof key, got, sizeof got, &len, NULL);
        if (status == NTEE_NOT_FOUND && number[key] == 0) continue;
        if (status != NTEE_OK || number[key] == 0) fail("a get", key);
        else if (len != value_of(number[key], want) || memcmp(got, want, len) != 0) fail("another value", key);
    }
}

static void delete_some(ntee *db, rng *r) {
    for (int i = 0; i < DELETES; i++) {
        int key = (int)rng_below(r, KEYS);
        ntee_status status = ntee_delete(db, &key, sizeof key);
        if (status != (number[key] ? NTEE_OK : NTEE_NOT_FOUND)) fail("a delete on a full disk", key);
        if (status != NTEE_OK) continue;
        number[key] = 0;
        deletes++;
    }
}

static void run_round(rng *r) {
    memset(number, 0, sizeof number);
    ntee *db = open_store();
    for (int part = 0; db && part < 3; part++) {
        fill(db, r);
        if (part) take_the_rest();
        check(db);
        delete_some(db, r);
        check(db);
        if (part == 1) {
            if (ntee_close(db) != NTEE_OK) fail("close", -1);
            db = open_store();
            if (db) check(db);
            if (db) delete_some(db, r);
        }
        if (part == 2 && db && ntee_sync(db) != NTEE_OK) fail("sync", -1);
    }
    unlink(filler);
    if (db && ntee_close(db) != NTEE_OK) fail("close", -1);
    db = open_store();
    if (!db) return;
    check(db);
    if (ntee_drop(db) != NTEE_OK) fail("drop", -1);
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    uint64_t wanted = strtoull(argv[2], NULL, 10);
    flags = argc > 3 ? NTEE_NO_MMAP : 0;
    seed = seed_from_environment();
    rng r = {seed};
    snprintf(store, sizeof store, "%s/store", argv[1]);
    snprintf(filler, sizeof filler, "%s/filler", argv[1]);
    for (; rounds < wanted; rounds++) run_round(&r);
    printf("full: %llu rounds, %llu puts of which %llu were refused, %llu deletes on a full disk, "
           "%llu failures (NT_SEED=%llu)\n",
           (unsigned long long)rounds, (unsigned long long)written, (unsigned long long)refused,
           (unsigned long long)deletes, (unsigned long long)failures, (unsigned long long)seed);
    return failures || !refused || !deletes;
}
