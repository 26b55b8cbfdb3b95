/* One key, or several of one version. */
#include "unit/store.h"

#include "engine/get.h"
#include "engine/open.h"
#include "engine/commit.h"

static nt_db db;
static ntee_error err;

static void open_db(int read_only) {
    nt_open_options how = {.read_only = read_only, .no_mmap = (t_flags & NTEE_NO_MMAP) != 0};
    assert_int_equal(nt_db_open(&db, t_at("s"), &how, &err), NTEE_OK);
}

static void close_db(void) { assert_int_equal(nt_db_close(&db, 0, NULL, &err), NTEE_OK); }

static void put(const char *key, const void *value, size_t len) {
    nt_write w;
    nt_write_begin(&w, &db);
    assert_int_equal(nt_write_add(&w, NT_WIRE_PUT, key, strlen(key), value, len, &err), NTEE_OK);
    assert_int_equal(nt_commit(&db, &w, &err), NTEE_OK);
    nt_keydir_publish(db.keydir, w.staged);
    nt_write_end(&w);
}

static void keys_are_checked(void **state) {
    (void)state;
    assert_int_equal(nt_check_key("k", 1, &err), NTEE_OK);
    assert_int_equal(nt_check_key("k", 65535, &err), NTEE_OK);
    assert_int_equal(nt_check_key("k", 65536, &err), NTEE_TOO_LARGE);
    assert_int_equal(nt_check_key("k", 0, &err), NTEE_INVALID);
    assert_int_equal(nt_check_key(NULL, 5, &err), NTEE_INVALID);
    assert_int_equal(nt_check_key(NULL, 0, &err), NTEE_INVALID);
}

static void a_value_is_copied_whole_or_not_at_all(void **state) {
    (void)state;
    char buf[16];
    size_t len = 0;
    ntee_kind kind;
    open_db(0);
    put("k", "12345678", 8);
    put("empty", "", 0);
    memset(buf, '-', sizeof buf);
    assert_int_equal(nt_get(&db, "k", 1, buf, 7, &len, &kind, 0, &err), NTEE_SHORT_BUFFER);
    assert_int_equal(len, 8);
    assert_int_equal(kind, NTEE_JSON);
    assert_int_equal(buf[0], '-');
    assert_int_equal(nt_get(&db, "k", 1, buf, 8, &len, NULL, 0, &err), NTEE_OK);
    assert_memory_equal(buf, "12345678-", 9);
    assert_int_equal(nt_get(&db, "empty", 5, NULL, 0, &len, &kind, 0, &err), NTEE_OK);
    assert_int_equal(len, 0);
    assert_int_equal(kind, NTEE_BINARY);
    assert_int_equal(nt_get(&db, "nothing", 7, buf, 8, &len, &kind, 0, &err), NTEE_NOT_FOUND);
    assert_int_equal(nt_has(&db, "empty", 5, &err), NTEE_OK);
    assert_int_equal(nt_has(&db, "nothing", 7, &err), NTEE_NOT_FOUND);
    assert_int_equal(nt_has(&db, "", 0, &err), NTEE_INVALID);
    close_db();
}

static void has_reads_no_disk(void **state) {
    (void)state;
    open_db(0);
    put("k", "v", 1);
    t_use_table();
    long reads = t_calls(T_READ);
    for (int i = 0; i < 10; i++) assert_int_equal(nt_has(&db, "k", 1, &err), NTEE_OK);
    assert_int_equal(t_calls(T_READ), reads);
    nt_os_now = &nt_os_posix;
    close_db();
}

/* After a reopening nothing is known to be in memory until it was read once. */
static void what_was_read_once_is_at_hand(void **state) {
    (void)state;
    char buf[16];
    size_t len;
    int mapped = !(t_flags & NTEE_NO_MMAP);
    open_db(0);
    put("k", "v", 1);
    close_db();
    open_db(0);
    assert_int_equal(nt_get(&db, "k", 1, buf, 16, &len, NULL, 1, &err), NTEE_WOULD_BLOCK);
    assert_int_equal(err.status, NTEE_WOULD_BLOCK);
    assert_int_equal(nt_get(&db, "nothing", 7, buf, 16, &len, NULL, 1, &err), NTEE_NOT_FOUND);
    assert_int_equal(nt_get(&db, "k", 1, buf, 16, &len, NULL, 0, &err), NTEE_OK);
    assert_int_equal(nt_get(&db, "k", 1, buf, 16, &len, NULL, 1, &err), mapped ? NTEE_OK : NTEE_WOULD_BLOCK);
    close_db();
}

