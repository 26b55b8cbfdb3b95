/* Walks over a range of one version: how much is left, what is at hand, and how much a page may need. */
#include "unit/store.h"

#include "engine/commit.h"
#include "engine/get.h"
#include "engine/open.h"
#include "engine/scan.h"

static nt_db db;
static ntee_error err;

static void open_db(void) {
    nt_open_options how = {.no_mmap = (t_flags & NTEE_NO_MMAP) != 0};
    assert_int_equal(nt_db_open(&db, t_at("s"), &how, &err), NTEE_OK);
}

static void close_db(void) { assert_int_equal(nt_db_close(&db, 0, NULL, &err), NTEE_OK); }

static void put_many(int count, size_t value_len) {
    static char value[1 << 17];
    nt_write w;
    nt_write_begin(&w, &db);
    for (int i = 0; i < count; i++) {
        char key[16];
        snprintf(key, sizeof key, "key%06d", i);
        assert_int_equal(nt_write_add(&w, NT_WIRE_PUT, key, strlen(key), value, value_len, &err), NTEE_OK);
    }
    assert_int_equal(nt_commit(&db, &w, &err), NTEE_OK);
    nt_keydir_publish(db.keydir, w.staged);
    nt_write_end(&w);
}

static uint32_t holds(void) {
    nt_arena_usage usage;
    nt_arena_measure(nt_keydir_arena(db.keydir), &usage);
    return usage.holds;
}

static void a_scan_knows_how_much_is_left_and_holds_its_version(void **state) {
    (void)state;
    nt_scan scan;
    ntee_page page;
    _Alignas(8) char room[256];
    uint64_t count;
    open_db();
    put_many(100, 10);
    ntee_scan_options o = {.size = sizeof o, .range = {.lower = "key00005", .lower_len = 8, .flags = NTEE_PREFIX}};
    assert_int_equal(nt_scan_begin(&scan, &db, &o, &err), NTEE_OK);
    assert_int_equal(holds(), 1);
    assert_int_equal(scan.remaining, 10);
    while (scan.remaining) {
        uint64_t before = scan.remaining;
        assert_int_equal(nt_scan_fill(&scan, room, sizeof room, &page, &err), NTEE_OK);
        assert_int_equal(scan.remaining, before - page.count);
        assert_int_equal(page.more, scan.remaining != 0);
    }
    nt_scan_end(&scan);
    nt_scan_end(&scan);
    assert_int_equal(holds(), 0);
    o.limit = 7;
    assert_int_equal(nt_scan_begin(&scan, &db, &o, &err), NTEE_OK);
    assert_int_equal(scan.remaining, 7);
    nt_scan_end(&scan);
    assert_int_equal(nt_count(&db, &o, &count, &err), NTEE_OK);
    assert_int_equal(count, 7);
    assert_int_equal(nt_count_all(&db, &count, &err), NTEE_OK);
    assert_int_equal(count, 100);
    o.size = 1;
    assert_int_equal(nt_scan_begin(&scan, &db, &o, &err), NTEE_INVALID);
    nt_scan_end(&scan);
    assert_int_equal(holds(), 0);
    close_db();
}

static int at_hand(uint32_t flags, uint64_t limit) {
    nt_scan scan;
    ntee_scan_options o = {.size = sizeof o, .flags = flags, .limit = limit};
    assert_int_equal(nt_scan_begin(&scan, &db, &o, &err), NTEE_OK);
    int is = nt_scan_at_hand(&scan);
    nt_scan_end(&scan);
    return is;
}

static void little_is_at_hand_and_much_is_not(void **state) {
    (void)state;
    int mapped = !(t_flags & NTEE_NO_MMAP);
    open_db();
    assert_int_equal(at_hand(0, 0), 1);
    assert_int_equal(at_hand(NTEE_VALUES, 0), 1);
    put_many(NT_AT_HAND_KEYS + 1, 10);
    assert_int_equal(at_hand(0, 0), 0);
    assert_int_equal(at_hand(0, NT_AT_HAND_KEYS), 1);
    assert_int_equal(at_hand(NTEE_VALUES, 0), 0);
    assert_int_equal(at_hand(NTEE_VALUES, NT_AT_HAND_KEYS), mapped);
    assert_int_equal(at_hand(NTEE_VALUES | NTEE_REVERSE, NT_AT_HAND_KEYS), mapped);
    put_many(100, 700);
    assert_int_equal(at_hand(NTEE_VALUES, 50), mapped);
    assert_int_equal(at_hand(NTEE_VALUES, 100), 0);
    assert_int_equal(at_hand(0, 100), 1);
    put_many(1, 1 << 17);
    assert_int_equal(at_hand(NTEE_VALUES, 1), 0);
    close_db();
    open_db();
    assert_int_equal(at_hand(NTEE_VALUES, 1), 0); /* nothing of it was read yet */
    assert_int_equal(at_hand(0, 1), 1);
    close_db();
}

static void an_estimate_holds_keys_of_equal_length(void **state) {
    (void)state;
    static _Alignas(8) uint8_t room[1 << 20];
    static const int counts[] = {0, 1, 10, 1000, 20000};
    for (int i = 0; i < 5; i++) {
        nt_scan scan;
        ntee_page page;
        ntee_scan_options o = {.size = sizeof o};
        t_remove(t_at("s"));
        open_db();
        if (counts[i]) put_many(counts[i], 10);
        assert_int_equal(nt_scan_begin(&scan, &db, &o, &err), NTEE_OK);
        uint64_t size = nt_scan_estimate(&scan);
        assert_true(size <= sizeof room && size % 8 == 0);
        assert_int_equal(nt_scan_fill(&scan, room, (size_t)size, &page, &err), NTEE_OK);
        assert_int_equal(page.count, counts[i]);
        assert_int_equal(page.more, 0);
        nt_scan_end(&scan);
        close_db();
    }
}

static void scans_beside_writes_leave_nothing_held(void **state) {
    (void)state;
    nt_scan scans[20];
    nt_arena_usage usage;
    open_db();
    for (int round = 0; round < 200; round++) {
        ntee_scan_options o = {.size = sizeof o};
        nt_scan *scan = &scans[round % 20];
        if (round >= 20) nt_scan_end(scan);
        put_many(30, 4);
        assert_int_equal(nt_scan_begin(scan, &db, &o, &err), NTEE_OK);
    }
    assert_int_equal(holds(), 20);
    for (int i = 0; i < 20; i++) nt_scan_end(&scans[i]);
    for (int i = 0; i < 2000; i++) put_many(1, 4);
    nt_arena_measure(nt_keydir_arena(db.keydir), &usage);
    assert_int_equal(usage.holds, 0);
    assert_true(usage.live < 10);
    close_db();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T_TEST(a_scan_knows_how_much_is_left_and_holds_its_version),
        T_TEST(little_is_at_hand_and_much_is_not),
        T_TEST(an_estimate_holds_keys_of_equal_length),
        T_TEST(scans_beside_writes_leave_nothing_held),
    };
    return T_RUN_BOTH(tests);
}
