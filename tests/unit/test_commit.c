/* One write, from the caller's bytes to a staged version: images, conditions, announcements, failures. D1 to D3. */
#include "unit/store.h"

#include "engine/commit.h"
#include "engine/get.h"
#include "engine/open.h"
#include "engine/scan.h"
#include "format/wire.h"
#include "store/tree.h"

static nt_db db;
static ntee_error err;

static void open_db(void) {
    nt_open_options how = {.no_mmap = (t_flags & NTEE_NO_MMAP) != 0};
    assert_int_equal(nt_db_open(&db, t_at("s"), &how, &err), NTEE_OK);
}

static void close_db(void) { assert_int_equal(nt_db_close(&db, 0, NULL, &err), NTEE_OK); }

/* Commits one write and publishes it. */
static ntee_status commit_one(uint8_t type, const char *key, const char *value) {
    nt_write w;
    nt_write_begin(&w, &db);
    assert_int_equal(nt_write_add(&w, type, key, strlen(key), value, strlen(value), &err), NTEE_OK);
    ntee_status status = nt_commit(&db, &w, &err);
    if (status == NTEE_OK && w.staged) nt_keydir_publish(db.keydir, w.staged);
    nt_write_end(&w);
    return status;
}

static const char *value_of(const char *key) {
    static char buf[256];
    size_t len;
    ntee_status status = nt_get(&db, key, strlen(key), buf, sizeof buf - 1, &len, NULL, 0, &err);
    if (status == NTEE_NOT_FOUND) return "(missing)";
    assert_int_equal(status, NTEE_OK);
    buf[len] = 0;
    return buf;
}

static void small_writes_need_no_memory_and_large_ones_move(void **state) {
    (void)state;
    t_use_table();
    nt_write w;
    static char value[5000];
    long calls = t_calls(T_ALLOC), memory = atomic_load(&t_memory);
    nt_write_begin(&w, &db);
    assert_int_equal(nt_write_add(&w, NT_WIRE_PUT, "k", 1, value, 400, &err), NTEE_OK);
    assert_ptr_equal(w.image.data, w.small);
    assert_int_equal(t_calls(T_ALLOC), calls);
    nt_write_end(&w);
    nt_write_begin(&w, &db);
    for (int i = 0; i < 100; i++) {
        memset(value, 'a' + i % 20, sizeof value);
        assert_int_equal(nt_write_add(&w, NT_WIRE_PUT, &i, sizeof i, value, (size_t)i * 50, &err), NTEE_OK);
    }
    assert_int_equal(w.count, 100);
    assert_ptr_not_equal(w.image.data, w.small);
    uint64_t at = NT_FRAME_HEAD_SIZE;
    for (int i = 0; i < 100; i++) {
        nt_op op;
        uint64_t size = nt_record_decode(w.image.data + at, w.image.len - at, &op);
        assert_true(size > 0);
        assert_int_equal(op.value_len, i * 50);
        assert_memory_equal(op.key, &i, sizeof i);
        if (i) assert_int_equal(op.value[0], 'a' + i % 20);
        at += size;
    }
    assert_int_equal(at, w.image.len);
    nt_write_end(&w);
    assert_int_equal(atomic_load(&t_memory), memory);
}

/* Opens a write and has it look where its key belongs. */
static void look(nt_write *w, const char *key, const char *value) {
    nt_write_begin(w, &db);
    nt_write_look(w, key, strlen(key));
    assert_int_equal(w->looking, 1);
    assert_int_equal(nt_write_add(w, NT_WIRE_PUT, key, strlen(key), value, strlen(value), &err), NTEE_OK);
}

static void a_look_ahead_counts_only_until_somebody_else_has_written(void **state) {
    nt_write w[3];
    char key[16];
    (void)state;
    open_db();
    for (int i = 0; i < 300; i++) {
        snprintf(key, sizeof key, "key %d", i);
        assert_int_equal(commit_one(NT_WIRE_PUT, key, "first"), NTEE_OK);
    }
    look(&w[0], "key 7", "by w0");
    look(&w[1], "key 7", "by w1");
    look(&w[2], "key 77x", "by w2");
    for (int i = 0; i < 3; i++) {
        assert_int_equal(nt_commit(&db, &w[i], &err), NTEE_OK);
        assert_int_equal(w[i].looking, 0);
        nt_keydir_publish(db.keydir, w[i].staged);
        assert_string_equal(value_of("key 7"), i == 0 ? "by w0" : "by w1");
        assert_null(nt_tree_check(nt_keydir_arena(db.keydir), w[i].staged->roots[NT_ROOT_KEYS]));
        nt_write_end(&w[i]);
    }
    assert_string_equal(value_of("key 77x"), "by w2");
    /* Nobody is left inside: what is retired from now on can be freed. */
    look(&w[0], "key 8", "not committed");
    nt_write_end(&w[0]);
    nt_arena_usage before, after;
    for (int i = 0; i < 2000; i++) {
        if (i == 1000) nt_arena_measure(nt_keydir_arena(db.keydir), &before);
        assert_int_equal(commit_one(NT_WIRE_PUT, "key 9", "again"), NTEE_OK);
    }
    nt_arena_measure(nt_keydir_arena(db.keydir), &after);
    assert_int_equal(after.bytes, before.bytes);
    close_db();
}

