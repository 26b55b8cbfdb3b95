/*
 * rot: bytes of a closed store that are not what was written. Whatever they are: no crash, no wrong value, no
 * deleted key that is back, and nothing missing but records inside the damaged place.
 *
 *     rot bits PART OF     every bit of a store of 64 KiB flipped, one at a time; part PART of OF
 *     rot sectors          every 512-byte sector zeroed, all ones, random, swapped, doubled, as it was before
 *
 * NT_SEED=n replays a run.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "format/record.h"
#include "model/random.h"
#include "ntee.h"

enum { STORE = 64 * 1024, KEYS = 120, SECTOR = 512 };

/* The newest write of a key. */
typedef struct fact {
    uint32_t number; /* of its value; 0: deleted, or never written */
    uint64_t from;   /* the frame that it is in: bytes [from, to) of the log */
    uint64_t to;
} fact;

static fact facts[KEYS];
static char path[128], file[160];
static uint8_t *bytes, *before; /* the closed store; the same when it was half as long */
static size_t len, before_len;
static uint64_t seed, checks, failures, corrupt, missing, untouched;

static void fail(const char *what, uint64_t place, int key) {
    if (++failures <= 20) printf("%s: key %d, place %llu (NT_SEED=%llu)\n", what, key, (unsigned long long)place,
                                 (unsigned long long)seed);
}

static size_t value_of(uint32_t number, uint8_t out[512]) {
    size_t n = 4 + mix(number, 3) % (number % 7 ? 100 : 500);
    memset(out, 0, 512);
    nt_store32(out, number);
    for (size_t i = 4; i < n; i++) out[i] = (uint8_t)mix(number, i);
    return n;
}

static size_t key_of(int key, char out[16]) { return (size_t)snprintf(out, 16, "key %d", key); }

static uint64_t log_bytes(ntee *db) {
    ntee_stats_t stats = {.size = sizeof stats};
    ntee_stats(db, &stats);
    return stats.main_bytes;
}

static ntee *open_store(uint32_t flags) {
    ntee_options options = {.size = sizeof options, .flags = flags};
    ntee *db = NULL;
    ntee_open(path, &options, &db);
    return db;
}

static uint8_t *slurp(size_t *size) {
    struct stat about;
    int fd = open(file, O_RDONLY);
    if (fd < 0 || fstat(fd, &about)) abort();
    uint8_t *copy = malloc((size_t)about.st_size);
    *size = (size_t)about.st_size;
    if (!copy || read(fd, copy, *size) != about.st_size) abort();
    close(fd);
    return copy;
}

static void spill(const uint8_t *from, size_t size) {
    int fd = open(file, O_WRONLY | O_TRUNC | O_CREAT, 0600);
    if (fd < 0 || write(fd, from, size) != (ssize_t)size) abort();
    close(fd);
}

/* One write: a put, a delete, or a batch of both. */
static void write_some(ntee *db, rng *r, uint32_t *number) {
    uint8_t value[512];
    char name[16];
    int count = rng_one_in(r, 4) ? (int)rng_between(r, 2, 20) : 1;
    int keys[20];
    ntee_batch *batch = ntee_batch_new();
    for (int i = 0; i < count; i++) {
        int key = keys[i] = (int)rng_below(r, KEYS);
        size_t n = key_of(key, name);
        facts[key].number = rng_one_in(r, 4) ? 0 : ++*number;
        if (facts[key].number == 0) ntee_batch_delete(batch, name, n);
        else ntee_batch_put(batch, name, n, value, value_of(*number, value), NULL);
    }
    uint64_t from = log_bytes(db);
    if (ntee_write(db, batch) != NTEE_OK) abort();
    for (int i = 0; i < count; i++) facts[keys[i]].from = from, facts[keys[i]].to = log_bytes(db);
    ntee_batch_free(batch);
}

static void make(void) {
    rng r = {seed};
    uint32_t number = 0;
    ntee *db = open_store(0);
    while (log_bytes(db) < STORE / 2) write_some(db, &r, &number);
    ntee_close(db);
    before = slurp(&before_len);
    db = open_store(0);
    while (log_bytes(db) < STORE - 1200) write_some(db, &r, &number);
    ntee_close(db);
    bytes = slurp(&len);
    before = realloc(before, len);
    if (before_len < len) memset(before + before_len, 0, len - before_len);
}

