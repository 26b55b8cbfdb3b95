/* Bytes that had been synced and are not what was written: the store opens, nothing is answered wrongly, and as
 * little as possible is lost. */
#include "unit/store.h"

#include "api/handle.h"

#define LOG "s/" LOG_NAME
#define ITEMS 40
#define MARK (NT_FRAME_OPEN_SIZE + NT_FRAME_MARK_SIZE) /* what a clean close appends */

/* ---- A closed store, and what it holds -------------------------------------------------------------- */

typedef struct image {
    uint8_t *bytes;
    size_t len;
} image;

static image take(void) {
    image i;
    i.bytes = t_read(t_at(LOG), &i.len);
    return i;
}

static void plant(image i) {
    t_remove(t_at("s"));
    assert_int_equal(mkdir(t_at("s"), 0700), 0);
    t_write(t_at("s/LOCK"), "", 0);
    t_write(t_at(LOG), i.bytes, i.len);
}

static const char *item(int i, char out[16]) {
    snprintf(out, 16, "item%02d", i);
    return out;
}

/* What each key holds; NULL: it was deleted. */
typedef struct fact {
    const char *key;
    const char *value;
} fact;

static const fact FACTS[] = {{"a", NULL},     {"b", "second"}, {"c", "only"}, {"x", "again"},
                             {"gone", NULL}, {"last", "of all"}};
#define FACT_COUNT (int)(sizeof FACTS / sizeof *FACTS)

/* Overwrites, deletes, a batch of ITEMS + 1, deletes in it, and a last write. Everything is synced. */
static image make(void) {
    char key[16];
    ntee *db = t_open(t_at("s"), 0);
    t_put(db, "a", "first");
    t_put(db, "b", "first");
    t_put(db, "gone", "was here");
    t_put(db, "c", "only");
    t_put(db, "a", "more");
    t_put(db, "x", "here");
    t_delete(db, "a");
    ntee_batch *batch = ntee_batch_new();
    for (int i = 0; i < ITEMS; i++) ntee_batch_put(batch, item(i, key), 6, "in a batch", 10, NULL);
    ntee_batch_put(batch, "b", 1, "second", 6, NULL);
    ntee_batch_delete(batch, "gone", 4);
    assert_int_equal(ntee_write(db, batch), NTEE_OK);
    ntee_batch_free(batch);
    t_put(db, "x", "again");
    t_put(db, "last", "of all");
    assert_int_equal(ntee_sync(db), NTEE_OK);
    t_close(db);
    return take();
}

typedef struct tally {
    int right, corrupt, missing;
} tally;

/* Compares an answer with what was written: never another value, never a deleted key. */
static void look_at(tally *t, ntee *db, const char *key, const char *want) {
    const char *got = t_get(db, key);
    ntee_status has = ntee_has(db, key, strlen(key));
    if (!strcmp(got, "(corrupt)")) {
        assert_true(has == NTEE_CORRUPT || (want && has == NTEE_OK));
        assert_non_null(strstr(ntee_last_error()->message, has == NTEE_OK ? "" : key));
        t->corrupt++;
    } else if (!strcmp(got, "(missing)")) {
        assert_int_equal(has, NTEE_NOT_FOUND);
        if (want) t->missing++;
        else t->right++;
    } else {
        if (!want) print_error("%s is back\n", key);
        assert_non_null(want);
        assert_string_equal(got, want);
        assert_int_equal(has, NTEE_OK);
        t->right++;
    }
}

static tally look(ntee *db) {
    char key[16];
    tally t = {0, 0, 0};
    for (int i = 0; i < FACT_COUNT; i++) look_at(&t, db, FACTS[i].key, FACTS[i].value);
    for (int i = 0; i < ITEMS; i++) look_at(&t, db, item(i, key), "in a batch");
    return t;
}

static const int ALL = FACT_COUNT + ITEMS;

static tally open_and_look(uint32_t flags) {
    ntee *db = t_open(t_at("s"), flags);
    tally t = look(db);
    t_close(db);
    return t;
}

/* ---- Where the damage is ---------------------------------------------------------------------------- */