static void refused_additions_leave_the_image_as_it_was(void **state) {
    (void)state;
    nt_write w;
    static char big[70000];
    nt_write_begin(&w, &db);
    assert_int_equal(nt_write_add(&w, NT_WIRE_PUT, "k", 1, "v", 1, &err), NTEE_OK);
    size_t len = w.image.len;
    assert_int_equal(nt_write_add(&w, NT_WIRE_PUT, "", 0, "v", 1, &err), NTEE_INVALID);
    assert_int_equal(nt_write_add(&w, NT_WIRE_PUT, NULL, 1, "v", 1, &err), NTEE_INVALID);
    assert_int_equal(nt_write_add(&w, NT_WIRE_PUT, "k", 1, NULL, 1, &err), NTEE_INVALID);
    assert_int_equal(nt_write_add(&w, NT_WIRE_PUT, big, 65536, "v", 1, &err), NTEE_TOO_LARGE);
    assert_int_equal(nt_write_add(&w, NT_WIRE_PUT, "k", 1, "v", 1ull << 32, &err), NTEE_TOO_LARGE);
    assert_int_equal(nt_write_add(&w, NT_WIRE_DELETE, big, 65536, NULL, 0, &err), NTEE_TOO_LARGE);
    t_use_table();
    t_fail(T_ALLOC, 1, ENOMEM, 1);
    assert_int_equal(nt_write_add(&w, NT_WIRE_PUT, "k", 1, big, 5000, &err), NTEE_NOMEM);
    memset(big, '[', 50000);
    assert_int_equal(nt_write_add(&w, NT_WIRE_PUT, "k", 1, big, 50000, &err), NTEE_NOMEM);
    t_heal();
    assert_int_equal(w.image.len, len);
    assert_int_equal(w.count, 1);
    nt_write_end(&w);
}

static void framed_batches_name_the_item_that_is_wrong(void **state) {
    (void)state;
    nt_buf framed = {0};
    nt_write w;
    for (int i = 0; i < 5; i++) assert_true(nt_wire_add_write(&framed, NT_WIRE_PUT, "key", 3, "value", 5));
    framed.data[3 * 16] = 77; /* item 3 has a type that there is not */
    nt_write_begin(&w, &db);
    assert_int_equal(nt_write_add_framed(&w, framed.data, framed.len, &err), NTEE_INVALID);
    assert_int_equal(err.item, 3);
    nt_write_end(&w);
    framed.data[3 * 16] = NT_WIRE_PUT_IF_ABSENT;
    nt_write_begin(&w, &db);
    assert_int_equal(nt_write_add_framed(&w, framed.data, framed.len, &err), NTEE_INVALID);
    assert_int_equal(err.item, 3);
    nt_write_end(&w);
    nt_write_begin(&w, &db);
    assert_int_equal(nt_write_add_framed(&w, framed.data + 48, 16, &err), NTEE_OK);
    assert_int_equal(w.only_if, NT_WIRE_PUT_IF_ABSENT);
    nt_write_end(&w);
    nt_write_begin(&w, &db);
    assert_int_equal(nt_write_add_framed(&w, framed.data, (size_t)NTEE_BATCH_MAX + 1, &err), NTEE_TOO_LARGE);
    assert_int_equal(w.count, 0);
    nt_write_end(&w);
    nt_buf_free(&framed);
}

