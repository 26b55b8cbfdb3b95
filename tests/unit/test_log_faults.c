/* The log on disks that are full, fail or lose power, and in processes that are killed: fake worlds only. */
#define _GNU_SOURCE
#include <errno.h>
#include <unistd.h>

#include "log_world.h"

/* ---- Failures ------------------------------------------------------------------------------------ */

static void a_full_disk_is_an_error_and_nothing_more(void **state) {
    (void)state;
    for (int way = FIRST_FAKE; way < WAY_COUNT; way++) {
        for (int partial = 0; partial < 2; partial++) {
            world w = enter(way);
            fake_settings *settings = fake_set(w.fs);
            nt_log *log = start(&w);
            ntee_error err;
            settings->capacity = 700 + next_random() % 50;
            settings->partial_allocate = partial;
            for (int round = 0; round < 5; round++) {
                size_t len;
                do {
                    len = 8 + 8 * (size_t)(next_random() % 1000);
                    if (next_random() % 30 == 0) len += 100000;
                    if (next_random() % 3 == 0) nt_log_prepare(log);
                } while (try_append(log, len, &err) == NTEE_OK);
                assert_int_equal(err.status, NTEE_FULL);
                assert_int_equal(err.os_errno, ENOSPC);
                assert_int_equal(word_at_tail(&w, log), 0);
                assert_int_equal(nt_log_is_broken(log), 0);
                while (len > 8) { /* what still fits must be used to the last block */
                    len = len / 16 * 8;
                    while (try_append(log, len, &err) == NTEE_OK) {
                    }
                    assert_int_equal(word_at_tail(&w, log), 0);
                }
                assert_true(fake_used(w.fs) * 4096 - model_len < 4096 + 8);
                assert_int_equal(nt_log_sync(log, &err), NTEE_OK);
                check(log);
                settings->capacity += 100;
                append(log, 4096);
            }
            log = reopen(&w, log);
            close_log(log);
            leave(&w);
        }
    }
}

static void what_was_reserved_can_be_appended_on_a_full_disk(void **state) {
    (void)state;
    for (int way = FIRST_FAKE; way < WAY_COUNT - 1; way++) {
        world w = enter(way);
        nt_log *log = start(&w);
        ntee_error err;
        fake_set(w.fs)->capacity = 700;
        while (nt_log_reserve(log, 65536 + 4096, 0, &err) == NTEE_OK) append(log, 4096);
        assert_int_equal(err.status, NTEE_FULL);
        fake_set(w.fs)->capacity = 1;
        for (int i = 0; i < 16; i++) append(log, 4096);
        check(log);
        close_log(log);
        leave(&w);
    }
}

static void a_failed_sync_is_final(void **state) {
    (void)state;
    for (int way = FIRST_FAKE; way < WAY_COUNT; way++) {
        world w = enter(way);
        nt_log *log = start(&w);
        ntee_error err;
        append(log, 1000);
        assert_int_equal(nt_log_sync(log, &err), NTEE_OK);
        uint64_t synced = nt_log_synced(log);
        assert_int_equal(synced, model_len);
        uint64_t calls = fake_count(w.fs, FAKE_SYNC);
        assert_int_equal(nt_log_sync(log, &err), NTEE_OK); /* nothing to do */
        assert_int_equal(fake_count(w.fs, FAKE_SYNC), calls);
        append(log, 1000);
        fake_fail(w.fs, (fake_fault){.call = FAKE_SYNC, .nth = 1, .error = EIO});
        assert_int_equal(nt_log_sync(log, &err), NTEE_IO);
        assert_int_equal(err.os_errno, EIO);
        assert_int_equal(nt_log_is_broken(log), 1);
        calls = fake_count(w.fs, FAKE_SYNC);
        for (int i = 0; i < 3; i++) {
            assert_int_equal(nt_log_sync(log, &err), NTEE_IO);
            assert_int_equal(err.os_errno, EIO);
            assert_int_equal(try_append(log, 64, &err), NTEE_IO);
            assert_int_equal(err.os_errno, EIO);
            assert_int_equal(nt_log_reserve(log, 64, 0, &err), NTEE_IO);
            assert_int_equal(nt_log_cut(log, 64, &err), NTEE_INVALID);
            nt_log_prepare(log);
        }
        assert_int_equal(nt_log_synced(log), synced);
        check(log);
        uint64_t cuts = fake_count(w.fs, FAKE_TRUNCATE);
        assert_int_equal(nt_log_close(log, &err), NTEE_IO);
        assert_int_equal(fake_count(w.fs, FAKE_SYNC), calls);
        assert_int_equal(fake_count(w.fs, FAKE_TRUNCATE), cuts);
        leave(&w);
    }
}

/* The writer goes on while a sync runs: it is not what the sync covers. */
static void append_meanwhile(void *arg, fake_fs *fs, const fake_event *event) {
    (void)fs;
    if (event->call == FAKE_SYNC && event->after) append(arg, 64);
}

