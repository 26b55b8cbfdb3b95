#include "engine/open.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/os.h"
#include "engine/commit.h"
#include "engine/recover.h"
#include "engine/salvage.h"
#include "engine/save.h"
#include "engine/scan.h"

#define LOCK_TRIES 100
#define LOG_NAME_SIZE 32

/* The lock's number is never 0 meanwhile: a child forked just now would close that descriptor. */
static void empty(nt_db *db) {
    _Static_assert(offsetof(nt_db, read_only) == 2 * sizeof(int), "dir and lock come first");
    db->dir = -1;
    db->lock = -1;
    memset((char *)db + offsetof(nt_db, read_only), 0, sizeof *db - offsetof(nt_db, read_only));
}

/* ---- Names ---- */

static void log_name(char out[LOG_NAME_SIZE], uint64_t generation) {
    snprintf(out, LOG_NAME_SIZE, "%08llx.log", (unsigned long long)generation);
}

/* The generation in a name of 8 to 16 hexadecimal digits and `suffix`, or 0. */
static uint64_t generation_of(const char *name, const char *suffix) {
    uint64_t generation = 0;
    size_t digits = 0;
    for (; digits < 17; digits++) {
        char c = name[digits];
        if (c >= '0' && c <= '9')
            generation = generation * 16 + (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            generation = generation * 16 + (uint64_t)(c - 'a' + 10);
        else
            break;
    }
    if (digits < 8 || digits > 16 || strcmp(name + digits, suffix) != 0) return 0;
    return generation;
}

/* What a directory holds that is a store's. */
typedef struct contents {
    int dir;
    int remove;      /* 1: leftovers, 2: all */
    uint64_t newest; /* generation of the newest log; 0: none */
    int foreign;     /* names that no store has */
    int failed;      /* errno of the first removal that failed */
} contents;

static int see(void *arg, const char *name) {
    contents *c = arg;
    uint64_t generation = generation_of(name, ".log");
    if (generation > c->newest) c->newest = generation;
    if (!generation && !generation_of(name, ".log.tmp") && !generation_of(name, NT_HINT_SUFFIX) &&
        !generation_of(name, NT_HINT_SUFFIX ".tmp") && !nt_salvage_number(name) &&
        strcmp(name, NT_LOCK_NAME) != 0)
        c->foreign++;
    return 0;
}

/* Whether a file begins as one of ours does: destroy removes nothing else of that name. 0, or the errno of
 * what kept it from being seen. */
static int begins_with(int dir, const char *name, const char *wanted, int *does) {
    uint8_t magic[8];
    uint64_t size = 0;
    int fd;
    *does = 0;
    int failed = NT_OS->open_at(dir, name, 0, &fd);
    if (failed) return failed == ELOOP || failed == EISDIR || failed == EINVAL ? 0 : failed;
    failed = NT_OS->size(fd, &size);
    if (!failed && size >= sizeof magic) {
        failed = nt_os_read(fd, magic, sizeof magic, 0);
        *does = !failed && memcmp(magic, wanted, 8) == 0;
    }
    NT_OS->close(fd);
    return failed;
}

/* The magic of a file that is to be removed, which has to be looked at first; NULL: keep it. */
static const char *magic_of(const contents *c, const char *name) {
    uint64_t generation = generation_of(name, ".log");
    if (generation) return c->remove == 2 || generation < c->newest ? NT_LOG_MAGIC : NULL;
    generation = generation_of(name, NT_HINT_SUFFIX);
    if (generation) return c->remove == 2 || generation != c->newest ? NT_PIECE_MAGIC : NULL;
    return c->remove == 2 && nt_salvage_number(name) ? NT_SALVAGE_MAGIC : NULL;
}

static int clear_one(void *arg, const char *name) {
    contents *c = arg;
    const char *magic = magic_of(c, name);
    int ours = generation_of(name, ".log.tmp") != 0 || generation_of(name, NT_HINT_SUFFIX ".tmp") != 0;
    int failed = magic ? begins_with(c->dir, name, magic, &ours) : 0;
    if (!failed && ours) failed = NT_OS->unlink_at(c->dir, name);
    if (failed && !c->failed) c->failed = failed;
    return 0;
}

/* ---- The directory ---- */

/* A copy of a path without slashes at its end, or NULL. */
static char *copy_path(const char *path) {
    size_t len = strlen(path);
    while (len > 1 && path[len - 1] == '/') len--;
    char *copy = nt_alloc(len + 1);
    if (!copy) return NULL;
    memcpy(copy, path, len);
    copy[len] = 0;
    return copy;
}

/* Syncs the directory that holds the last part of a path (which is put back as it was). One that may not be
 * read cannot be synced: it was not made here. */
static int sync_parent(char *path) {
    char *slash = strrchr(path, '/');
    char *end = slash == path ? path + 1 : slash;
    char kept = end ? *end : 0;
    int fd;
    if (end) *end = 0;
    int failed = NT_OS->open_dir(end ? path : ".", &fd);
    if (end) *end = kept;
    if (failed) return failed == EACCES ? 0 : failed;
    failed = NT_OS->sync_dir(fd);
    NT_OS->close(fd);
    return failed;
}

/* Makes a directory's missing parents and the directory itself, each synced in its parent; those that are
 * there as well, since whoever made them may have been killed before the sync. */
static int make_path(char *path) {
    for (char *end = path + 1;; end++) {
        if (*end != '/' && *end != 0) continue;
        char kept = *end;
        *end = 0;
        int failed = NT_OS->make_dir(path);
        if (!failed || failed == EEXIST) failed = sync_parent(path);
        *end = kept;
        if (failed || kept == 0) return failed;
    }
}

static ntee_status open_dir(nt_db *db, const char *path, int create, ntee_error *err) {
    int failed = NT_OS->open_dir(path, &db->dir);
    if (failed == ENOENT && create) {
        char *copy = copy_path(path);
        if (!copy) return nt_fail(err, NTEE_NOMEM, "no memory for a path");
        failed = make_path(copy);
        nt_free(copy);
        if (!failed) failed = NT_OS->open_dir(path, &db->dir);
    }
    if (!failed) return NTEE_OK;
    db->dir = -1;
    if (failed == ENOENT && !create)
        return nt_fail(err, NTEE_NOT_FOUND, "there is no directory %.150s", path);
    char shown[150]; /* the reason behind it must fit the message */
    snprintf(shown, sizeof shown, "%s", path);
    return nt_fail_os(err, failed, "open the directory", shown);
}

/* Syncs the names that lead to the log: a process that was killed while it made the store may not have come
 * so far. */
static ntee_status sync_names(nt_db *db, const char *path, ntee_error *err) {
    char *copy = copy_path(path);
    if (!copy) return nt_fail(err, NTEE_NOMEM, "no memory for a path");
    int failed = sync_parent(copy);
    if (!failed) failed = NT_OS->sync_dir(db->dir);
    nt_free(copy);
    return failed ? nt_fail_os(err, failed, "sync the directory", path) : NTEE_OK;
}

/* ---- The lock ---- */

static ntee_status locked(const nt_db *db, ntee_error *err) {
    char pid[24] = "";
    size_t moved = 0;
    NT_OS->pread(db->lock, pid, sizeof pid - 1, 0, &moved);
    pid[moved < sizeof pid ? moved : 0] = 0;
    size_t digits = strspn(pid, "0123456789");
    pid[digits] = 0;
    return nt_fail(err, NTEE_LOCKED, "the store is open elsewhere%s%s",
                   digits ? ", its writer's process id is " : "", pid);
}

/* Writes who holds the lock, for messages; not being able to is no fault. */
static void sign_lock(const nt_db *db) {
    char pid[24];
    int n = snprintf(pid, sizeof pid, "%lld\n", (long long)NT_OS->process_id());
    size_t done;
    if (!NT_OS->truncate(db->lock, 0) && n > 0)
        (void)nt_os_write(db->lock, pid, (size_t)n, 0, &done);
}

/* Takes the lock once. *stale: the file that was locked is not the directory's any more; try again. */
static ntee_status try_lock(nt_db *db, int *stale, ntee_error *err) {
    int same = 0;
    int flags = db->read_only ? 0 : NT_OS_WRITE | NT_OS_CREATE;
    *stale = 0;
    int failed = NT_OS->open_at(db->dir, NT_LOCK_NAME, flags, &db->lock);
    if (failed) {
        db->lock = -1;
        if (failed == ENOENT && db->read_only)
            return nt_fail(err, NTEE_NOT_FOUND, "the directory holds no store");
        *stale = failed == ENOENT; /* the directory itself was destroyed meanwhile */
        return nt_fail_os(err, failed, "open", NT_LOCK_NAME);
    }
    failed = NT_OS->lock(db->lock, !db->read_only);
    if (failed == EWOULDBLOCK) return locked(db, err);
    if (failed) return nt_fail_os(err, failed, "lock", NT_LOCK_NAME);
    failed = NT_OS->same_file(db->dir, NT_LOCK_NAME, db->lock, &same);
    if (failed && failed != ENOENT) return nt_fail_os(err, failed, "look at", NT_LOCK_NAME);
    if (same) return NTEE_OK;
    *stale = 1;
    return nt_fail(err, NTEE_LOCKED, "the store is being destroyed");
}

static void close_fd(int *fd) {
    int open = *fd;
    *fd = -1; /* first: a child forked meanwhile must not close what comes to have this number */
    if (open >= 0) NT_OS->close(open);
}

/* Opens the directory and takes its lock. */
static ntee_status enter(nt_db *db, const char *path, int create, ntee_error *err) {
    ntee_status status = NTEE_LOCKED;
    for (int i = 0; i < LOCK_TRIES; i++) {
        int stale;
        status = open_dir(db, path, create, err);
        /* Destroyed just after it was made. */
        if (status != NTEE_OK && create && err->os_errno == ENOENT) continue;
        if (status != NTEE_OK) return status;
        status = try_lock(db, &stale, err);
        if (status == NTEE_OK || !stale) return status;
        close_fd(&db->lock);
        close_fd(&db->dir);
    }
    return status;
}

void nt_db_forget_lock(nt_db *db) { close_fd(&db->lock); }

/* ---- The log ---- */

static ntee_status create_log(nt_db *db, ntee_error *err) {
    uint8_t bytes[NT_LOG_START] = {0};
    char name[LOG_NAME_SIZE];
    nt_log_header header = {.version = NT_FORMAT_VERSION, .generation = 1, .durable = NT_LOG_START};
    int failed = NT_OS->random(header.store_id, sizeof header.store_id);
    if (!failed) failed = NT_OS->random(&header.salt, sizeof header.salt);
    if (failed) return nt_fail_os(err, failed, "get random bytes for", "a new store");
    nt_log_header_encode(bytes, &header);
    nt_log_header_encode(bytes + NT_LOG_COPY, &header);
    log_name(name, header.generation);
    return nt_log_create(db->dir, name, bytes, sizeof bytes, err);
}

/* Reads one of the two copies of the header. */
static ntee_status read_copy(const nt_db *db, uint64_t offset, nt_log_header *header, ntee_error *err) {
    uint8_t bytes[NT_LOG_HEADER_SIZE];
    uint64_t size = nt_log_tail(db->log);
    size_t len = size <= offset ? 0 : size - offset < sizeof bytes ? (size_t)(size - offset) : sizeof bytes;
    ntee_status status = len ? nt_log_read(db->log, offset, bytes, len, err) : NTEE_OK;
    if (status != NTEE_OK) return status;
    return nt_log_header_decode(bytes, len, header, nt_log_name(db->log), err);
}

static ntee_status note_damage(nt_db *db, uint64_t offset, uint64_t length, ntee_error *err) {
    nt_damage damage = {.offset = offset, .length = length};
    if (nt_buf_append(&db->recovery.damage, &damage, sizeof damage)) return NTEE_OK;
    return nt_fail(err, NTEE_NOMEM, "no memory to note damage");
}

/* Reads the header, or where that is damaged, its copy. A newer format may have no copy. */
static ntee_status read_header(nt_db *db, ntee_error *err) {
    nt_log_header copy;
    ntee_error second;
    ntee_status status = read_copy(db, 0, &db->header, err);
    if (status != NTEE_OK && status != NTEE_CORRUPT && status != NTEE_VERSION) return status;
    ntee_status other = read_copy(db, NT_LOG_COPY, &copy, &second);
    if (status != NTEE_OK && other != NTEE_OK) return status;
    if (status != NTEE_OK) {
        db->header = copy;
        status = note_damage(db, 0, NT_LOG_HEADER_SIZE, err);
    } else if (other == NTEE_CORRUPT || other == NTEE_VERSION) {
        status = note_damage(db, NT_LOG_COPY, NT_LOG_HEADER_SIZE, err);
    }
    db->source.log = db->log;
    db->source.base = db->header.base;
    db->source.trusted = db->header.base;
    db->source.seed = nt_store_seed(db->header.store_id);
    return status;
}

static ntee_status list_dir(nt_db *db, contents *c, int (*each)(void *, const char *),
                            ntee_error *err) {
    int failed = NT_OS->list(db->dir, each, c);
    if (!failed) failed = c->failed;
    return failed ? nt_fail_os(err, failed, "list", "the store's directory") : NTEE_OK;
}

/* Removes what an interrupted creation or rewrite left, once the newest log has been read: an older one is
 * all that there is where that one turns out to be no good. */
static ntee_status clear_leftovers(nt_db *db, uint64_t newest, ntee_error *err) {
    contents c = {.dir = db->dir, .remove = 1, .newest = newest};
    return list_dir(db, &c, clear_one, err);
}

void nt_db_fit_guesses(nt_db *db) {
    uint64_t keys;
    ntee_error ignored;
    if (db->unmapped || nt_count_all(db, &keys, &ignored) != NTEE_OK) return;
    nt_guess_fit(&db->guess, keys, nt_log_tail(db->log));
}

/* Says in the log that what was found damaged is accepted. */
static ntee_status accept_damage(nt_db *db, ntee_error *err) {
    ntee_status status = nt_commit_announce(db, err);
    if (status == NTEE_OK) status = nt_commit_accept(db, err);
    return status == NTEE_OK ? nt_log_sync(db->log, err) : status;
}

/* Finds the newest log, or makes the first one. */
static ntee_status find_log(nt_db *db, uint64_t *generation, ntee_error *err) {
    contents c = {.dir = db->dir};
    ntee_status status = list_dir(db, &c, see, err);
    if (status != NTEE_OK) return status;
    *generation = c.newest;
    if (c.newest) return NTEE_OK;
    if (db->read_only) return nt_fail(err, NTEE_NOT_FOUND, "the directory holds no store");
    *generation = 1;
    return create_log(db, err);
}

static ntee_status load(nt_db *db, const char *path, const nt_open_options *options, ntee_error *err) {
    char name[LOG_NAME_SIZE];
    uint64_t generation;
    int traits = 0;
    int flags = options->read_only ? NT_LOG_READ_ONLY : 0;
    int failed = NT_OS->file_system(db->dir, &traits);
    if (failed) return nt_fail_os(err, failed, "look at", "the store's file system");
    if (traits & NT_OS_NETWORK)
        return nt_fail(err, NTEE_INVALID,
                       "the directory is on a network file system, where locks and syncs do not hold");
    db->unmapped = options->no_mmap || !(traits & NT_OS_MAP_READ);
    if (db->unmapped) flags |= NT_LOG_NO_MAP_READ;
    if (options->no_mmap || !(traits & NT_OS_MAP_WRITE)) flags |= NT_LOG_NO_MAP_WRITE;
    ntee_status status = find_log(db, &generation, err);
    if (status != NTEE_OK) return status;
    log_name(name, generation);
    status = nt_log_open(&db->log, db->dir, name, flags, err);
    if (status == NTEE_OK) status = read_header(db, err);
    if (status != NTEE_OK) return status;
    db->keydir = nt_keydir_create();
    if (!db->keydir) return nt_fail(err, NTEE_NOMEM, "no memory for the index");
    status = nt_recover(db, err);
    if (status == NTEE_OK && !db->read_only) status = clear_leftovers(db, generation, err);
    if (status == NTEE_OK && !db->read_only && !db->recovery.clean) status = sync_names(db, path, err);
    if (status == NTEE_OK && !db->read_only && db->recovery.accepted) status = accept_damage(db, err);
    if (status == NTEE_OK) nt_db_fit_guesses(db);
    return status;
}

static void release(nt_db *db) {
    ntee_error ignored;
    nt_keydir_destroy(db->keydir);
    nt_save_end(db);
    nt_buf_free(&db->recovery.damage);
    nt_guess_free(&db->guess);
    if (db->log) nt_log_close(db->log, &ignored);
    close_fd(&db->dir);
    /* Said aloud, since a child forked just now may not have come to close its copy of the descriptor. */
    if (db->lock >= 0) (void)NT_OS->lock(db->lock, NT_OS_UNLOCK);
    close_fd(&db->lock);
    empty(db);
}

ntee_status nt_db_open(nt_db *db, const char *path, const nt_open_options *options,
                       ntee_error *err) {
    empty(db);
    db->read_only = options->read_only;
    db->accept_damage = options->accept_damage;
    db->saving.every = options->hint_every;
    ntee_status status = enter(db, path, !options->read_only, err);
    if (status == NTEE_OK && !db->read_only) sign_lock(db);
    if (status == NTEE_OK) status = load(db, path, options, err);
    if (status != NTEE_OK) release(db);
    return status;
}

/* ---- Closing and destroying ---- */

/* Whether `path` still leads to the open directory: the one that has our lock in it. */
static int leads_here(const nt_db *db, const char *path) {
    int fd, same = 0;
    if (NT_OS->open_dir(path, &fd)) return 0;
    if (NT_OS->same_file(fd, NT_LOCK_NAME, db->lock, &same)) same = 0;
    NT_OS->close(fd);
    return same;
}

/* Removes the store's files, the lock last, and the directory if that leaves it empty. The lock is held. */
static ntee_status remove_files(nt_db *db, const char *path, ntee_error *err) {
    contents c = {.dir = db->dir, .remove = 2};
    ntee_status status = list_dir(db, &c, clear_one, err);
    if (status != NTEE_OK) return status;
    int here = leads_here(db, path);
    int failed = NT_OS->sync_dir(db->dir);
    if (!failed) failed = NT_OS->unlink_at(db->dir, NT_LOCK_NAME);
    if (failed) return nt_fail_os(err, failed, "remove", NT_LOCK_NAME);
    if (here) NT_OS->remove_dir(path); /* fails where it is not empty, and may */
    return NTEE_OK;
}

/* Whether the log needs a clean mark: it has frames of this opening, or the end before was not clean. */
static int needs_mark(const nt_db *db) {
    return !db->read_only && (db->announced || !db->recovery.clean);
}

/* Saves the index; everything is synced. */
static void save_hint(nt_db *db) {
    int whole = nt_save_wants_snapshot(db, NT_SAVE_CLOSING);
    const nt_version *version = whole ? nt_keydir_hold_newest(db->keydir) : NULL;
    if (version) nt_save_snapshot(db, version);
    else nt_save_step(db, NT_SAVE_CLOSING);
}

ntee_status nt_db_close(nt_db *db, int failed, const char *destroy, ntee_error *err) {
    ntee_status status = NTEE_OK;
    ntee_status closed;
    ntee_error ignored; /* of a mark that does not fit: nobody misses it */
    int writes = !failed && !destroy && !db->read_only;
    int marks = writes && needs_mark(db) && nt_commit_announce(db, &ignored) == NTEE_OK;
    if (marks) status = nt_log_sync(db->log, err);
    if (writes && status == NTEE_OK) save_hint(db);
    if (marks && status == NTEE_OK) (void)nt_commit_mark(db, NT_FRAME_CLEAN, &ignored);
    closed = nt_log_close(db->log, status == NTEE_OK ? err : &(ntee_error){0});
    if (status == NTEE_OK) status = closed;
    db->log = NULL;
    if (destroy && db->read_only)
        status = nt_fail(err, NTEE_READONLY, "the store was opened read-only");
    else if (destroy)
        status = remove_files(db, destroy, err);
    if (!db->read_only) (void)NT_OS->truncate(db->lock, 0); /* who looks there next shall not find us */
    release(db);
    return status;
}

/* Whether the directory has anything of a store, so that destroying does not take a lock in a stranger's.
 * 0, or the errno of what kept it from being seen. */
static int find_store(const char *path, int *there) {
    contents c = {0};
    int fd, lock;
    *there = 0;
    int failed = NT_OS->open_dir(path, &fd);
    if (failed) return failed == ENOENT || failed == ENOTDIR ? 0 : failed;
    failed = NT_OS->list(fd, see, &c);
    if (!failed && !c.newest) {
        failed = NT_OS->open_at(fd, NT_LOCK_NAME, 0, &lock);
        if (!failed) NT_OS->close(lock);
        *there = !failed && !c.foreign; /* other programs have files of that name too */
        /* None, or something that is not a store's. */
        if (failed == ENOENT || failed == EISDIR || failed == ELOOP || failed == EINVAL) failed = 0;
    }
    NT_OS->close(fd);
    if (c.newest) *there = 1;
    return failed;
}

ntee_status nt_db_destroy(const char *path, ntee_error *err) {
    nt_db db;
    int there;
    int failed = find_store(path, &there);
    if (failed) return nt_fail_os(err, failed, "look for a store in", path);
    if (!there) return NTEE_OK;
    empty(&db);
    ntee_status status = enter(&db, path, 0, err);
    if (status == NTEE_OK) status = remove_files(&db, path, err);
    release(&db);
    return status == NTEE_NOT_FOUND ? NTEE_OK : status;
}
