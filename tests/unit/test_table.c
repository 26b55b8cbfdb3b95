/* Forked children: they may not use their parent's handles, and cannot free its locks. Cases B03 to B05. */
#include "unit/store.h"

#include <signal.h>

#define LOG "s/" LOG_NAME

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UNDER_TSAN 1
#endif
#elif defined(__SANITIZE_THREAD__)
#define UNDER_TSAN 1
#endif

#ifdef UNDER_TSAN
enum { NO_THREAD = 1 }; /* a child that has a thread of its own is not what ThreadSanitizer expects */
#else
enum { NO_THREAD = 0 };
#endif

/* The exit status of a child. */
static int status_of(pid_t child) {
    int how;
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how));
    return WEXITSTATUS(how);
}

/* Calls everything on an inherited handle; the number of the first call that did not answer NTEE_FORKED, or 0. */
static int try_everything(ntee *db, ntee_scan *scan) {
    char buf[64];
    _Alignas(8) char page_room[4096];
    size_t len;
    uint64_t count;
    ntee_stats_t stats = {.size = sizeof stats};
    ntee_scan *other;
    ntee_page page;
    ntee_reply reply;
    ntee_batch *batch = ntee_batch_new();
    ntee_batch_put(batch, "k", 1, "v", 1, NULL);
    if (ntee_put(db, "k", 1, "v", 1, NULL) != NTEE_FORKED) return 1;
    if (ntee_put_if_absent(db, "j", 1, "v", 1, NULL) != NTEE_FORKED) return 2;
    if (ntee_delete(db, "k", 1) != NTEE_FORKED) return 3;
    if (ntee_get(db, "k", 1, buf, sizeof buf, &len, NULL) != NTEE_FORKED) return 4;
    if (ntee_has(db, "k", 1) != NTEE_FORKED) return 5;
    if (ntee_write(db, batch) != NTEE_FORKED) return 6;
    if (ntee_count(db, NULL, &count) != NTEE_FORKED) return 7;
    if (ntee_scan_open(db, NULL, &other) != NTEE_FORKED) return 8;
    if (ntee_scan_page(scan, page_room, sizeof page_room, &page) != NTEE_FORKED) return 9;
    ntee_scan_close(scan);
    if (ntee_stats(db, &stats) != NTEE_FORKED) return 10;
    if (ntee_sync(db) != NTEE_FORKED) return 11;
    for (uint32_t op = 1; op <= 10; op++) {
        if (ntee_run(db, op, 0, "k", 1, buf, sizeof buf, &reply) != NTEE_FORKED) return 12;
        if (reply.error.status != NTEE_FORKED) return 13;
    }
    if (ntee_last_error()->status != NTEE_FORKED) return 14;
    if (ntee_drop(db) != NTEE_FORKED) return 15;
    if (ntee_close(db) != NTEE_FORKED) return 16;
    return 0;
}

static int open_in_child(void) {
    pid_t child = fork();
    if (child == 0) {
        ntee *db;
        _exit(t_try_open(t_at("s"), 0, &db));
    }
    return status_of(child);
}

static void a_child_cannot_use_its_parents_handle(void **state) {
    (void)state;
    ntee *db = t_open(t_at("s"), 0);
    ntee_scan *scan;
    assert_int_equal(t_put(db, "k", "parent"), NTEE_OK);
    assert_int_equal(ntee_scan_open(db, NULL, &scan), NTEE_OK);
    assert_int_equal(ntee_sync(db), NTEE_OK);
    size_t size = t_log_bytes(db), len;
    uint8_t *before = t_read(t_at(LOG), &len);
    pid_t child = fork();
    if (child == 0) _exit(try_everything(db, scan));
    assert_int_equal(status_of(child), 0);
    uint8_t *after = t_read(t_at(LOG), &len);
    assert_memory_equal(after, before, size);
    free(before);
    free(after);
    assert_int_equal(open_in_child(), NTEE_LOCKED);
    assert_string_equal(t_get(db, "k"), "parent");
    assert_int_equal(t_put(db, "k", "again"), NTEE_OK);
    ntee_scan_close(scan);
    t_close(db);
    db = t_open(t_at("s"), 0);
    assert_string_equal(t_get(db, "k"), "again");
    t_close(db);
}

static void a_child_that_exits_leaves_its_parents_lock_alone(void **state) {
    (void)state;
    ntee *db = t_open(t_at("s"), 0);
    assert_int_equal(t_put(db, "k", "v"), NTEE_OK);
    for (int how = 0; how < 3; how++) {
        pid_t child = fork();
        if (child == 0) {
            if (how == 1) ntee_close(db);
            if (how == 2) raise(SIGKILL);
            _exit(0);
        }
        int ended;
        assert_int_equal(waitpid(child, &ended, 0), child);
        assert_int_equal(open_in_child(), NTEE_LOCKED);
        ntee *other;
        assert_int_equal(t_try_open(t_at("s"), 0, &other), NTEE_LOCKED);
        assert_int_equal(t_put(db, "k", "w"), NTEE_OK);
    }
    t_close(db);
}

static void a_child_that_lives_on_does_not_hold_its_parents_lock(void **state) {
    (void)state;
    int gate[2];
    for (int execs = 0; execs < 2; execs++) {
        ntee *db = t_open(t_at("s"), 0);
        assert_int_equal(pipe(gate), 0);
        pid_t child = fork();
        if (child == 0) {
            char c;
            close(gate[1]);
            if (execs && dup2(gate[0], 0) == 0) execlp("cat", "cat", (char *)NULL);
            while (read(gate[0], &c, 1) > 0) {
            }
            _exit(0);
        }
        close(gate[0]);
        t_close(db);
        db = t_open(t_at("s"), 0); /* the child is still there */
        assert_int_equal(kill(child, 0), 0);
        t_close(db);
        close(gate[1]);
        status_of(child);
    }
}