static void a_sync_covers_what_was_there_when_it_began(void **state) {
    world w = enter(FIRST_FAKE);
    nt_log *log = start(&w);
    ntee_error err;
    (void)state;
    append(log, 64);
    uint64_t before = model_len;
    fake_hook(w.fs, append_meanwhile, log);
    assert_int_equal(nt_log_sync(log, &err), NTEE_OK);
    fake_hook(w.fs, NULL, NULL);
    assert_int_equal(nt_log_synced(log), before);
    assert_int_equal(nt_log_tail(log), before + 64);
    assert_int_equal(nt_log_sync(log, &err), NTEE_OK);
    assert_int_equal(nt_log_synced(log), before + 64);
    close_log(log);
    leave(&w);
}

static void what_a_failed_write_left_is_made_zero_or_cut_off_or_the_log_is_broken(void **state) {
    (void)state;
    for (int sticky = 0; sticky < 3; sticky++) {
        world w = enter(FIRST_FAKE + 1);
        nt_log *log = start(&w);
        ntee_error err;
        append(log, 64);
        assert_int_equal(nt_log_sync(log, &err), NTEE_OK);
        fake_fail(w.fs, (fake_fault){.call = FAKE_WRITE, .nth = 1});
        fake_fail(w.fs, (fake_fault){.call = FAKE_WRITE, .nth = 2, .error = EIO, .sticky = sticky > 0});
        if (sticky > 1) fake_fail(w.fs, (fake_fault){.call = FAKE_TRUNCATE, .nth = 1, .error = EIO});
        assert_int_equal(try_append(log, 8192, &err), NTEE_IO);
        fake_heal(w.fs);
        assert_int_equal(nt_log_is_broken(log), sticky > 1);
        if (sticky < 2) {
            if (!sticky) assert_int_equal(word_at_tail(&w, log), 0);
            append(log, 4096);
            assert_int_equal(word_at_tail(&w, log), 0);
        } else {
            assert_int_equal(try_append(log, 64, &err), NTEE_IO);
            assert_int_equal(nt_log_sync(log, &err), NTEE_OK); /* what is good can still be synced */
        }
        check(log);
        close_log(log);
        leave(&w);
    }
}

/* One run of everything; goes on after failures. Returns 0 where nothing failed. */
static int run_all(const world *w) {
    static const size_t SIZES[] = {64, 192, 100000, 8, WINDOW + 64, 4096, 8, 128};
    ntee_error err;
    nt_log *log;
    int failures = 0;
    if (create(w, &err) != NTEE_OK) return 1;
    if (nt_log_open(&log, w->dir, "log", w->flags, &err) != NTEE_OK) return 1;
    failures += nt_log_cut(log, model_len, &err) != NTEE_OK;
    failures += nt_log_rewrite(log, 8, 1, &err) != NTEE_OK;
    for (size_t i = 0; i < sizeof SIZES / sizeof SIZES[0]; i++) {
        failures += nt_log_reserve(log, SIZES[i] + 8192, 0, &err) != NTEE_OK;
        if (try_append(log, SIZES[i], &err) != NTEE_OK) {
            failures++;
            assert_true(err.status == NTEE_IO || err.status == NTEE_NOMEM || err.status == NTEE_FULL);
            fake_fs *fs = fake_current(); /* look without meeting the fault */
            fake_fs *look = fake_kill(fs, 0);
            fake_use(look);
            world there = *w;
            assert_int_equal(NT_OS->open_dir(w->path, &there.dir), 0);
            if (!nt_log_is_broken(log)) assert_int_equal(word_at_tail(&there, log), 0);
            NT_OS->close(there.dir);
            fake_use(fs);
            fake_free(look);
        }
        if (i % 2 == 0) nt_log_prepare(log);
        if (i % 3 == 0) failures += nt_log_sync(log, &err) != NTEE_OK;
    }
    uint8_t *bytes = malloc(model_len);
    ntee_status status = nt_log_read(log, 0, bytes, model_len, &err);
    if (status == NTEE_OK) assert_memory_equal(bytes, model, model_len);
    else failures++;
    free(bytes);
    return failures + (nt_log_close(log, &err) != NTEE_OK);
}

static void one_failing_sweep(int way, fake_call call, int error, int sticky) {
    for (uint64_t n = 1;; n++) {
        world w = enter(way);
        uint64_t size;
        fake_fail(w.fs, (fake_fault){.call = call, .nth = n, .error = error, .sticky = sticky});
        int failures = run_all(&w);
        uint64_t fired = fake_fired(w.fs);
        fake_heal(w.fs);
        const uint8_t *bytes = fake_bytes(w.fs, "/d/log", &size);
        if (model_len > HEADER) assert_memory_equal(bytes, model, model_len);
        if (fired == 0) assert_int_equal(failures, 0);
        leave(&w); /* aborts where something leaked */
        if (fired == 0) break;
    }
}

