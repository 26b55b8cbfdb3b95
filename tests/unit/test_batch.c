/* Batches of the C API: all or nothing, in order, within the limits. Cases B89, B91, B92. */
#include "unit/store.h"

#include <sys/mman.h>

static void a_batch_collects_and_can_be_used_again(void **state) {
    (void)state;
    ntee *db = t_open(t_at("s"), 0);
    ntee_batch *batch = ntee_batch_new();
    assert_int_equal(ntee_batch_count(batch), 0);
    assert_int_equal(ntee_write(db, batch), NTEE_OK);
    uint64_t empty = t_log_bytes(db);
    assert_int_equal(empty, NT_LOG_START);
    assert_int_equal(ntee_batch_put(batch, "a", 1, "1", 1, NULL), NTEE_OK);
    assert_int_equal(ntee_batch_put(batch, "b", 1, NULL, 0, NULL), NTEE_OK);
    assert_int_equal(ntee_batch_delete(batch, "c", 1), NTEE_OK);
    assert_int_equal(ntee_batch_count(batch), 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(ntee_write(db, batch), NTEE_OK);
        assert_string_equal(t_get(db, "a"), "1");
        assert_string_equal(t_get(db, "b"), "");
        assert_string_equal(t_get(db, "c"), "(missing)");
        assert_int_equal(ntee_batch_count(batch), 3);
        assert_int_equal(t_delete(db, "a"), NTEE_OK);
    }
    ntee_batch_clear(batch);
    assert_int_equal(ntee_batch_count(batch), 0);
    assert_int_equal(ntee_batch_put(batch, "d", 1, "4", 1, NULL), NTEE_OK);
    assert_int_equal(ntee_write(db, batch), NTEE_OK);
    assert_string_equal(t_get(db, "a"), "(missing)");
    assert_string_equal(t_get(db, "d"), "4");
    ntee_batch_free(batch);
    t_close(db);
}

/* Its checksums are those of the store that it was written into last. */
static void one_batch_goes_into_several_stores(void **state) {
    (void)state;
    ntee *db[2] = {t_open(t_at("s"), 0), t_open(t_at("t"), 0)};
    ntee_batch *batch = ntee_batch_new();
    for (int round = 0; round < 4; round++) {
        char key[16], value[600];
        snprintf(key, sizeof key, "key %d", round);
        memset(value, 'a' + round, sizeof value);
        value[sizeof value - 1] = 0;
        assert_int_equal(ntee_batch_put(batch, key, 5, value, sizeof value - 1, NULL), NTEE_OK);
        for (int i = 0; i < 4; i++) assert_int_equal(ntee_write(db[i % 2], batch), NTEE_OK);
        for (int i = 0; i < 2; i++) assert_string_equal(t_get(db[i], key), value);
    }
    ntee_batch_clear(batch);
    assert_int_equal(ntee_batch_delete(batch, "key 0", 5), NTEE_OK);
    uint64_t end[2] = {0, 0};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(ntee_write(db[i % 2], batch), NTEE_OK);
        if (i < 2) end[i] = t_log_bytes(db[i]);
        else assert_int_equal(t_log_bytes(db[i % 2]), end[i % 2]); /* there is nothing left to delete */
    }
    ntee_batch_free(batch);
    for (int i = 0; i < 2; i++) {
        t_close(db[i]);
        db[i] = t_open(t_at(i ? "t" : "s"), 0); /* recovery takes the checksums, too */
        assert_string_equal(t_get(db[i], "key 0"), "(missing)");
        assert_int_equal(strlen(t_get(db[i], "key 3")), 599);
        t_close(db[i]);
    }
}

static void null_batches_are_harmless(void **state) {
    (void)state;
    ntee_batch_free(NULL);
    ntee_batch_clear(NULL);
    assert_int_equal(ntee_batch_count(NULL), 0);
    assert_int_equal(ntee_batch_put(NULL, "a", 1, "1", 1, NULL), NTEE_INVALID);
    assert_int_equal(ntee_batch_delete(NULL, "a", 1), NTEE_INVALID);
}

static void later_items_win(void **state) {
    (void)state;
    ntee *db = t_open(t_at("s"), 0);
    ntee_batch *batch = ntee_batch_new();
    assert_int_equal(t_put(db, "gone", "x"), NTEE_OK);
    ntee_batch_put(batch, "k", 1, "1", 1, NULL);
    ntee_batch_put(batch, "k", 1, "2", 1, NULL);
    ntee_batch_delete(batch, "k", 1);
    ntee_batch_put(batch, "k", 1, "3", 1, NULL);
    ntee_batch_put(batch, "l", 1, "1", 1, NULL);
    ntee_batch_delete(batch, "l", 1);
    ntee_batch_delete(batch, "never", 5);
    ntee_batch_delete(batch, "gone", 4);
    for (int round = 0; round < 3; round++) {
        if (round == 0) assert_int_equal(ntee_write(db, batch), NTEE_OK);
        assert_string_equal(t_get(db, "k"), "3");
        assert_string_equal(t_get(db, "l"), "(missing)");
        assert_string_equal(t_get(db, "gone"), "(missing)");
        assert_int_equal(t_records(db), 1);
        t_close(db);
        db = t_open(t_at("s"), 0);
    }
    ntee_batch_free(batch);
    t_close(db);
}

