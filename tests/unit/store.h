/*
 * store: what the tests of the upper half share: temporary stores, looks at their files, and a table of the
 * operating system that counts calls, makes chosen ones fail, and knows what memory is still out. Unlike the
 * fake file system it works on real files and from many threads. Include it first.
 */
#ifndef NT_TESTS_STORE_H
#define NT_TESTS_STORE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/os.h"
#include "format/record.h"
#include "ntee.h"
#include "unit/support.h"

#define LOG_NAME "00000001.log"

/* Added to every t_open: each suite that matters runs once with 0 and once with NTEE_NO_MMAP. */
static uint32_t t_flags;

/* ---- A table of the operating system -------------------------------------------------------------- */

enum { T_ALLOC, T_READ, T_WRITE, T_SYNC, T_ALLOCATE, T_TRUNCATE, T_OPEN, T_MAP, T_THREAD, T_LIST, T_OTHER, T_KINDS };

static atomic_long t_count[T_KINDS];   /* calls so far */
static atomic_long t_fail_at[T_KINDS]; /* 1: the next call fails, 2: the one after it, ...; 0: none */
static atomic_int t_sticky;            /* the calls after it fail as well */
static atomic_int t_errno = EIO;
static atomic_long t_memory; /* pieces of memory that are out */
static atomic_int t_sync_ms; /* how long a sync takes */
static atomic_int t_no_thread;
static nt_os t_os;

static inline int t_fails(int kind) {
    atomic_fetch_add(&t_count[kind], 1);
    long left = atomic_load(&t_fail_at[kind]);
    while (left > 0 && !(left == 1 && atomic_load(&t_sticky)) &&
           !atomic_compare_exchange_weak(&t_fail_at[kind], &left, left - 1)) {
    }
    return left == 1 ? atomic_load(&t_errno) : 0;
}

static inline void t_sleep(long ms) {
    struct timespec wait = {ms / 1000, ms % 1000 * 1000000L};
    nanosleep(&wait, NULL);
}

static inline int64_t t_now(void) { return nt_os_posix.now_boot(); }

static inline void *t_alloc(size_t len) {
    if (t_fails(T_ALLOC)) return NULL;
    atomic_fetch_add(&t_memory, 1);
    return nt_os_posix.alloc(len);
}

static inline void *t_realloc(void *old, size_t len) {
    if (t_fails(T_ALLOC)) return NULL;
    if (!old) atomic_fetch_add(&t_memory, 1);
    return nt_os_posix.realloc(old, len);
}

static inline void t_free(void *memory) {
    if (memory) atomic_fetch_sub(&t_memory, 1);
    nt_os_posix.free(memory);
}

static inline void *t_alloc_pages(size_t len) {
    if (t_fails(T_ALLOC)) return NULL;
    atomic_fetch_add(&t_memory, 1);
    return nt_os_posix.alloc_pages(len);
}

static inline void t_free_pages(void *at, size_t len) {
    if (at) atomic_fetch_sub(&t_memory, 1);
    nt_os_posix.free_pages(at, len);
}

static inline int t_pread(int fd, void *buf, size_t len, uint64_t offset, size_t *moved) {
    int failed = t_fails(T_READ);
    return failed ? failed : nt_os_posix.pread(fd, buf, len, offset, moved);
}

static inline int t_pwrite(int fd, const void *buf, size_t len, uint64_t offset, size_t *moved) {
    int failed = t_fails(T_WRITE);
    return failed ? failed : nt_os_posix.pwrite(fd, buf, len, offset, moved);
}

static inline int t_sync_data(int fd) {
    int failed = t_fails(T_SYNC);
    if (atomic_load(&t_sync_ms)) t_sleep(atomic_load(&t_sync_ms));
    return failed ? failed : nt_os_posix.sync_data(fd);
}

static inline int t_sync_dir(int fd) {
    int failed = t_fails(T_SYNC);
    return failed ? failed : nt_os_posix.sync_dir(fd);
}

static inline int t_allocate(int fd, uint64_t offset, uint64_t len) {
    int failed = t_fails(T_ALLOCATE);
    return failed ? failed : nt_os_posix.allocate(fd, offset, len);
}

static inline int t_truncate(int fd, uint64_t size) {
    int failed = t_fails(T_TRUNCATE);
    return failed ? failed : nt_os_posix.truncate(fd, size);
}

static inline int t_open_at(int dir, const char *name, int flags, int *fd) {
    int failed = t_fails(T_OPEN);
    return failed ? failed : nt_os_posix.open_at(dir, name, flags, fd);
}

static inline int t_open_dir(const char *path, int *fd) {
    int failed = t_fails(T_OPEN);
    return failed ? failed : nt_os_posix.open_dir(path, fd);
}

static inline int t_map(int fd, uint64_t offset, size_t len, nt_os_use use, void **at) {
    int failed = t_fails(T_MAP);
    return failed ? failed : nt_os_posix.map(fd, offset, len, use, at);
}

static inline int t_list(int dir, int (*each)(void *, const char *), void *arg) {
    int failed = t_fails(T_LIST);
    return failed ? failed : nt_os_posix.list(dir, each, arg);
}