static void any_flipped_bit_costs_at_most_the_record_that_it_is_in(void **state) {
    (void)state;
    image i = make();
    size_t step = getenv("NT_LONG") ? 1 : 3, harmless = 0, tried = 0;
    for (size_t bit = 0; bit < i.len * 8; bit += step) {
        if (bit == 136 * 8) bit = 4096 * 8; /* what is between the headers is not looked at */
        i.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        plant(i);
        i.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        tally t = open_and_look(NTEE_READ_ONLY);
        if (t.missing > 1) print_error("bit %zu: %d missing\n", bit, t.missing);
        assert_true(t.missing <= 1);
        harmless += t.right == ALL;
        tried++;
    }
    print_message("%zu of %zu flipped bits cost nothing\n", harmless, tried);
    assert_true(harmless * 3 > tried); /* frame heads, copies of the header, what was overwritten */
    free(i.bytes);
}

/* Sectors as disks and their software lose them. */
static void no_damaged_stretch_gives_a_wrong_answer(void **state) {
    (void)state;
    image i = make();
    nt_random r = nt_random_start("stretches");
    uint8_t *copy = malloc(i.len);
    for (int round = 0; round < 1500; round++) {
        memcpy(copy, i.bytes, i.len);
        size_t span = 8 + nt_random_below(&r, round % 3 ? 120 : 600);
        size_t room = i.len - MARK - NT_LOG_COPY - span; /* without the mark nobody knows what was synced */
        size_t at = NT_LOG_COPY + nt_random_below(&r, room);
        size_t from = NT_LOG_COPY + nt_random_below(&r, room);
        if (round % 2) at &= ~(size_t)7u, from &= ~(size_t)7u;
        switch (nt_random_below(&r, 5)) {
        case 0: memset(copy + at, 0, span); break;
        case 1: memset(copy + at, 0xFF, span); break;
        case 2: nt_random_fill(&r, copy + at, span); break;
        case 3: memmove(copy + at, copy + from, span); break; /* doubled */
        default: memmove(copy + at, copy + at + 8, span - 8); break; /* bytes left out */
        }
        plant((image){copy, i.len});
        tally first = open_and_look(0);
        tally second = open_and_look(0); /* and that opening's writes change nothing about it */
        assert_memory_equal(&first, &second, sizeof first);
    }
    free(copy);
    free(i.bytes);
}

static size_t find(image i, const char *text) {
    const uint8_t *at = memmem(i.bytes, i.len, text, strlen(text));
    assert_non_null(at);
    return (size_t)(at - i.bytes);
}

static void damaged_frame_heads_cost_nothing(void **state) {
    (void)state;
    image i = make();
    size_t batch = find(i, "item00") - NT_RECORD_HEAD_SIZE - NT_FRAME_HEAD_SIZE;
    memset(i.bytes + batch, 0xA5, NT_FRAME_HEAD_SIZE);
    memset(i.bytes + find(i, "of all") - 4 - NT_RECORD_HEAD_SIZE - NT_FRAME_HEAD_SIZE, 0, NT_FRAME_HEAD_SIZE);
    plant(i);
    tally t = open_and_look(0);
    assert_int_equal(t.right, ALL);
    free(i.bytes);
}

static void either_copy_of_the_header_is_enough(void **state) {
    (void)state;
    image i = make();
    static const size_t copies[] = {0, NT_LOG_COPY};
    for (int c = 0; c < 2; c++) {
        for (size_t byte = 0; byte < NT_LOG_HEADER_SIZE; byte++) {
            uint8_t saved = i.bytes[copies[c] + byte];
            i.bytes[copies[c] + byte] ^= 0x81;
            plant(i);
            i.bytes[copies[c] + byte] = saved;
            ntee *db = t_open(t_at("s"), 0);
            assert_int_equal(db->db.recovery.damage.len, sizeof(nt_damage));
            assert_int_equal(look(db).right, ALL);
            t_close(db);
        }
    }
    i.bytes[20] ^= 1;
    i.bytes[NT_LOG_COPY + 20] ^= 1;
    plant(i);
    ntee *db;
    assert_int_equal(t_try_open(t_at("s"), 0, &db), NTEE_CORRUPT);
    free(i.bytes);
}

