/*
 * engine: what every engine of the benchmark can do, so that a row is written once.
 *
 * Functions that can fail return NULL, or else a text that says what went wrong; the text is static or
 * stays until the calling thread's next failure. All stores are of the fast kind: a write that returned
 * survives the end of the process, and no write waits for the disk.
 */
#ifndef BENCH_ENGINE_H
#define BENCH_ENGINE_H

#include "data.h"
#include "platform.h"

#include <stddef.h>
#include <stdlib.h>

enum {
    BENCH_READER_STEADY = 0, /* may keep to the state that it began with */
    BENCH_READER_NEWEST = 1  /* every get sees what was written before it */
};

typedef struct bench_engine {
    const char *name;
    /* Version and configuration, for people. */
    void (*describe)(char *out, size_t cap);

    /* Opens the store in a directory, making it where it is missing. One handle a process. */
    const char *(*open)(const char *dir, void **db);
    /* The same, saving its index after every few writes; NULL: an engine that keeps its index on disk. */
    const char *(*open_saving)(const char *dir, unsigned every, void **db);
    const char *(*close)(void *db);
    /* Work that is left over from writing is done now rather than in a later row: not timed. */
    const char *(*settle)(void *db);

    /* One record, replacing the key's old one; a transaction of its own. Any one thread at a time. */
    const char *(*put)(void *db, const void *key, size_t key_len, const void *value, size_t value_len);
    /* The puts number `from` to `to` - 1 of data->put_order as one atomic write. */
    const char *(*put_many)(void *db, const bench_data *data, size_t from, size_t to);
    /* Single puts take so long that only an even sample of them is timed; put_many does the others. */
    int slow_puts;

    /* A reader belongs to the thread that opened it. get copies the value into buf, *len bytes. */
    const char *(*reader_open)(void *db, int mode, void **reader);
    const char *(*get)(void *reader, const void *key, size_t key_len, void *buf, size_t cap, size_t *len);
    void (*reader_close)(void *reader);

    /* Every key in order, copied into a buffer and noted with bench_scan_see. */
    const char *(*scan_keys)(void *db, bench_scan *scan);
} bench_engine;

/* Where the engines without pages copy their keys to: a buffer of 64 KiB, filled again and again. */
typedef struct bench_keys_out {
    char *buf;
    size_t used;
} bench_keys_out;

enum { BENCH_KEYS_OUT = 64 * 1024 };

static inline void bench_keys_out_begin(bench_keys_out *out) {
    *out = (bench_keys_out){bench_alloc(BENCH_KEYS_OUT), 0};
}

/* Copies one key of 8 bytes to 64 KiB and notes it. */
static inline void bench_keys_out_add(bench_keys_out *out, bench_scan *scan, const void *key, size_t len) {
    if (len > BENCH_KEYS_OUT - out->used) out->used = 0;
    memcpy(out->buf + out->used, key, len);
    out->used += len;
    bench_scan_see(scan, key);
}

static inline void bench_keys_out_end(bench_keys_out *out) { free(out->buf); }

/* The engines that this program was built with; ntee is the first. The table ends with NULL. */
extern const bench_engine *const bench_engines[];

#endif