/* A large value that is at hand would be summed up for nothing: many times the calls that a small one allows. */
static void a_large_value_is_refused_at_hand_before_it_is_read(void **state) {
    (void)state;
    size_t len, size = 48u << 20;
    char *value = calloc(1, size), buf[8];
    open_db(0);
    put("large", value, size);
    put("small", "v", 1);
    free(value);
    assert_int_equal(nt_get(&db, "large", 5, buf, 8, &len, NULL, 0, &err), NTEE_SHORT_BUFFER);
    int64_t begin = t_now();
    for (int i = 0; i < 300; i++)
        assert_int_equal(nt_get(&db, "large", 5, buf, 8, &len, NULL, 1, &err), NTEE_WOULD_BLOCK);
    assert_true(t_now() - begin < 600);
    close_db();
}

/* ---- Several keys --------------------------------------------------------------------------------- */

static size_t add_key(uint8_t *list, size_t at, const char *key) {
    nt_store16(list + at, (uint16_t)strlen(key));
    memcpy(list + at + 2, key, strlen(key));
    return at + 2 + strlen(key);
}

static void several_keys_come_as_one_page(void **state) {
    (void)state;
    uint8_t list[256];
    _Alignas(8) uint8_t room[512];
    uint64_t needed = 0;
    nt_page_plan page;
    open_db(0);
    put("a", "1", 1);
    put("b", "two", 3);
    size_t n = add_key(list, 0, "b");
    n = add_key(list, n, "none");
    n = add_key(list, n, "a");
    for (size_t cap = 0; cap <= sizeof room; cap += 8) {
        memset(room, 0x55, sizeof room);
        nt_page_begin(&page, room, cap);
        ntee_status status = nt_get_many(&db, list, n, &page, 0, &needed, &err);
        if (cap < 40) assert_int_equal(status, NTEE_SHORT_BUFFER);
        if (status == NTEE_SHORT_BUFFER) {
            assert_true(needed > cap && needed <= 56);
            continue;
        }
        assert_int_equal(status, NTEE_OK);
        assert_int_equal(page.count, 3);
        assert_memory_equal(room, "[two,null,1]", 12);
        if (cap < sizeof room) assert_int_equal(room[cap], 0x55);
    }
    close_db();
}

static void a_bad_key_or_record_is_named_by_its_place(void **state) {
    (void)state;
    uint8_t list[256];
    _Alignas(8) uint8_t room[512];
    uint64_t needed;
    nt_page_plan page;
    open_db(0);
    put("a", "first value", 11);
    put("b", "other value", 11);
    close_db();
    size_t len;
    uint8_t *bytes = t_read(t_at("s/" LOG_NAME), &len);
    uint8_t *found = memmem(bytes, len, "other value", 11);
    found[3] ^= 1;
    t_write(t_at("s/" LOG_NAME), bytes, len);
    free(bytes);
    open_db(1);
    size_t n = add_key(list, 0, "a");
    n = add_key(list, n, "b");
    nt_page_begin(&page, room, sizeof room);
    assert_int_equal(nt_get_many(&db, list, n, &page, 0, &needed, &err), NTEE_CORRUPT);
    assert_int_equal(err.item, 1);
    assert_true(err.offset > 0);
    assert_non_null(strstr(err.message, "key b"));
    n = add_key(list, 0, "a");
    nt_page_begin(&page, room, sizeof room);
    assert_int_equal(nt_get_many(&db, list, n + 1, &page, 0, &needed, &err), NTEE_INVALID);
    assert_int_equal(err.item, 1);
    close_db();
}

static void failures_of_many_leak_nothing(void **state) {
    (void)state;
    uint8_t list[4096];
    _Alignas(8) uint8_t room[1 << 16];
    uint64_t needed;
    nt_page_plan page;
    static char value[2000];
    size_t n = 0;
    t_use_table();
    open_db(0);
    for (int i = 0; i < 20; i++) {
        char key[16];
        snprintf(key, sizeof key, "%d", i);
        put(key, value, (size_t)i * 100);
        n = add_key(list, n, key);
    }
    long memory = atomic_load(&t_memory);
    static const int kinds[] = {T_ALLOC, T_READ};
    for (int k = 0; k < 2; k++) {
        for (long nth = 1;; nth++) {
            t_fail(kinds[k], nth, EIO, 0);
            nt_page_begin(&page, room, sizeof room);
            ntee_status status = nt_get_many(&db, list, n, &page, 0, &needed, &err);
            int fired = atomic_load(&t_fail_at[kinds[k]]) == 0;
            t_heal();
            assert_int_equal(status, !fired ? NTEE_OK : k ? NTEE_IO : NTEE_NOMEM);
            assert_int_equal(atomic_load(&t_memory), memory);
            if (!fired) break;
        }
    }
    close_db();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T_TEST(keys_are_checked),
        T_TEST(a_value_is_copied_whole_or_not_at_all),
        T_TEST(has_reads_no_disk),
        T_TEST(what_was_read_once_is_at_hand),
        T_TEST(a_large_value_is_refused_at_hand_before_it_is_read),
        T_TEST(several_keys_come_as_one_page),
        T_TEST(a_bad_key_or_record_is_named_by_its_place),
        T_TEST(failures_of_many_leak_nothing),
    };
    return T_RUN_BOTH(tests);
}