/* Without the salt nothing verifies: it is said again and again. */
static void losing_the_announcements_of_a_salt_costs_64_kib_at_most(void **state) {
    (void)state;
    char key[16], value[1000];
    memset(value, 'v', sizeof value);
    ntee *db = t_open(t_at("s"), 0);
    for (int n = 0; n < 300; n++) {
        snprintf(key, sizeof key, "key%04d", n);
        assert_int_equal(ntee_put(db, key, 7, value, sizeof value, NULL), NTEE_OK);
    }
    assert_int_equal(ntee_sync(db), NTEE_OK);
    assert_int_equal(t_put(db, "more", "knows of the sync"), NTEE_OK);
    t_copy(t_at("s"), t_at("t"));
    t_close(db);
    t_remove(t_at("s"));
    assert_int_equal(rename(t_at("t"), t_at("s")), 0);
    image i = take();
    memset(i.bytes + NT_LOG_START, 0, 2 * NT_FRAME_OPEN_SIZE);
    plant(i);
    db = t_open(t_at("s"), 0);
    assert_int_equal(t_records(db), 301); /* all the same: records have checks of their own */
    assert_int_equal(((const nt_damage *)(const void *)db->db.recovery.damage.data)->offset, NT_LOG_START);
    assert_true(((const nt_damage *)(const void *)db->db.recovery.damage.data)->length < NT_ANNOUNCE_EVERY + 4096);
    for (int n = 0; n < 300; n++) {
        snprintf(key, sizeof key, "key%04d", n);
        assert_int_equal(strlen(t_get(db, key)), sizeof value);
    }
    t_close(db);
    free(i.bytes);
}

/* ---- Living with it --------------------------------------------------------------------------------- */

/* The record that sets x anew loses its key: whatever is older may be out of date. */
static void lose_x(image i) {
    i.bytes[find(i, "xagain")] ^= 0x40;
    plant(i);
}

static void where_a_record_is_lost_older_ones_are_not_trusted_until_written_anew(void **state) {
    (void)state;
    image i = make();
    lose_x(i);
    ntee *db = t_open(t_at("s"), 0);
    assert_string_equal(t_get(db, "last"), "of all");
    assert_string_equal(t_get(db, "x"), "(corrupt)");
    assert_non_null(strstr(ntee_last_error()->message, "key x"));
    assert_string_equal(t_get(db, "c"), "(corrupt)");
    assert_int_equal(ntee_has(db, "c", 1), NTEE_CORRUPT);
    assert_int_equal(ntee_put_if_absent(db, "c", 1, "v", 1, NULL), NTEE_CORRUPT);
    assert_string_equal(t_get(db, "a"), "(missing)"); /* its deletion is still there */
    assert_int_equal(t_put(db, "c", "anew"), NTEE_OK);
    assert_string_equal(t_get(db, "c"), "anew");
    assert_int_equal(t_delete(db, "item05"), NTEE_OK);
    assert_int_equal(t_delete(db, "item05"), NTEE_NOT_FOUND);
    assert_int_equal(ntee_put_if_absent(db, "item05", 6, "new", 3, NULL), NTEE_OK);
    assert_int_equal(t_delete(db, "b"), NTEE_OK);
    for (int round = 0; round < 3; round++) {
        t_close(db);
        db = t_open(t_at("s"), round == 1 ? NTEE_READ_ONLY : 0);
        assert_string_equal(t_get(db, "c"), "anew");
        assert_string_equal(t_get(db, "item05"), "new");
        assert_string_equal(t_get(db, "b"), "(missing)");
        assert_string_equal(t_get(db, "x"), "(corrupt)");
        assert_string_equal(t_get(db, "item06"), "(corrupt)");
    }
    t_close(db);
    free(i.bytes);
}

static void accepting_damage_is_remembered_and_covers_no_later_one(void **state) {
    (void)state;
    image i = make();
    lose_x(i);
    ntee *db = t_open(t_at("s"), NTEE_READ_ONLY | NTEE_ACCEPT_DAMAGE);
    assert_string_equal(t_get(db, "x"), "here"); /* in this handle only */
    t_close(db);
    db = t_open(t_at("s"), NTEE_READ_ONLY);
    assert_string_equal(t_get(db, "x"), "(corrupt)");
    t_close(db);
    db = t_open(t_at("s"), NTEE_ACCEPT_DAMAGE);
    assert_string_equal(t_get(db, "x"), "here");
    assert_string_equal(t_get(db, "c"), "only");
    assert_int_equal(t_put(db, "y", "later"), NTEE_OK);
    assert_int_equal(t_put(db, "z", "after"), NTEE_OK);
    assert_int_equal(ntee_sync(db), NTEE_OK);
    t_close(db);
    for (int round = 0; round < 2; round++) {
        db = t_open(t_at("s"), 0);
        assert_int_equal(db->db.recovery.damage.len, 0);
        assert_string_equal(t_get(db, "c"), "only");
        assert_string_equal(t_get(db, "y"), "later");
        t_close(db);
    }
    free(i.bytes);
    i = take();
    i.bytes[find(i, "ylater")] ^= 2;
    plant(i);
    db = t_open(t_at("s"), 0);
    assert_string_equal(t_get(db, "z"), "after");
    assert_string_equal(t_get(db, "c"), "(corrupt)");
    t_close(db);
    free(i.bytes);
}

