/* The hint of an open store: what it spares, and that nothing depends on it. */
#include "unit/store.h"

#include "api/handle.h"
#include "engine/save.h"

#define LOG "s/" LOG_NAME
#define HINT "s/00000001.hint"

static int setup(void **state) {
    if (t_setup(state)) return -1;
    t_use_table();
    atomic_store(&t_no_thread, 1); /* the background's steps are the test's */
    return 0;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, t_teardown)

static ntee *open_at(const char *path, uint64_t every, uint32_t flags) {
    ntee_options options = {.size = sizeof options, .flags = flags | t_flags, .hint_every = every};
    ntee *db = NULL;
    if (ntee_open(path, &options, &db) != NTEE_OK) print_error("open: %s\n", ntee_last_error()->message);
    assert_non_null(db);
    return db;
}

static void step(ntee *db) { nt_background_step(&db->background); }

static uint64_t replayed(ntee *db) {
    ntee_details_t d = {.size = sizeof d};
    assert_int_equal(ntee_details(db, &d), NTEE_OK);
    return d.replayed;
}

/* All keys and values, as one number. */
static uint64_t content(ntee *db) {
    static uint8_t page_bytes[1 << 20];
    ntee_scan_options options = {.size = sizeof options, .flags = NTEE_VALUES};
    uint64_t hash = 1;
    ntee_scan *scan;
    ntee_page page;
    ntee_entry e;
    assert_int_equal(ntee_scan_open(db, &options, &scan), NTEE_OK);
    do {
        assert_int_equal(ntee_scan_page(scan, page_bytes, sizeof page_bytes, &page), NTEE_OK);
        while (ntee_page_next(&page, &e))
            hash = nt_hash64(e.value, e.value_len, nt_hash64(e.key, e.key_len, hash));
    } while (page.more);
    ntee_scan_close(scan);
    return hash;
}

static void write_some(ntee *db, nt_random *r, int count) {
    for (int i = 0; i < count; i++) {
        char key[24], value[200];
        size_t n = (size_t)snprintf(key, sizeof key, "key %d", (int)nt_random_below(r, 200));
        uint64_t kind = nt_random_below(r, 10);
        memset(value, 'a' + (int)(nt_random_next(r) % 26), sizeof value);
        if (kind < 6) {
            assert_int_equal(ntee_put(db, key, n, value, (size_t)nt_random_below(r, sizeof value), NULL), NTEE_OK);
        } else if (kind < 9) {
            ntee_delete(db, key, n);
        } else {
            ntee_batch *batch = ntee_batch_new();
            ntee_batch_put(batch, key, n, value, 5, NULL);
            ntee_batch_delete(batch, "key 7", 5);
            ntee_batch_put(batch, "key 8", 5, value, 3, NULL);
            assert_int_equal(ntee_write(db, batch), NTEE_OK);
            ntee_batch_free(batch);
        }
    }
}

static void a_closed_store_opens_without_reading_its_records(void **state) {
    (void)state;
    nt_random r = nt_random_start("closed");
    for (int round = 0; round < 5; round++) {
        ntee *db = open_at(t_at("s"), 1, 0);
        assert_int_equal(replayed(db), 0);
        write_some(db, &r, round == 3 ? 0 : 300);
        uint64_t before = content(db), records = t_records(db);
        t_close(db);
        assert_true(t_exists(t_at(HINT)));
        db = open_at(t_at("s"), 0, round % 2 ? NTEE_READ_ONLY : 0);
        assert_int_equal(replayed(db), 0);
        assert_int_equal(content(db), before);
        assert_int_equal(t_records(db), records);
        t_close(db);
    }
}

static void a_small_store_without_a_wish_has_no_hint(void **state) {
    (void)state;
    ntee *db = open_at(t_at("s"), 0, 0);
    assert_int_equal(t_put(db, "k", "v"), NTEE_OK);
    assert_int_equal(ntee_sync(db), NTEE_OK);
    step(db);
    t_close(db);
    assert_false(t_exists(t_at(HINT)));
    static char value[1 << 20];
    db = open_at(t_at("s"), 0, 0);
    assert_int_equal(ntee_put(db, "large", 5, value, sizeof value, NULL), NTEE_OK);
    t_close(db);
    assert_true(t_exists(t_at(HINT)));
}

/* With n, a crash leaves at most n writes, and what was not synced, to read again. */
static void at_most_n_writes_are_left_to_replay(void **state) {
    (void)state;
    nt_random r = nt_random_start("at most n");
    static const uint64_t every[] = {1, 5, 60};
    for (int e = 0; e < 3; e++) {
        t_remove(t_at("s"));
        ntee *db = open_at(t_at("s"), every[e], 0);
        for (int i = 0; i < 60; i++) {
            write_some(db, &r, (int)nt_random_below(&r, 12));
            step(db); /* syncs */
            uint64_t synced = db->writer.durable_sequence;
            write_some(db, &r, (int)nt_random_below(&r, 4));
            uint64_t unsynced = db->db.sequence - synced;
            t_copy(t_at("s"), t_at("t"));
            ntee *copy = open_at(t_at("t"), 0, NTEE_READ_ONLY);
            assert_true(replayed(copy) <= every[e] + unsynced);
            assert_int_equal(content(copy), content(db));
            t_close(copy);
        }
        t_close(db);
    }
}

