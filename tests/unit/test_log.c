/* The log, in every way it can be written and read, on the real file system and on the fake one. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "log_world.h"

/* ---- Appending and reading ----------------------------------------------------------------------- */

static void frames_come_back_in_every_way(void **state) {
    (void)state;
    for (int way = 0; way < WAY_COUNT; way++) {
        world w = enter(way);
        nt_log *log = start(&w);
        for (int round = 0; round < 4; round++) {
            for (int i = 0; i < 700; i++) {
                append(log, 8 + 8 * (size_t)(next_random() % (i % 100 == 0 ? 40000 : 60)));
                if (next_random() % 40 == 0) nt_log_prepare(log);
                if (next_random() % 200 == 0) check(log);
            }
            log = reopen(&w, log);
        }
        close_log(log);
        leave(&w);
    }
}

static void window_edges_make_no_difference(void **state) {
    static const size_t BEFORE[] = {0, 8, 16, 64, 4096, 65536, WINDOW - 8};
    static const size_t SIZES[] = {8, 16, 192, 4096, 65544, WINDOW - 8, WINDOW, WINDOW + 8, 2 * WINDOW,
                                   2 * WINDOW + 8, 3 * WINDOW + 64};
    (void)state;
    for (int way = 0; way < WAY_COUNT; way++) {
        world w = enter(way);
        nt_log *log = start(&w);
        for (size_t i = 0; i < 7; i++) {
            for (size_t j = 0; j < 11; j++) {
                uint64_t edge = (model_len / WINDOW + 2) * WINDOW;
                if (next_random() % 4 != 0) continue;
                if (edge + 5 * WINDOW > MODEL_MAX) {
                    check(log);
                    close_log(log);
                    leave(&w);
                    w = enter(way);
                    log = start(&w);
                    edge = WINDOW;
                }
                if (edge - BEFORE[i] > model_len) append(log, (size_t)(edge - BEFORE[i] - model_len));
                if (next_random() % 2 == 0) nt_log_prepare(log);
                append(log, SIZES[j]);
                append(log, 8);
                assert_true(nt_log_is_broken(log) == 0);
            }
        }
        log = reopen(&w, log);
        close_log(log);
        leave(&w);
    }
}

static void what_is_no_frame_is_refused(void **state) {
    world w = enter(FIRST_FAKE);
    nt_log *log = start(&w);
    ntee_error err;
    static const uint64_t ZERO_FIRST[4] = {0, 1, 2, 3};
    (void)state;
    append(log, 64);
    for (int mapped = 0; mapped < 2; mapped++) {
        assert_int_equal(nt_log_append(log, model, 0, &err), NTEE_INVALID);
        assert_int_equal(nt_log_append(log, model, 7, &err), NTEE_INVALID);
        assert_int_equal(nt_log_append(log, model, 12, &err), NTEE_INVALID);
        assert_int_equal(nt_log_append(log, ZERO_FIRST, 32, &err), NTEE_INVALID);
        assert_int_equal(nt_log_append(log, model, (size_t)-8, &err), NTEE_FULL);
        assert_int_equal(nt_log_reserve(log, (size_t)-8, 0, &err), NTEE_FULL);
        append(log, 64);
    }
    check(log);
    close_log(log);
    leave(&w);
}

static void small_stores_have_small_files(void **state) {
    (void)state;
    for (int way = 0; way < WAY_COUNT; way++) {
        world w = enter(way);
        nt_log *log = start(&w);
        ntee_error err;
        int fd;
        uint64_t size;
        assert_int_equal(NT_OS->open_at(w.dir, "log", 0, &fd), 0);
        nt_log_prepare(log);
        assert_int_equal(NT_OS->size(fd, &size), 0);
        assert_int_equal(size, HEADER);
        append(log, 192);
        nt_log_prepare(log);
        assert_int_equal(nt_log_sync(log, &err), NTEE_OK);
        assert_int_equal(NT_OS->size(fd, &size), 0);
        assert_true(size <= 256 << 10);
        close_log(log);
        assert_int_equal(NT_OS->size(fd, &size), 0);
        assert_int_equal(size, model_len);
        NT_OS->close(fd);
        leave(&w);
    }
}

