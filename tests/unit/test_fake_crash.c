/* What the fake file system loses and tears in a crash is what a real one may lose and tear, and no more. */
#include <errno.h>

#include "fake_place.h"

/* ---- Power loss ---------------------------------------------------------------------------------- */

static void only_what_was_synced_is_sure(void **state) {
    fake_fs *fs = *state;
    int dir = open_root();
    int fd = open_new(dir, "a");
    put(fd, "first", 0);
    fake_fs *image = image_of(fs, FAKE_NONE, 0);
    assert_string_equal(text_of(image, "a"), "-");
    fake_free(image);
    assert_int_equal(NT_OS->sync_dir(dir), 0);
    image = image_of(fs, FAKE_NONE, 0);
    assert_string_equal(text_of(image, "a"), ""); /* the entry, and not its bytes */
    fake_free(image);
    assert_int_equal(NT_OS->sync_data(fd), 0);
    put(fd, "SECOND", 3);
    image = image_of(fs, FAKE_NONE, 0);
    assert_string_equal(text_of(image, "a"), "first");
    assert_int_equal(fake_pending(image), 0);
    fake_free(image);
    image = image_of(fs, FAKE_ALL, 0);
    assert_string_equal(text_of(image, "a"), "firSECOND");
    fake_free(image);
    assert_string_equal(text_of(fs, "a"), "firSECOND");
    NT_OS->close(fd);
    NT_OS->close(dir);
}

static void any_subset_of_the_pending_items_may_land(void **state) {
    fake_fs *fs = *state;
    static const char *const EXPECTED[8] = {"aaaaaa", "Aaaaaa", "aaBaaa", "AaBaaa",
                                            "aa",     "Aa",     "aa",     "Aa"};
    int dir = open_root();
    int fd = open_new(dir, "a");
    put(fd, "aaaaaa", 0);
    NT_OS->sync_data(fd);
    NT_OS->sync_dir(dir);
    put(fd, "A", 0);
    put(fd, "B", 2);
    NT_OS->truncate(fd, 2);
    assert_int_equal(fake_pending(fs), 3);
    for (uint64_t mask = 0; mask < 8; mask++) {
        fake_fs *image = image_of(fs, FAKE_MASK, mask);
        assert_string_equal(text_of(image, "a"), EXPECTED[mask]);
        fake_free(image);
    }
    NT_OS->close(fd);
    NT_OS->close(dir);
}

static void size_and_data_land_apart(void **state) {
    fake_fs *fs = *state;
    static const char *const EXPECTED[4] = {"a", "a", "a00", "abc"};
    int dir = open_root();
    int fd = open_new(dir, "a");
    put(fd, "a", 0);
    NT_OS->sync_data(fd);
    NT_OS->sync_dir(dir);
    put(fd, "bc", 1);
    assert_int_equal(fake_pending(fs), 2); /* the data, then the size */
    for (uint64_t mask = 0; mask < 4; mask++) {
        fake_fs *image = image_of(fs, FAKE_MASK, mask);
        assert_string_equal(text_of(image, "a"), EXPECTED[mask]);
        fake_use(image);
        int dir2 = open_root();
        int fd2 = open_new(dir2, "a");
        assert_int_equal(NT_OS->truncate(fd2, 5), 0); /* what lay behind the end is gone */
        assert_int_equal(text_of(image, "a")[4], '0');
        assert_int_equal(text_of(image, "a")[1], EXPECTED[mask][1] != 0 ? EXPECTED[mask][1] : '0');
        NT_OS->close(fd2);
        NT_OS->close(dir2);
        fake_use(fs);
        fake_free(image);
    }
    NT_OS->close(fd);
    NT_OS->close(dir);
}

static void names_land_apart_from_each_other(void **state) {
    fake_fs *fs = *state;
    static const char *const A[4] = {"old", "old", "new", "new"};
    static const char *const B[4] = {"-", "other", "-", "other"};
    int dir = open_root();
    fake_plant(fs, "a", "old", 3);
    fake_plant(fs, "tmp", "new", 3);
    int fd = open_new(dir, "b"); /* item 0 */
    put(fd, "other", 0);
    NT_OS->sync_data(fd);
    assert_int_equal(NT_OS->rename_at(dir, "tmp", "a"), 0); /* item 1 */
    assert_int_equal(fake_pending(fs), 2);
    for (uint64_t mask = 0; mask < 4; mask++) {
        fake_fs *image = image_of(fs, FAKE_MASK, mask);
        assert_string_equal(text_of(image, "a"), A[mask]);
        assert_string_equal(text_of(image, "b"), B[mask]);
        assert_int_equal(fake_exists(image, "tmp"), mask < 2);
        fake_free(image);
    }
    NT_OS->sync_dir(dir);
    assert_int_equal(fake_pending(fs), 0);
    NT_OS->close(fd);
    NT_OS->close(dir);
}