/* What rots after the acceptance is fenced off like any damage, wherever it is. */
static void damage_that_comes_after_accepting_is_found(void **state) {
    (void)state;
    static const char *const lost[] = {"afirst", "lastof all", "item07", "item01"};
    image i = make();
    lose_x(i);
    t_close(t_open(t_at("s"), NTEE_ACCEPT_DAMAGE));
    free(i.bytes);
    i = take();
    for (int n = 0; n < 4; n++) {
        size_t at = find(i, lost[n]);
        i.bytes[at] ^= 8;
        plant(i);
        i.bytes[at] ^= 8;
        ntee *db = t_open(t_at("s"), 0);
        assert_int_equal(db->db.recovery.damage.len, sizeof(nt_damage));
        assert_string_equal(t_get(db, "x"), n ? "(corrupt)" : "here");
        t_close(db);
        t_close(t_open(t_at("s"), NTEE_ACCEPT_DAMAGE));
        db = t_open(t_at("s"), 0);
        assert_int_equal(db->db.recovery.damage.len, 0);
        assert_string_equal(t_get(db, "x"), "here");
        t_close(db);
    }
    free(i.bytes);
}

/* The newest record of all is lost, and no number behind it tells. */
static void a_lost_last_record_is_not_forgotten_by_later_writes(void **state) {
    (void)state;
    image i = make();
    i.bytes[find(i, "lastof all")] ^= 1;
    plant(i);
    for (int round = 0; round < 3; round++) {
        ntee *db = t_open(t_at("s"), 0);
        assert_string_equal(t_get(db, "c"), "(corrupt)");
        assert_string_equal(t_get(db, "x"), "(corrupt)");
        if (round) assert_string_equal(t_get(db, "new"), "value");
        assert_int_equal(t_put(db, "new", "value"), NTEE_OK);
        t_close(db);
    }
    free(i.bytes);
}

static void damage_in_a_large_batch_costs_one_record(void **state) {
    (void)state;
    char key[16];
    ntee *db = t_open(t_at("s"), 0);
    ntee_batch *batch = ntee_batch_new();
    for (int n = 0; n < 5000; n++) {
        snprintf(key, sizeof key, "key%04d", n);
        ntee_batch_put(batch, key, 7, key, 7, NULL);
    }
    assert_int_equal(ntee_write(db, batch), NTEE_OK);
    ntee_batch_free(batch);
    t_close(db);
    image i = take();
    size_t record = find(i, "key2500") - NT_RECORD_HEAD_SIZE;
    static const size_t places[] = {0, 9, 18, 20, 23, 26}; /* check, number, lengths, key */
    for (size_t p = 0; p < sizeof places / sizeof *places; p++) {
        i.bytes[record + places[p]] ^= 0x10;
        plant(i);
        i.bytes[record + places[p]] ^= 0x10;
        db = t_open(t_at("s"), NTEE_READ_ONLY | NTEE_ACCEPT_DAMAGE);
        assert_int_equal(t_records(db), 4999);
        t_close(db);
        db = t_open(t_at("s"), NTEE_READ_ONLY);
        assert_string_equal(t_get(db, "key4999"), "key4999");
        assert_string_equal(t_get(db, "key2501"), "key2501");
        assert_string_equal(t_get(db, "key2499"), "(corrupt)");
        t_close(db);
    }
    free(i.bytes);
}

/* ---- Salvage ---------------------------------------------------------------------------------------- */

/* Frames that verify behind one that does not, above W: writes that reached the disk out of order. */
static image torn_in_the_middle(void) {
    ntee *db = t_open(t_at("s"), 0);
    atomic_store(&t_no_thread, 1);
    for (int n = 0; n < 5; n++) {
        char key[16];
        assert_int_equal(t_put(db, item(n, key), "torn out of the middle"), NTEE_OK);
    }
    uint64_t end = t_log_bytes(db);
    image i = take();
    i.len = end;
    t_close(db);
    memset(i.bytes + find(i, "item02"), 0, 16);
    return i;
}

