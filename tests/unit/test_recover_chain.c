/* What may follow what in a log: stale frames with the right number or the right salt, what is above the
 * durable mark, and what an opening after an unclean end writes once more. */
#include "unit/store.h"

#include "api/handle.h"

#define LOG "s/" LOG_NAME

/* Random bytes that a test can repeat. */
static uint8_t next_random;

static int repeatable(void *buf, size_t len) {
    memset(buf, next_random++, len);
    return 0;
}

static int setup(void **state) {
    if (t_setup(state)) return -1;
    t_use_table();
    atomic_store(&t_no_thread, 1); /* no marks of its own */
    t_os.random = repeatable;
    next_random = 1;
    return 0;
}

typedef struct image {
    uint8_t *bytes;
    size_t len;
} image;

/* What a kill would leave. */
static image take(ntee *db) {
    image i;
    i.bytes = t_read(t_at(LOG), &i.len);
    i.len = (size_t)t_log_bytes(db);
    return i;
}

static void plant(const void *bytes, size_t len) {
    t_remove(t_at("s"));
    assert_int_equal(mkdir(t_at("s"), 0700), 0);
    t_write(t_at(LOG), bytes, len);
}

/* The bytes of `b` up to `at`, and those of `a` from there on. */
static void plant_graft(image a, image b, size_t at) {
    uint8_t *bytes = malloc(a.len);
    memcpy(bytes, b.bytes, at);
    memcpy(bytes + at, a.bytes + at, a.len - at);
    plant(bytes, a.len);
    free(bytes);
}

/* A store of equal beginnings: the same id, the same salts. */
static ntee *begin_again(void) {
    t_remove(t_at("s"));
    next_random = 1;
    return t_open(t_at("s"), 0);
}

static void a_frame_with_another_number_does_not_chain(void **state) {
    (void)state;
    char value[80];
    memset(value, 'v', sizeof value);
    ntee *db = begin_again();
    assert_int_equal(ntee_put(db, "a", 1, "v", 1, NULL), NTEE_OK);
    assert_int_equal(ntee_put(db, "b", 1, "v", 1, NULL), NTEE_OK);
    size_t at = t_log_bytes(db);
    assert_int_equal(t_put(db, "late", "v"), NTEE_OK);
    image two = take(db);
    t_close(db);
    db = begin_again();
    assert_int_equal(ntee_put(db, "k", 1, value, 72 + 32 - 25, NULL), NTEE_OK);
    assert_int_equal(t_log_bytes(db), at);
    image one = take(db);
    t_close(db);
    plant_graft(two, one, at);
    db = t_open(t_at("s"), 0);
    assert_int_equal(t_records(db), 1);
    assert_string_equal(t_get(db, "late"), "(missing)");
    t_close(db);
    free(one.bytes);
    free(two.bytes);
}

static image two_sessions(const char *value, size_t *at) {
    ntee *db = begin_again();
    assert_int_equal(t_put(db, "k", value), NTEE_OK);
    image first = take(db);
    *at = first.len;
    t_close(db);
    plant(first.bytes, first.len);
    free(first.bytes);
    next_random = 100;
    db = t_open(t_at("s"), 0);
    assert_int_equal(t_put(db, "late", "v"), NTEE_OK);
    image both = take(db);
    t_close(db);
    return both;
}

static void an_opening_chains_only_to_the_frame_that_it_cites(void **state) {
    (void)state;
    size_t at, other;
    image a = two_sessions("aaa", &at), b = two_sessions("bbb", &other);
    assert_int_equal(at, other);
    plant(a.bytes, a.len);
    ntee *db = t_open(t_at("s"), 0);
    assert_string_equal(t_get(db, "late"), "v");
    t_close(db);
    plant_graft(a, b, at);
    ntee_status status = t_try_open(t_at("s"), 0, &db);
    if (status == NTEE_OK) { /* or the session is damage: it says that what was before it is durable */
        assert_string_equal(t_get(db, "k"), "bbb");
        assert_string_equal(t_get(db, "late"), "(missing)");
        t_close(db);
    } else {
        assert_int_equal(status, NTEE_CORRUPT);
    }
    free(a.bytes);
    free(b.bytes);
}

