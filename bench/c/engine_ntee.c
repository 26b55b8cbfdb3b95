/* libntee in its fast tier. */
#include "engine.h"

#include <ntee.h>
#include <stdio.h>
#include <stdlib.h>

enum { PAGE_BYTES = 64 * 1024 };

static const char *text_of(ntee_status status) { return status ? ntee_last_error()->message : NULL; }

static void describe(char *out, size_t cap) {
    snprintf(out, cap, "libntee %s: fast tier, background sync every 100 ms", ntee_version());
}

static const char *store_open(const char *dir, void **db) {
    if (ntee_abi() != NTEE_ABI) return "the library is of another version than ntee.h";
    return text_of(ntee_open(dir, NULL, (ntee **)db));
}

static const char *store_open_saving(const char *dir, unsigned every, void **db) {
    ntee_options options = {.size = sizeof options, .hint_every = every};
    return text_of(ntee_open(dir, &options, (ntee **)db));
}

static const char *store_close(void *db) { return text_of(ntee_close(db)); }

static const char *settle(void *db) { return text_of(ntee_sync(db)); }

static const char *put(void *db, const void *key, size_t key_len, const void *value, size_t value_len) {
    return text_of(ntee_put(db, key, key_len, value, value_len, NULL));
}

static const char *put_many(void *db, const bench_data *data, size_t from, size_t to) {
    ntee_batch *batch = ntee_batch_new();
    if (!batch) return "out of memory";
    ntee_status status = NTEE_OK;
    for (size_t i = from; i < to && !status; i++) {
        status = ntee_batch_put(batch, data->put_order[i].bytes, BENCH_KEY_LEN, bench_value(data, i),
                                BENCH_VALUE_LEN, NULL);
    }
    if (!status) status = ntee_write(db, batch);
    ntee_batch_free(batch);
    return text_of(status);
}

static const char *reader_open(void *db, int mode, void **reader) {
    (void)mode; /* every get sees the newest state */
    *reader = db;
    return NULL;
}

static const char *get(void *reader, const void *key, size_t key_len, void *buf, size_t cap,
                       size_t *len) {
    return text_of(ntee_get(reader, key, key_len, buf, cap, len, NULL));
}

static void reader_close(void *reader) { (void)reader; }

/* A page is the caller's buffer with the keys in it, so nothing is copied once more. */
static const char *scan_keys(void *db, bench_scan *seen) {
    ntee_scan *scan;
    ntee_status status = ntee_scan_open(db, NULL, &scan);
    if (status) return text_of(status);
    void *buf = bench_alloc(PAGE_BYTES);
    ntee_page page = {0};
    do {
        status = ntee_scan_page(scan, buf, PAGE_BYTES, &page);
        ntee_entry entry;
        while (!status && ntee_page_next(&page, &entry)) bench_scan_see(seen, entry.key);
    } while (!status && page.more);
    ntee_scan_close(scan);
    free(buf);
    return text_of(status);
}

const bench_engine bench_ntee = {
    .name = "ntee",
    .describe = describe,
    .open = store_open,
    .open_saving = store_open_saving,
    .close = store_close,
    .settle = settle,
    .put = put,
    .put_many = put_many,
    .reader_open = reader_open,
    .get = get,
    .reader_close = reader_close,
    .scan_keys = scan_keys,
};