static void only_a_few_windows_stay_mapped(void **state) {
    (void)state;
    for (int prepare = 0; prepare < 2; prepare++) {
        world w = enter(FIRST_FAKE);
        nt_log *log = start(&w);
        uint64_t writes = fake_count(w.fs, FAKE_WRITE);
        for (int i = 0; i < 25; i++) {
            append(log, WINDOW - 8);
            if (prepare) nt_log_prepare(log);
            size_t out = fake_leaks(w.fs, 0); /* a directory, a file, two pieces of memory, a view */
            assert_true(out < (prepare ? 9 : 24));
        }
        assert_int_equal(fake_count(w.fs, FAKE_WRITE), writes); /* each went through a window */
        close_log(log);
        leave(&w);
    }
}

/* Appends so much, in so many ms for each step of 64 KiB. */
static void append_at_speed(world *w, nt_log *log, size_t bytes, int64_t ms) {
    for (size_t done = 0; done < bytes; done += 65536) {
        append(log, 65536);
        fake_set(w->fs)->boot_ms += ms;
        nt_log_prepare(log);
    }
}

/* Large pages are dirty as a whole once a byte of them is stored; what is written is not. */
static void a_writer_that_turns_slow_writes_until_it_has_left_the_large_pages(void **state) {
    world w = enter(FIRST_FAKE);
    nt_log *log = start(&w);
    (void)state;
    append_at_speed(&w, log, 8 << 20, 2); /* 32 MiB/s */
    uint64_t before = fake_count(w.fs, FAKE_WRITE);
    append_at_speed(&w, log, 4 << 20, 10); /* neither fast nor slow: as it was */
    assert_int_equal(fake_count(w.fs, FAKE_WRITE), before);
    append_at_speed(&w, log, 65536, 1000);
    for (int i = 0; i < 10; i++) append(log, 64);
    assert_true(fake_count(w.fs, FAKE_WRITE) >= before + 20); /* each its body, and then its first word */
    append_at_speed(&w, log, 3 * WINDOW, 200);
    before = fake_count(w.fs, FAKE_WRITE);
    append_at_speed(&w, log, 3 * WINDOW, 200);
    assert_int_equal(fake_count(w.fs, FAKE_WRITE), before);
    append_at_speed(&w, log, 8 << 20, 2);
    assert_int_equal(fake_count(w.fs, FAKE_WRITE), before);
    check(log);
    close_log(reopen(&w, log));
    leave(&w);
}

static void the_background_is_called_for(void **state) {
    world w = enter(FIRST_FAKE);
    nt_log *log = start(&w);
    (void)state;
    assert_int_equal(nt_log_wants_prepare(log), 0);
    append(log, 64);
    assert_int_equal(nt_log_wants_prepare(log), 1);
    nt_log_prepare(log);
    assert_int_equal(nt_log_wants_prepare(log), 0);
    int wanted = 0;
    uint64_t blocks = 0, maps = 0; /* that the writer had to take by itself */
    for (int i = 0; i < 20000; i++) {
        if (nt_log_wants_prepare(log)) {
            nt_log_prepare(log);
            wanted++;
        }
        blocks -= fake_count(w.fs, FAKE_ALLOCATE);
        maps -= fake_count(w.fs, FAKE_MAP);
        append(log, 192);
        blocks += fake_count(w.fs, FAKE_ALLOCATE);
        maps += fake_count(w.fs, FAKE_MAP);
    }
    assert_true(wanted >= 5 && wanted < 100);
    assert_int_equal(blocks, 0);
    assert_int_equal(maps, 0);
    close_log(log);
    leave(&w);
}

