/* The life of a handle, and the calls on one key. */
#include <string.h>

#include "api/handle.h"
#include "base/os.h"
#include "engine/commit.h"
#include "engine/get.h"
#include "engine/open.h"
#include "engine/scan.h"

#define SYNC_INTERVAL_DEFAULT 100u
#define SYNC_INTERVAL_MAX 60000u

const char *ntee_version(void) { return NTEE_VERSION_STRING; }

int ntee_abi(void) { return NTEE_ABI; }

/* ---- Opening and closing ---- */

static ntee_status check_path(const char *path, ntee_error *err) {
    if (!path || !*path) return nt_fail(err, NTEE_INVALID, "the path is NULL or empty");
    return NTEE_OK;
}

static ntee_status check_options(const ntee_options *options, ntee_error *err) {
    static const uint64_t zero[7];
    if (options->size != sizeof *options)
        return nt_fail(err, NTEE_INVALID, "the options' size is %zu, not %zu", options->size,
                       sizeof *options);
    if (options->flags & ~(uint32_t)(NTEE_READ_ONLY | NTEE_SYNC_EVERY_WRITE | NTEE_NO_MMAP |
                                       NTEE_ACCEPT_DAMAGE))
        return nt_fail(err, NTEE_INVALID, "unknown or not yet known flags %#x", options->flags);
    if (options->sync_interval_ms > SYNC_INTERVAL_MAX)
        return nt_fail(err, NTEE_INVALID, "sync_interval_ms is %u, the limit is %u",
                       options->sync_interval_ms, SYNC_INTERVAL_MAX);
    if (memcmp(options->reserved, zero, sizeof zero) != 0)
        return nt_fail(err, NTEE_INVALID, "a reserved option is not zero (not yet known)");
    return NTEE_OK;
}

static ntee_status start(struct ntee *db, const char *path, const ntee_options *options,
                         ntee_error *err) {
    nt_open_options how = {.read_only = (options->flags & NTEE_READ_ONLY) != 0,
                           .no_mmap = (options->flags & NTEE_NO_MMAP) != 0,
                           .hint_every = options->hint_every,
                           .accept_damage = (options->flags & NTEE_ACCEPT_DAMAGE) != 0};
    uint32_t interval =
        options->sync_interval_ms ? options->sync_interval_ms : SYNC_INTERVAL_DEFAULT;
    size_t len = strlen(path) + 1;
    db->path = nt_alloc(len);
    if (!db->path) return nt_fail(err, NTEE_NOMEM, "no memory for a handle");
    memcpy(db->path, path, len);
    db->db.lock = -1;
    nt_table_add(db); /* before the lock is taken, so that a child forked meanwhile lets go of it */
    ntee_status status = nt_db_open(&db->db, path, &how, err);
    if (status != NTEE_OK) goto not_open;
    if (pthread_mutex_init(&db->scans_mutex, NULL)) goto no_mutex;
    if (!nt_writer_init(&db->writer, &db->db, (options->flags & NTEE_SYNC_EVERY_WRITE) != 0))
        goto no_writer;
    nt_background_init(&db->background, &db->writer, interval);
    return NTEE_OK;
no_writer:
    pthread_mutex_destroy(&db->scans_mutex);
no_mutex:
    nt_db_close(&db->db, 0, NULL, err);
    status = nt_fail(err, NTEE_NOMEM, "no memory for a handle");
not_open:
    nt_table_remove(db);
    return status;
}

ntee_status ntee_open(const char *path, const ntee_options *options, ntee **out) {
    static const ntee_options defaults = {.size = sizeof(ntee_options)};
    ntee_error *err = nt_last_error();
    if (!out) return nt_fail(err, NTEE_INVALID, "the place for the handle is NULL");
    *out = NULL;
    if (!options) options = &defaults;
    ntee_status status = check_path(path, err);
    if (status == NTEE_OK) status = check_options(options, err);
    if (status != NTEE_OK) return status;
    struct ntee *db = nt_alloc(sizeof *db);
    if (!db) return nt_fail(err, NTEE_NOMEM, "no memory for a handle");
    memset(db, 0, sizeof *db);
    status = start(db, path, options, err);
    if (status == NTEE_OK) {
        *out = db;
        return NTEE_OK;
    }
    nt_free(db->path);
    nt_free(db);
    return status;
}

static ntee_status finish(struct ntee *db, int destroy, ntee_error *err) {
    ntee_status status = nt_handle_check(db, err);
    if (status != NTEE_OK) return status;
    nt_background_stop(&db->background);
    nt_handle_end_scans(db);
    nt_shapes_free(&db->shapes);
    status = nt_db_close(&db->db, atomic_load(&db->writer.failed), destroy ? db->path : NULL, err);
    nt_table_remove(db); /* now: as long as there is a lock, a forked child has to let go of it */
    nt_writer_destroy(&db->writer);
    pthread_mutex_destroy(&db->scans_mutex);
    nt_free(db->path);
    nt_free(db);
    return status;
}

ntee_status ntee_close(ntee *db) { return db ? finish(db, 0, nt_last_error()) : NTEE_OK; }

ntee_status ntee_drop(ntee *db) { return db ? finish(db, 1, nt_last_error()) : NTEE_OK; }

ntee_status ntee_destroy(const char *path) {
    ntee_error *err = nt_last_error();
    ntee_status status = check_path(path, err);
    return status == NTEE_OK ? nt_db_destroy(path, err) : status;
}