static inline int t_random(void *buf, size_t len) {
    int failed = t_fails(T_OTHER);
    return failed ? failed : nt_os_posix.random(buf, len);
}

static inline int t_size(int fd, uint64_t *size) {
    int failed = t_fails(T_OTHER);
    return failed ? failed : nt_os_posix.size(fd, size);
}

static inline int t_lock(int fd, int exclusive) {
    int failed = t_fails(T_OTHER);
    return failed ? failed : nt_os_posix.lock(fd, exclusive);
}

static inline int t_file_system(int dir, int *traits) {
    int failed = t_fails(T_OTHER);
    return failed ? failed : nt_os_posix.file_system(dir, traits);
}

static inline int t_thread_start(void *(*run)(void *), void *arg, uintptr_t *thread) {
    int failed = t_fails(T_THREAD);
    *thread = 0;
    if (failed || atomic_load(&t_no_thread)) return failed;
    return nt_os_posix.thread_start(run, arg, thread);
}

/* No failures from here on. */
static inline void t_heal(void) {
    for (int i = 0; i < T_KINDS; i++) atomic_store(&t_fail_at[i], 0);
    atomic_store(&t_sticky, 0);
    atomic_store(&t_errno, EIO);
}

/* The nth call of a kind from now on fails with an errno; sticky: those after it too. */
static inline void t_fail(int kind, long nth, int error, int sticky) {
    atomic_store(&t_errno, error);
    atomic_store(&t_sticky, sticky);
    atomic_store(&t_fail_at[kind], nth);
}

static inline void t_use_table(void) {
    t_os = nt_os_posix;
    t_os.alloc = t_alloc;
    t_os.realloc = t_realloc;
    t_os.free = t_free;
    t_os.alloc_pages = t_alloc_pages;
    t_os.free_pages = t_free_pages;
    t_os.pread = t_pread;
    t_os.pwrite = t_pwrite;
    t_os.sync_data = t_sync_data;
    t_os.sync_dir = t_sync_dir;
    t_os.allocate = t_allocate;
    t_os.truncate = t_truncate;
    t_os.open_at = t_open_at;
    t_os.open_dir = t_open_dir;
    t_os.map = t_map;
    t_os.list = t_list;
    t_os.random = t_random;
    t_os.size = t_size;
    t_os.lock = t_lock;
    t_os.file_system = t_file_system;
    t_os.thread_start = t_thread_start;
    t_heal();
    atomic_store(&t_no_thread, 0);
    atomic_store(&t_sync_ms, 0);
    nt_os_now = &t_os;
}

static inline long t_calls(int kind) { return atomic_load(&t_count[kind]); }

/* ---- Temporary directories ------------------------------------------------------------------------ */

static char t_root[256]; /* a fresh directory for each test */

/* A path below t_root; good until the eighth call after this one. */
static inline const char *t_at(const char *format, ...) {
    static char paths[8][8192];
    static unsigned turn;
    char *path = paths[turn++ % 8];
    va_list args;
    int n = snprintf(path, sizeof paths[0], "%s/", t_root);
    va_start(args, format);
    vsnprintf(path + n, sizeof paths[0] - (size_t)n, format, args);
    va_end(args);
    return path;
}

/* Removes a file, or a directory and all that is in it. */
static inline void t_remove(const char *path) {
    if (unlink(path) == 0) return;
    DIR *dir = opendir(path);
    if (!dir) return;
    for (struct dirent *e; (e = readdir(dir)) != NULL;) {
        char *below;
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
        if (asprintf(&below, "%s/%s", path, e->d_name) < 0) abort();
        t_remove(below);
        free(below);
    }
    closedir(dir);
    rmdir(path);
}

static inline int t_setup(void **state) {
    const char *base = getenv("TMPDIR");
    (void)state;
    if (!base) base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp"; /* thousands of syncs */
    snprintf(t_root, sizeof t_root, "%s/ntee-test-XXXXXX", base);
    if (!mkdtemp(t_root)) return -1;
    nt_os_now = &nt_os_posix;
    return 0;
}

static inline int t_teardown(void **state) {
    (void)state;
    nt_os_now = &nt_os_posix;
    t_remove(t_root);
    return 0;
}

#define T_TEST(f) cmocka_unit_test_setup_teardown(f, t_setup, t_teardown)

/* Runs a group of tests; NT_FILTER picks some of them by a pattern with '*'. */
static inline int t_run(const char *name, const struct CMUnitTest *tests, size_t count) {
    cmocka_set_test_filter(getenv("NT_FILTER"));
    return _cmocka_run_group_tests(name, tests, count, NULL, NULL);
}

/* Runs it twice: with mappings and without. */
static inline int t_run_both(const struct CMUnitTest *tests, size_t count) {
    t_flags = 0;
    int failed = t_run("mapped", tests, count);
    t_flags = NTEE_NO_MMAP;
    return failed + t_run("not mapped", tests, count);
}