/* Whatever the hint's bytes are, the store is the same. */
static void a_hint_that_is_damaged_stale_or_foreign_changes_nothing(void **state) {
    (void)state;
    nt_random r = nt_random_start("damaged");
    ntee *db = open_at(t_at("s"), 1, 0);
    write_some(db, &r, 30);
    step(db);
    t_copy(t_at("s"), t_at("old"));
    write_some(db, &r, 30);
    step(db);
    write_some(db, &r, 10);
    uint64_t want = content(db);
    t_close(db);
    size_t len;
    uint8_t *bytes = t_read(t_at(HINT), &len);
    for (size_t bit = 0; bit < len * 8; bit += 7) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        t_write(t_at(HINT), bytes, len);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        db = open_at(t_at("s"), 0, NTEE_READ_ONLY);
        assert_int_equal(content(db), want);
        assert_true(replayed(db) > 0); /* a bad piece does not count, nor what is behind it */
        t_close(db);
    }
    for (size_t n = 0; n <= len; n += 11) {
        t_write(t_at(HINT), bytes, n);
        db = open_at(t_at("s"), 0, NTEE_READ_ONLY);
        assert_int_equal(content(db), want);
        t_close(db);
    }
    size_t old_len;
    uint8_t *old = t_read(t_at("old/00000001.hint"), &old_len);
    t_write(t_at(HINT), old, old_len);
    db = open_at(t_at("s"), 0, NTEE_READ_ONLY);
    assert_true(replayed(db) > 0 && replayed(db) < 100);
    assert_int_equal(content(db), want);
    t_close(db);
    t_remove(t_at("s")); /* another store, of the same name and perhaps the same length */
    db = open_at(t_at("s"), 1, 0);
    write_some(db, &r, 90);
    want = content(db);
    t_close(db);
    t_write(t_at(HINT), bytes, len);
    db = open_at(t_at("s"), 1, 0);
    assert_int_equal(content(db), want);
    write_some(db, &r, 5);
    want = content(db);
    t_close(db);
    db = open_at(t_at("s"), 1, 0);
    assert_int_equal(replayed(db), 0);
    assert_int_equal(content(db), want);
    t_close(db);
    free(old);
    free(bytes);
}

/* A log that lost what its hint knows of, though it had been synced: the log counts. */
static void a_hint_that_is_ahead_of_its_log_is_ignored(void **state) {
    (void)state;
    nt_random r = nt_random_start("ahead");
    ntee *db = open_at(t_at("s"), 1, 0);
    write_some(db, &r, 20);
    uint64_t end = t_log_bytes(db), want = content(db);
    write_some(db, &r, 20);
    t_close(db);
    assert_int_equal(truncate(t_at(LOG), (off_t)end), 0);
    db = open_at(t_at("s"), 1, 0);
    assert_int_equal(content(db), want);
    write_some(db, &r, 30); /* and this may make it as long as it was */
    want = content(db);
    t_close(db);
    db = open_at(t_at("s"), 1, 0);
    assert_int_equal(content(db), want);
    t_close(db);
}

static void many_deltas_become_a_snapshot(void **state) {
    (void)state;
    ntee *db = open_at(t_at("s"), 1, 0);
    for (int i = 0; i < 3000; i++) assert_int_equal(ntee_put(db, &(int){i % 50}, 4, "v", 1, NULL), NTEE_OK);
    step(db);
    assert_int_equal(ntee_sync(db), NTEE_OK);
    t_close(db);
    db = open_at(t_at("s"), 1, 0);
    assert_int_equal(db->db.saving.loaded.delta_entries, 0);
    assert_int_equal(db->db.saving.loaded.snapshot_entries, 50);
    t_close(db);
}

/* With a hint, damage in front of what it covers is an error of the records that it is in, and of no others. */
static void a_hint_attributes_damage(void **state) {
    (void)state;
    ntee *db = open_at(t_at("s"), 1, 0);
    for (int i = 0; i < 20; i++) {
        char key[16];
        snprintf(key, sizeof key, "key%02d", i);
        assert_int_equal(t_put(db, key, "value"), NTEE_OK);
    }
    t_close(db);
    size_t len;
    uint8_t *bytes = t_read(t_at(LOG), &len);
    uint8_t *at = memmem(bytes, len, "key07", 5);
    assert_non_null(at);
    at[1] ^= 1;
    t_write(t_at(LOG), bytes, len);
    free(bytes);
    db = open_at(t_at("s"), 1, 0);
    assert_string_equal(t_get(db, "key06"), "value");
    assert_string_equal(t_get(db, "key07"), "(corrupt)");
    assert_string_equal(t_get(db, "key08"), "value");
    assert_int_equal(t_put(db, "key07", "anew"), NTEE_OK);
    t_close(db);
    db = open_at(t_at("s"), 1, 0);
    assert_string_equal(t_get(db, "key07"), "anew");
    assert_string_equal(t_get(db, "key06"), "value");
    t_close(db);
}