static void read_only_logs_write_nothing(void **state) {
    (void)state;
    for (int way = 0; way < WAY_COUNT; way++) {
        world w = enter(way);
        nt_log *log = start(&w);
        ntee_error err;
        append(log, 64);
        append(log, 4096);
        close_log(log);
        assert_int_equal(nt_log_open(&log, w.dir, "log", w.flags | NT_LOG_READ_ONLY, &err), NTEE_OK);
        check(log);
        assert_int_equal(nt_log_append(log, model, 64, &err), NTEE_READONLY);
        assert_int_equal(nt_log_reserve(log, 64, 0, &err), NTEE_READONLY);
        assert_int_equal(nt_log_rewrite(log, 0, 1, &err), NTEE_INVALID);
        assert_int_equal(nt_log_sync(log, &err), NTEE_OK);
        nt_log_prepare(log);
        model_len = 128;
        assert_int_equal(nt_log_cut(log, 128, &err), NTEE_OK);
        check(log);
        close_log(log);
        assert_int_equal(nt_log_open(&log, w.dir, "log", w.flags, &err), NTEE_OK);
        assert_int_equal(nt_log_tail(log), 128 + 4096);
        close_log(log);
        leave(&w);
    }
}

static void opening_what_is_not_there_fails(void **state) {
    ntee_error err;
    nt_log *log;
    char name[100];
    (void)state;
    for (int way = 0; way < WAY_COUNT; way++) {
        world w = enter(way);
        assert_int_equal(nt_log_open(&log, w.dir, "log", w.flags, &err), NTEE_IO);
        assert_int_equal(err.os_errno, ENOENT);
        assert_null(log);
        memset(name, 'x', sizeof name);
        name[sizeof name - 1] = 0;
        assert_int_equal(nt_log_open(&log, w.dir, name, w.flags, &err), NTEE_INVALID);
        assert_int_equal(nt_log_create(w.dir, name, "12345678", 8, &err), NTEE_INVALID);
        assert_int_equal(nt_log_create(w.dir, "", "12345678", 8, &err), NTEE_INVALID);
        assert_int_equal(nt_log_close(NULL, &err), NTEE_OK);
        leave(&w);
    }
}

static void residence_is_marked_and_refreshed(void **state) {
    world w = enter(FIRST_FAKE);
    nt_log *log = start(&w);
    (void)state;
    for (int i = 0; i < 8; i++) append(log, 65536);
    uint64_t size = model_len;
    assert_int_equal(nt_log_at_hand(log, HEADER, size - HEADER), 1);
    log = reopen(&w, log);
    assert_int_equal(nt_log_at_hand(log, 0, 1), 0);
    nt_log_touched(log, 65530, 10);
    assert_int_equal(nt_log_at_hand(log, 0, 131072), 1);
    assert_int_equal(nt_log_at_hand(log, 0, 131073), 0);
    fake_set(w.fs)->boot_ms += 1000;
    nt_log_prepare(log);
    assert_int_equal(nt_log_at_hand(log, 0, 8 * 65536), 1);
    fake_set(w.fs)->not_resident = 1;
    nt_log_prepare(log); /* too early */
    assert_int_equal(nt_log_at_hand(log, 0, 8 * 65536), 1);
    fake_set(w.fs)->boot_ms += 1000;
    nt_log_prepare(log);
    assert_int_equal(nt_log_at_hand(log, 0, 1), 0);
    assert_int_equal(nt_log_at_hand(log, UINT64_MAX - 1, 8), 0);
    close_log(log);
    w.flags = NO_MAPS;
    ntee_error err;
    assert_int_equal(nt_log_open(&log, w.dir, "log", w.flags, &err), NTEE_OK);
    nt_log_touched(log, 0, 10);
    assert_int_equal(nt_log_at_hand(log, 0, 1), 0);
    assert_null(nt_log_view(log, 0, 1));
    close_log(log);
    leave(&w);
}

static void views_reach_as_far_as_the_mapping(void **state) {
    world w = enter(FIRST_FAKE);
    nt_log *log = start(&w);
    (void)state;
    append(log, 8192);
    const uint8_t *at = nt_log_view(log, HEADER, 8192);
    assert_non_null(at);
    append(log, 3 * WINDOW);
    assert_memory_equal(at, model + HEADER, 8192); /* a pointer stays good */
    assert_null(nt_log_view(log, UINT64_MAX, 8));
    assert_null(nt_log_view(log, 8, SIZE_MAX));
    close_log(log);
    leave(&w);
}

