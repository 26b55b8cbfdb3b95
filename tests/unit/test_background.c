/* The thread that syncs: in time, with a mark when it goes idle, and then not at all. */
#include "unit/store.h"

#include "api/background.h"
#include "api/handle.h"
#include "engine/open.h"

#define LOG "s/" LOG_NAME

static ntee *open_every(uint32_t ms) {
    ntee_options o = {.size = sizeof o, .sync_interval_ms = ms, .flags = t_flags};
    ntee *db;
    assert_int_equal(ntee_open(t_at("s"), &o, &db), NTEE_OK);
    return db;
}

static long all_calls(void) {
    long sum = 0;
    for (int i = 0; i < T_KINDS; i++) sum += t_calls(i);
    return sum;
}

/* Waits until `kind` was called more than `before` times; the milliseconds it took, or -1 after 5 s. */
static int64_t wait_for(int kind, long before) {
    int64_t begin = t_now();
    while (t_calls(kind) <= before) {
        if (t_now() - begin > 5000) return -1;
        t_sleep(1);
    }
    return t_now() - begin;
}

static void no_thread_runs_before_the_first_write(void **state) {
    (void)state;
    t_use_table();
    ntee *db = t_open(t_at("s"), 0);
    assert_string_equal(t_get(db, "k"), "(missing)");
    assert_int_equal(t_delete(db, "k"), NTEE_NOT_FOUND);
    t_close(db);
    t_close(t_open(t_at("s"), NTEE_READ_ONLY));
    long threads = t_calls(T_THREAD);
    db = t_open(t_at("s"), 0);
    for (int i = 0; i < 10; i++) assert_int_equal(t_put(db, "k", "v"), NTEE_OK);
    assert_true(t_calls(T_THREAD) <= threads + 1);
    t_close(db);
}

static void a_write_is_synced_within_the_interval(void **state) {
    (void)state;
    int64_t worst = 0;
    t_use_table();
    ntee *db = open_every(50);
    for (int i = 0; i < 10; i++) {
        long before = t_calls(T_SYNC);
        assert_int_equal(ntee_put(db, &i, sizeof i, "v", 1, NULL), NTEE_OK);
        int64_t took = wait_for(T_SYNC, before);
        assert_true(took >= 0);
        if (took > worst) worst = took;
        t_sleep(i % 3 * 40);
    }
    print_message("worst: %" PRId64 " ms of 50\n", worst);
    assert_true(worst < 50 + 400); /* a busy machine */
    t_close(db);
}

static void a_busy_store_is_synced_about_once_an_interval(void **state) {
    (void)state;
    t_use_table();
    ntee *db = open_every(40);
    assert_int_equal(t_put(db, "k", "v"), NTEE_OK);
    long before = t_calls(T_SYNC);
    int64_t begin = t_now(), took;
    for (int i = 0; (took = t_now() - begin) < 400; i++) assert_int_equal(ntee_put(db, &i, 4, "v", 1, NULL), NTEE_OK);
    long syncs = t_calls(T_SYNC) - before;
    print_message("%ld syncs in %" PRId64 " ms\n", syncs, took);
    assert_true(syncs >= 2 && syncs <= took / 40 + 2);
    t_close(db);
}

static void an_idle_store_is_marked_and_then_left_alone(void **state) {
    (void)state;
    t_use_table();
    ntee *db = open_every(10);
    assert_int_equal(t_put(db, "k", "v"), NTEE_OK);
    uint64_t written = t_log_bytes(db);
    int64_t begin = t_now();
    while (t_log_bytes(db) == written && t_now() - begin < 5000) t_sleep(1);
    assert_int_equal(t_log_bytes(db), written + NT_FRAME_OPEN_SIZE + NT_FRAME_MARK_SIZE);
    t_sleep(50);
    long calls = all_calls();
    uint64_t size = t_log_bytes(db);
    t_sleep(200);
    assert_int_equal(all_calls(), calls);
    assert_int_equal(t_log_bytes(db), size);
    size_t len; /* damage below the mark is known as such after a crash */
    t_copy(t_at("s"), t_at("t"));
    uint8_t *bytes = t_read(t_at("t/" LOG_NAME), &len);
    bytes[written - 20] ^= 1;
    t_write(t_at("t/" LOG_NAME), bytes, len);
    free(bytes);
    ntee *copy = t_open(t_at("t"), 0);
    assert_true(copy->db.recovery.damage.len || !strcmp(t_get(copy, "k"), "(corrupt)"));
    t_close(copy);
    long syncs = t_calls(T_SYNC); /* and it wakes up again */
    assert_int_equal(t_put(db, "k", "w"), NTEE_OK);
    assert_true(wait_for(T_SYNC, syncs) >= 0);
    t_close(db);
}