static void saving_that_fails_fails_nothing_else(void **state) {
    (void)state;
    nt_random r = nt_random_start("failing");
    for (int kind = 0; kind < T_KINDS; kind++) {
        if (kind == T_SYNC || kind == T_ALLOCATE || kind == T_THREAD) continue; /* the log's own */
        for (long nth = 1; nth < 12; nth++) {
            t_remove(t_at("s"));
            ntee *db = open_at(t_at("s"), 3, NTEE_NO_MMAP);
            write_some(db, &r, 10);
            assert_int_equal(ntee_sync(db), NTEE_OK);
            if (nth % 2) step(db);
            write_some(db, &r, 10);
            assert_int_equal(ntee_sync(db), NTEE_OK);
            uint64_t want = content(db);
            t_fail(kind, nth, kind == T_ALLOC ? ENOMEM : ENOSPC, 0);
            int whole = nt_save_wants_snapshot(&db->db, NT_SAVE_BUSY);
            const nt_version *version = whole ? nt_keydir_hold_newest(db->db.keydir) : NULL;
            if (version) nt_save_snapshot(&db->db, version);
            nt_save_step(&db->db, NT_SAVE_BUSY);
            t_heal();
            write_some(db, &r, 3);
            step(db);
            uint64_t last = content(db);
            assert_true(last != 0 && want != 0);
            t_close(db);
            db = open_at(t_at("s"), 3, 0);
            assert_int_equal(content(db), last);
            t_close(db);
        }
    }
}

/* The hint before stays where a snapshot fails, and what comes next has to go on where that one ends. */
static void a_snapshot_that_fails_leaves_no_hole_in_the_hint(void **state) {
    (void)state;
    ntee *db = open_at(t_at("s"), 1, 0);
    for (int i = 0; i < 10; i++) assert_int_equal(ntee_put(db, &i, sizeof i, "early", 5, NULL), NTEE_OK);
    step(db);
    assert_true(db->db.saving.saver.fd >= 0);
    for (int i = 5; i < 1500; i++) assert_int_equal(ntee_put(db, &i, sizeof i, "later", 5, NULL), NTEE_OK);
    assert_int_equal(ntee_delete(db, &(int){3}, 4), NTEE_OK);
    assert_int_equal(ntee_sync(db), NTEE_OK);
    assert_true(nt_save_wants_snapshot(&db->db, NT_SAVE_CLOSING));
    const nt_version *version = nt_keydir_hold_newest(db->db.keydir);
    assert_non_null(version);
    t_fail(T_WRITE, 1, ENOSPC, 0);
    nt_save_snapshot(&db->db, version);
    t_heal();
    assert_true(db->db.saving.saver.fd >= 0);
    assert_int_equal(t_put(db, "last", "of all"), NTEE_OK);
    assert_int_equal(ntee_sync(db), NTEE_OK);
    nt_save_step(&db->db, NT_SAVE_CLOSING);
    t_copy(t_at("s"), t_at("t"));
    ntee *copy = open_at(t_at("t"), 0, NTEE_READ_ONLY);
    assert_int_equal(replayed(copy), 0);
    assert_int_equal(t_records(copy), t_records(db));
    assert_int_equal(content(copy), content(db));
    t_close(copy);
    t_close(db);
}

static void the_hint_goes_with_its_store(void **state) {
    (void)state;
    ntee *db = open_at(t_at("s"), 1, 0);
    assert_int_equal(t_put(db, "k", "v"), NTEE_OK);
    t_close(db);
    t_write(t_at("s/00000001.hint.tmp"), "left over", 9);
    t_write(t_at("s/00000002.hint"), "NTEEHINT of a log that is not there", 30);
    t_write(t_at("s/00000003.hint"), "somebody's", 10);
    db = open_at(t_at("s"), 1, 0);
    assert_false(t_exists(t_at("s/00000001.hint.tmp")));
    assert_false(t_exists(t_at("s/00000002.hint")));
    assert_true(t_exists(t_at("s/00000003.hint")));
    assert_int_equal(ntee_drop(db), NTEE_OK);
    assert_false(t_exists(t_at(HINT)));
    assert_true(t_exists(t_at("s/00000003.hint")));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_closed_store_opens_without_reading_its_records),
        TEST(a_small_store_without_a_wish_has_no_hint),
        TEST(at_most_n_writes_are_left_to_replay),
        TEST(a_hint_that_is_damaged_stale_or_foreign_changes_nothing),
        TEST(a_hint_that_is_ahead_of_its_log_is_ignored),
        TEST(many_deltas_become_a_snapshot),
        TEST(a_hint_attributes_damage),
        TEST(saving_that_fails_fails_nothing_else),
        TEST(a_snapshot_that_fails_leaves_no_hole_in_the_hint),
        TEST(the_hint_goes_with_its_store),
    };
    return T_RUN_BOTH(tests);
}