static void an_unlinked_file_can_come_back(void **state) {
    fake_fs *fs = *state;
    int dir = open_root();
    fake_plant(fs, "a", "kept", 4);
    assert_int_equal(NT_OS->unlink_at(dir, "a"), 0);
    assert_int_equal(fake_exists(fs, "a"), 0);
    fake_fs *image = image_of(fs, FAKE_NONE, 0);
    assert_string_equal(text_of(image, "a"), "kept");
    fake_free(image);
    fake_fs *killed = fake_kill(fs, 0);
    image = image_of(killed, FAKE_NONE, 0);
    assert_string_equal(text_of(image, "a"), "kept");
    fake_free(image);
    fake_free(killed);
    NT_OS->sync_dir(dir);
    image = image_of(fs, FAKE_NONE, 0);
    assert_string_equal(text_of(image, "a"), "-");
    fake_free(image);
    assert_int_equal(fake_used(fs), 0);
    NT_OS->close(dir);
}

static void an_unsynced_directory_goes_with_all_that_is_in_it(void **state) {
    fake_fs *fs = *state;
    int root = open_root();
    int dir;
    assert_int_equal(NT_OS->make_dir("d"), 0);
    assert_int_equal(NT_OS->open_dir("d", &dir), 0);
    int fd = open_new(dir, "f");
    NT_OS->sync_data(fd);
    NT_OS->sync_dir(dir);
    fake_fs *image = image_of(fs, FAKE_NONE, 0);
    assert_int_equal(fake_exists(image, "d"), 0);
    fake_free(image);
    NT_OS->sync_dir(root);
    image = image_of(fs, FAKE_NONE, 0);
    assert_int_equal(fake_exists(image, "d/f"), 1);
    fake_free(image);
    NT_OS->close(fd);
    NT_OS->close(dir);
    NT_OS->close(root);
}

/* Each page of a FAKE_PAGES image without torn sectors is one that existed: a counter in each of its words
 * must not decrease from word to word, as they were written in this order. */
static void pages_land_as_they_were_at_some_moment(void **state) {
    fake_fs *fs = *state;
    void *window;
    uint64_t size, whole = 0, torn = 0, mixed = 0;
    int dir = open_root();
    int fd = open_new(dir, "a");
    assert_int_equal(NT_OS->allocate(fd, 0, 65536), 0);
    assert_int_equal(NT_OS->map(fd, 0, 65536, 1, &window), 0);
    NT_OS->sync_data(fd);
    NT_OS->sync_dir(dir);
    for (uint64_t i = 1; i <= 4; i++) {
        for (size_t at = 0; at < 8192; at += 8) nt_os_store((char *)window + at, &i, 8);
    }
    for (uint64_t s = 0; s < 400; s++) {
        fake_fs *image = image_of(fs, FAKE_PAGES, s);
        const uint8_t *bytes = fake_bytes(image, "a", &size);
        uint64_t first[2];
        for (int page = 0; page < 2 && size >= 8192; page++) {
            const uint64_t *words = (const uint64_t *)(const void *)(bytes + page * 4096);
            int drops = 0;
            for (int i = 1; i < 512; i++) {
                if (words[i] == words[i - 1]) continue;
                drops += words[i] != words[i - 1] - 1 || i % 64 == 0;
                whole += words[i] == words[i - 1] - 1;
            }
            first[page] = words[0];
            torn += drops > 0;
        }
        mixed += size >= 8192 && first[0] != first[1];
        fake_free(image);
    }
    assert_true(whole > 0 && torn > 0 && mixed > 0);
    assert_true(torn < 500);
    NT_OS->unmap(window, 65536);
    NT_OS->close(fd);
    NT_OS->close(dir);
}

static void stores_land_word_by_word(void **state) {
    fake_fs *fs = *state;
    void *window;
    uint64_t size;
    unsigned seen = 0;
    static const char FROM[32] = "AAAAAAAABBBBBBBBCCCCCCCCDDDDDDDD";
    int dir = open_root();
    int fd = open_new(dir, "a");
    assert_int_equal(NT_OS->allocate(fd, 0, 65536), 0);
    assert_int_equal(NT_OS->map(fd, 0, 65536, 1, &window), 0);
    NT_OS->sync_data(fd);
    NT_OS->sync_dir(dir);
    nt_os_store(window, FROM, 32);
    for (uint64_t s = 0; s < 20000; s++) {
        fake_fs *image = image_of(fs, FAKE_RANDOM, s);
        const uint8_t *bytes = fake_bytes(image, "a", &size);
        unsigned which = 0;
        for (unsigned i = 0; i < 4; i++) {
            assert_true(bytes[i * 8] == 0 || bytes[i * 8] == (uint8_t)FROM[i * 8]);
            for (unsigned j = 1; j < 8; j++) assert_int_equal(bytes[i * 8 + j], bytes[i * 8]);
            which |= (unsigned)(bytes[i * 8] != 0) << i;
        }
        seen |= 1u << which;
        fake_free(image);
    }
    assert_int_equal(seen, 0xFFFF);
    NT_OS->unmap(window, 65536);
    NT_OS->close(fd);
    NT_OS->close(dir);
}

