/* The public functions of one key and of the handle: every status, limit and argument rule. */
#include "unit/store.h"

static void versions_and_texts_are_there(void **state) {
    (void)state;
    assert_string_equal(ntee_version(), NTEE_VERSION_STRING);
    assert_int_equal(ntee_abi(), NTEE_ABI);
    for (int i = -1; i <= NTEE_WOULD_BLOCK + 1; i++) {
        assert_non_null(ntee_strerror(i));
        assert_non_null(ntee_status_name(i));
    }
    assert_string_equal(ntee_status_name(NTEE_IO), "NTEE_IO");
    assert_non_null(ntee_last_error());
}

static void the_shortest_program_works(void **state) {
    (void)state;
    ntee *db;
    char buf[64];
    size_t len;
    assert_int_equal(ntee_open(t_at("data"), NULL, &db), NTEE_OK);
    assert_int_equal(ntee_put(db, "greeting", 8, "hello", 5, NULL), NTEE_OK);
    assert_int_equal(ntee_get(db, "greeting", 8, buf, sizeof buf, &len, NULL), NTEE_OK);
    assert_int_equal(len, 5);
    assert_memory_equal(buf, "hello", 5);
    t_close(db);
}

static void open_refuses_wrong_arguments(void **state) {
    (void)state;
    ntee *db = (ntee *)1;
    ntee_options o = {.size = sizeof o};
    assert_int_equal(ntee_open(NULL, NULL, &db), NTEE_INVALID);
    assert_null(db);
    assert_int_equal(ntee_open("", NULL, &db), NTEE_INVALID);
    assert_int_equal(ntee_open(t_at("s"), NULL, NULL), NTEE_INVALID);
    o.size = sizeof o - 8;
    assert_int_equal(ntee_open(t_at("s"), &o, &db), NTEE_INVALID);
    o.size = 0;
    assert_int_equal(ntee_open(t_at("s"), &o, &db), NTEE_INVALID);
    o.size = sizeof o;
    for (int bit = 4; bit < 32; bit++) {
        o.flags = 1u << bit;
        db = (ntee *)1;
        assert_int_equal(ntee_open(t_at("s"), &o, &db), NTEE_INVALID);
        assert_null(db);
    }
    o.flags = 0;
    o.sync_interval_ms = 60001;
    assert_int_equal(ntee_open(t_at("s"), &o, &db), NTEE_INVALID);
    o.sync_interval_ms = UINT32_MAX;
    assert_int_equal(ntee_open(t_at("s"), &o, &db), NTEE_INVALID);
    o.sync_interval_ms = 0;
    for (int i = 0; i < 7; i++) {
        o.reserved[i] = 1ull << (i * 9);
        assert_int_equal(ntee_open(t_at("s"), &o, &db), NTEE_INVALID);
        o.reserved[i] = 0;
    }
    assert_false(t_exists(t_at("s")));
    o.sync_interval_ms = 60000;
    assert_int_equal(ntee_open(t_at("s"), &o, &db), NTEE_OK);
    t_close(db);
}