/* The end of the first gigabyte, where the mapping of the readers ends as well. */
static void a_log_outgrows_its_mapping(void **state) {
    enum { LAST = (1 << 30) - 65536 };
    world w = enter(0);
    nt_log *log = start(&w);
    ntee_error err;
    int fd;
    static uint64_t frame[4096], found[4096];
    (void)state;
    close_log(log);
    assert_int_equal(NT_OS->open_at(w.dir, "log", NT_OS_WRITE, &fd), 0);
    assert_int_equal(NT_OS->truncate(fd, LAST), 0);
    NT_OS->close(fd);
    assert_int_equal(nt_log_open(&log, w.dir, "log", w.flags, &err), NTEE_OK);
    const uint8_t *old = nt_log_view(log, 0, HEADER);
    int mapped = old != NULL;
    for (uint64_t i = 1; i < 9; i++) {
        for (size_t j = 0; j < 4096; j++) frame[j] = i * 10000 + j;
        uint64_t at = nt_log_tail(log);
        assert_int_equal(nt_log_append(log, frame, sizeof frame, &err), NTEE_OK);
        const uint8_t *view = nt_log_view(log, at, sizeof frame);
        assert_int_equal(view != NULL, mapped);
        if (mapped) assert_memory_equal(view, frame, sizeof frame);
        if (mapped) assert_memory_equal(old, model, HEADER);
        assert_int_equal(nt_log_at_hand(log, at, sizeof frame), mapped);
        assert_int_equal(nt_log_read(log, at, found, sizeof found, &err), NTEE_OK);
        assert_memory_equal(found, frame, sizeof frame);
    }
    assert_true(nt_log_tail(log) > 1 << 30);
    close_log(log);
    leave(&w);
}

/* ---- Creating, cutting, rewriting ---------------------------------------------------------------- */

static void check_created(const fake_fs *image, const char *old) {
    uint64_t size;
    const uint8_t *bytes = fake_bytes((fake_fs *)(uintptr_t)image, "/d/log", &size);
    if (bytes == NULL) {
        assert_null(old);
    } else if (old != NULL && size == strlen(old)) {
        assert_memory_equal(bytes, old, size);
    } else {
        assert_int_equal(size, HEADER);
        assert_memory_equal(bytes, model, HEADER);
    }
}

static void crash_while_creating(void *arg, fake_fs *fs, const fake_event *event) {
    (void)event;
    for (uint64_t i = 0; i < 64; i++) {
        fake_fs *image = fake_crash(fs, &(fake_crash_plan){(fake_mode)(i % 5), i, next_random()});
        check_created(image, arg);
        fake_free(image);
    }
}

static void a_log_is_created_whole_or_not_at_all(void **state) {
    ntee_error err;
    (void)state;
    for (int replace = 0; replace < 2; replace++) {
        char old[] = "the old file";
        world w = enter(FIRST_FAKE);
        assert_int_equal(NT_OS->sync_dir(w.dir), 0);
        fake_plant(w.fs, "/d/log.tmp", "a leftover, longer than what is to come, so that it would show", 62);
        if (replace) fake_plant(w.fs, "/d/log", old, strlen(old));
        sync_root();
        fake_hook(w.fs, crash_while_creating, replace ? old : NULL);
        assert_int_equal(create(&w, &err), NTEE_OK);
        fake_hook(w.fs, NULL, NULL);
        fake_fs *image = fake_crash(w.fs, &(fake_crash_plan){FAKE_NONE, 0, 0});
        assert_int_equal(fake_exists(image, "/d/log"), 1);
        assert_int_equal(fake_exists(image, "/d/log.tmp"), 0);
        check_created(image, NULL);
        fake_free(image);
        leave(&w);
    }
}

