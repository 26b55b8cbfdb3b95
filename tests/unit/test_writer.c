/* Whose turn it is, who waits for which sync, and what a failed sync does. Invariants W1 to W3, cases B28, P11. */
#include "unit/store.h"

#define THREADS 8
#define EACH 40

typedef struct worker {
    ntee *db;
    int id;
    atomic_int acked; /* writes that returned */
    ntee_status failed;
    int os_errno;
} worker;

static void *write_many(void *arg) {
    worker *w = arg;
    for (int i = 0; i < EACH; i++) {
        int key[2] = {w->id, i}, back[2];
        size_t len;
        w->failed = ntee_put(w->db, key, sizeof key, key, sizeof key, NULL);
        w->os_errno = w->failed ? ntee_last_error()->os_errno : 0;
        if (w->failed) return NULL;
        atomic_fetch_add(&w->acked, 1);
        if (ntee_get(w->db, key, sizeof key, back, sizeof back, &len, NULL) != NTEE_OK) return (void *)"not visible";
    }
    return NULL;
}

static void run_workers(worker *workers, ntee *db) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        memset(&workers[i], 0, sizeof workers[i]);
        workers[i].db = db;
        workers[i].id = i;
        assert_int_equal(pthread_create(&threads[i], NULL, write_many, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        if (wrong) print_error("%s\n", (const char *)wrong);
        assert_null(wrong);
    }
}

static void waiting_writers_share_syncs(void **state) {
    (void)state;
    static worker workers[THREADS];
    t_use_table();
    ntee *db = t_open(t_at("s"), NTEE_SYNC_EVERY_WRITE);
    assert_int_equal(t_put(db, "first", "v"), NTEE_OK);
    atomic_store(&t_sync_ms, 2);
    long before = t_calls(T_SYNC);
    run_workers(workers, db);
    long syncs = t_calls(T_SYNC) - before;
    for (int i = 0; i < THREADS; i++) assert_int_equal(workers[i].failed, NTEE_OK);
    print_message("%d writes, %ld syncs\n", THREADS * EACH, syncs);
    assert_true(syncs < THREADS * EACH / 2);
    assert_int_equal(t_records(db), THREADS * EACH + 1);
    atomic_store(&t_sync_ms, 0);
    t_close(db);
    db = t_open(t_at("s"), 0);
    assert_int_equal(t_records(db), THREADS * EACH + 1);
    t_close(db);
}

static void a_lone_writer_syncs_once_a_write_and_not_for_nothing(void **state) {
    (void)state;
    t_use_table();
    atomic_store(&t_no_thread, 1);
    ntee *db = t_open(t_at("s"), NTEE_SYNC_EVERY_WRITE);
    for (int i = 0; i < 5; i++) {
        long before = t_calls(T_SYNC);
        assert_int_equal(ntee_put(db, &i, sizeof i, "v", 1, NULL), NTEE_OK);
        assert_int_equal(t_calls(T_SYNC), before + 1);
        assert_int_equal(ntee_sync(db), NTEE_OK);
        assert_int_equal(t_delete(db, "missing"), NTEE_NOT_FOUND);
        assert_int_equal(ntee_put_if_absent(db, &i, sizeof i, "w", 1, NULL), NTEE_EXISTS);
        assert_int_equal(t_calls(T_SYNC), before + 1);
    }
    t_close(db);
    db = t_open(t_at("s"), 0);
    long before = t_calls(T_SYNC);
    for (int i = 5; i < 50; i++) assert_int_equal(ntee_put(db, &i, sizeof i, "v", 1, NULL), NTEE_OK);
    assert_int_equal(t_calls(T_SYNC), before);
    assert_int_equal(ntee_sync(db), NTEE_OK);
    assert_int_equal(t_calls(T_SYNC), before + 1);
    assert_int_equal(ntee_sync(db), NTEE_OK);
    assert_int_equal(t_calls(T_SYNC), before + 1);
    t_close(db);
}

/* Whoever looks while the sync is under way must not see the write. */
static ntee *seen_db;
static atomic_int seen_early, looks;

static int look_and_sync(int fd) {
    if (seen_db) {
        atomic_fetch_add(&looks, 1);
        if (ntee_has(seen_db, "new", 3) == NTEE_OK) atomic_store(&seen_early, 1);
    }
    return t_sync_data(fd);
}

static void a_durable_write_shows_only_after_its_sync(void **state) {
    (void)state;
    t_use_table();
    ntee *db = t_open(t_at("s"), NTEE_SYNC_EVERY_WRITE);
    assert_int_equal(t_put(db, "old", "v"), NTEE_OK);
    t_os.sync_data = look_and_sync;
    seen_db = db;
    assert_int_equal(t_put(db, "new", "v"), NTEE_OK);
    seen_db = NULL;
    assert_true(atomic_load(&looks) > 0);
    assert_int_equal(atomic_load(&seen_early), 0);
    assert_string_equal(t_get(db, "new"), "v");
    atomic_store(&looks, 0);
    t_close(db);
}