static void null_handles_are_refused(void **state) {
    (void)state;
    char buf[8];
    size_t len;
    uint64_t count;
    ntee_scan *scan;
    ntee_stats_t stats = {.size = sizeof stats};
    ntee_batch *batch = ntee_batch_new();
    ntee_reply reply;
    assert_int_equal(ntee_put(NULL, "k", 1, "v", 1, NULL), NTEE_INVALID);
    assert_int_equal(ntee_put_if_absent(NULL, "k", 1, "v", 1, NULL), NTEE_INVALID);
    assert_int_equal(ntee_delete(NULL, "k", 1), NTEE_INVALID);
    assert_int_equal(ntee_get(NULL, "k", 1, buf, 8, &len, NULL), NTEE_INVALID);
    assert_int_equal(ntee_has(NULL, "k", 1), NTEE_INVALID);
    assert_int_equal(ntee_write(NULL, batch), NTEE_INVALID);
    assert_int_equal(ntee_count(NULL, NULL, &count), NTEE_INVALID);
    assert_int_equal(ntee_scan_open(NULL, NULL, &scan), NTEE_INVALID);
    assert_int_equal(ntee_stats(NULL, &stats), NTEE_INVALID);
    assert_int_equal(ntee_sync(NULL), NTEE_INVALID);
    assert_int_equal(ntee_run(NULL, NTEE_OP_SYNC, 0, NULL, 0, NULL, 0, &reply), NTEE_INVALID);
    assert_int_equal(reply.error.status, NTEE_INVALID);
    assert_int_equal(ntee_close(NULL), NTEE_OK);
    assert_int_equal(ntee_drop(NULL), NTEE_OK);
    assert_int_equal(ntee_destroy(NULL), NTEE_INVALID);
    assert_int_equal(ntee_destroy(""), NTEE_INVALID);
    ntee_batch_free(batch);
}

static void wrong_pointers_are_refused(void **state) {
    (void)state;
    ntee *db = t_open(t_at("s"), 0);
    char buf[8];
    size_t len;
    ntee_stats_t stats = {.size = 8};
    uint64_t before = t_log_bytes(db);
    assert_int_equal(ntee_put(db, NULL, 3, "v", 1, NULL), NTEE_INVALID);
    assert_int_equal(ntee_put(db, NULL, 0, "v", 1, NULL), NTEE_INVALID);
    assert_int_equal(ntee_put(db, "k", 1, NULL, 1, NULL), NTEE_INVALID);
    assert_int_equal(ntee_put_if_absent(db, "k", 1, NULL, 1, NULL), NTEE_INVALID);
    assert_int_equal(ntee_put_if_absent(db, NULL, 1, "v", 1, NULL), NTEE_INVALID);
    assert_int_equal(ntee_delete(db, NULL, 1), NTEE_INVALID);
    assert_int_equal(ntee_get(db, NULL, 1, buf, 8, &len, NULL), NTEE_INVALID);
    assert_int_equal(ntee_get(db, "k", 1, NULL, 8, &len, NULL), NTEE_INVALID);
    assert_int_equal(ntee_get(db, "k", 1, buf, 8, NULL, NULL), NTEE_INVALID);
    assert_int_equal(ntee_has(db, NULL, 1), NTEE_INVALID);
    assert_int_equal(ntee_count(db, NULL, NULL), NTEE_INVALID);
    assert_int_equal(ntee_stats(db, NULL), NTEE_INVALID);
    assert_int_equal(ntee_stats(db, &stats), NTEE_INVALID);
    assert_int_equal(ntee_write(db, NULL), NTEE_INVALID);
    assert_int_equal(t_log_bytes(db), before);
    assert_int_equal(ntee_put(db, "k", 1, NULL, 0, NULL), NTEE_OK);
    assert_int_equal(ntee_get(db, "k", 1, NULL, 0, &len, NULL), NTEE_OK);
    assert_int_equal(len, 0);
    t_close(db);
}

static void put_options_of_later_versions_are_refused(void **state) {
    (void)state;
    ntee *db = t_open(t_at("s"), 0);
    ntee_put_options o = {.size = sizeof o};
    assert_int_equal(ntee_put(db, "k", 1, "v", 1, &o), NTEE_OK);
    o.ttl_ms = 1000;
    assert_int_equal(ntee_put(db, "k", 1, "w", 1, &o), NTEE_INVALID);
    assert_int_equal(ntee_put_if_absent(db, "j", 1, "w", 1, &o), NTEE_INVALID);
    o.ttl_ms = 0;
    o.size--;
    assert_int_equal(ntee_put(db, "k", 1, "w", 1, &o), NTEE_INVALID);
    o.size++;
    for (int i = 0; i < 6; i++) {
        o.reserved[i] = 1;
        assert_int_equal(ntee_put(db, "k", 1, "w", 1, &o), NTEE_INVALID);
        o.reserved[i] = 0;
    }
    assert_string_equal(t_get(db, "k"), "v");
    assert_string_equal(t_get(db, "j"), "(missing)");
    t_close(db);
}

