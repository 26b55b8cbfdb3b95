#include "store/log.h"

#include <errno.h>

#include "base/bytes.h"
#include "base/os.h"
#include "store/log_map.h"

enum {
    COPY_LEN = 256 << 10, /* bytes that nt_log_rewrite moves at a time */
    ZEROS_LEN = 4096
};

static const uint8_t ZEROS[ZEROS_LEN];

/* ---- Creating and opening ------------------------------------------------------------------------ */

static ntee_status write_new(int dir, const char *name, const void *bytes, size_t len, ntee_error *err) {
    int fd;
    size_t done;
    int error = NT_OS->open_at(dir, name, NT_OS_WRITE | NT_OS_CREATE | NT_OS_EXCL, &fd);
    if (error != 0) return nt_fail_os(err, error, "create", name);
    ntee_status status = NTEE_OK;
    error = nt_os_write(fd, bytes, len, 0, &done);
    if (error != 0) status = nt_fail_os(err, error, "write", name);
    if (status == NTEE_OK) {
        error = NT_OS->sync_data(fd);
        if (error != 0) status = nt_fail_os(err, error, "sync", name);
    }
    error = NT_OS->close(fd);
    if (error != 0 && status == NTEE_OK) status = nt_fail_os(err, error, "close", name);
    return status;
}

/* Copies a name and what comes behind it into NT_LOG_NAME_MAX bytes: 1, or 0 where it does not fit. */
static int join_name(char out[NT_LOG_NAME_MAX], const char *name, const char *ending) {
    size_t name_len = strlen(name);
    size_t ending_len = strlen(ending);
    if (name_len == 0 || name_len > NT_LOG_NAME_MAX - 1 - ending_len) return 0;
    memcpy(out, name, name_len);
    memcpy(out + name_len, ending, ending_len + 1);
    return 1;
}

ntee_status nt_log_create(int dir, const char *name, const void *bytes, size_t len, ntee_error *err) {
    char temporary[NT_LOG_NAME_MAX];
    if (!join_name(temporary, name, ".tmp")) return nt_fail(err, NTEE_INVALID, "file name: %s", name);
    int error = NT_OS->unlink_at(dir, temporary);
    if (error != 0 && error != ENOENT) return nt_fail_os(err, error, "remove", temporary);
    ntee_status status = write_new(dir, temporary, bytes, len, err);
    if (status == NTEE_OK) {
        error = NT_OS->rename_at(dir, temporary, name);
        if (error != 0) status = nt_fail_os(err, error, "rename", temporary);
    }
    if (status != NTEE_OK) {
        (void)NT_OS->unlink_at(dir, temporary);
        return status;
    }
    error = NT_OS->sync_dir(dir);
    if (error != 0) return nt_fail_os(err, error, "sync the directory of", name);
    return NTEE_OK;
}

static ntee_status open_file(nt_log *log, ntee_error *err) {
    int traits = 0;
    uint64_t size = 0;
    int access = (log->flags & NT_LOG_READ_ONLY) != 0 ? 0 : NT_OS_WRITE;
    int error = NT_OS->open_at(log->dir, log->name, access, &log->fd);
    if (error != 0) {
        log->fd = -1;
        return nt_fail_os(err, error, "open", log->name);
    }
    error = NT_OS->size(log->fd, &size);
    if (error == 0) error = NT_OS->file_system(log->dir, &traits);
    if (error == 0 && size > NT_LOG_SIZE_MAX) error = EFBIG;
    if (error != 0) return nt_fail_os(err, error, "open", log->name);
    log->map_read = (traits & NT_OS_MAP_READ) != 0 && (log->flags & NT_LOG_NO_MAP_READ) == 0;
    log->map_write = (traits & NT_OS_MAP_WRITE) != 0 &&
                     (log->flags & (NT_LOG_NO_MAP_WRITE | NT_LOG_READ_ONLY)) == 0;
    atomic_store(&log->tail, size);
    atomic_store(&log->allocated, size);
    return NTEE_OK;
}