/* A second model: every byte of a random image is one that this byte had since the last sync. */
static void random_images_hold_old_or_new_bytes_only(void **state) {
    enum { SIZE = 20000, VALUES = 64 };
    static uint8_t history[SIZE][VALUES];
    static uint8_t counts[SIZE];
    fake_fs *fs = *state;
    static uint8_t bytes[SIZE];
    int dir = open_root();
    int fd = open_new(dir, "a");
    size_t done;
    NT_OS->sync_dir(dir);
    for (int round = 0; round < 60; round++) {
        for (int i = 0; i < 6; i++) {
            size_t len = 1 + (size_t)(next_random() % 6000);
            size_t at = (size_t)(next_random() % (SIZE - len));
            memset(bytes, (int)next_random(), len);
            assert_int_equal(nt_os_write(fd, bytes, len, at, &done), 0);
            for (size_t j = at; j < at + len; j++) history[j][counts[j]++] = bytes[0];
        }
        for (uint64_t s = 0; s < 20; s++) {
            uint64_t size;
            fake_fs *image = image_of(fs, s % 2 ? FAKE_RANDOM : FAKE_PAGES, next_random());
            const uint8_t *found = fake_bytes(image, "a", &size);
            for (size_t j = 0; j < size; j++) {
                int good = counts[j] == 0 || history[j][0] != 0 ? found[j] == 0 : 0;
                for (int k = 0; k < counts[j] && !good; k++) good = history[j][k] == found[j];
                assert_true(good);
            }
            fake_free(image);
        }
        if (round % 3 != 2) continue;
        assert_int_equal(NT_OS->sync_data(fd), 0);
        uint64_t size;
        const uint8_t *now = fake_bytes(fs, "a", &size);
        fake_fs *image = image_of(fs, FAKE_NONE, 0);
        const uint8_t *durable = fake_bytes(image, "a", &size);
        assert_memory_equal(now, durable, size);
        fake_free(image);
        for (size_t j = 0; j < size; j++) {
            history[j][0] = now[j];
            counts[j] = 1;
        }
    }
    NT_OS->close(fd);
    NT_OS->close(dir);
}

static void a_failed_sync_makes_its_bytes_unsure_for_good(void **state) {
    fake_fs *fs = *state;
    int dir = open_root();
    int fd = open_new(dir, "a");
    put(fd, "good", 0);
    NT_OS->sync_data(fd);
    NT_OS->sync_dir(dir);
    put(fd, "BAD!", 0);
    fake_fail(fs, (fake_fault){.call = FAKE_SYNC, .nth = 1, .error = EIO});
    assert_int_equal(NT_OS->sync_data(fd), EIO);
    assert_int_equal(NT_OS->sync_data(fd), 0); /* says yes, and means nothing */
    fake_fs *image = image_of(fs, FAKE_NONE, 0);
    assert_string_equal(text_of(image, "a"), "good");
    fake_free(image);
    put(fd, "AD", 1); /* written again, in part */
    assert_int_equal(NT_OS->sync_data(fd), 0);
    image = image_of(fs, FAKE_NONE, 0);
    assert_string_equal(text_of(image, "a"), "gADd");
    fake_free(image);
    assert_string_equal(text_of(fs, "a"), "BAD!");
    fake_evict(fs);
    assert_string_equal(text_of(fs, "a"), "gADd");
    fake_set(fs)->evict_on_failure = 1;
    put(fd, "12", 2);
    fake_fail(fs, (fake_fault){.call = FAKE_SYNC, .nth = 1, .error = EIO});
    assert_int_equal(NT_OS->sync_data(fd), EIO);
    assert_string_equal(text_of(fs, "a"), "gADd");
    NT_OS->close(fd);
    NT_OS->close(dir);
}

/* ---- Process kill -------------------------------------------------------------------------------- */