/* A key of `len` bytes that differs from all others of its length class. */
static uint8_t *make_key(size_t len) {
    uint8_t *key = malloc(len + 1);
    for (size_t i = 0; i < len; i++) key[i] = (uint8_t)(i * 7 + len);
    return key;
}

static void keys_of_every_size_round_trip(void **state) {
    (void)state;
    static const size_t sizes[] = {1, 2, 7, 8, 239, 240, 241, 255, 256, 1000, 4096, 65534, 65535};
    ntee *db = t_open(t_at("s"), 0);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            uint8_t *key = make_key(sizes[i]);
            size_t len, value = sizes[i] + (size_t)round;
            if (round == 0) assert_int_equal(ntee_put(db, key, sizes[i], &value, sizeof value, NULL), NTEE_OK);
            assert_int_equal(ntee_has(db, key, sizes[i]), NTEE_OK);
            assert_int_equal(ntee_get(db, key, sizes[i], &value, sizeof value, &len, NULL), NTEE_OK);
            assert_int_equal(value, sizes[i]);
            if (round == 1) {
                assert_int_equal(ntee_delete(db, key, sizes[i]), NTEE_OK);
                assert_int_equal(ntee_has(db, key, sizes[i]), NTEE_NOT_FOUND);
            }
            free(key);
        }
        if (round == 0) {
            t_close(db);
            db = t_open(t_at("s"), 0);
        }
    }
    assert_int_equal(t_records(db), 0);
    t_close(db);
}

static void keys_beyond_the_limits_are_refused_everywhere(void **state) {
    (void)state;
    static const struct {
        size_t len;
        ntee_status status;
    } cases[] = {{0, NTEE_INVALID}, {65536, NTEE_TOO_LARGE}, {65537, NTEE_TOO_LARGE}, {1u << 20, NTEE_TOO_LARGE},
                 {SIZE_MAX, NTEE_TOO_LARGE}};
    ntee *db = t_open(t_at("s"), 0);
    uint8_t *key = make_key(1u << 20);
    ntee_batch *batch = ntee_batch_new();
    uint64_t before = t_log_bytes(db);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t n = cases[i].len, len;
        char buf[4];
        assert_int_equal(ntee_put(db, key, n, "v", 1, NULL), cases[i].status);
        assert_int_equal(ntee_last_error()->status, cases[i].status);
        assert_int_equal(ntee_put_if_absent(db, key, n, "v", 1, NULL), cases[i].status);
        assert_int_equal(ntee_delete(db, key, n), cases[i].status);
        assert_int_equal(ntee_get(db, key, n, buf, 4, &len, NULL), cases[i].status);
        assert_int_equal(ntee_has(db, key, n), cases[i].status);
        assert_int_equal(ntee_batch_put(batch, key, n, "v", 1, NULL), cases[i].status);
        assert_int_equal(ntee_batch_delete(batch, key, n), cases[i].status);
    }
    assert_int_equal(ntee_batch_count(batch), 0);
    assert_int_equal(t_log_bytes(db), before);
    assert_int_equal(t_records(db), 0);
    ntee_batch_free(batch);
    free(key);
    t_close(db);
}