static int salvage_setup(void **state) {
    if (t_setup(state)) return -1;
    t_use_table();
    atomic_store(&t_no_thread, 1); /* so that nothing is marked as durable */
    return 0;
}

static void what_is_cut_off_in_front_of_good_frames_is_kept(void **state) {
    (void)state;
    image i = torn_in_the_middle();
    plant(i);
    ntee *db = t_open(t_at("s"), NTEE_READ_ONLY);
    assert_int_equal(t_records(db), 2);
    t_close(db);
    assert_false(t_exists(t_at("s/salvage-1")));
    db = t_open(t_at("s"), 0);
    assert_int_equal(t_records(db), 2);
    size_t from = t_log_bytes(db), len;
    t_close(db);
    uint8_t *kept = t_read(t_at("s/salvage-1"), &len);
    assert_int_equal(len, 32 + i.len - from);
    assert_memory_equal(kept, "NTEESALV", 8);
    assert_int_equal(nt_load64(kept + 8), 1);
    assert_int_equal(nt_load64(kept + 16), from);
    assert_int_equal(nt_load64(kept + 24), i.len - from);
    assert_memory_equal(kept + 32, i.bytes + from, i.len - from);
    free(kept);
    t_write(t_at(LOG), i.bytes, i.len); /* the same once more */
    t_close(t_open(t_at("s"), 0));
    assert_true(t_exists(t_at("s/salvage-2")));
    t_write(t_at("s/salvage-7"), "somebody's", 10);
    assert_int_equal(ntee_destroy(t_at("s")), NTEE_OK);
    assert_false(t_exists(t_at("s/salvage-1")));
    assert_false(t_exists(t_at("s/salvage-2")));
    assert_true(t_exists(t_at("s/salvage-7")));
    free(i.bytes);
}

static void salvage_files_have_a_limit_and_no_opening_fails_over_them(void **state) {
    (void)state;
    image i = torn_in_the_middle();
    plant(i);
    assert_int_equal(truncate(t_at("s"), 0), -1);
    t_write(t_at("s/salvage-3"), "", 0);
    assert_int_equal(truncate(t_at("s/salvage-3"), (16 << 20) - 100), 0);
    t_close(t_open(t_at("s"), 0));
    assert_int_equal(t_size_of(t_at("s/salvage-4")), 100);
    t_write(t_at(LOG), i.bytes, i.len);
    t_close(t_open(t_at("s"), 0));
    assert_false(t_exists(t_at("s/salvage-5")));
    plant(i);
    assert_int_equal(symlink("/dev/null", t_at("s/salvage-1")), 0);
    assert_int_equal(mkdir(t_at("s/salvage-2"), 0), 0);
    ntee *db = t_open(t_at("s"), 0);
    assert_int_equal(t_records(db), 2);
    t_close(db);
    assert_true(t_exists(t_at("s/salvage-3")));
    plant(i);
    t_fail(T_WRITE, 2, ENOSPC, 0); /* the first one names the holder of the lock */
    db = t_open(t_at("s"), 0);
    assert_int_equal(t_records(db), 2);
    t_close(db);
    assert_false(t_exists(t_at("s/salvage-1")));
    free(i.bytes);
}

#define SALVAGE_TEST(f) cmocka_unit_test_setup_teardown(f, salvage_setup, t_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        T_TEST(any_flipped_bit_costs_at_most_the_record_that_it_is_in),
        T_TEST(no_damaged_stretch_gives_a_wrong_answer),
        T_TEST(damaged_frame_heads_cost_nothing),
        T_TEST(either_copy_of_the_header_is_enough),
        T_TEST(losing_the_announcements_of_a_salt_costs_64_kib_at_most),
        T_TEST(where_a_record_is_lost_older_ones_are_not_trusted_until_written_anew),
        T_TEST(accepting_damage_is_remembered_and_covers_no_later_one),
        T_TEST(damage_that_comes_after_accepting_is_found),
        T_TEST(a_lost_last_record_is_not_forgotten_by_later_writes),
        T_TEST(damage_in_a_large_batch_costs_one_record),
        SALVAGE_TEST(what_is_cut_off_in_front_of_good_frames_is_kept),
        SALVAGE_TEST(salvage_files_have_a_limit_and_no_opening_fails_over_them),
    };
    return T_RUN_BOTH(tests);
}