/* ---- What every call shares ---- */

ntee_status nt_handle_check(const struct ntee *db, ntee_error *err) {
    if (!db) return nt_fail(err, NTEE_INVALID, "the handle is NULL");
    if (atomic_load_explicit(&db->forked, memory_order_relaxed))
        return nt_fail(err, NTEE_FORKED, "the store was opened by the parent of this process");
    return NTEE_OK;
}

ntee_status nt_handle_write(struct ntee *db, nt_write *write, int at_hand, ntee_error *err) {
    if (db->db.read_only) return nt_fail(err, NTEE_READONLY, "the store was opened read-only");
    if (write->count == 0) return NTEE_OK;
    ntee_status status = nt_background_start(&db->background, err);
    return status == NTEE_OK ? nt_writer_write(&db->writer, write, at_hand, err) : status;
}

ntee_status nt_handle_sync(struct ntee *db, ntee_error *err) {
    return db->db.read_only ? NTEE_OK : nt_writer_sync(&db->writer, err);
}

/* ---- One key ---- */

ntee_status nt_check_put_options(const ntee_put_options *options, ntee_error *err) {
    static const uint64_t zero[6];
    if (!options) return NTEE_OK;
    if (options->size != sizeof *options)
        return nt_fail(err, NTEE_INVALID, "the put options' size is %zu, not %zu", options->size,
                       sizeof *options);
    if (options->ttl_ms) return nt_fail(err, NTEE_INVALID, "ttl_ms is not yet supported");
    if (memcmp(options->reserved, zero, sizeof zero) != 0)
        return nt_fail(err, NTEE_INVALID, "a reserved option is not zero (not yet known)");
    return NTEE_OK;
}

/* A write of one record, of any type; *effective says whether it did anything. */
static ntee_status write_one(ntee *db, uint8_t type, const void *key, size_t key_len,
                             const void *value, size_t value_len, uint64_t *effective,
                             ntee_error *err) {
    nt_write write;
    ntee_status status = nt_handle_check(db, err);
    if (status != NTEE_OK) return status;
    nt_write_begin(&write, &db->db);
    if (type == NT_WIRE_PUT) nt_write_look(&write, key, key_len);
    status = nt_write_add(&write, type, key, key_len, value, value_len, err);
    if (status == NTEE_OK) status = nt_handle_write(db, &write, 0, err);
    *effective = write.effective;
    nt_write_end(&write);
    return status;
}

ntee_status ntee_put(ntee *db, const void *key, size_t key_len, const void *value,
                     size_t value_len, const ntee_put_options *options) {
    ntee_error *err = nt_last_error();
    uint64_t effective;
    ntee_status status = nt_check_put_options(options, err);
    if (status != NTEE_OK) return status;
    return write_one(db, NT_WIRE_PUT, key, key_len, value, value_len, &effective, err);
}

ntee_status ntee_put_if_absent(ntee *db, const void *key, size_t key_len, const void *value,
                               size_t value_len, const ntee_put_options *options) {
    ntee_error *err = nt_last_error();
    uint64_t effective;
    ntee_status status = nt_check_put_options(options, err);
    if (status != NTEE_OK) return status;
    return write_one(db, NT_WIRE_PUT_IF_ABSENT, key, key_len, value, value_len, &effective, err);
}

ntee_status ntee_delete(ntee *db, const void *key, size_t key_len) {
    ntee_error *err = nt_last_error();
    uint64_t effective = 0;
    ntee_status status = write_one(db, NT_WIRE_DELETE, key, key_len, NULL, 0, &effective, err);
    if (status != NTEE_OK || effective) return status;
    return nt_fail(err, NTEE_NOT_FOUND, "there is no such key");
}

ntee_status ntee_get(ntee *db, const void *key, size_t key_len, void *buf, size_t cap,
                     size_t *len, ntee_kind *kind) {
    ntee_error *err = nt_last_error();
    ntee_status status = nt_handle_check(db, err);
    if (status != NTEE_OK) return status;
    if (!len || (!buf && cap))
        return nt_fail(err, NTEE_INVALID, "the buffer, or the place for the length, is NULL");
    return nt_get(&db->db, key, key_len, buf, cap, len, kind, 0, err);
}

ntee_status ntee_has(ntee *db, const void *key, size_t key_len) {
    ntee_error *err = nt_last_error();
    ntee_status status = nt_handle_check(db, err);
    return status == NTEE_OK ? nt_has(&db->db, key, key_len, err) : status;
}

/* ---- The store as a whole ---- */

ntee_status ntee_stats(ntee *db, ntee_stats_t *stats) {
    ntee_error *err = nt_last_error();
    ntee_status status = nt_handle_check(db, err);
    if (status != NTEE_OK) return status;
    if (!stats || stats->size != sizeof *stats)
        return nt_fail(err, NTEE_INVALID, "the stats are NULL or their size is wrong");
    memset(stats, 0, sizeof *stats);
    stats->size = sizeof *stats;
    stats->main_bytes = nt_log_tail(db->db.log);
    return nt_count_all(&db->db, &stats->records, err);
}

ntee_status ntee_sync(ntee *db) {
    ntee_error *err = nt_last_error();
    ntee_status status = nt_handle_check(db, err);
    return status == NTEE_OK ? nt_handle_sync(db, err) : status;
}
