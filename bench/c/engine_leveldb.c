/* LevelDB without syncs; its log still gets every write before the write returns. */
#include "engine.h"

#include <leveldb/c.h>
#include <stdio.h>

enum { BUFFER_BYTES = 64 << 20, CACHE_BYTES = 256 << 20, BLOOM_BITS = 10 };

typedef struct store {
    leveldb_t *db;
    leveldb_options_t *options;
    leveldb_cache_t *cache;
    leveldb_filterpolicy_t *filter;
    leveldb_readoptions_t *read;
    leveldb_writeoptions_t *write;
} store;

/* Keeps a message of the library's for the caller and frees it. */
static const char *text_of(char *error) {
    static _Thread_local char text[256];
    if (!error) return NULL;
    snprintf(text, sizeof text, "%s", error);
    leveldb_free(error);
    return text;
}

static void describe(char *out, size_t cap) {
    snprintf(out, cap,
             "LevelDB %d.%d: no sync, 64 MiB write buffer, 256 MiB cache, bloom filter, uncompressed",
             leveldb_major_version(), leveldb_minor_version());
}

static const char *store_open(const char *dir, void **db) {
    store *made = bench_alloc(sizeof *made);
    *db = made;
    made->cache = leveldb_cache_create_lru(CACHE_BYTES);
    made->filter = leveldb_filterpolicy_create_bloom(BLOOM_BITS);
    made->read = leveldb_readoptions_create();
    made->write = leveldb_writeoptions_create();
    made->options = leveldb_options_create();
    leveldb_options_set_create_if_missing(made->options, 1);
    leveldb_options_set_write_buffer_size(made->options, BUFFER_BYTES);
    leveldb_options_set_cache(made->options, made->cache);
    leveldb_options_set_filter_policy(made->options, made->filter);
    leveldb_options_set_compression(made->options, leveldb_no_compression);
    char *error = NULL;
    made->db = leveldb_open(made->options, dir, &error);
    return text_of(error);
}

static const char *store_close(void *db) {
    store *closed = db;
    leveldb_close(closed->db);
    leveldb_options_destroy(closed->options);
    leveldb_readoptions_destroy(closed->read);
    leveldb_writeoptions_destroy(closed->write);
    leveldb_cache_destroy(closed->cache);
    leveldb_filterpolicy_destroy(closed->filter);
    free(closed);
    return NULL;
}

static const char *settle(void *db) {
    store *of = db;
    leveldb_compact_range(of->db, NULL, 0, NULL, 0);
    return NULL;
}

static const char *put(void *db, const void *key, size_t key_len, const void *value, size_t value_len) {
    store *into = db;
    char *error = NULL;
    leveldb_put(into->db, into->write, key, key_len, value, value_len, &error);
    return text_of(error);
}

static const char *put_many(void *db, const bench_data *data, size_t from, size_t to) {
    store *into = db;
    leveldb_writebatch_t *batch = leveldb_writebatch_create();
    for (size_t i = from; i < to; i++) {
        leveldb_writebatch_put(batch, data->put_order[i].bytes, BENCH_KEY_LEN, bench_value(data, i),
                               BENCH_VALUE_LEN);
    }
    char *error = NULL;
    leveldb_write(into->db, into->write, batch, &error);
    leveldb_writebatch_destroy(batch);
    return text_of(error);
}

static const char *reader_open(void *db, int mode, void **reader) {
    (void)mode; /* every get sees the newest state */
    *reader = db;
    return NULL;
}

static const char *get(void *reader, const void *key, size_t key_len, void *buf, size_t cap,
                       size_t *len) {
    store *from = reader;
    char *error = NULL;
    char *value = leveldb_get(from->db, from->read, key, key_len, len, &error);
    if (!value) return error ? text_of(error) : "no such key";
    if (*len <= cap) memcpy(buf, value, *len);
    leveldb_free(value);
    return *len <= cap ? NULL : "value too long";
}

static void reader_close(void *reader) { (void)reader; }

static const char *scan_keys(void *db, bench_scan *seen) {
    store *from = db;
    leveldb_iterator_t *at = leveldb_create_iterator(from->db, from->read);
    bench_keys_out out;
    bench_keys_out_begin(&out);
    for (leveldb_iter_seek_to_first(at); leveldb_iter_valid(at); leveldb_iter_next(at)) {
        size_t len;
        const char *key = leveldb_iter_key(at, &len);
        bench_keys_out_add(&out, seen, key, len);
    }
    bench_keys_out_end(&out);
    char *error = NULL;
    leveldb_iter_get_error(at, &error);
    leveldb_iter_destroy(at);
    return text_of(error);
}

const bench_engine bench_leveldb = {
    .name = "leveldb",
    .describe = describe,
    .open = store_open,
    .close = store_close,
    .settle = settle,
    .put = put,
    .put_many = put_many,
    .reader_open = reader_open,
    .get = get,
    .reader_close = reader_close,
    .scan_keys = scan_keys,
};