static void any_call_may_fail_and_leaves_no_trace(void **state) {
    static const int ERRORS[] = {EIO, ENOSPC, EINTR, 0};
    (void)state;
    for (int way = FIRST_FAKE; way < WAY_COUNT; way++) {
        for (int i = 0; i < 4; i++) one_failing_sweep(way, FAKE_ANY, ERRORS[i], 0);
        one_failing_sweep(way, FAKE_ANY, ENOMEM, 1);
        one_failing_sweep(way, FAKE_ALLOC, ENOMEM, 0);
        one_failing_sweep(way, FAKE_ALLOC, ENOMEM, 1);
        one_failing_sweep(way, FAKE_MAP, ENOMEM, 1);
    }
}

static void without_mappings_to_be_had_everything_still_works(void **state) {
    (void)state;
    for (uint64_t n = 1; n < 6; n++) {
        world w = enter(FIRST_FAKE);
        fake_fail(w.fs, (fake_fault){.call = FAKE_MAP, .nth = n, .error = ENOMEM, .sticky = 1});
        nt_log *log = start(&w);
        for (int i = 0; i < 5000; i++) append(log, 8 * (1 + (size_t)(next_random() % 200)));
        check(log);
        fake_heal(w.fs);
        for (int i = 0; i < 5000; i++) append(log, 8 * (1 + (size_t)(next_random() % 200)));
        log = reopen(&w, log);
        close_log(log);
        leave(&w);
    }
}

/* ---- Crashes ------------------------------------------------------------------------------------- */

/* At any instruction of an append: what was acked is there, and the frame in flight is whole or its word is
 * zero (mapped), so that a killed process leaves no torn frame in the page cache. */
static void kill_and_look(void *arg, fake_fs *fs, const fake_event *event) {
    const size_t *flight = arg;
    (void)event;
    for (uint64_t tear = 0; tear < 4; tear++) {
        uint64_t size;
        fake_fs *image = fake_kill(fs, next_random() | 1);
        const uint8_t *bytes = fake_bytes(image, "/d/log", &size);
        assert_memory_equal(bytes, model, model_len);
        uint64_t word = size >= model_len + 8 ? nt_load64(bytes + model_len) : 0;
        if (word != 0) assert_memory_equal(bytes + model_len, model + model_len, *flight);
        fake_free(image);
    }
}

static void a_killed_append_is_whole_or_nothing(void **state) {
    world w = enter(FIRST_FAKE);
    nt_log *log = start(&w);
    size_t flight = 0;
    (void)state;
    fake_hook(w.fs, kill_and_look, &flight);
    for (int i = 0; i < 300; i++) {
        flight = 8 * (1 + (size_t)(next_random() % (i % 20 ? 100 : 2000)));
        if (i == 295) flight = WINDOW + 64;
        append(log, flight);
        if (i % 50 == 0) nt_log_prepare(log);
    }
    fake_hook(w.fs, NULL, NULL);
    check(log);
    close_log(log);
    leave(&w);
}

static void what_was_synced_survives_every_power_loss(void **state) {
    (void)state;
    for (int way = FIRST_FAKE; way < WAY_COUNT; way++) {
        world w = enter(way);
        nt_log *log = start(&w);
        ntee_error err;
        sync_root();
        for (int i = 0; i < 200; i++) {
            append(log, 8 * (1 + (size_t)(next_random() % 300)));
            if (i % 7 == 0) assert_int_equal(nt_log_sync(log, &err), NTEE_OK);
            if (i % 31 == 0) nt_log_prepare(log);
            uint64_t size;
            fake_fs *image = fake_crash(w.fs, &(fake_crash_plan){i % 2 ? FAKE_RANDOM : FAKE_PAGES, seed, 0});
            const uint8_t *bytes = fake_bytes(image, "/d/log", &size);
            assert_non_null(bytes);
            assert_true(size >= nt_log_synced(log));
            assert_memory_equal(bytes, model, nt_log_synced(log));
            fake_free(image);
        }
        close_log(log);
        leave(&w);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_disk_is_an_error_and_nothing_more),
        cmocka_unit_test(what_was_reserved_can_be_appended_on_a_full_disk),
        cmocka_unit_test(a_failed_sync_is_final),
        cmocka_unit_test(a_sync_covers_what_was_there_when_it_began),
        cmocka_unit_test(what_a_failed_write_left_is_made_zero_or_cut_off_or_the_log_is_broken),
        cmocka_unit_test(any_call_may_fail_and_leaves_no_trace),
        cmocka_unit_test(without_mappings_to_be_had_everything_still_works),
        cmocka_unit_test(a_killed_append_is_whole_or_nothing),
        cmocka_unit_test(what_was_synced_survives_every_power_loss),
    };
    return cmocka_run_group_tests(tests, begin_all, end_all);
}