static void values_of_many_sizes_round_trip(void **state) {
    (void)state;
    static const size_t sizes[] = {0, 1, 7, 8, 9, 400, 503, 504, 505, 4096, 65535, 65536, 1u << 20, (1u << 20) + 1,
                                   3u << 20, 33u << 20};
    ntee *db = t_open(t_at("s"), 0);
    uint8_t *value = malloc(33u << 20), *back = malloc(33u << 20);
    for (size_t i = 0; i < 33u << 20; i++) value[i] = (uint8_t)(i * 2654435761u >> 13);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            size_t n = sizes[i], len = 77;
            ntee_kind kind;
            if (round == 0) assert_int_equal(ntee_put(db, &n, sizeof n, value, n, NULL), NTEE_OK);
            if (n) {
                assert_int_equal(ntee_get(db, &n, sizeof n, back, n - 1, &len, &kind), NTEE_SHORT_BUFFER);
                assert_int_equal(len, n);
                assert_int_equal(kind, NTEE_BINARY);
            }
            assert_int_equal(ntee_get(db, &n, sizeof n, back, n, &len, NULL), NTEE_OK);
            assert_int_equal(len, n);
            assert_memory_equal(back, value, n);
        }
        if (round == 0) {
            t_close(db);
            db = t_open(t_at("s"), 0);
        }
    }
    t_close(db);
    free(value);
    free(back);
}

static void a_value_over_the_limit_is_refused_without_being_read(void **state) {
    (void)state;
    ntee *db = t_open(t_at("s"), 0);
    uint64_t before = t_log_bytes(db);
    assert_int_equal(ntee_put(db, "k", 1, "v", (size_t)NTEE_VALUE_MAX + 1, NULL), NTEE_TOO_LARGE);
    assert_int_equal(ntee_put(db, "k", 1, "v", SIZE_MAX, NULL), NTEE_TOO_LARGE);
    assert_int_equal(ntee_put_if_absent(db, "k", 1, "v", ((size_t)1 << 32) + 5, NULL), NTEE_TOO_LARGE);
    assert_int_equal(t_log_bytes(db), before);
    assert_string_equal(t_get(db, "k"), "(missing)");
    t_close(db);
}

static void the_kind_of_a_value_is_noted(void **state) {
    (void)state;
    static const struct {
        const char *text;
        ntee_kind kind;
    } cases[] = {{"{}", NTEE_OBJECT},   {" {\"a\":[1]}\n", NTEE_OBJECT}, {"[]", NTEE_JSON},  {"\"x\"", NTEE_JSON},
                 {"1e400", NTEE_JSON},  {"null", NTEE_JSON},             {"", NTEE_BINARY},  {"{", NTEE_BINARY},
                 {"{} {}", NTEE_BINARY}, {"hello", NTEE_BINARY},         {"01", NTEE_BINARY}};
    ntee *db = t_open(t_at("s"), 0);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            char buf[32];
            size_t len;
            ntee_kind kind = NTEE_MISSING;
            if (round == 0) assert_int_equal(t_put(db, cases[i].text[0] ? cases[i].text : "-", cases[i].text), NTEE_OK);
            const char *key = cases[i].text[0] ? cases[i].text : "-";
            assert_int_equal(ntee_get(db, key, strlen(key), buf, 32, &len, &kind), NTEE_OK);
            assert_int_equal(kind, cases[i].kind);
        }
        t_close(db);
        db = t_open(t_at("s"), 0);
    }
    t_close(db);
}

static void put_overwrites_and_delete_removes(void **state) {
    (void)state;
    ntee *db = t_open(t_at("s"), 0);
    assert_int_equal(t_delete(db, "k"), NTEE_NOT_FOUND);
    assert_int_equal(ntee_last_error()->status, NTEE_NOT_FOUND);
    uint64_t before = t_log_bytes(db);
    assert_int_equal(t_delete(db, "k"), NTEE_NOT_FOUND);
    assert_int_equal(t_log_bytes(db), before);
    assert_int_equal(t_put(db, "k", "one"), NTEE_OK);
    assert_int_equal(t_put(db, "k", "three"), NTEE_OK);
    assert_string_equal(t_get(db, "k"), "three");
    assert_int_equal(t_records(db), 1);
    assert_int_equal(t_delete(db, "k"), NTEE_OK);
    assert_string_equal(t_get(db, "k"), "(missing)");
    assert_int_equal(t_delete(db, "k"), NTEE_NOT_FOUND);
    assert_int_equal(t_records(db), 0);
    assert_int_equal(t_put(db, "k", "again"), NTEE_OK);
    t_close(db);
    db = t_open(t_at("s"), 0);
    assert_string_equal(t_get(db, "k"), "again");
    t_close(db);
}