static void cutting_is_durable_and_only_before_the_first_append(void **state) {
    (void)state;
    for (int way = 0; way < WAY_COUNT; way++) {
        world w = enter(way);
        nt_log *log = start(&w);
        ntee_error err;
        for (int i = 0; i < 300; i++) append(log, 400);
        assert_int_equal(nt_log_cut(log, 64, &err), NTEE_INVALID);
        log = reopen(&w, log);
        assert_int_equal(nt_log_synced(log), 0);
        assert_int_equal(nt_log_cut(log, model_len + 8, &err), NTEE_INVALID);
        assert_int_equal(nt_log_cut(log, 63, &err), NTEE_INVALID);
        model_len = HEADER + 400 * 123;
        assert_int_equal(nt_log_cut(log, model_len, &err), NTEE_OK);
        assert_int_equal(nt_log_synced(log), model_len);
        check(log);
        if (w.fs != NULL) {
            uint64_t calls = fake_count(w.fs, FAKE_TRUNCATE) + fake_count(w.fs, FAKE_SYNC);
            assert_int_equal(nt_log_cut(log, model_len, &err), NTEE_OK);
            assert_int_equal(fake_count(w.fs, FAKE_TRUNCATE) + fake_count(w.fs, FAKE_SYNC), calls);
            sync_root();
            assert_int_equal(fake_pending(w.fs), 0);
        }
        append(log, 800); /* over what was cut off */
        assert_int_equal(word_at_tail(&w, log), 0);
        log = reopen(&w, log);
        close_log(log);
        leave(&w);
    }
}

static void what_a_failed_sync_dropped_is_cured_by_a_rewrite(void **state) {
    (void)state;
    for (int cure = 0; cure < 2; cure++) {
        world w = enter(FIRST_FAKE);
        nt_log *log = start(&w);
        ntee_error err;
        append(log, 1000);
        assert_int_equal(nt_log_sync(log, &err), NTEE_OK);
        append(log, 2000);
        fake_fail(w.fs, (fake_fault){.call = FAKE_SYNC, .nth = 1, .error = EIO});
        assert_int_equal(nt_log_sync(log, &err), NTEE_IO);
        assert_int_equal(nt_log_close(log, &err), NTEE_IO);
        assert_int_equal(nt_log_open(&log, w.dir, "log", w.flags, &err), NTEE_OK);
        assert_int_equal(nt_log_cut(log, model_len, &err), NTEE_OK);
        if (cure) assert_int_equal(nt_log_rewrite(log, HEADER + 1000, 1, &err), NTEE_OK);
        append(log, 8);
        assert_int_equal(nt_log_sync(log, &err), NTEE_OK);
        check(log);
        int lost = 0;
        for (uint64_t i = 0; i < 40; i++) {
            uint64_t size;
            fake_plant(w.fs, "/d/other", "", 0); /* syncs the directory */
            fake_fs *image = fake_crash(w.fs, &(fake_crash_plan){i % 2 ? FAKE_RANDOM : FAKE_PAGES, i, 0});
            const uint8_t *bytes = fake_bytes(image, "/d/log", &size);
            if (bytes != NULL) lost += size < model_len || memcmp(bytes, model, model_len) != 0;
            fake_free(image);
        }
        assert_int_equal(lost > 0, !cure);
        close_log(log);
        NT_OS->unlink_at(w.dir, "other");
        leave(&w);
    }
}

/* ---- Threads ------------------------------------------------------------------------------------- */

typedef struct shared {
    nt_log *log;
    _Atomic int stop;
    _Atomic uint64_t checked;
} shared;

/* Frames of the threaded test say where they lie in every word. */
static int is_good(const uint8_t *bytes, uint64_t offset, size_t len) {
    for (size_t i = 0; i < len; i += 8) {
        if (nt_load64(bytes + i) != offset + i + 1) return 0;
    }
    return 1;
}

