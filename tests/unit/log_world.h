/*
 * log_world: what the tests of the log share. A world is a directory, real or fake, and a way to use a log in
 * it; the model holds the bytes that the log must hold, and is compared after everything that happens.
 */
#ifndef LOG_WORLD_H
#define LOG_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/os.h"
#include "fake/fake_os.h"
#include "store/log.h"

enum { HEADER = 64, WINDOW = NT_LOG_WINDOW, MODEL_MAX = 64 << 20 };

/* A directory, and how a log in it is to be used. */
typedef struct world {
    fake_fs *fs; /* NULL: the real one */
    char path[64];
    int dir;
    int flags;
} world;

enum { NO_MAPS = NT_LOG_NO_MAP_WRITE | NT_LOG_NO_MAP_READ };

static const struct { int fake, flags, no_allocate; } WAYS[] = {
    {0, 0, 0}, {0, NT_LOG_NO_MAP_WRITE, 0}, {0, NO_MAPS, 0},
    {1, 0, 0}, {1, NT_LOG_NO_MAP_WRITE, 0}, {1, NO_MAPS, 0}, {1, 0, 1}};

enum { WAY_COUNT = sizeof WAYS / sizeof WAYS[0], FIRST_FAKE = 3 };

static uint64_t seed;
static uint8_t *model; /* what the log must hold */
static uint64_t model_len;

static inline uint64_t next_random(void) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return seed >> 24;
}

static inline world enter(int way) {
    world w = {.flags = WAYS[way].flags};
    if (WAYS[way].fake) {
        w.fs = fake_new(seed);
        fake_set(w.fs)->no_allocate = WAYS[way].no_allocate;
        fake_use(w.fs);
        strcpy(w.path, "/d");
        assert_int_equal(NT_OS->make_dir(w.path), 0);
    } else {
        strcpy(w.path, "/tmp/ntee-log-XXXXXX");
        assert_non_null(mkdtemp(w.path));
    }
    assert_int_equal(NT_OS->open_dir(w.path, &w.dir), 0);
    model_len = 0;
    return w;
}

static inline void leave(world *w) {
    NT_OS->unlink_at(w->dir, "log");
    NT_OS->close(w->dir);
    NT_OS->remove_dir(w->path);
    fake_use(NULL);
    if (w->fs != NULL) fake_free(w->fs);
}

/* Makes the fake world's directory durable. */
static inline void sync_root(void) {
    int root;
    assert_int_equal(NT_OS->open_dir("/", &root), 0);
    assert_int_equal(NT_OS->sync_dir(root), 0);
    NT_OS->close(root);
}

/* ---- Acting on log and model at once ------------------------------------------------------------- */

/* Fresh bytes, no word of them zero; of a long frame only the beginning and a word per page are fresh. */
static inline void extend_model(size_t len) {
    assert_true(model_len + len <= MODEL_MAX);
    for (size_t i = 0; i < len; i += i < 4096 ? 8 : 4096) {
        nt_store64(model + model_len + i, next_random() | 1);
    }
}

static inline ntee_status create(const world *w, ntee_error *err) {
    extend_model(HEADER);
    ntee_status status = nt_log_create(w->dir, "log", model, HEADER, err);
    if (status == NTEE_OK) model_len = HEADER;
    return status;
}

static inline nt_log *start(const world *w) {
    ntee_error err;
    nt_log *log;
    assert_int_equal(create(w, &err), NTEE_OK);
    assert_int_equal(nt_log_open(&log, w->dir, "log", w->flags, &err), NTEE_OK);
    assert_int_equal(nt_log_tail(log), HEADER);
    return log;
}

static inline ntee_status try_append(nt_log *log, size_t len, ntee_error *err) {
    uint64_t tail = nt_log_tail(log);
    extend_model(len);
    ntee_status status = nt_log_append(log, model + model_len, len, err);
    assert_int_equal(tail, model_len);
    if (status == NTEE_OK) model_len += len;
    assert_int_equal(nt_log_tail(log), model_len);
    return status;
}

static inline void append(nt_log *log, size_t len) {
    ntee_error err = {.message = ""};
    if (try_append(log, len, &err) != NTEE_OK) fail_msg("append of %zu: %s", len, err.message);
}

static inline void check(const nt_log *log) {
    ntee_error err;
    uint8_t *bytes = malloc(model_len + 1);
    assert_int_equal(nt_log_tail(log), model_len);
    assert_int_equal(nt_log_read(log, 0, bytes, model_len, &err), NTEE_OK);
    assert_memory_equal(bytes, model, model_len);
    const uint8_t *view = nt_log_view(log, 0, model_len);
    if (view != NULL) assert_memory_equal(view, model, model_len);
    for (int i = 0; i < 20; i++) {
        uint64_t at = next_random() % model_len;
        size_t len = (size_t)(next_random() % nt_min(model_len - at, 200000));
        const uint8_t *part = nt_log_view(log, at, len);
        if (part != NULL) assert_memory_equal(part, model + at, len);
        assert_int_equal(nt_log_read(log, at, bytes, len, &err), NTEE_OK);
        assert_memory_equal(bytes, model + at, len);
    }
    assert_int_equal(nt_log_read(log, model_len, bytes, 1, &err), NTEE_CORRUPT);
    assert_int_equal(nt_log_read(log, UINT64_MAX, bytes, 1, &err), NTEE_CORRUPT);
    free(bytes);
}

static inline void close_log(nt_log *log) {
    ntee_error err = {.message = ""};
    if (nt_log_close(log, &err) != NTEE_OK) fail_msg("close: %s", err.message);
}

static inline nt_log *reopen(const world *w, nt_log *log) {
    ntee_error err;
    close_log(log);
    assert_int_equal(nt_log_open(&log, w->dir, "log", w->flags, &err), NTEE_OK);
    check(log); /* the tail is the end of the file: what was allocated ahead is gone */
    return log;
}

/* What lies at the tail, in the file: 0 where it ends there. */
static inline uint64_t word_at_tail(const world *w, const nt_log *log) {
    int fd;
    uint64_t word = 0, size = 0;
    assert_int_equal(NT_OS->open_at(w->dir, "log", 0, &fd), 0);
    assert_int_equal(NT_OS->size(fd, &size), 0);
    if (size >= nt_log_tail(log) + 8) assert_int_equal(nt_os_read(fd, &word, 8, nt_log_tail(log)), 0);
    NT_OS->close(fd);
    return word;
}

static inline int begin_all(void **state) {
    const char *given = getenv("NT_SEED");
    (void)state;
    seed = given != NULL ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
    printf("NT_SEED=%llu\n", (unsigned long long)seed);
    model = malloc(MODEL_MAX + 64);
    if (model == NULL) return -1;
    for (size_t i = 0; i < MODEL_MAX; i += 8) nt_store64(model + i, next_random() | 1);
    return 0;
}

static inline int end_all(void **state) {
    (void)state;
    free(model);
    return 0;
}

#endif