ntee_status nt_log_open(nt_log **log, int dir, const char *name, int flags, ntee_error *err) {
    *log = NULL;
    nt_log *opened = nt_alloc(sizeof *opened);
    if (opened == NULL) return nt_fail(err, NTEE_NOMEM, "cannot open %s: out of memory", name);
    memset(opened, 0, sizeof *opened);
    opened->dir = dir;
    opened->flags = flags;
    opened->fd = -1;
    ntee_status status = NTEE_OK;
    if (!join_name(opened->name, name, "")) status = nt_fail(err, NTEE_INVALID, "file name: %s", name);
    if (status == NTEE_OK) status = open_file(opened, err);
    if (status != NTEE_OK) {
        if (opened->fd >= 0) (void)NT_OS->close(opened->fd);
        nt_free(opened);
        return status;
    }
    nt_log_map_reader(opened, atomic_load(&opened->tail));
    *log = opened;
    return NTEE_OK;
}

/* ---- Syncing ------------------------------------------------------------------------------------- */

static ntee_status refuse_after_sync(const nt_log *log, ntee_error *err) {
    int error = atomic_load(&log->sync_error);
    return nt_fail_os(err, error, "write after a failed sync to", log->name);
}

/* Answers for a log that is broken (L3, L4). */
static ntee_status refuse_broken(const nt_log *log, ntee_error *err) {
    if (atomic_load(&log->sync_error) != 0) return refuse_after_sync(log, err);
    return nt_fail_os(err, atomic_load(&log->write_error), "write after a failed write to", log->name);
}

/* Syncs the file, whatever was appended; `upto` counts as synced then. */
static ntee_status sync_upto(nt_log *log, uint64_t upto, ntee_error *err) {
    if (atomic_load(&log->sync_error) != 0) return refuse_after_sync(log, err);
    int error = NT_OS->sync_data(log->fd);
    if (error != 0) {
        atomic_store(&log->sync_error, error);
        return nt_fail_os(err, error, "sync", log->name);
    }
    atomic_store_explicit(&log->synced, upto, memory_order_release);
    return NTEE_OK;
}

ntee_status nt_log_sync(nt_log *log, ntee_error *err) {
    uint64_t tail = atomic_load_explicit(&log->tail, memory_order_acquire);
    if ((log->flags & NT_LOG_READ_ONLY) != 0) return NTEE_OK;
    if (atomic_load(&log->sync_error) == 0 && tail <= nt_log_synced(log)) return NTEE_OK;
    return sync_upto(log, tail, err);
}

ntee_status nt_log_cut(nt_log *log, uint64_t size, ntee_error *err) {
    uint64_t now = 0;
    int read_only = (log->flags & NT_LOG_READ_ONLY) != 0;
    if (log->appended || size > nt_log_tail(log) || (size & 7) != 0) {
        return nt_fail(err, NTEE_INVALID, "cannot cut %s to %llu bytes", log->name, (unsigned long long)size);
    }
    if (!read_only) {
        if (nt_log_is_broken(log)) return refuse_broken(log, err);
        int error = NT_OS->size(log->fd, &now);
        if (error == 0 && now != size) error = NT_OS->truncate(log->fd, size);
        if (error != 0) return nt_fail_os(err, error, "cut", log->name);
    }
    atomic_store(&log->allocated, size);
    atomic_store_explicit(&log->tail, size, memory_order_release);
    if (!read_only && now != size) return sync_upto(log, size, err);
    atomic_store(&log->synced, size);
    return NTEE_OK;
}

static ntee_status rewrite_part(nt_log *log, uint64_t from, void *part, size_t len, ntee_error *err) {
    size_t done;
    int error = nt_os_read(log->fd, part, len, from);
    if (error != 0) return nt_fail_os(err, error, "read", log->name);
    error = nt_os_write(log->fd, part, len, from, &done);
    if (error != 0) return nt_fail_os(err, error, "rewrite", log->name);
    return NTEE_OK;
}