static void refused_items_leave_the_batch_as_it_was(void **state) {
    (void)state;
    ntee *db = t_open(t_at("s"), 0);
    ntee_batch *batch = ntee_batch_new();
    char *key = calloc(1, 65536);
    ntee_put_options later = {.size = sizeof later, .ttl_ms = 1};
    ntee_batch_put(batch, "a", 1, "1", 1, NULL);
    assert_int_equal(ntee_batch_put(batch, "", 0, "1", 1, NULL), NTEE_INVALID);
    assert_int_equal(ntee_batch_put(batch, key, 65536, "1", 1, NULL), NTEE_TOO_LARGE);
    assert_int_equal(ntee_batch_delete(batch, key, 65536), NTEE_TOO_LARGE);
    assert_int_equal(ntee_batch_delete(batch, NULL, 0), NTEE_INVALID);
    assert_int_equal(ntee_batch_put(batch, "k", 1, NULL, 1, NULL), NTEE_INVALID);
    assert_int_equal(ntee_batch_put(batch, "k", 1, "v", 1, &later), NTEE_INVALID);
    assert_int_equal(ntee_batch_put(batch, key, 65535, "v", 1, NULL), NTEE_OK);
    assert_int_equal(ntee_batch_count(batch), 2);
    assert_int_equal(ntee_write(db, batch), NTEE_OK);
    assert_int_equal(t_records(db), 2);
    free(key);
    ntee_batch_free(batch);
    t_close(db);
}

/* The values are address space without memory: whoever read or copied them would take seconds and gigabytes. */
static void a_batch_over_its_limit_is_refused_cheaply(void **state) {
    (void)state;
    size_t len = (size_t)5 << 30;
    uint8_t *huge = mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_true(huge != MAP_FAILED);
    ntee_batch *batch = ntee_batch_new();
    static const size_t sizes[] = {(size_t)1 << 30, ((size_t)1 << 30) - 8, (size_t)NTEE_VALUE_MAX, (size_t)5 << 30};
    for (int i = 0; i < 4; i++)
        assert_int_equal(ntee_batch_put(batch, "key", 3, huge, sizes[i], NULL), NTEE_TOO_LARGE);
    assert_int_equal(ntee_batch_put(batch, "key", 3, huge, SIZE_MAX, NULL), NTEE_TOO_LARGE);
    assert_int_equal(ntee_batch_count(batch), 0);
    assert_int_equal(ntee_batch_put(batch, "key", 3, "v", 1, NULL), NTEE_OK);
    assert_int_equal(ntee_batch_put(batch, "key", 3, huge, ((size_t)1 << 30) - 8 - 3 - 11, NULL), NTEE_TOO_LARGE);
    assert_int_equal(ntee_batch_count(batch), 1);
    ntee_batch_free(batch);
    munmap(huge, len);
}

static void many_items_are_one_write(void **state) {
    (void)state;
    enum { N = 100000 };
    t_use_table();
    ntee *db = t_open(t_at("s"), NTEE_SYNC_EVERY_WRITE);
    ntee_batch *batch = ntee_batch_new();
    for (int i = 0; i < N; i++)
        assert_int_equal(ntee_batch_put(batch, &i, sizeof i, "0123456789", 10, NULL), NTEE_OK);
    long syncs = t_calls(T_SYNC);
    assert_int_equal(ntee_write(db, batch), NTEE_OK);
    assert_int_equal(t_calls(T_SYNC), syncs + 1);
    assert_int_equal(t_records(db), N);
    ntee_batch_free(batch);
    t_close(db);
    db = t_open(t_at("s"), 0);
    assert_int_equal(t_records(db), N);
    t_close(db);
}

static void a_batch_that_cannot_be_written_leaves_no_trace(void **state) {
    (void)state;
    t_use_table();
    atomic_store(&t_no_thread, 1); /* nobody allocates ahead */
    ntee *db = t_open(t_at("s"), NTEE_NO_MMAP);
    assert_int_equal(t_put(db, "k", "old"), NTEE_OK);
    ntee_batch *batch = ntee_batch_new();
    static uint8_t value[600000];
    ntee_batch_put(batch, "k", 1, "new", 3, NULL);
    ntee_batch_put(batch, "l", 1, value, sizeof value, NULL);
    ntee_batch_delete(batch, "k", 1);
    uint64_t before = t_log_bytes(db);
    static const int errnos[] = {ENOSPC, EDQUOT, EFBIG, EIO};
    for (int kind = 0; kind < 2; kind++) {
        for (int i = 0; i < 4; i++) {
            t_fail(kind ? T_WRITE : T_ALLOCATE, 1, errnos[i], kind == 0);
            assert_int_equal(ntee_write(db, batch), errnos[i] == EIO ? NTEE_IO : NTEE_FULL);
            assert_int_equal(ntee_last_error()->os_errno, errnos[i]);
            t_heal();
            assert_int_equal(t_log_bytes(db), before);
            assert_string_equal(t_get(db, "k"), "old");
            assert_string_equal(t_get(db, "l"), "(missing)");
        }
    }
    assert_int_equal(ntee_write(db, batch), NTEE_OK);
    ntee_batch_free(batch);
    t_close(db);
    db = t_open(t_at("s"), 0);
    assert_string_equal(t_get(db, "k"), "(missing)");
    assert_int_equal(t_records(db), 1);
    t_close(db);
}

