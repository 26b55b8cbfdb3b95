/*
 * RocksDB without syncs; its log still gets every write before the write returns. Its C header does not
 * say its version, so the build gives it as BENCH_ROCKSDB_VERSION.
 */
#include "engine.h"

#include <rocksdb/c.h>
#include <stdio.h>

enum { BUFFER_BYTES = 64 << 20, CACHE_BYTES = 256 << 20, BLOOM_BITS = 10, THREADS = 2 };

typedef struct store {
    rocksdb_t *db;
    rocksdb_options_t *options;
    rocksdb_block_based_table_options_t *table;
    rocksdb_cache_t *cache;
    rocksdb_readoptions_t *read;
    rocksdb_writeoptions_t *write;
} store;

/* Keeps a message of the library's for the caller and frees it. */
static const char *text_of(char *error) {
    static _Thread_local char text[256];
    if (!error) return NULL;
    snprintf(text, sizeof text, "%s", error);
    rocksdb_free(error);
    return text;
}

static void describe(char *out, size_t cap) {
    snprintf(out, cap, "RocksDB %s: no sync, 64 MiB write buffer, 256 MiB cache, bloom filter, uncompressed",
             BENCH_ROCKSDB_VERSION);
}

static void set_options(store *of) {
    of->cache = rocksdb_cache_create_lru(CACHE_BYTES);
    of->table = rocksdb_block_based_options_create();
    rocksdb_block_based_options_set_block_cache(of->table, of->cache);
    rocksdb_block_based_options_set_filter_policy(of->table,
                                                  rocksdb_filterpolicy_create_bloom_full(BLOOM_BITS));
    rocksdb_block_based_options_set_data_block_index_type(
        of->table, rocksdb_block_based_table_data_block_index_type_binary_search_and_hash);
    of->options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(of->options, 1);
    rocksdb_options_increase_parallelism(of->options, THREADS);
    rocksdb_options_set_write_buffer_size(of->options, BUFFER_BYTES);
    rocksdb_options_set_block_based_table_factory(of->options, of->table);
    rocksdb_options_set_compression(of->options, rocksdb_no_compression);
}

static const char *store_open(const char *dir, void **db) {
    store *made = bench_alloc(sizeof *made);
    *db = made;
    set_options(made);
    made->read = rocksdb_readoptions_create();
    made->write = rocksdb_writeoptions_create();
    char *error = NULL;
    made->db = rocksdb_open(made->options, dir, &error);
    return text_of(error);
}

static const char *store_close(void *db) {
    store *closed = db;
    rocksdb_close(closed->db);
    rocksdb_options_destroy(closed->options);
    rocksdb_block_based_options_destroy(closed->table);
    rocksdb_cache_destroy(closed->cache);
    rocksdb_readoptions_destroy(closed->read);
    rocksdb_writeoptions_destroy(closed->write);
    free(closed);
    return NULL;
}

static const char *settle(void *db) {
    store *of = db;
    rocksdb_compact_range(of->db, NULL, 0, NULL, 0);
    return NULL;
}

static const char *put(void *db, const void *key, size_t key_len, const void *value, size_t value_len) {
    store *into = db;
    char *error = NULL;
    rocksdb_put(into->db, into->write, key, key_len, value, value_len, &error);
    return text_of(error);
}

static const char *put_many(void *db, const bench_data *data, size_t from, size_t to) {
    store *into = db;
    rocksdb_writebatch_t *batch = rocksdb_writebatch_create();
    for (size_t i = from; i < to; i++) {
        rocksdb_writebatch_put(batch, data->put_order[i].bytes, BENCH_KEY_LEN, bench_value(data, i),
                               BENCH_VALUE_LEN);
    }
    char *error = NULL;
    rocksdb_write(into->db, into->write, batch, &error);
    rocksdb_writebatch_destroy(batch);
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
    rocksdb_pinnableslice_t *pinned = rocksdb_get_pinned(from->db, from->read, key, key_len, &error);
    if (!pinned) return error ? text_of(error) : "no such key";
    const char *value = rocksdb_pinnableslice_value(pinned, len);
    if (*len <= cap) memcpy(buf, value, *len);
    rocksdb_pinnableslice_destroy(pinned);
    return *len <= cap ? NULL : "value too long";
}

static void reader_close(void *reader) { (void)reader; }

static const char *scan_keys(void *db, bench_scan *seen) {
    store *from = db;
    rocksdb_iterator_t *at = rocksdb_create_iterator(from->db, from->read);
    bench_keys_out out;
    bench_keys_out_begin(&out);
    for (rocksdb_iter_seek_to_first(at); rocksdb_iter_valid(at); rocksdb_iter_next(at)) {
        size_t len;
        const char *key = rocksdb_iter_key(at, &len);
        bench_keys_out_add(&out, seen, key, len);
    }
    bench_keys_out_end(&out);
    char *error = NULL;
    rocksdb_iter_get_error(at, &error);
    rocksdb_iter_destroy(at);
    return text_of(error);
}

const bench_engine bench_rocksdb = {
    .name = "rocksdb",
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