/* Everything that writes or syncs is refused with the first errno; reads go on. */
static void check_failed(ntee *db, int error) {
    ntee_batch *batch = ntee_batch_new();
    ntee_batch_put(batch, "b", 1, "v", 1, NULL);
    uint64_t size = t_log_bytes(db);
    long syncs = t_calls(T_SYNC);
    ntee_status status = error == ENOSPC ? NTEE_FULL : NTEE_IO;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(t_put(db, "later", "v"), status);
        assert_int_equal(ntee_last_error()->os_errno, error);
        assert_int_equal(t_delete(db, "old"), status);
        assert_int_equal(ntee_put_if_absent(db, "x", 1, "v", 1, NULL), status);
        assert_int_equal(ntee_write(db, batch), status);
        assert_int_equal(ntee_last_error()->os_errno, error);
        assert_int_equal(ntee_sync(db), status);
        assert_int_equal(ntee_last_error()->os_errno, error);
        assert_string_equal(t_get(db, "old"), "v");
        assert_string_equal(t_get(db, "later"), "(missing)");
    }
    t_sleep(30);
    assert_int_equal(t_log_bytes(db), size);
    assert_int_equal(t_calls(T_SYNC), syncs);
    ntee_batch_free(batch);
}

static void a_failed_sync_ends_the_writing_of_a_durable_store(void **state) {
    (void)state;
    static const int errnos[] = {EIO, ENOSPC, EDQUOT};
    t_use_table();
    for (int i = 0; i < 2; i++) {
        t_remove(t_at("s"));
        ntee *db = t_open(t_at("s"), NTEE_SYNC_EVERY_WRITE);
        assert_int_equal(t_put(db, "old", "v"), NTEE_OK);
        t_fail(T_SYNC, 1, errnos[i], 0);
        assert_int_equal(t_put(db, "lost", "v"), i ? NTEE_FULL : NTEE_IO);
        assert_int_equal(ntee_last_error()->os_errno, errnos[i]);
        t_heal();
        assert_string_equal(t_get(db, "lost"), "(missing)");
        check_failed(db, errnos[i]);
        assert_int_not_equal(ntee_close(db), NTEE_OK);
        db = t_open(t_at("s"), 0);
        assert_string_equal(t_get(db, "old"), "v");
        assert_string_equal(t_get(db, "later"), "(missing)");
        assert_int_equal(t_put(db, "later", "works"), NTEE_OK);
        t_close(db);
        db = t_open(t_at("s"), 0);
        assert_string_equal(t_get(db, "later"), "works");
        t_close(db);
    }
}

static void a_failed_sync_ends_the_writing_of_a_fast_store(void **state) {
    (void)state;
    t_use_table();
    atomic_store(&t_no_thread, 1);
    ntee *db = t_open(t_at("s"), 0);
    assert_int_equal(t_put(db, "old", "v"), NTEE_OK);
    t_fail(T_SYNC, 1, EIO, 0);
    assert_int_equal(ntee_sync(db), NTEE_IO);
    t_heal();
    check_failed(db, EIO);
    assert_int_equal(ntee_close(db), NTEE_IO);
    db = t_open(t_at("s"), 0);
    assert_string_equal(t_get(db, "old"), "v");
    t_close(db);
}

static void writers_that_share_a_failing_sync_all_hear_of_it(void **state) {
    (void)state;
    static worker workers[THREADS];
    t_use_table();
    for (int round = 0; round < 12; round++) {
        t_remove(t_at("s"));
        ntee *db = t_open(t_at("s"), NTEE_SYNC_EVERY_WRITE);
        assert_int_equal(t_put(db, "old", "v"), NTEE_OK);
        atomic_store(&t_sync_ms, 1);
        t_fail(T_SYNC, 3 + round, EIO, 0);
        run_workers(workers, db);
        atomic_store(&t_sync_ms, 0);
        t_heal();
        uint64_t acked = 1;
        for (int i = 0; i < THREADS; i++) {
            acked += (uint64_t)atomic_load(&workers[i].acked);
            assert_int_equal(workers[i].failed, NTEE_IO);
            assert_int_equal(workers[i].os_errno, EIO);
        }
        assert_int_equal(t_records(db), acked);
        check_failed(db, EIO);
        assert_int_equal(ntee_close(db), NTEE_IO);
        db = t_open(t_at("s"), 0);
        for (int i = 0; i < THREADS; i++)
            for (int j = 0; j < atomic_load(&workers[i].acked); j++) {
                int key[2] = {i, j};
                assert_int_equal(ntee_has(db, key, sizeof key), NTEE_OK);
            }
        t_close(db);
    }
}