/* Readers beside a writer of batches see the same round in every key. */
static atomic_int reading;

static void *read_rounds(void *arg) {
    ntee *db = arg;
    _Alignas(8) char room[4096];
    while (atomic_load(&reading)) {
        ntee_scan_options options = {.size = sizeof options, .flags = NTEE_VALUES};
        ntee_scan *scan;
        ntee_page page;
        ntee_entry entry = {0};
        int rounds[8], n = 0;
        if (ntee_scan_open(db, &options, &scan) != NTEE_OK) return (void *)"open";
        if (ntee_scan_page(scan, room, sizeof room, &page) != NTEE_OK) return (void *)"page";
        while (ntee_page_next(&page, &entry)) memcpy(&rounds[n++], entry.value, sizeof(int));
        ntee_scan_close(scan);
        if (n != 8) return (void *)"count";
        for (int i = 1; i < 8; i++)
            if (rounds[i] != rounds[0]) return (void *)"mixed";
    }
    return NULL;
}

static void readers_see_a_batch_whole(void **state) {
    (void)state;
    ntee *db = t_open(t_at("s"), 0);
    pthread_t threads[2];
    ntee_batch *batch = ntee_batch_new();
    int64_t end = t_now() + 400;
    for (int round = 0; round == 0 || t_now() < end; round++) {
        ntee_batch_clear(batch);
        for (char k = 0; k < 8; k++) ntee_batch_put(batch, &k, 1, &round, sizeof round, NULL);
        assert_int_equal(ntee_write(db, batch), NTEE_OK);
        if (round) continue;
        atomic_store(&reading, 1);
        for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&threads[i], NULL, read_rounds, db), 0);
    }
    atomic_store(&reading, 0);
    for (int i = 0; i < 2; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        if (wrong) print_error("%s\n", (const char *)wrong);
        assert_null(wrong);
    }
    ntee_batch_free(batch);
    t_close(db);
}

static void short_memory_is_told_and_changes_nothing(void **state) {
    (void)state;
    t_use_table();
    ntee *db = t_open(t_at("s"), 0);
    assert_int_equal(t_put(db, "k", "old"), NTEE_OK);
    long memory = atomic_load(&t_memory);
    for (long nth = 1;; nth++) {
        uint64_t before = t_log_bytes(db);
        t_fail(T_ALLOC, nth, ENOMEM, 0);
        ntee_batch *batch = ntee_batch_new();
        ntee_status status = batch ? NTEE_OK : NTEE_NOMEM;
        for (int i = 0; i < 40 && status == NTEE_OK; i++) {
            status = ntee_batch_put(batch, &i, sizeof i, t_root, sizeof t_root, NULL);
            assert_int_equal(ntee_batch_count(batch), (size_t)i + (status == NTEE_OK));
        }
        if (status == NTEE_OK) status = ntee_write(db, batch);
        int fired = atomic_load(&t_fail_at[T_ALLOC]) == 0;
        t_heal();
        ntee_batch_free(batch);
        if (!fired) {
            assert_int_equal(status, NTEE_OK);
            break;
        }
        assert_int_equal(status, NTEE_NOMEM);
        assert_int_equal(t_log_bytes(db), before);
        assert_int_equal(t_records(db), 1);
        assert_string_equal(t_get(db, "k"), "old");
        assert_int_equal(atomic_load(&t_memory), memory);
    }
    assert_int_equal(t_records(db), 41);
    t_close(db);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T_TEST(a_batch_collects_and_can_be_used_again),
        T_TEST(one_batch_goes_into_several_stores),
        T_TEST(null_batches_are_harmless),
        T_TEST(later_items_win),
        T_TEST(refused_items_leave_the_batch_as_it_was),
        T_TEST(a_batch_over_its_limit_is_refused_cheaply),
        T_TEST(many_items_are_one_write),
        T_TEST(a_batch_that_cannot_be_written_leaves_no_trace),
        T_TEST(readers_see_a_batch_whole),
        T_TEST(short_memory_is_told_and_changes_nothing),
    };
    return T_RUN_BOTH(tests);
}
