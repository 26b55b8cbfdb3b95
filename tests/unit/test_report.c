/* What a store says about itself: details, the damage that opening found, and verify. */
#include "unit/store.h"

#include "api/handle.h"

#define LOG "s/" LOG_NAME

static ntee_details_t details(ntee *db) {
    ntee_details_t d = {.size = sizeof d};
    assert_int_equal(ntee_details(db, &d), NTEE_OK);
    return d;
}

static void details_follow_writes_and_syncs(void **state) {
    (void)state;
    t_use_table();
    atomic_store(&t_no_thread, 1);
    ntee *db = t_open(t_at("s"), 0);
    ntee_details_t d = details(db);
    assert_int_equal(d.state, NTEE_STATE_GOOD);
    assert_int_equal(d.sequence, 0);
    assert_int_equal(d.log_generation, strtoull(LOG_NAME, NULL, 16));
    for (int i = 0; i < 3; i++) assert_int_equal(t_put(db, i ? "k" : "j", "v"), NTEE_OK);
    assert_int_equal(t_delete(db, "j"), NTEE_OK);
    d = details(db);
    assert_int_equal(d.records, 1);
    assert_int_equal(d.sequence, 4);
    assert_int_equal(d.durable_sequence, 0);
    assert_int_equal(d.main_bytes, t_log_bytes(db));
    assert_int_equal(d.sync_lag_ms, 0);
    t_sleep(30);
    assert_int_equal(ntee_sync(db), NTEE_OK);
    d = details(db);
    assert_int_equal(d.durable_sequence, 4);
    assert_true(d.sync_lag_ms >= 29 && d.sync_lag_ms < 5000);
    ntee_scan *scan;
    ntee_scan_options all = {.size = sizeof all};
    assert_int_equal(ntee_scan_open(db, &all, &scan), NTEE_OK);
    assert_int_equal(details(db).open_scans, 1);
    ntee_scan_close(scan);
    assert_int_equal(details(db).open_scans, 0);
    t_fail(T_SYNC, 1, EIO, 0);
    assert_int_equal(t_put(db, "k", "w"), NTEE_OK);
    assert_int_equal(ntee_sync(db), NTEE_IO);
    t_heal();
    d = details(db);
    assert_int_equal(d.state, NTEE_STATE_FAILED);
    assert_int_equal(d.sequence, 5);
    assert_int_equal(d.durable_sequence, 4);
    ntee_close(db);
    db = t_open(t_at("s"), NTEE_READ_ONLY);
    d = details(db);
    assert_int_equal(d.state, NTEE_STATE_READ_ONLY);
    assert_int_equal(d.was_clean, 0);
    assert_int_equal(d.replayed, 5);
    assert_int_equal(d.durable_sequence, 5);
    t_close(db);
}

static void in_the_durable_tier_what_is_written_is_durable(void **state) {
    (void)state;
    ntee *db = t_open(t_at("s"), NTEE_SYNC_EVERY_WRITE);
    for (uint64_t i = 1; i < 6; i++) {
        assert_int_equal(t_put(db, "k", "v"), NTEE_OK);
        assert_int_equal(details(db).durable_sequence, i);
    }
    t_close(db);
    db = t_open(t_at("s"), 0);
    assert_int_equal(details(db).was_clean, 1);
    assert_int_equal(details(db).sequence, 5);
    t_close(db);
}

/* ---- Damage ----------------------------------------------------------------------------------------- */

static size_t find(const uint8_t *bytes, size_t len, const char *text) {
    const uint8_t *at = memmem(bytes, len, text, strlen(text));
    assert_non_null(at);
    return (size_t)(at - bytes);
}

static void flip(const char *text) {
    size_t len;
    uint8_t *bytes = t_read(t_at(LOG), &len);
    bytes[find(bytes, len, text)] ^= 1;
    t_write(t_at(LOG), bytes, len);
    free(bytes);
}

static void make(void) {
    ntee *db = t_open(t_at("s"), 0);
    for (int i = 0; i < 20; i++) {
        char key[16], value[32];
        snprintf(key, sizeof key, "key%02d", i);
        snprintf(value, sizeof value, "value of %02d", i);
        assert_int_equal(t_put(db, key, value), NTEE_OK);
    }
    t_close(db);
}