static void the_first_write_is_announced_once(void **state) {
    (void)state;
    open_db();
    uint64_t salt = db.salt;
    assert_int_equal(db.announced, 0);
    assert_int_equal(nt_log_tail(db.log), NT_LOG_START);
    assert_int_equal(commit_one(NT_WIRE_PUT, "a", "1"), NTEE_OK);
    assert_int_equal(db.announced, 1);
    assert_true(db.salt != salt);
    salt = db.salt;
    uint64_t number = db.number, tail = nt_log_tail(db.log);
    assert_int_equal(number, 3); /* the announcement, twice, and the write */
    assert_int_equal(commit_one(NT_WIRE_PUT, "a", "2"), NTEE_OK);
    assert_int_equal(nt_commit_announce(&db, &err), NTEE_OK);
    assert_int_equal(db.number, number + 1);
    assert_int_equal(db.salt, salt);
    assert_int_equal(nt_log_tail(db.log) - tail, NT_FRAME_HEAD_SIZE + 32);
    assert_int_equal(db.sequence, 2);
    close_db();
    open_db();
    assert_int_equal(db.recovery.clean, 1);
    assert_int_equal(db.sequence, 2);
    assert_int_equal(db.announced, 0);
    assert_int_equal(commit_one(NT_WIRE_PUT, "a", "3"), NTEE_OK);
    assert_true(db.salt != salt);
    close_db();
}

static void conditions_are_met_or_nothing_is_written(void **state) {
    (void)state;
    open_db();
    assert_int_equal(commit_one(NT_WIRE_DELETE, "a", ""), NTEE_OK);
    assert_int_equal(nt_log_tail(db.log), NT_LOG_START);
    assert_int_equal(commit_one(NT_WIRE_PUT_IF_ABSENT, "a", "1"), NTEE_OK);
    uint64_t tail = nt_log_tail(db.log);
    assert_int_equal(commit_one(NT_WIRE_PUT_IF_ABSENT, "a", "2"), NTEE_EXISTS);
    assert_int_equal(nt_log_tail(db.log), tail);
    assert_string_equal(value_of("a"), "1");
    assert_int_equal(commit_one(NT_WIRE_DELETE, "a", ""), NTEE_OK);
    assert_true(nt_log_tail(db.log) > tail);
    assert_string_equal(value_of("a"), "(missing)");
    close_db();
}

/* Conditions look at what is staged, not only at what is published: the durable tier has writes in between. */
static void conditions_see_staged_writes(void **state) {
    (void)state;
    nt_write w;
    open_db();
    nt_write_begin(&w, &db);
    assert_int_equal(nt_write_add(&w, NT_WIRE_PUT, "a", 1, "1", 1, &err), NTEE_OK);
    assert_int_equal(nt_commit(&db, &w, &err), NTEE_OK);
    assert_non_null(w.staged);
    assert_int_equal(w.effective, 1);
    assert_string_equal(value_of("a"), "(missing)");
    assert_int_equal(commit_one(NT_WIRE_PUT_IF_ABSENT, "a", "2"), NTEE_EXISTS);
    nt_keydir_publish(db.keydir, w.staged);
    assert_string_equal(value_of("a"), "1");
    nt_write_end(&w);
    close_db();
}

static void effects_are_counted(void **state) {
    (void)state;
    nt_write w;
    open_db();
    nt_write_begin(&w, &db);
    assert_int_equal(nt_commit(&db, &w, &err), NTEE_OK);
    assert_null(w.staged);
    nt_write_add(&w, NT_WIRE_DELETE, "missing", 7, NULL, 0, &err);
    nt_write_add(&w, NT_WIRE_PUT, "a", 1, "1", 1, &err);
    nt_write_add(&w, NT_WIRE_DELETE, "a", 1, NULL, 0, &err);
    nt_write_add(&w, NT_WIRE_DELETE, "a", 1, NULL, 0, &err);
    assert_int_equal(nt_commit(&db, &w, &err), NTEE_OK);
    assert_int_equal(w.effective, 2);
    assert_int_equal(db.sequence, 4);
    nt_keydir_publish(db.keydir, w.staged);
    nt_write_end(&w);
    close_db();
}