static void a_bad_record_above_the_durable_mark_is_the_torn_end(void **state) {
    (void)state;
    ntee *db = t_open(t_at("s"), 0);
    assert_int_equal(t_put(db, "a", "first value"), NTEE_OK);
    size_t from = t_log_bytes(db);
    assert_int_equal(t_put(db, "b", "other value"), NTEE_OK);
    assert_int_equal(t_put(db, "c", "third value"), NTEE_OK);
    image i = take(db);
    t_close(db);
    uint8_t *value = memmem(i.bytes, i.len, "other value", 11);
    value[4] ^= 1; /* above: nothing says that it was ever synced */
    plant(i.bytes, i.len);
    db = t_open(t_at("s"), 0);
    assert_string_equal(t_get(db, "a"), "first value");
    assert_string_equal(t_get(db, "b"), "(missing)");
    assert_string_equal(t_get(db, "c"), "(missing)");
    assert_int_equal(t_log_bytes(db), from);
    assert_int_equal(t_put(db, "d", "more"), NTEE_OK);
    t_close(db);
    db = t_open(t_at("s"), 0);
    assert_int_equal(t_records(db), 2);
    t_close(db);
    free(i.bytes);
}

/* One of the two announcements of a salt may be lost without hiding what was synced under it. */
static void damage_to_an_announcement_does_not_hide_synced_writes(void **state) {
    (void)state;
    ntee *db = t_open(t_at("s"), NTEE_SYNC_EVERY_WRITE);
    for (int i = 0; i < 5; i++) assert_int_equal(ntee_put(db, &i, sizeof i, "v", 1, NULL), NTEE_OK);
    image i = take(db);
    t_close(db);
    for (size_t at = NT_LOG_START; at < NT_LOG_START + 2 * NT_FRAME_OPEN_SIZE; at++) {
        i.bytes[at] ^= 0x10;
        plant(i.bytes, i.len);
        i.bytes[at] ^= 0x10;
        db = t_open(t_at("s"), 0);
        assert_int_equal(t_records(db), 5);
        const nt_damage *found = (const void *)db->db.recovery.damage.data;
        assert_int_equal(db->db.recovery.damage.len, sizeof *found);
        assert_int_equal(found->offset, at < NT_LOG_START + NT_FRAME_OPEN_SIZE ? NT_LOG_START
                                                                              : NT_LOG_START + NT_FRAME_OPEN_SIZE);
        assert_int_equal(found->length, NT_FRAME_OPEN_SIZE);
        assert_int_equal(ntee_has(db, "\0\0\0\0", 4), NTEE_OK);
        t_close(db);
    }
    free(i.bytes);
}

static void what_was_not_surely_synced_is_written_once_more(void **state) {
    (void)state;
    ntee *db = t_open(t_at("s"), 0);
    for (int i = 0; i < 5; i++) assert_int_equal(ntee_put(db, &i, sizeof i, "v", 1, NULL), NTEE_OK);
    image i = take(db);
    t_close(db);
    long writes = t_calls(T_WRITE), syncs = t_calls(T_SYNC);
    t_close(t_open(t_at("s"), 0)); /* clean: the name of the holder is all that is written */
    assert_int_equal(t_calls(T_WRITE), writes + 1);
    assert_int_equal(t_calls(T_SYNC), syncs);
    plant(i.bytes, i.len);
    writes = t_calls(T_WRITE);
    syncs = t_calls(T_SYNC);
    db = t_open(t_at("s"), 0);
    assert_int_equal(t_calls(T_WRITE), writes + 2);
    assert_true(t_calls(T_SYNC) > syncs);
    t_close(db);
    for (int kind = 0; kind < 2; kind++) { /* an opening that cannot do so fails */
        plant(i.bytes, i.len);
        t_fail(kind ? T_SYNC : T_WRITE, kind ? 1 : 2, EIO, 0);
        assert_int_equal(t_try_open(t_at("s"), 0, &db), NTEE_IO);
        t_heal();
    }
    free(i.bytes);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, t_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_frame_with_another_number_does_not_chain),
        TEST(an_opening_chains_only_to_the_frame_that_it_cites),
        TEST(a_bad_record_above_the_durable_mark_is_the_torn_end),
        TEST(damage_to_an_announcement_does_not_hide_synced_writes),
        TEST(what_was_not_surely_synced_is_written_once_more),
    };
    return T_RUN_BOTH(tests);
}
