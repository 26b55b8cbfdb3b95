/* LMDB without syncs, its pages written through the map: its fastest configuration. */
#include "engine.h"

#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>

static const unsigned ENV_FLAGS = MDB_NOSYNC | MDB_NOMETASYNC | MDB_WRITEMAP | MDB_MAPASYNC | MDB_NOTLS |
                                  MDB_NORDAHEAD;
static const size_t MAP_BYTES = (size_t)8 << 30;

typedef struct store {
    MDB_env *env;
    MDB_dbi dbi;
} store;

typedef struct reader {
    store *store;
    MDB_txn *txn;
    int newest;
} reader;

static const char *text_of(int error) { return error ? mdb_strerror(error) : NULL; }

static MDB_val val_of(const void *bytes, size_t len) {
    union {
        const void *given;
        void *wanted; /* LMDB does not write through it */
    } pointer = {bytes};
    return (MDB_val){len, pointer.wanted};
}

static void describe(char *out, size_t cap) {
    snprintf(out, cap, "LMDB %d.%d.%d: NOSYNC, WRITEMAP", MDB_VERSION_MAJOR, MDB_VERSION_MINOR,
             MDB_VERSION_PATCH);
}

static const char *store_open(const char *dir, void **db) {
    store *made = bench_alloc(sizeof *made);
    MDB_txn *txn = NULL;
    int error = mdb_env_create(&made->env);
    if (!error) error = mdb_env_set_mapsize(made->env, MAP_BYTES);
    if (!error) error = mdb_env_open(made->env, dir, ENV_FLAGS, 0600);
    if (!error) error = mdb_txn_begin(made->env, NULL, 0, &txn);
    if (!error) error = mdb_dbi_open(txn, NULL, 0, &made->dbi);
    if (!error) error = mdb_txn_commit(txn);
    *db = made;
    return text_of(error);
}

static const char *store_close(void *db) {
    store *closed = db;
    mdb_env_close(closed->env);
    free(closed);
    return NULL;
}

static const char *settle(void *db) {
    (void)db;
    return NULL;
}

static const char *put(void *db, const void *key, size_t key_len, const void *value, size_t value_len) {
    store *into = db;
    MDB_txn *txn;
    int error = mdb_txn_begin(into->env, NULL, 0, &txn);
    if (error) return text_of(error);
    MDB_val k = val_of(key, key_len), v = val_of(value, value_len);
    error = mdb_put(txn, into->dbi, &k, &v, 0);
    if (!error) return text_of(mdb_txn_commit(txn));
    mdb_txn_abort(txn);
    return text_of(error);
}

static const char *put_many(void *db, const bench_data *data, size_t from, size_t to) {
    store *into = db;
    MDB_txn *txn;
    int error = mdb_txn_begin(into->env, NULL, 0, &txn);
    if (error) return text_of(error);
    for (size_t i = from; i < to && !error; i++) {
        MDB_val k = val_of(data->put_order[i].bytes, BENCH_KEY_LEN);
        MDB_val v = val_of(bench_value(data, i), BENCH_VALUE_LEN);
        error = mdb_put(txn, into->dbi, &k, &v, 0);
    }
    if (!error) return text_of(mdb_txn_commit(txn));
    mdb_txn_abort(txn);
    return text_of(error);
}

static const char *reader_open(void *db, int mode, void **out) {
    reader *made = bench_alloc(sizeof *made);
    made->store = db;
    made->newest = mode == BENCH_READER_NEWEST;
    *out = made;
    int error = mdb_txn_begin(made->store->env, NULL, MDB_RDONLY, &made->txn);
    if (!error && made->newest) mdb_txn_reset(made->txn);
    return text_of(error);
}

static const char *get_in_txn(reader *by, const void *key, size_t key_len, void *buf, size_t cap,
                              size_t *len) {
    MDB_val k = val_of(key, key_len), v;
    int error = mdb_get(by->txn, by->store->dbi, &k, &v);
    if (error) return text_of(error);
    if (v.mv_size > cap) return "value too long";
    memcpy(buf, v.mv_data, v.mv_size);
    *len = v.mv_size;
    return NULL;
}

/* To see the newest state a get renews the transaction, and gives it up so as not to hold pages back. */
static const char *get(void *from, const void *key, size_t key_len, void *buf, size_t cap, size_t *len) {
    reader *by = from;
    if (!by->newest) return get_in_txn(by, key, key_len, buf, cap, len);
    int renewed = mdb_txn_renew(by->txn);
    if (renewed) return text_of(renewed);
    const char *error = get_in_txn(by, key, key_len, buf, cap, len);
    mdb_txn_reset(by->txn);
    return error;
}

static void reader_close(void *closed) {
    reader *by = closed;
    mdb_txn_abort(by->txn);
    free(by);
}

static const char *scan_keys(void *db, bench_scan *seen) {
    store *from = db;
    MDB_txn *txn;
    MDB_cursor *cursor;
    int error = mdb_txn_begin(from->env, NULL, MDB_RDONLY, &txn);
    if (error) return text_of(error);
    error = mdb_cursor_open(txn, from->dbi, &cursor);
    if (!error) {
        bench_keys_out out;
        bench_keys_out_begin(&out);
        MDB_val key;
        while ((error = mdb_cursor_get(cursor, &key, NULL, MDB_NEXT)) == 0) {
            bench_keys_out_add(&out, seen, key.mv_data, key.mv_size);
        }
        if (error == MDB_NOTFOUND) error = 0;
        bench_keys_out_end(&out);
        mdb_cursor_close(cursor);
    }
    mdb_txn_abort(txn);
    return text_of(error);
}

const bench_engine bench_lmdb = {
    .name = "lmdb",
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