static void damage_that_opening_found_is_listed(void **state) {
    (void)state;
    ntee_place places[3];
    size_t count;
    make();
    ntee *db = t_open(t_at("s"), NTEE_READ_ONLY);
    assert_int_equal(ntee_damage(db, NULL, 0, &count), NTEE_OK);
    assert_int_equal(count, 0);
    assert_int_equal(details(db).suspect_bytes, 0);
    t_close(db);
    flip("key05");
    flip("key11");
    db = t_open(t_at("s"), NTEE_READ_ONLY);
    memset(places, 0xEE, sizeof places);
    assert_int_equal(ntee_damage(db, places, 1, &count), NTEE_OK);
    assert_int_equal(count, 2);
    assert_int_equal(places[1].length, 0xEEEEEEEEEEEEEEEE);
    assert_int_equal(ntee_damage(db, places, 3, &count), NTEE_OK);
    assert_int_equal(places[0].length, places[1].length);
    assert_true(places[0].offset > NT_LOG_START && places[1].offset > places[0].offset);
    assert_int_equal(details(db).damaged, 2);
    assert_int_equal(details(db).suspect_bytes, places[1].offset + places[1].length + NT_FRAME_HEAD_SIZE);
    assert_int_equal(ntee_damage(db, NULL, 1, &count), NTEE_INVALID);
    assert_int_equal(ntee_damage(db, places, 1, NULL), NTEE_INVALID);
    t_close(db);
}

/* ---- Verify ----------------------------------------------------------------------------------------- */

static void a_good_store_verifies_at_any_moment(void **state) {
    (void)state;
    size_t count = 9;
    ntee *db = t_open(t_at("s"), 0);
    assert_int_equal(ntee_verify(db, NULL, 0, &count), NTEE_OK);
    assert_int_equal(count, 0);
    for (int i = 0; i < 3000; i++) {
        assert_int_equal(ntee_put(db, &i, sizeof i, t_root, (size_t)(i % 200), NULL), NTEE_OK);
        if (i % 3 == 0) assert_int_equal(ntee_delete(db, &i, sizeof i), NTEE_OK);
        if (i % 500) continue;
        assert_int_equal(ntee_verify(db, NULL, 0, &count), NTEE_OK);
        assert_int_equal(count, 0);
    }
    assert_int_equal(ntee_verify(db, NULL, 1, &count), NTEE_INVALID);
    assert_int_equal(ntee_verify(db, NULL, 0, NULL), NTEE_INVALID);
    t_close(db);
}

/* Bytes that rot while the store is open. */
static void verify_finds_each_flipped_byte_of_an_open_store(void **state) {
    (void)state;
    make();
    size_t len, count;
    ntee_error found[4];
    uint8_t *bytes = t_read(t_at(LOG), &len);
    ntee *db = t_open(t_at("s"), NTEE_READ_ONLY);
    int fd = open(t_at(LOG), O_WRONLY);
    for (size_t at = 0; at < len; at++) {
        uint8_t rotten = bytes[at] ^ 0x40;
        if (at == NT_LOG_HEADER_SIZE) at = NT_LOG_COPY;
        assert_int_equal(pwrite(fd, &rotten, 1, (off_t)at), 1);
        assert_int_equal(ntee_verify(db, found, 4, &count), NTEE_OK);
        assert_true(count >= 1);
        assert_int_equal(found[0].status, NTEE_CORRUPT);
        assert_non_null(strstr(found[0].message, LOG_NAME));
        assert_true(found[0].offset >= 0 && found[0].offset <= (int64_t)at);
        assert_int_equal(pwrite(fd, bytes + at, 1, (off_t)at), 1);
    }
    uint8_t rotten = 'V';
    assert_int_equal(pwrite(fd, &rotten, 1, (off_t)find(bytes, len, "value of 07")), 1);
    assert_int_equal(ntee_verify(db, found, 4, &count), NTEE_OK);
    assert_int_equal(count, 2); /* where it is in the log, and the key that leads there */
    for (int i = 0; i < 2; i++) {
        assert_non_null(strstr(found[i].message, "key key07"));
        assert_null(strstr(found[i].message, "of 07"));
    }
    close(fd);
    t_close(db);
    free(bytes);
}