static void put_if_absent_writes_only_where_nothing_is(void **state) {
    (void)state;
    ntee *db = t_open(t_at("s"), 0);
    assert_int_equal(ntee_put_if_absent(db, "k", 1, "a", 1, NULL), NTEE_OK);
    uint64_t before = t_log_bytes(db);
    assert_int_equal(ntee_put_if_absent(db, "k", 1, "b", 1, NULL), NTEE_EXISTS);
    assert_int_equal(ntee_last_error()->status, NTEE_EXISTS);
    assert_int_equal(t_log_bytes(db), before);
    assert_string_equal(t_get(db, "k"), "a");
    assert_int_equal(t_delete(db, "k"), NTEE_OK);
    assert_int_equal(ntee_put_if_absent(db, "k", 1, "c", 1, NULL), NTEE_OK);
    t_close(db);
    db = t_open(t_at("s"), 0);
    assert_string_equal(t_get(db, "k"), "c");
    assert_int_equal(ntee_put_if_absent(db, "k", 1, "d", 1, NULL), NTEE_EXISTS);
    t_close(db);
}

static void nul_bytes_make_distinct_keys(void **state) {
    (void)state;
    static const struct {
        const char *key;
        size_t len;
    } keys[] = {{"a", 1}, {"a\0", 2}, {"a\0b", 3}, {"\0", 1}, {"\0\0", 2}};
    ntee *db = t_open(t_at("s"), 0);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(ntee_put(db, keys[i].key, keys[i].len, &i, sizeof i, NULL), NTEE_OK);
    assert_int_equal(ntee_delete(db, "a", 1), NTEE_OK);
    t_close(db);
    db = t_open(t_at("s"), 0);
    assert_int_equal(t_records(db), 4);
    for (size_t i = 1; i < 5; i++) {
        size_t value, len;
        assert_int_equal(ntee_get(db, keys[i].key, keys[i].len, &value, sizeof value, &len, NULL), NTEE_OK);
        assert_int_equal(value, i);
    }
    t_close(db);
}

static void a_failure_leaves_no_detail_of_the_one_before(void **state) {
    (void)state;
    ntee *db = t_open(t_at("s"), 0);
    char buf[4];
    size_t len;
    const ntee_error *last = ntee_last_error();
    ntee_error *stale = (ntee_error *)(uintptr_t)last;
    stale->os_errno = EIO;
    stale->offset = 77;
    stale->item = 5;
    assert_int_equal(ntee_get(db, "nothing", 7, buf, 4, &len, NULL), NTEE_NOT_FOUND);
    assert_int_equal(last->status, NTEE_NOT_FOUND);
    assert_int_equal(last->os_errno, 0);
    assert_int_equal(last->offset, -1);
    assert_int_equal(last->item, -1);
    stale->offset = 77;
    assert_int_equal(ntee_has(db, "nothing", 7), NTEE_NOT_FOUND);
    assert_int_equal(last->offset, -1);
    t_close(db);
}

static void stats_say_what_is_there(void **state) {
    (void)state;
    ntee *db = t_open(t_at("s"), 0);
    ntee_stats_t stats = {.size = sizeof stats, .reserved = {9, 9, 9, 9, 9}, .blob_bytes = 3};
    for (int i = 0; i < 100; i++) assert_int_equal(ntee_put(db, &i, sizeof i, "0123456789", 10, NULL), NTEE_OK);
    assert_int_equal(ntee_stats(db, &stats), NTEE_OK);
    assert_int_equal(stats.records, 100);
    assert_int_equal(stats.blob_bytes, 0);
    for (int i = 0; i < 5; i++) assert_int_equal(stats.reserved[i], 0);
    assert_true(stats.main_bytes > 100 * 80);
    t_close(db);
    db = t_open(t_at("s"), 0);
    assert_int_equal(t_log_bytes(db), t_size_of(t_at("s/" LOG_NAME)));
    assert_int_equal(t_records(db), 100);
    t_close(db);
}