ntee_status nt_log_rewrite(nt_log *log, uint64_t from, int sync, ntee_error *err) {
    uint64_t tail = nt_log_tail(log);
    ntee_status status = NTEE_OK;
    if ((log->flags & NT_LOG_READ_ONLY) != 0 || from > tail) {
        return nt_fail(err, NTEE_INVALID, "cannot rewrite %s", log->name);
    }
    if (nt_log_is_broken(log)) return refuse_broken(log, err);
    void *part = nt_alloc(COPY_LEN);
    if (part == NULL) return nt_fail(err, NTEE_NOMEM, "cannot rewrite %s: out of memory", log->name);
    while (from < tail && status == NTEE_OK) {
        size_t len = tail - from < COPY_LEN ? (size_t)(tail - from) : COPY_LEN;
        status = rewrite_part(log, from, part, len, err);
        from += len;
    }
    nt_free(part);
    return status == NTEE_OK && sync ? sync_upto(log, tail, err) : status;
}

/* Cuts off what was allocated ahead and syncs what is not synced yet. */
static ntee_status finish(nt_log *log, ntee_error *err) {
    uint64_t tail = nt_log_tail(log);
    uint64_t size = 0;
    int unsynced = tail > nt_log_synced(log);
    if ((log->flags & NT_LOG_READ_ONLY) != 0 || !log->appended) return NTEE_OK;
    if (!nt_log_is_broken(log)) {
        int error = NT_OS->size(log->fd, &size);
        if (error == 0 && size > tail) error = NT_OS->truncate(log->fd, tail);
        if (error != 0) {
            if (unsynced) (void)sync_upto(log, tail, err);
            return nt_fail_os(err, error, "cut", log->name);
        }
    }
    return unsynced ? sync_upto(log, tail, err) : NTEE_OK;
}

ntee_status nt_log_close(nt_log *log, ntee_error *err) {
    if (log == NULL) return NTEE_OK;
    nt_log_map_close(log);
    ntee_status status = finish(log, err);
    int error = NT_OS->close(log->fd);
    if (error != 0 && status == NTEE_OK) status = nt_fail_os(err, error, "close", log->name);
    nt_free(log);
    return status;
}

/* ---- Appending ----------------------------------------------------------------------------------- */

static void publish(nt_log *log, uint64_t tail, size_t len) {
    nt_log_map_mark(log, tail, len);
    nt_os_yield("log append");
    atomic_store_explicit(&log->tail, tail + len, memory_order_release);
}

/* Stores a frame through the window: the word that makes it one comes last. */
static void store(nt_log *log, uint64_t tail, const void *frame, size_t len) {
    uint8_t *to = log->window_at + (tail - log->window_from);
    nt_os_store(to + 8, (const uint8_t *)frame + 8, len - 8);
    nt_os_release(to, nt_load64(frame));
}

/* After a failed write: what may have been written beyond the tail is made zero again (L3). */
static void undo_write(nt_log *log, uint64_t tail, size_t len, int write_error) {
    uint64_t size = 0;
    int error = NT_OS->size(log->fd, &size);
    uint64_t end = size < tail + len ? size : tail + len;
    for (uint64_t at = tail; at < end && error == 0;) {
        size_t done;
        size_t part = end - at < ZEROS_LEN ? (size_t)(end - at) : ZEROS_LEN;
        error = nt_os_write(log->fd, ZEROS, part, at, &done);
        at += part;
    }
    if (error != 0 && !log->map_write) { /* a disk so full that not even that can be written: cut it off */
        error = NT_OS->truncate(log->fd, tail);
        if (error == 0) atomic_store(&log->allocated, tail);
    }
    if (error != 0) atomic_store(&log->write_error, write_error);
}

/* A frame that no window takes: one write, or, where the file is mapped for writing, the body and then the
 * word that makes it a frame. */
static int write_frame(nt_log *log, uint64_t tail, const void *frame, size_t len) {
    size_t done;
    size_t skip = log->map_write ? 8 : 0;
    int error = nt_os_write(log->fd, (const uint8_t *)frame + skip, len - skip, tail + skip, &done);
    if (error == 0 && skip > 0) error = nt_os_write(log->fd, frame, skip, tail, &done);
    if (error != 0) undo_write(log, tail, len, error);
    return error;
}

static ntee_status check_append(nt_log *log, size_t len, ntee_error *err) {
    uint64_t tail = nt_log_tail(log);
    int read_only = (log->flags & NT_LOG_READ_ONLY) != 0;
    if (read_only) return nt_fail(err, NTEE_READONLY, "%s is open for reading only", log->name);
    if (nt_log_is_broken(log)) return refuse_broken(log, err);
    if ((tail & 7) != 0) return nt_fail(err, NTEE_INVALID, "%s ends at an odd place", log->name);
    if (len > NT_LOG_SIZE_MAX - tail) return nt_fail_os(err, EFBIG, "append to", log->name);
    return NTEE_OK;
}