static void a_kill_keeps_what_is_visible_and_what_is_pending(void **state) {
    fake_fs *fs = *state;
    int dir = open_root();
    int fd = open_new(dir, "a");
    put(fd, "abc", 0);
    NT_OS->lock(fd, 1);
    fake_fs *killed = fake_kill(fs, 0);
    assert_string_equal(text_of(killed, "a"), "abc");
    assert_int_equal(fake_pending(killed), fake_pending(fs));
    assert_int_equal(fake_leaks(killed, 1), 0);
    assert_true(fake_hash(killed) == fake_hash(fs));
    fake_fs *image = image_of(killed, FAKE_NONE, 0);
    assert_string_equal(text_of(image, "a"), "-");
    fake_free(image);
    fake_use(killed);
    int dir2 = open_root();
    int fd2 = open_new(dir2, "a");
    assert_int_equal(NT_OS->lock(fd2, 1), 0);
    put(fd2, "X", 1);
    NT_OS->close(fd2);
    NT_OS->close(dir2);
    assert_string_equal(text_of(killed, "a"), "aXc");
    assert_string_equal(text_of(fs, "a"), "abc");
    fake_use(fs);
    fake_free(killed);
    NT_OS->close(fd);
    NT_OS->close(dir);
}

typedef struct tears {
    unsigned seen;
    int events;
    uint64_t tears;
} tears;

static void tear_stores(void *arg, fake_fs *fs, const fake_event *event) {
    tears *t = arg;
    t->events++;
    if (event->after || event->call != FAKE_STORE) return;
    for (uint64_t i = 1; i < 300; i++) {
        uint64_t size;
        fake_fs *killed = fake_kill(fs, next_random() | 1);
        const uint8_t *bytes = fake_bytes(killed, "a", &size);
        unsigned which = 0;
        for (unsigned w = 0; w < 3; w++) which |= (unsigned)(bytes[w * 8] != 0) << w;
        t->seen |= 1u << which;
        fake_free(killed);
    }
}

static void a_kill_can_tear_the_store_that_runs(void **state) {
    fake_fs *fs = *state;
    void *window;
    tears t = {0};
    int dir = open_root();
    int fd = open_new(dir, "a");
    assert_int_equal(NT_OS->allocate(fd, 0, 65536), 0);
    assert_int_equal(NT_OS->map(fd, 0, 65536, 1, &window), 0);
    fake_hook(fs, tear_stores, &t);
    nt_os_store(window, "AAAAAAAABBBBBBBBCCCCCCCC", 24);
    nt_os_yield("here");
    fake_hook(fs, NULL, NULL);
    assert_int_equal(t.seen, 0xFF);
    assert_int_equal(t.events, 3);
    NT_OS->unmap(window, 65536);
    NT_OS->close(fd);
    NT_OS->close(dir);
}

static void tear_writes(void *arg, fake_fs *fs, const fake_event *event) {
    tears *t = arg;
    if (event->after || event->call != FAKE_WRITE) return;
    for (uint64_t i = 1; i < 100; i++) {
        uint64_t size;
        fake_fs *killed = fake_kill(fs, i);
        (void)fake_bytes(killed, "a", &size);
        assert_true(size % 4096 == 0 && size <= 12288);
        t->tears |= (uint64_t)1 << (size / 4096);
        fake_free(killed);
    }
}

static void a_kill_tears_a_write_at_page_edges_only(void **state) {
    static uint8_t bytes[12288];
    tears t = {0};
    int dir = open_root();
    int fd = open_new(dir, "a");
    size_t done;
    memset(bytes, 'x', sizeof bytes);
    fake_hook(*state, tear_writes, &t);
    assert_int_equal(nt_os_write(fd, bytes, sizeof bytes, 0, &done), 0);
    fake_hook(*state, NULL, NULL);
    assert_int_equal(t.tears & 0xE, 0xE);
    NT_OS->close(fd);
    NT_OS->close(dir);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_FAKE(only_what_was_synced_is_sure),
        ON_FAKE(any_subset_of_the_pending_items_may_land),
        ON_FAKE(size_and_data_land_apart),
        ON_FAKE(names_land_apart_from_each_other),
        ON_FAKE(an_unlinked_file_can_come_back),
        ON_FAKE(an_unsynced_directory_goes_with_all_that_is_in_it),
        ON_FAKE(pages_land_as_they_were_at_some_moment),
        ON_FAKE(stores_land_word_by_word),
        ON_FAKE(random_images_hold_old_or_new_bytes_only),
        ON_FAKE(a_failed_sync_makes_its_bytes_unsure_for_good),
        ON_FAKE(a_kill_keeps_what_is_visible_and_what_is_pending),
        ON_FAKE(a_kill_can_tear_the_store_that_runs),
        ON_FAKE(a_kill_tears_a_write_at_page_edges_only),
    };
    return cmocka_run_group_tests(tests, begin_all, NULL);
}