static void *read_on(void *arg) {
    shared *all = arg;
    uint64_t random = (uint64_t)(uintptr_t)&random;
    uint8_t bytes[512];
    ntee_error err;
    while (!atomic_load(&all->stop)) {
        uint64_t tail = nt_log_tail(all->log);
        random = random * 6364136223846793005u + 1442695040888963407u;
        if (tail < HEADER + 512) continue;
        uint64_t at = HEADER + (random >> 20) % (tail - HEADER - 504) / 8 * 8;
        if (random % 4 == 0) at = tail - 512;
        const uint8_t *view = nt_log_view(all->log, at, 512);
        if (view != NULL && !is_good(view, at, 512)) abort();
        if (nt_log_read(all->log, at, bytes, 512, &err) != NTEE_OK || !is_good(bytes, at, 512)) abort();
        (void)nt_log_at_hand(all->log, at, 512);
        nt_log_touched(all->log, at, 512);
        atomic_fetch_add_explicit(&all->checked, 1, memory_order_relaxed);
    }
    return NULL;
}

static void *sync_on(void *arg) {
    shared *all = arg;
    ntee_error err;
    while (!atomic_load(&all->stop)) {
        if (nt_log_sync(all->log, &err) != NTEE_OK) abort();
        usleep(2000);
    }
    return NULL;
}

static void *prepare_on(void *arg) {
    shared *all = arg;
    while (!atomic_load(&all->stop)) {
        if (nt_log_wants_prepare(all->log)) nt_log_prepare(all->log);
        usleep(300);
    }
    return NULL;
}

static void append_for(nt_log *log, double seconds) {
    static uint64_t frame[(WINDOW + 4096) / 8];
    struct timespec from, now;
    ntee_error err;
    clock_gettime(CLOCK_MONOTONIC, &from);
    do {
        size_t words = 1 + (size_t)(next_random() % 60);
        if (next_random() % 3000 == 0) words = WINDOW / 8 + 8;
        uint64_t tail = nt_log_tail(log);
        for (size_t i = 0; i < words; i++) frame[i] = tail + i * 8 + 1;
        assert_int_equal(nt_log_append(log, frame, words * 8, &err), NTEE_OK);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((double)(now.tv_sec - from.tv_sec) + (double)(now.tv_nsec - from.tv_nsec) / 1e9 < seconds &&
             nt_log_tail(log) < 300 << 20);
}

static void readers_and_the_background_run_beside_the_writer(void **state) {
    (void)state;
    for (int way = 0; way < FIRST_FAKE; way++) {
        world w = enter(way);
        shared all = {.log = start(&w)};
        pthread_t threads[4];
        void *(*const runs[4])(void *) = {read_on, read_on, sync_on, prepare_on};
        for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, runs[i], &all), 0);
        append_for(all.log, 0.7);
        atomic_store(&all.stop, 1);
        for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
        assert_true(atomic_load(&all.checked) > 10);
        assert_true(nt_log_synced(all.log) > HEADER);
        close_log(all.log);
        leave(&w);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_come_back_in_every_way),
        cmocka_unit_test(window_edges_make_no_difference),
        cmocka_unit_test(what_is_no_frame_is_refused),
        cmocka_unit_test(small_stores_have_small_files),
        cmocka_unit_test(only_a_few_windows_stay_mapped),
        cmocka_unit_test(a_writer_that_turns_slow_writes_until_it_has_left_the_large_pages),
        cmocka_unit_test(the_background_is_called_for),
        cmocka_unit_test(read_only_logs_write_nothing),
        cmocka_unit_test(opening_what_is_not_there_fails),
        cmocka_unit_test(residence_is_marked_and_refreshed),
        cmocka_unit_test(a_log_outgrows_its_mapping),
        cmocka_unit_test(views_reach_as_far_as_the_mapping),
        cmocka_unit_test(a_log_is_created_whole_or_not_at_all),
        cmocka_unit_test(cutting_is_durable_and_only_before_the_first_append),
        cmocka_unit_test(what_a_failed_sync_dropped_is_cured_by_a_rewrite),
        cmocka_unit_test(readers_and_the_background_run_beside_the_writer),
    };
    return cmocka_run_group_tests(tests, begin_all, end_all);
}
