/*
 * SQLite with a WAL, prepared statements and no syncs, as two engines: one admits other connections and
 * processes, which is what gives SQLite readers beside a writer; one has locking_mode=EXCLUSIVE, which saves
 * its locking calls and leaves one connection in all.
 */
#include "engine.h"

#include <sqlite3.h>
#include <stdio.h>

typedef struct store {
    sqlite3 *db;
    sqlite3_stmt *upsert, *select, *select_keys, *begin, *commit;
} store;

static const char *text_of(store *of, int result) {
    return result == SQLITE_OK || result == SQLITE_DONE || result == SQLITE_ROW ? NULL
                                                                                : sqlite3_errmsg(of->db);
}

static void describe(char *out, size_t cap, const char *locking) {
    snprintf(out, cap, "SQLite %s: WAL, synchronous=OFF, WITHOUT ROWID, 256 MiB cache, mmap, %s",
             sqlite3_libversion(), locking);
}

static void describe_shared(char *out, size_t cap) { describe(out, cap, "other connections admitted"); }

static void describe_exclusive(char *out, size_t cap) { describe(out, cap, "locking_mode=EXCLUSIVE"); }

static int prepare_all(store *into) {
    const struct {
        sqlite3_stmt **to;
        const char *text;
    } wanted[] = {
        {&into->upsert, "INSERT OR REPLACE INTO data VALUES (?, ?)"},
        {&into->select, "SELECT value FROM data WHERE key = ?"},
        {&into->select_keys, "SELECT key FROM data ORDER BY key"},
        {&into->begin, "BEGIN"},
        {&into->commit, "COMMIT"},
    };
    int result = SQLITE_OK;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted && result == SQLITE_OK; i++) {
        result = sqlite3_prepare_v3(into->db, wanted[i].text, -1, SQLITE_PREPARE_PERSISTENT, wanted[i].to,
                                    NULL);
    }
    return result;
}

static const char *open_with(const char *dir, const char *locking, void **db) {
    store *made = bench_alloc(sizeof *made);
    *made = (store){0};
    *db = made;
    char path[BENCH_PATH_MAX + 16];
    snprintf(path, sizeof path, "%s/data.sqlite", dir);
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    int result = sqlite3_open_v2(path, &made->db, flags, NULL);
    if (result == SQLITE_OK) result = sqlite3_exec(made->db, locking, NULL, NULL, NULL);
    if (result == SQLITE_OK) {
        result = sqlite3_exec(made->db,
                              "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF;"
                              "PRAGMA wal_autocheckpoint = 8000; PRAGMA cache_size = -262144;"
                              "PRAGMA mmap_size = 1073741824;"
                              "CREATE TABLE IF NOT EXISTS data (key BLOB PRIMARY KEY, value BLOB NOT NULL)"
                              " WITHOUT ROWID",
                              NULL, NULL, NULL);
    }
    if (result == SQLITE_OK) result = prepare_all(made);
    return text_of(made, result);
}

static const char *open_shared(const char *dir, void **db) {
    return open_with(dir, "PRAGMA locking_mode = NORMAL", db);
}

static const char *open_exclusive(const char *dir, void **db) {
    return open_with(dir, "PRAGMA locking_mode = EXCLUSIVE", db);
}

static const char *store_close(void *db) {
    store *closed = db;
    sqlite3_stmt *all[] = {closed->upsert, closed->select, closed->select_keys, closed->begin,
                           closed->commit};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) sqlite3_finalize(all[i]);
    int result = sqlite3_close(closed->db);
    free(closed);
    return result == SQLITE_OK ? NULL : "sqlite3_close failed";
}

static const char *settle(void *db) {
    store *of = db;
    return text_of(of, sqlite3_exec(of->db, "PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL, NULL));
}

static int step(sqlite3_stmt *statement) {
    int result = sqlite3_step(statement);
    int reset = sqlite3_reset(statement);
    return result == SQLITE_DONE ? SQLITE_OK : reset;
}

static int upsert(store *into, const void *key, size_t key_len, const void *value, size_t value_len) {
    int result = sqlite3_bind_blob(into->upsert, 1, key, (int)key_len, SQLITE_STATIC);
    if (result == SQLITE_OK) {
        result = sqlite3_bind_blob(into->upsert, 2, value, (int)value_len, SQLITE_STATIC);
    }
    return result == SQLITE_OK ? step(into->upsert) : result;
}

static const char *put(void *db, const void *key, size_t key_len, const void *value, size_t value_len) {
    store *into = db;
    return text_of(into, upsert(into, key, key_len, value, value_len));
}

static const char *put_many(void *db, const bench_data *data, size_t from, size_t to) {
    store *into = db;
    int result = step(into->begin);
    for (size_t i = from; i < to && result == SQLITE_OK; i++) {
        result = upsert(into, data->put_order[i].bytes, BENCH_KEY_LEN, bench_value(data, i),
                        BENCH_VALUE_LEN);
    }
    if (result == SQLITE_OK) result = step(into->commit);
    return text_of(into, result);
}

static const char *reader_open(void *db, int mode, void **reader) {
    (void)mode; /* every get is a transaction of its own and sees the newest state */
    *reader = db;
    return NULL;
}

static const char *get(void *reader, const void *key, size_t key_len, void *buf, size_t cap,
                       size_t *len) {
    store *from = reader;
    int result = sqlite3_bind_blob(from->select, 1, key, (int)key_len, SQLITE_STATIC);
    if (result == SQLITE_OK) result = sqlite3_step(from->select);
    if (result == SQLITE_ROW) {
        const void *value = sqlite3_column_blob(from->select, 0);
        *len = (size_t)sqlite3_column_bytes(from->select, 0);
        if (*len <= cap) memcpy(buf, value, *len);
        sqlite3_reset(from->select);
        return *len <= cap ? NULL : "value too long";
    }
    sqlite3_reset(from->select);
    return result == SQLITE_DONE ? "no such key" : text_of(from, result);
}

static void reader_close(void *reader) { (void)reader; }

static const char *scan_keys(void *db, bench_scan *seen) {
    store *from = db;
    bench_keys_out out;
    bench_keys_out_begin(&out);
    int result;
    while ((result = sqlite3_step(from->select_keys)) == SQLITE_ROW) {
        const void *key = sqlite3_column_blob(from->select_keys, 0);
        bench_keys_out_add(&out, seen, key, (size_t)sqlite3_column_bytes(from->select_keys, 0));
    }
    sqlite3_reset(from->select_keys);
    bench_keys_out_end(&out);
    return text_of(from, result);
}

const bench_engine bench_sqlite = {
    .name = "sqlite",
    .describe = describe_shared,
    .open = open_shared,
    .close = store_close,
    .settle = settle,
    .put = put,
    .put_many = put_many,
    .slow_puts = 1,
    .reader_open = reader_open,
    .get = get,
    .reader_close = reader_close,
    .scan_keys = scan_keys,
};

const bench_engine bench_sqlite_exclusive = {
    .name = "sqlite_exclusive",
    .describe = describe_exclusive,
    .open = open_exclusive,
    .close = store_close,
    .settle = settle,
    .put = put,
    .put_many = put_many,
    .slow_puts = 1,
    .reader_open = reader_open,
    .get = get,
    .reader_close = reader_close,
    .scan_keys = scan_keys,
};