/* The holder is killed while a child of its own lives on. */
static void a_lock_dies_with_its_holder_whatever_children_it_has(void **state) {
    (void)state;
    int gate[2], ready[2], how;
    char c;
    assert_int_equal(pipe(gate), 0);
    assert_int_equal(pipe(ready), 0);
    pid_t holder = fork();
    if (holder == 0) {
        ntee *db;
        close(gate[1]);
        if (t_try_open(t_at("s"), 0, &db) != NTEE_OK || t_put(db, "k", "v") != NTEE_OK) _exit(1);
        if (fork() == 0) {
            if (write(ready[1], "r", 1) != 1) _exit(1);
            while (read(gate[0], &c, 1) > 0) {
            }
            _exit(0);
        }
        for (;;) t_sleep(1000);
    }
    close(gate[0]);
    assert_int_equal(read(ready[0], &c, 1), 1); /* the child runs */
    ntee *db;
    assert_int_equal(t_try_open(t_at("s"), 0, &db), NTEE_LOCKED);
    assert_int_equal(kill(holder, SIGKILL), 0);
    assert_int_equal(waitpid(holder, &how, 0), holder);
    db = t_open(t_at("s"), 0);
    assert_string_equal(t_get(db, "k"), "v");
    t_close(db);
    close(gate[1]);
    close(ready[0]);
    close(ready[1]);
}

static void a_child_may_open_stores_of_its_own(void **state) {
    (void)state;
    t_use_table();
    ntee *db = t_open(t_at("s"), 0);
    assert_int_equal(t_put(db, "k", "v"), NTEE_OK);
    pid_t child = fork();
    if (child == 0) {
        ntee *own;
        atomic_store(&t_no_thread, NO_THREAD);
        if (t_try_open(t_at("t"), 0, &own) != NTEE_OK) _exit(1);
        if (t_put(own, "k", "child") != NTEE_OK) _exit(2);
        if (t_try_open(t_at("s"), 0, &db) != NTEE_LOCKED) _exit(3);
        if (ntee_close(own) != NTEE_OK) _exit(4);
        _exit(0);
    }
    assert_int_equal(status_of(child), 0);
    t_close(db);
    db = t_open(t_at("t"), 0);
    assert_string_equal(t_get(db, "k"), "child");
    t_close(db);
}

static void many_handles_open_and_close_in_any_order(void **state) {
    (void)state;
    enum { N = 12 };
    ntee *dbs[N];
    nt_random r = nt_random_start("many handles");
    for (int i = 0; i < N; i++) dbs[i] = t_open(t_at("s%d", i), 0);
    for (int round = 0; round < 100; round++) {
        uint64_t i = nt_random_below(&r, N);
        if (dbs[i]) {
            t_close(dbs[i]);
            dbs[i] = NULL;
        } else {
            dbs[i] = t_open(t_at("s%d", (int)i), 0);
        }
    }
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < N; i++)
            if (dbs[i] && t_put(dbs[i], "k", "v") != NTEE_FORKED) _exit(1);
        _exit(0);
    }
    assert_int_equal(status_of(child), 0);
    for (int i = 0; i < N; i++)
        if (dbs[i]) t_close(dbs[i]);
}

/* Forks while other threads open and close: no child may keep a lock alive, wherever the fork happens. */
static atomic_int go_on;

static void *open_and_close(void *arg) {
    char path[300];
    snprintf(path, sizeof path, "%s/t%d", t_root, (int)(intptr_t)arg);
    while (atomic_load(&go_on)) {
        ntee *db;
        ntee_status status = t_try_open(path, 0, &db);
        if (status != NTEE_OK) return (void *)"open";
        if (t_put(db, "k", "v") != NTEE_OK) return (void *)"put";
        if (ntee_close(db) != NTEE_OK) return (void *)"close";
    }
    return NULL;
}

static void forks_beside_openings_leak_no_lock(void **state) {
    (void)state;
    pthread_t threads[2];
    pid_t children[60];
    int gate[2];
    assert_int_equal(pipe(gate), 0);
    atomic_store(&go_on, 1);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, open_and_close, (void *)(intptr_t)i), 0);
    for (int i = 0; i < 60; i++) {
        children[i] = fork();
        if (children[i] == 0) { /* lives until the end */
            char c;
            close(gate[1]);
            while (read(gate[0], &c, 1) > 0) {
            }
            _exit(0);
        }
        t_sleep(2);
    }
    atomic_store(&go_on, 0);
    for (int i = 0; i < 2; i++) {
        void *wrong;
        assert_int_equal(pthread_join(threads[i], &wrong), 0);
        if (wrong) print_error("%s: %s\n", (const char *)wrong, ntee_strerror(NTEE_LOCKED));
        assert_null(wrong);
    }
    close(gate[1]);
    close(gate[0]);
    for (int i = 0; i < 60; i++) status_of(children[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T_TEST(a_child_cannot_use_its_parents_handle),
        T_TEST(a_child_that_exits_leaves_its_parents_lock_alone),
        T_TEST(a_child_that_lives_on_does_not_hold_its_parents_lock),
        T_TEST(a_lock_dies_with_its_holder_whatever_children_it_has),
        T_TEST(a_child_may_open_stores_of_its_own),
        T_TEST(many_handles_open_and_close_in_any_order),
        T_TEST(forks_beside_openings_leak_no_lock),
    };
    return T_RUN_BOTH(tests);
}