#define T_RUN(tests) t_run(#tests, tests, sizeof(tests) / sizeof *(tests))
#define T_RUN_BOTH(tests) t_run_both(tests, sizeof(tests) / sizeof *(tests))

/* ---- Files ---------------------------------------------------------------------------------------- */

/* The bytes of a file; the caller frees them. */
static inline uint8_t *t_read(const char *path, size_t *len) {
    struct stat about;
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &about), 0);
    uint8_t *bytes = malloc((size_t)about.st_size + 1);
    *len = (size_t)about.st_size;
    assert_int_equal(read(fd, bytes, *len), about.st_size);
    close(fd);
    return bytes;
}

static inline void t_write(const char *path, const void *bytes, size_t len) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    if (len) assert_int_equal(write(fd, bytes, len), (ssize_t)len);
    close(fd);
}

static inline size_t t_size_of(const char *path) {
    struct stat about;
    assert_int_equal(stat(path, &about), 0);
    return (size_t)about.st_size;
}

static inline int t_exists(const char *path) {
    struct stat about;
    return lstat(path, &about) == 0;
}

/* Copies a directory's regular files: what a crash of the process would leave. */
static inline void t_copy(const char *from, const char *to) {
    DIR *dir = opendir(from);
    assert_non_null(dir);
    t_remove(to);
    assert_int_equal(mkdir(to, 0700), 0);
    for (struct dirent *e; (e = readdir(dir)) != NULL;) {
        char a[8192], b[8192];
        size_t len;
        if (e->d_name[0] == '.') continue;
        snprintf(a, sizeof a, "%s/%s", from, e->d_name);
        snprintf(b, sizeof b, "%s/%s", to, e->d_name);
        uint8_t *bytes = t_read(a, &len);
        t_write(b, bytes, len);
        free(bytes);
    }
    closedir(dir);
}

/* A number that changes with any name, size, time or byte in a directory. */
static inline uint64_t t_fingerprint(const char *path) {
    uint64_t sum = 0;
    DIR *dir = opendir(path);
    assert_non_null(dir);
    for (struct dirent *e; (e = readdir(dir)) != NULL;) {
        char file[8192];
        struct stat about;
        if (!strcmp(e->d_name, "..")) continue;
        snprintf(file, sizeof file, "%s/%s", path, e->d_name);
        assert_int_equal(lstat(file, &about), 0);
        uint64_t one = nt_hash64(e->d_name, strlen(e->d_name), 0);
        one = nt_hash64(&about.st_mtim, sizeof about.st_mtim, one);
        if (S_ISREG(about.st_mode)) {
            size_t len;
            uint8_t *bytes = t_read(file, &len);
            one = nt_hash64(bytes, len, one);
            free(bytes);
        }
        sum += one;
    }
    closedir(dir);
    return sum;
}

/* The number of open descriptors. */
static inline int t_fds(void) {
    int count = 0;
    DIR *dir = opendir("/dev/fd");
    assert_non_null(dir);
    while (readdir(dir)) count++;
    closedir(dir);
    return count;
}

/* ---- Stores --------------------------------------------------------------------------------------- */

static inline ntee_status t_try_open(const char *path, uint32_t flags, ntee **db) {
    ntee_options options = {.size = sizeof options, .flags = flags | t_flags};
    return ntee_open(path, &options, db);
}

static inline ntee *t_open(const char *path, uint32_t flags) {
    ntee *db;
    ntee_status status = t_try_open(path, flags, &db);
    if (status != NTEE_OK) print_error("open %s: %s\n", path, ntee_last_error()->message);
    assert_int_equal(status, NTEE_OK);
    return db;
}

static inline void t_close(ntee *db) { assert_int_equal(ntee_close(db), NTEE_OK); }

static inline ntee_status t_put(ntee *db, const char *key, const char *value) {
    return ntee_put(db, key, strlen(key), value, strlen(value), NULL);
}

static inline ntee_status t_delete(ntee *db, const char *key) { return ntee_delete(db, key, strlen(key)); }

/* The value of a key as text, "(missing)" or "(corrupt)"; good until the next call. Anything else fails. */
static inline const char *t_get(ntee *db, const char *key) {
    static char value[1 << 16];
    size_t len;
    ntee_status status = ntee_get(db, key, strlen(key), value, sizeof value - 1, &len, NULL);
    if (status == NTEE_NOT_FOUND) return "(missing)";
    if (status == NTEE_CORRUPT) return "(corrupt)";
    if (status != NTEE_OK) print_error("get %s: %s\n", key, ntee_last_error()->message);
    assert_int_equal(status, NTEE_OK);
    value[len] = 0;
    return value;
}

static inline uint64_t t_records(ntee *db) {
    ntee_stats_t stats = {.size = sizeof stats};
    assert_int_equal(ntee_stats(db, &stats), NTEE_OK);
    return stats.records;
}

static inline uint64_t t_log_bytes(ntee *db) {
    ntee_stats_t stats = {.size = sizeof stats};
    assert_int_equal(ntee_stats(db, &stats), NTEE_OK);
    return stats.main_bytes;
}

#endif