/* Looks at every key of a store in which only bytes [from, to) are not what was written. */
static uint64_t look(ntee *db, uint64_t place, uint64_t from, uint64_t to) {
    uint8_t got[1024], want[512];
    char name[16];
    uint64_t answers = 0;
    for (int key = 0; key < KEYS; key++) {
        const fact *f = &facts[key];
        size_t n = key_of(key, name), size = 0;
        ntee_status status = ntee_get(db, name, n, got, sizeof got, &size, NULL);
        answers = mix(answers, (uint64_t)status);
        if (status == NTEE_CORRUPT) {
            corrupt++;
        } else if (status == NTEE_NOT_FOUND) {
            if (!f->number) continue;
            missing++;
            if (f->to <= from || to <= f->from) fail("a key outside of the damage is gone", place, key);
        } else if (status != NTEE_OK) {
            fail("a get fails", place, key);
        } else if (!f->number) {
            fail("a deleted key is back", place, key);
        } else if (size != value_of(f->number, want) || memcmp(got, want, size) != 0) {
            fail("a wrong value", place, key);
        }
    }
    return answers;
}

static void every_bit(uint64_t part, uint64_t of) {
    int fd = open(file, O_WRONLY);
    for (uint64_t bit = part; bit < len * 8; bit += of) {
        uint64_t at = bit / 8;
        uint8_t flipped = bytes[at] ^ (uint8_t)(1u << bit % 8);
        if (pwrite(fd, &flipped, 1, (off_t)at) != 1) abort();
        ntee *db = open_store(NTEE_READ_ONLY);
        uint64_t bad = corrupt + missing;
        if (!db) fail(ntee_last_error()->message, bit, -1);
        else look(db, bit, at, at + 1);
        ntee_close(db);
        untouched += bad == corrupt + missing;
        checks++;
        if (pwrite(fd, bytes + at, 1, (off_t)at) != 1) abort();
    }
    close(fd);
}

/* Opens for writing, twice: what the first opening writes changes no answer, and new writes are kept. */
static void check_twice(uint64_t place, uint64_t from, uint64_t to) {
    uint64_t answers[2] = {0, 1};
    for (int i = 0; i < 2; i++) {
        ntee *db = open_store(0);
        char got[8];
        size_t size = 0;
        if (!db) {
            fail(ntee_last_error()->message, place, -1);
            return;
        }
        if (i && (ntee_get(db, "new", 3, got, sizeof got, &size, NULL) != NTEE_OK || memcmp(got, "v", size)))
            fail("a write after the damage is gone", place, -1);
        answers[i] = look(db, place, from, to);
        if (ntee_put(db, "new", 3, "v", 1, NULL) != NTEE_OK) fail("a put fails", place, -1);
        ntee_close(db);
    }
    if (answers[0] != answers[1]) fail("the second opening answers otherwise", place, -1);
    checks++;
}

static void every_sector(void) {
    rng r = {seed + 1};
    uint8_t *copy = malloc(len);
    /* The last sectors hold the mark, without which nobody knows what had been synced. */
    uint64_t sectors = (len - NT_FRAME_OPEN_SIZE - NT_FRAME_MARK_SIZE) / SECTOR;
    for (uint64_t s = 0; s < sectors; s++) {
        for (int kind = 0; kind < 6; kind++) {
            uint64_t at = s * SECTOR, other = rng_below(&r, sectors) * SECTOR, from = at, to = at + SECTOR;
            memcpy(copy, bytes, len);
            if (kind == 0) memset(copy + at, 0, SECTOR);
            if (kind == 1) memset(copy + at, 0xFF, SECTOR);
            for (int i = 0; kind == 2 && i < SECTOR; i++) copy[at + (uint64_t)i] = (uint8_t)rng_next(&r);
            if (kind == 3) {
                memcpy(copy + at, bytes + other, SECTOR);
                memcpy(copy + other, bytes + at, SECTOR);
                from = at < other ? at : other;
                to = (at < other ? other : at) + SECTOR;
            }
            if (kind == 4) memcpy(copy + at, bytes + other, SECTOR);
            if (kind == 5) memcpy(copy + at, before + at, SECTOR);
            spill(copy, len);
            check_twice(s * 10 + (uint64_t)kind, from, to);
        }
    }
    free(copy);
}

int main(int argc, char **argv) {
    const char *base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    seed = seed_from_environment();
    snprintf(path, sizeof path, "%s/ntee-rot-%d", base, (int)getpid());
    snprintf(file, sizeof file, "%s/00000001.log", path);
    ntee_destroy(path);
    make();
    if (argc == 4 && !strcmp(argv[1], "bits")) every_bit(strtoull(argv[2], NULL, 10), strtoull(argv[3], NULL, 10));
    else if (argc == 2 && !strcmp(argv[1], "sectors")) every_sector();
    else return 2;
    spill(bytes, len);
    ntee_destroy(path);
    printf("rot: %llu damaged stores of %zu bytes: %llu answers NTEE_CORRUPT, %llu missing in the damaged place, "
           "%llu stores without a loss, %llu failures (NT_SEED=%llu)\n",
           (unsigned long long)checks, len, (unsigned long long)corrupt, (unsigned long long)missing,
           (unsigned long long)untouched, (unsigned long long)failures, (unsigned long long)seed);
    free(bytes);
    free(before);
    return failures || !checks || !corrupt;
}