/* Fails each call of a kind in turn: the write is refused, nothing shows, and the next one works. */
static void failures_leave_no_trace(void **state) {
    (void)state;
    static const int kinds[] = {T_ALLOC, T_ALLOCATE, T_WRITE, T_OTHER};
    t_use_table();
    for (size_t k = 0; k < 4; k++) {
        for (long nth = 1;; nth++) {
            t_remove(t_at("s"));
            open_db();
            assert_int_equal(nt_commit_announce(&db, &err), NTEE_OK);
            close_db();
            open_db();
            uint64_t sequence = db.sequence;
            nt_arena_usage before, after;
            nt_arena_measure(nt_keydir_arena(db.keydir), &before);
            t_fail(kinds[k], nth, kinds[k] == T_ALLOC ? ENOMEM : ENOSPC, 0);
            ntee_status status = commit_one(NT_WIRE_PUT, "a", "1");
            int fired = atomic_load(&t_fail_at[kinds[k]]) == 0;
            t_heal();
            /* A window or an allocation that cannot be had has another way round it. */
            if (status != NTEE_OK) {
                assert_true(fired);
                assert_int_equal(status, kinds[k] == T_ALLOC ? NTEE_NOMEM : NTEE_FULL);
                assert_int_equal(db.sequence, sequence);
                nt_arena_measure(nt_keydir_arena(db.keydir), &after);
                assert_int_equal(after.live, before.live);
                assert_int_equal(after.waiting, before.waiting);
                assert_string_equal(value_of("a"), "(missing)");
            }
            assert_int_equal(commit_one(NT_WIRE_PUT, "b", "2"), NTEE_OK);
            close_db();
            open_db();
            assert_string_equal(value_of("a"), status == NTEE_OK ? "1" : "(missing)");
            assert_string_equal(value_of("b"), "2");
            close_db();
            if (!fired) break;
        }
    }
}

static void short_memory_for_the_index_refuses_the_write(void **state) {
    (void)state;
    uint64_t done = 0, refused = 0, tail = 0;
    char key[64];
    t_use_table();
    open_db();
    assert_int_equal(commit_one(NT_WIRE_PUT, "first", "1"), NTEE_OK);
    t_fail(T_ALLOC, 1, ENOMEM, 1);
    memset(key, 'k', sizeof key);
    for (int i = 0; refused < 10; i++) {
        assert_true(i < 40000);
        snprintf(key, sizeof key, "%08d and so on to fill the nodes of the tree", i * 7919 % 40000);
        if (tail) assert_int_equal(nt_log_tail(db.log), tail);
        ntee_status status = commit_one(NT_WIRE_PUT, key, "");
        done += status == NTEE_OK;
        if (status == NTEE_OK) {
            tail = 0;
            continue;
        }
        assert_int_equal(status, NTEE_NOMEM);
        assert_string_equal(value_of(key), "(missing)");
        tail = nt_log_tail(db.log);
        refused++;
    }
    t_heal();
    assert_int_equal(db.sequence, done + 1);
    assert_int_equal(commit_one(NT_WIRE_PUT, "last", "1"), NTEE_OK);
    close_db();
    open_db();
    uint64_t keys;
    assert_int_equal(nt_count_all(&db, &keys, &err), NTEE_OK);
    assert_int_equal(keys, done + 2);
    close_db();
}

static void marks_say_how_far_the_log_is_durable(void **state) {
    (void)state;
    open_db();
    assert_int_equal(commit_one(NT_WIRE_PUT, "a", "1"), NTEE_OK);
    uint64_t tail = nt_log_tail(db.log);
    assert_int_equal(nt_log_sync(db.log, &err), NTEE_OK);
    assert_int_equal(nt_commit_mark(&db, 0, &err), NTEE_OK);
    t_copy(t_at("s"), t_at("t"));
    close_db();
    nt_open_options how = {.no_mmap = (t_flags & NTEE_NO_MMAP) != 0};
    assert_int_equal(nt_db_open(&db, t_at("t"), &how, &err), NTEE_OK);
    assert_int_equal(db.recovery.durable, tail);
    assert_int_equal(db.recovery.end, tail + NT_FRAME_OPEN_SIZE + NT_FRAME_MARK_SIZE);
    assert_int_equal(db.recovery.clean, 0);
    assert_int_equal(db.recovery.records, 1);
    assert_int_equal(db.recovery.cut, 0);
    close_db();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T_TEST(small_writes_need_no_memory_and_large_ones_move),
        T_TEST(a_look_ahead_counts_only_until_somebody_else_has_written),
        T_TEST(refused_additions_leave_the_image_as_it_was),
        T_TEST(framed_batches_name_the_item_that_is_wrong),
        T_TEST(the_first_write_is_announced_once),
        T_TEST(conditions_are_met_or_nothing_is_written),
        T_TEST(conditions_see_staged_writes),
        T_TEST(effects_are_counted),
        T_TEST(failures_leave_no_trace),
        T_TEST(short_memory_for_the_index_refuses_the_write),
        T_TEST(marks_say_how_far_the_log_is_durable),
    };
    return T_RUN_BOTH(tests);
}