static void verify_fails_where_the_disk_does(void **state) {
    (void)state;
    make();
    t_use_table();
    ntee *db = t_open(t_at("s"), 0);
    long memory = atomic_load(&t_memory);
    size_t count;
    for (long nth = 1;; nth++) {
        t_fail(T_ALLOC, nth, ENOMEM, 0);
        ntee_status status = ntee_verify(db, NULL, 0, &count);
        t_heal();
        if (status == NTEE_OK) break;
        assert_int_equal(status, NTEE_NOMEM);
        assert_int_equal(atomic_load(&t_memory), memory);
    }
    for (long nth = 1; t_flags & NTEE_NO_MMAP; nth++) {
        t_fail(T_READ, nth, EIO, 0);
        ntee_status status = ntee_verify(db, NULL, 0, &count);
        t_heal();
        if (status == NTEE_OK) break;
        assert_int_equal(status, NTEE_IO);
    }
    assert_int_equal(details(db).open_scans, 0);
    t_close(db);
}

/* ---- The same through ntee_run ------------------------------------------------------------------------- */

static void bindings_get_the_same(void **state) {
    (void)state;
    make();
    flip("key03");
    flip("value of 04");
    ntee *db = t_open(t_at("s"), NTEE_READ_ONLY);
    _Alignas(8) uint8_t out[4096];
    ntee_reply reply;
    ntee_details_t d = details(db), got;
    ntee_place place, listed;
    size_t count;
    assert_int_equal(ntee_damage(db, &place, 1, &count), NTEE_OK);
    assert_int_equal(ntee_run(db, NTEE_OP_DETAILS, NTEE_AT_HAND, NULL, 0, out, sizeof d, &reply),
                     NTEE_SHORT_BUFFER);
    assert_int_equal(reply.needed, sizeof d + sizeof place);
    assert_int_equal(ntee_run(db, NTEE_OP_DETAILS, NTEE_AT_HAND, NULL, 0, out, sizeof out, &reply), NTEE_OK);
    assert_int_equal(reply.length, sizeof d + sizeof place);
    assert_int_equal(reply.count, 1);
    memcpy(&got, out, sizeof got);
    memcpy(&listed, out + sizeof got, sizeof listed);
    assert_memory_equal(&got, &d, sizeof d);
    assert_memory_equal(&listed, &place, sizeof place);
    assert_int_equal(ntee_run(db, NTEE_OP_DETAILS, 0, NULL, 0, out + 4, sizeof out - 4, &reply), NTEE_INVALID);
    assert_int_equal(ntee_run(db, NTEE_OP_VERIFY, 0, NULL, 0, out + 1, sizeof out - 1, &reply), NTEE_INVALID);
    assert_int_equal(ntee_run(db, NTEE_OP_VERIFY, NTEE_AT_HAND, NULL, 0, out, sizeof out, &reply),
                     NTEE_WOULD_BLOCK);
    assert_int_equal(ntee_run(db, NTEE_OP_VERIFY, 0, NULL, 0, out, sizeof(ntee_error), &reply), NTEE_OK);
    assert_int_equal(reply.length, sizeof(ntee_error));
    assert_true(reply.count >= 3); /* two places, and the keys before the lost one */
    assert_int_equal(((ntee_error *)(void *)out)->status, NTEE_CORRUPT);
    t_close(db);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T_TEST(details_follow_writes_and_syncs),
        T_TEST(in_the_durable_tier_what_is_written_is_durable),
        T_TEST(damage_that_opening_found_is_listed),
        T_TEST(a_good_store_verifies_at_any_moment),
        T_TEST(verify_finds_each_flipped_byte_of_an_open_store),
        T_TEST(verify_fails_where_the_disk_does),
        T_TEST(bindings_get_the_same),
    };
    return T_RUN_BOTH(tests);
}