static void sync_works_in_both_tiers_and_read_only(void **state) {
    (void)state;
    ntee *db = t_open(t_at("s"), 0);
    assert_int_equal(ntee_sync(db), NTEE_OK);
    assert_int_equal(t_put(db, "k", "v"), NTEE_OK);
    assert_int_equal(ntee_sync(db), NTEE_OK);
    assert_int_equal(ntee_sync(db), NTEE_OK);
    t_close(db);
    db = t_open(t_at("s"), NTEE_SYNC_EVERY_WRITE);
    assert_int_equal(t_put(db, "j", "w"), NTEE_OK);
    assert_int_equal(ntee_sync(db), NTEE_OK);
    t_close(db);
    db = t_open(t_at("s"), NTEE_READ_ONLY);
    assert_int_equal(ntee_sync(db), NTEE_OK);
    assert_string_equal(t_get(db, "j"), "w");
    t_close(db);
}

static void read_only_handles_refuse_every_write(void **state) {
    (void)state;
    ntee *db = t_open(t_at("s"), 0);
    ntee_batch *batch = ntee_batch_new();
    assert_int_equal(t_put(db, "k", "v"), NTEE_OK);
    t_close(db);
    db = t_open(t_at("s"), NTEE_READ_ONLY);
    assert_int_equal(t_put(db, "k", "w"), NTEE_READONLY);
    assert_int_equal(ntee_put_if_absent(db, "j", 1, "w", 1, NULL), NTEE_READONLY);
    assert_int_equal(t_delete(db, "k"), NTEE_READONLY);
    assert_int_equal(ntee_batch_put(batch, "k", 1, "w", 1, NULL), NTEE_OK);
    assert_int_equal(ntee_write(db, batch), NTEE_READONLY);
    assert_string_equal(t_get(db, "k"), "v");
    ntee_batch_free(batch);
    t_close(db);
}

static void memory_is_all_given_back(void **state) {
    (void)state;
    t_use_table();
    long before = atomic_load(&t_memory);
    int fds = t_fds();
    for (int round = 0; round < 3; round++) {
        ntee *db = t_open(t_at("s"), round == 1 ? NTEE_SYNC_EVERY_WRITE : 0);
        for (int i = 0; i < 500; i++) assert_int_equal(ntee_put(db, &i, sizeof i, t_root, 100, NULL), NTEE_OK);
        for (int i = 0; i < 500; i += 2) assert_int_equal(ntee_delete(db, &i, sizeof i), NTEE_OK);
        t_close(db);
    }
    assert_int_equal(atomic_load(&t_memory), before);
    assert_int_equal(t_fds(), fds);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T_TEST(versions_and_texts_are_there),
        T_TEST(the_shortest_program_works),
        T_TEST(open_refuses_wrong_arguments),
        T_TEST(null_handles_are_refused),
        T_TEST(wrong_pointers_are_refused),
        T_TEST(put_options_of_later_versions_are_refused),
        T_TEST(keys_of_every_size_round_trip),
        T_TEST(keys_beyond_the_limits_are_refused_everywhere),
        T_TEST(values_of_many_sizes_round_trip),
        T_TEST(a_value_over_the_limit_is_refused_without_being_read),
        T_TEST(the_kind_of_a_value_is_noted),
        T_TEST(put_overwrites_and_delete_removes),
        T_TEST(put_if_absent_writes_only_where_nothing_is),
        T_TEST(nul_bytes_make_distinct_keys),
        T_TEST(a_failure_leaves_no_detail_of_the_one_before),
        T_TEST(stats_say_what_is_there),
        T_TEST(sync_works_in_both_tiers_and_read_only),
        T_TEST(read_only_handles_refuse_every_write),
        T_TEST(memory_is_all_given_back),
    };
    return T_RUN_BOTH(tests);
}