static void a_failing_background_sync_is_told_to_the_next_write(void **state) {
    (void)state;
    t_use_table();
    ntee *db = open_every(10);
    t_fail(T_SYNC, 1, EIO, 0);
    long before = t_calls(T_SYNC);
    assert_int_equal(t_put(db, "k", "v"), NTEE_OK);
    assert_true(wait_for(T_SYNC, before) >= 0);
    t_sleep(20);
    t_heal();
    assert_int_equal(t_put(db, "j", "v"), NTEE_IO);
    assert_int_equal(ntee_last_error()->os_errno, EIO);
    assert_int_equal(ntee_sync(db), NTEE_IO);
    assert_string_equal(t_get(db, "k"), "v");
    t_sleep(60);
    assert_int_equal(t_calls(T_SYNC), before + 1); /* never tried again */
    assert_int_equal(ntee_close(db), NTEE_IO);
    db = t_open(t_at("s"), 0);
    assert_int_equal(t_put(db, "j", "v"), NTEE_OK);
    t_close(db);
}

static void a_store_without_its_thread_refuses_to_write(void **state) {
    (void)state;
    t_use_table();
    ntee *db = t_open(t_at("s"), 0);
    t_fail(T_THREAD, 1, EAGAIN, 0);
    assert_int_equal(t_put(db, "k", "v"), NTEE_IO);
    assert_int_equal(ntee_last_error()->os_errno, EAGAIN);
    assert_string_equal(t_get(db, "k"), "(missing)");
    assert_int_equal(t_put(db, "k", "v"), NTEE_OK);
    t_close(db);
}

static void a_step_syncs_then_marks_then_does_nothing(void **state) {
    (void)state;
    t_use_table();
    atomic_store(&t_no_thread, 1);
    ntee *db = t_open(t_at("s"), 0);
    nt_background_step(&db->background);
    assert_int_equal(t_log_bytes(db), NT_LOG_START);
    assert_int_equal(t_put(db, "k", "v"), NTEE_OK);
    uint64_t written = t_log_bytes(db);
    long syncs = t_calls(T_SYNC);
    assert_true(nt_writer_is_dirty(&db->writer));
    nt_background_step(&db->background);
    assert_false(nt_writer_is_dirty(&db->writer));
    assert_int_equal(t_calls(T_SYNC), syncs + 1);
    assert_int_equal(t_log_bytes(db), written);
    nt_background_step(&db->background);
    assert_int_equal(t_calls(T_SYNC), syncs + 1);
    uint64_t marked = t_log_bytes(db);
    assert_true(marked > written);
    long calls = all_calls();
    for (int i = 0; i < 5; i++) nt_background_step(&db->background);
    assert_int_equal(t_log_bytes(db), marked);
    assert_int_equal(all_calls(), calls);
    t_close(db);
}

static void a_mark_that_does_not_fit_is_not_missed(void **state) {
    (void)state;
    t_use_table();
    atomic_store(&t_no_thread, 1);
    ntee *db = t_open(t_at("s"), NTEE_NO_MMAP);
    assert_int_equal(t_put(db, "k", "v"), NTEE_OK);
    nt_background_step(&db->background);
    uint64_t written = t_log_bytes(db);
    t_fail(T_WRITE, 1, ENOSPC, 0);
    nt_background_step(&db->background);
    t_heal();
    assert_int_equal(t_log_bytes(db), written);
    assert_int_equal(t_put(db, "j", "v"), NTEE_OK);
    t_close(db);
    db = t_open(t_at("s"), 0);
    assert_int_equal(t_records(db), 2);
    t_close(db);
}

static void closing_does_not_wait_for_the_interval(void **state) {
    (void)state;
    ntee *db = open_every(60000);
    assert_int_equal(t_put(db, "k", "v"), NTEE_OK);
    int64_t begin = t_now();
    t_close(db);
    assert_true(t_now() - begin < 2000);
    for (int i = 0; i < 200; i++) { /* also where the thread has hardly begun */
        db = open_every(1);
        assert_int_equal(t_put(db, "k", "v"), NTEE_OK);
        t_close(db);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T_TEST(no_thread_runs_before_the_first_write),
        T_TEST(a_write_is_synced_within_the_interval),
        T_TEST(a_busy_store_is_synced_about_once_an_interval),
        T_TEST(an_idle_store_is_marked_and_then_left_alone),
        T_TEST(a_failing_background_sync_is_told_to_the_next_write),
        T_TEST(a_store_without_its_thread_refuses_to_write),
        T_TEST(a_step_syncs_then_marks_then_does_nothing),
        T_TEST(a_mark_that_does_not_fit_is_not_missed),
        T_TEST(closing_does_not_wait_for_the_interval),
    };
    return T_RUN_BOTH(tests);
}