static ntee_status append_slow(nt_log *log, const void *frame, size_t len, ntee_error *err) {
    uint64_t tail = nt_log_tail(log);
    ntee_status status = check_append(log, len, err);
    if (status != NTEE_OK) return status;
    if (len < 8 || (len & 7) != 0 || nt_load64(frame) == 0) {
        return nt_fail(err, NTEE_INVALID, "not a frame, for %s", log->name);
    }
    log->appended = 1;
    status = nt_log_map_blocks(log, tail + len, err);
    if (status != NTEE_OK) return status;
    nt_log_map_reader(log, tail + len);
    if (log->map_write && len <= NT_LOG_WINDOW && nt_log_map_window(log, tail + len)) {
        store(log, tail, frame, len);
    } else {
        int error = write_frame(log, tail, frame, len);
        if (error != 0) return nt_fail_os(err, error, "append to", log->name);
    }
    publish(log, tail, len);
    return NTEE_OK;
}

ntee_status nt_log_append(nt_log *log, const void *frame, size_t len, ntee_error *err) {
    uint64_t tail = atomic_load_explicit(&log->tail, memory_order_relaxed);
    int apart = atomic_load_explicit(&log->sync_error, memory_order_relaxed) |
                atomic_load_explicit(&log->write_error, memory_order_relaxed) |
                atomic_load_explicit(&log->plain, memory_order_relaxed);
    int whole = len >= 8 && (len & 7) == 0;
    if (apart || !whole || tail > log->limit || len > log->limit - tail || nt_load64(frame) == 0) {
        return append_slow(log, frame, len, err);
    }
    store(log, tail, frame, len);
    publish(log, tail, len);
    return NTEE_OK;
}

ntee_status nt_log_reserve(nt_log *log, size_t len, size_t spare, ntee_error *err) {
    uint64_t tail = atomic_load_explicit(&log->tail, memory_order_relaxed);
    uint64_t allocated = atomic_load_explicit(&log->allocated, memory_order_acquire);
    ntee_status status = check_append(log, len, err);
    if (status != NTEE_OK) return status;
    if (tail + len + spare <= allocated) return NTEE_OK;
    log->appended = 1;
    status = nt_log_map_blocks(log, tail + len + spare, err);
    if (status == NTEE_FULL && spare) nt_log_map_spare(log, tail + spare);
    return status;
}

/* ---- Reading and asking -------------------------------------------------------------------------- */

ntee_status nt_log_read(const nt_log *log, uint64_t offset, void *out, size_t len, ntee_error *err) {
    uint64_t tail = nt_log_tail(log);
    if (offset > tail || len > tail - offset) {
        return nt_fail_corrupt(err, log->name, offset, "the file ends before");
    }
    const uint8_t *at = nt_log_view(log, offset, len);
    if (at != NULL) {
        memcpy(out, at, len);
        return NTEE_OK;
    }
    int error = nt_os_read(log->fd, out, len, offset);
    if (error == 0) return NTEE_OK;
    ntee_status status = nt_fail_os(err, error, "read", log->name);
    err->offset = (int64_t)offset;
    return status;
}

uint64_t nt_log_tail(const nt_log *log) { return atomic_load_explicit(&log->tail, memory_order_acquire); }

uint64_t nt_log_synced(const nt_log *log) {
    return atomic_load_explicit(&log->synced, memory_order_acquire);
}

int nt_log_is_broken(const nt_log *log) {
    return atomic_load(&log->sync_error) != 0 || atomic_load(&log->write_error) != 0;
}

const char *nt_log_name(const nt_log *log) { return log->name; }

int nt_log_wants_prepare(const nt_log *log) {
    if (atomic_load_explicit(&log->started, memory_order_relaxed) == 0) return 0;
    uint64_t at = atomic_load_explicit(&log->prepare_at, memory_order_relaxed);
    return atomic_load_explicit(&log->tail, memory_order_relaxed) >= at;
}