static void a_failed_append_leaves_no_trace(void **state) {
    (void)state;
    static char value[700000];
    static const int errnos[] = {ENOSPC, EDQUOT, EFBIG, EIO};
    t_use_table();
    for (uint32_t flags = 0; flags <= NTEE_NO_MMAP; flags += NTEE_NO_MMAP) {
        t_remove(t_at("s"));
        ntee *db = t_open(t_at("s"), flags);
        assert_int_equal(t_put(db, "k", "v"), NTEE_OK);
        for (int i = 0; i < 4; i++) {
            uint64_t size = t_log_bytes(db), records = t_records(db);
            t_fail(T_ALLOCATE, 1, errnos[i], 1);
            ntee_status status = NTEE_OK;
            int n = 0;
            for (; n < 60 && status == NTEE_OK; n++) {
                if (status == NTEE_OK) size = t_log_bytes(db);
                status = ntee_put(db, &n, sizeof n, value, sizeof value, NULL);
            }
            assert_int_equal(status, i == 3 ? NTEE_IO : NTEE_FULL);
            assert_int_equal(ntee_last_error()->os_errno, errnos[i]);
            assert_int_equal(t_log_bytes(db), size);
            n--;
            assert_int_equal(t_records(db), records > (uint64_t)n + 1 ? records : (uint64_t)n + 1);
            assert_string_equal(t_get(db, "k"), "v");
            t_heal();
            assert_int_equal(ntee_put(db, &n, sizeof n, value, sizeof value, NULL), NTEE_OK);
        }
        uint64_t records = t_records(db);
        t_close(db);
        db = t_open(t_at("s"), 0);
        assert_int_equal(t_records(db), records);
        t_close(db);
    }
}

static void short_memory_refuses_a_write_and_changes_nothing(void **state) {
    (void)state;
    t_use_table();
    atomic_store(&t_no_thread, 1);
    ntee *db = t_open(t_at("s"), 0);
    static char value[3000];
    for (int i = 0; i < 3000; i++) assert_int_equal(ntee_put(db, &i, sizeof i, value, 100, NULL), NTEE_OK);
    for (int sticky = 0; sticky < 2; sticky++) {
        for (long nth = 1;; nth++) {
            int key = 10000;
            uint64_t size = t_log_bytes(db), records = t_records(db);
            long memory = atomic_load(&t_memory);
            t_fail(T_ALLOC, nth, ENOMEM, sticky);
            ntee_status status = ntee_put(db, &key, sizeof key, value, sizeof value, NULL);
            int fired = atomic_load(&t_fail_at[T_ALLOC]) <= (sticky ? 1 : 0);
            if (!sticky && atomic_load(&t_fail_at[T_ALLOC]) > 0) fired = 0;
            t_heal();
            if (status == NTEE_OK) {
                assert_int_equal(ntee_delete(db, &key, sizeof key), NTEE_OK);
                if (!fired || sticky) break;
                continue;
            }
            assert_int_equal(status, NTEE_NOMEM);
            assert_int_equal(t_log_bytes(db), size);
            assert_int_equal(t_records(db), records);
            assert_int_equal(atomic_load(&t_memory), memory);
        }
    }
    t_close(db);
    db = t_open(t_at("s"), 0);
    assert_int_equal(t_records(db), 3000);
    t_close(db);
}

/* Deletes and conditional puts from many threads: one winner for each. */
static atomic_int wins;

static void *race(void *arg) {
    ntee *db = arg;
    for (int i = 0; i < 200; i++) {
        if (ntee_put_if_absent(db, &i, sizeof i, "v", 1, NULL) == NTEE_OK) atomic_fetch_add(&wins, 1);
        if (ntee_delete(db, &i, sizeof i) == NTEE_OK) atomic_fetch_sub(&wins, 1);
    }
    return NULL;
}

static void conditional_writes_have_one_winner(void **state) {
    (void)state;
    for (uint32_t tier = 0; tier <= NTEE_SYNC_EVERY_WRITE; tier += NTEE_SYNC_EVERY_WRITE) {
        pthread_t threads[4];
        t_remove(t_at("s"));
        ntee *db = t_open(t_at("s"), tier);
        atomic_store(&wins, 0);
        for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, race, db), 0);
        for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
        assert_int_equal(atomic_load(&wins), (int)t_records(db));
        t_close(db);
        db = t_open(t_at("s"), 0);
        assert_int_equal(atomic_load(&wins), (int)t_records(db));
        t_close(db);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T_TEST(waiting_writers_share_syncs),
        T_TEST(a_lone_writer_syncs_once_a_write_and_not_for_nothing),
        T_TEST(a_durable_write_shows_only_after_its_sync),
        T_TEST(a_failed_sync_ends_the_writing_of_a_durable_store),
        T_TEST(a_failed_sync_ends_the_writing_of_a_fast_store),
        T_TEST(writers_that_share_a_failing_sync_all_hear_of_it),
        T_TEST(a_failed_append_leaves_no_trace),
        T_TEST(short_memory_refuses_a_write_and_changes_nothing),
        T_TEST(conditional_writes_have_one_winner),
    };
    return T_RUN_BOTH(tests);
}
