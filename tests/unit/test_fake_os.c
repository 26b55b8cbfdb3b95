/* The fake file system as one that works, fails at the nth call, and fills up. */
#include <errno.h>

#include "fake_place.h"

/* ---- A file system like any other ---------------------------------------------------------------- */

static void files_hold_what_is_written(void **state) {
    char text[32];
    uint64_t size;
    int dir = open_root();
    int fd = open_new(dir, "a");
    put(fd, "hello", 3);
    assert_int_equal(NT_OS->size(fd, &size), 0);
    assert_int_equal(size, 8);
    assert_int_equal(nt_os_read(fd, text, 8, 0), 0);
    assert_memory_equal(text, "\0\0\0hello", 8);
    assert_int_equal(NT_OS->truncate(fd, 5), 0);
    assert_int_equal(NT_OS->truncate(fd, 7), 0);
    assert_string_equal(text_of(*state, "a"), "000he00");
    assert_int_equal(nt_os_read(fd, text, 8, 0), EIO);
    NT_OS->close(fd);
    NT_OS->close(dir);
}

static void mappings_are_the_file(void **state) {
    void *window, *view;
    char text[8];
    int dir = open_root();
    int fd = open_new(dir, "a");
    assert_int_equal(NT_OS->allocate(fd, 0, 65536), 0);
    assert_int_equal(NT_OS->map(fd, 0, 131072, 1, &window), 0);
    assert_int_equal(NT_OS->map(fd, 0, (size_t)1 << 30, 0, &view), 0);
    assert_int_equal(NT_OS->map(fd, 4096, 65536, 0, &view), EINVAL);
    nt_os_store((char *)window + 100, "stored", 6);
    nt_os_release((char *)window + 8, 0x4142434445464748);
    put(fd, "written", 200);
    assert_memory_equal((const char *)view + 100, "stored", 6);
    assert_memory_equal((const char *)view + 200, "written", 7);
    assert_int_equal(nt_os_read(fd, text, 8, 8), 0);
    assert_memory_equal(text, "HGFEDCBA", 8);
    assert_int_equal(NT_OS->unmap(window, 131072), 0);
    assert_int_equal(NT_OS->unmap(view, (size_t)1 << 30), 0);
    NT_OS->close(fd);
    NT_OS->close(dir);
    (void)state;
}

static int join_names(void *arg, const char *name) {
    strcat(arg, name);
    strcat(arg, " ");
    return 0;
}

static void directories_have_entries(void **state) {
    char names[64] = "";
    int dir, sub, fd, same;
    (void)state;
    assert_int_equal(NT_OS->open_dir("x", &dir), ENOENT);
    assert_int_equal(NT_OS->make_dir("/x"), 0);
    assert_int_equal(NT_OS->make_dir("x/y/z"), ENOENT);
    assert_int_equal(NT_OS->make_dir("./x/y/"), 0);
    assert_int_equal(NT_OS->make_dir("x/y"), EEXIST);
    assert_int_equal(NT_OS->remove_dir("x"), ENOTEMPTY);
    assert_int_equal(NT_OS->open_dir("x", &dir), 0);
    assert_int_equal(NT_OS->open_dir("x/y", &sub), 0);
    assert_int_equal(NT_OS->open_at(dir, "y", 0, &fd), EISDIR);
    assert_int_equal(NT_OS->open_at(dir, "f", 0, &fd), ENOENT);
    fd = open_new(dir, "f");
    assert_int_equal(NT_OS->open_dir("x/f", &sub), ENOTDIR);
    assert_int_equal(NT_OS->list(dir, join_names, names), 0);
    assert_string_equal(names, "y f ");
    assert_int_equal(NT_OS->rename_at(dir, "f", "g"), 0);
    assert_int_equal(NT_OS->rename_at(dir, "f", "g"), ENOENT);
    assert_int_equal(NT_OS->same_file(dir, "g", fd, &same), 0);
    assert_int_equal(same, 1);
    int other = open_new(dir, "f");
    assert_int_equal(NT_OS->rename_at(dir, "f", "g"), 0);
    assert_int_equal(NT_OS->same_file(dir, "g", fd, &same), 0);
    assert_int_equal(same, 0);
    put(fd, "still there for whoever has it open", 0);
    int fresh = NT_OS_WRITE | NT_OS_CREATE | NT_OS_EXCL;
    int none;
    assert_int_equal(NT_OS->open_at(dir, "g", fresh, &none), EEXIST);
    NT_OS->close(fd);
    NT_OS->close(other);
    NT_OS->close(sub);
    assert_int_equal(NT_OS->unlink_at(dir, "g"), 0);
    NT_OS->close(dir);
    assert_int_equal(NT_OS->remove_dir("x/y"), 0);
    assert_int_equal(NT_OS->remove_dir("x"), 0);
}

static void locks_belong_to_descriptors(void **state) {
    int dir = open_root();
    int a = open_new(dir, "lock");
    int b = open_new(dir, "lock");
    (void)state;
    assert_int_equal(NT_OS->lock(a, 1), 0);
    assert_int_equal(NT_OS->lock(a, 1), 0);
    assert_int_equal(NT_OS->lock(b, 0), EWOULDBLOCK);
    assert_int_equal(NT_OS->lock(a, 0), 0);
    assert_int_equal(NT_OS->lock(b, 0), 0);
    assert_int_equal(NT_OS->lock(a, 1), EWOULDBLOCK);
    NT_OS->close(b);
    assert_int_equal(NT_OS->lock(a, 1), 0);
    NT_OS->close(a);
    NT_OS->close(dir);
}

/* ---- Faults and limits --------------------------------------------------------------------------- */

static void the_nth_call_fails(void **state) {
    fake_fs *fs = *state;
    size_t done;
    uint64_t size;
    int dir = open_root();
    int fd = open_new(dir, "a");
    fake_fail(fs, (fake_fault){.call = FAKE_WRITE, .nth = 2, .error = EIO});
    put(fd, "1", 0);
    assert_int_equal(nt_os_write(fd, "2", 1, 1, &done), EIO);
    put(fd, "3", 2);
    assert_string_equal(text_of(fs, "a"), "103");
    assert_int_equal(fake_fired(fs), 1);
    fake_fail(fs, (fake_fault){.call = FAKE_ANY, .nth = 3, .error = ENOSPC, .sticky = 1});
    assert_int_equal(NT_OS->size(fd, &size), 0);
    assert_int_equal(NT_OS->sync_data(fd), 0);
    assert_int_equal(NT_OS->size(fd, &size), ENOSPC);
    assert_int_equal(NT_OS->truncate(fd, 1), ENOSPC);
    assert_int_equal(NT_OS->sync_dir(dir), ENOSPC);
    void *memory = nt_alloc(10); /* not counted among the others */
    assert_non_null(memory);
    fake_heal(fs);
    assert_int_equal(NT_OS->size(fd, &size), 0);
    fake_fail(fs, (fake_fault){.call = FAKE_ALLOC, .nth = 2, .error = ENOMEM});
    memory = nt_realloc(memory, 20);
    assert_non_null(memory);
    assert_null(NT_OS->alloc_pages(4096));
    assert_non_null(memory = nt_realloc(memory, 30));
    nt_free(memory);
    fake_fail(fs, (fake_fault){.call = FAKE_CLOSE, .nth = 1, .error = EIO});
    assert_int_equal(NT_OS->close(fd), EIO); /* closed all the same */
    NT_OS->close(dir);
    assert_int_equal(fake_leaks(fs, 0), 0);
}

static void leaks_are_counted(void **state) {
    fake_fs *fs = *state;
    void *at;
    int dir = open_root();
    int fd = open_new(dir, "a");
    assert_int_equal(NT_OS->map(fd, 0, 65536, 0, &at), 0);
    void *memory = nt_alloc(5);
    void *pages = NT_OS->alloc_pages(12345);
    for (int i = 0; i < 12345; i++) assert_int_equal(((uint8_t *)pages)[i], 0);
    assert_int_equal((uintptr_t)pages % 4096, 0);
    assert_int_equal(fake_leaks(fs, 0), 5);
    NT_OS->free_pages(pages, 12345);
    nt_free(memory);
    NT_OS->unmap(at, 65536);
    NT_OS->close(fd);
    NT_OS->close(dir);
    assert_int_equal(fake_leaks(fs, 0), 0);
}

static void the_disk_fills_up(void **state) {
    fake_fs *fs = *state;
    static uint8_t bytes[40000];
    size_t done;
    uint64_t size;
    int dir = open_root();
    int fd = open_new(dir, "a");
    fake_set(fs)->capacity = 8;
    assert_int_equal(NT_OS->allocate(fd, 0, 9 * 4096), ENOSPC);
    assert_int_equal(fake_used(fs), 0);
    assert_int_equal(NT_OS->allocate(fd, 4096, 4096), 0);
    assert_int_equal(nt_os_write(fd, bytes, sizeof bytes, 0, &done), ENOSPC);
    assert_int_equal(done, 8 * 4096);
    assert_int_equal(fake_used(fs), 8);
    assert_int_equal(NT_OS->truncate(fd, 4097), 0);
    assert_int_equal(fake_used(fs), 2);
    fake_set(fs)->partial_allocate = 1;
    assert_int_equal(NT_OS->allocate(fd, 0, 20 * 4096), ENOSPC);
    assert_int_equal(NT_OS->size(fd, &size), 0);
    assert_int_equal(size, 8 * 4096);
    NT_OS->close(fd);
    assert_int_equal(NT_OS->unlink_at(dir, "a"), 0);
    assert_int_equal(fake_used(fs), 0);
    NT_OS->close(dir);
}

static jmp_buf died;

static void note_sigbus(const char *why) {
    (void)why;
    longjmp(died, 1);
}

static void a_store_that_could_die_is_noticed(void **state) {
    fake_fs *fs = *state;
    void *window;
    int dir = open_root();
    int fd = open_new(dir, "a");
    fake_set(fs)->sigbus = note_sigbus;
    assert_int_equal(NT_OS->truncate(fd, 131072), 0); /* sparse */
    assert_int_equal(NT_OS->allocate(fd, 0, 65536), 0);
    assert_int_equal(NT_OS->map(fd, 0, 262144, 1, &window), 0);
    volatile int noticed = 0;
    static const size_t PLACES[] = {0, 65528, 65532, 65536, 131064, 131072, 200000};
    for (volatile size_t i = 0; i < 7; i++) {
        if (setjmp(died) == 0) nt_os_store((char *)window + PLACES[i], "12345678", 8);
        else noticed |= 1 << i;
    }
    assert_int_equal(noticed, 0x7C);
    NT_OS->unmap(window, 262144);
    NT_OS->close(fd);
    NT_OS->close(dir);
}

static void clocks_and_chance_are_the_tests_own(void **state) {
    fake_fs *fs = *state;
    uint8_t a[16], b[16];
    uintptr_t thread = 5;
    fake_set(fs)->real_ms = 77;
    fake_set(fs)->boot_ms = 88;
    assert_int_equal(NT_OS->now_real(), 77);
    assert_int_equal(NT_OS->now_boot(), 88);
    assert_int_equal(NT_OS->random(a, 16), 0);
    assert_int_equal(NT_OS->random(b, 16), 0);
    assert_memory_not_equal(a, b, 16);
    fake_fs *again = fake_new(seed);
    fake_fs *other = fake_new(seed + 1);
    fake_use(again);
    NT_OS->random(b, 16);
    assert_memory_equal(a, b, 16);
    fake_use(other);
    NT_OS->random(b, 16);
    assert_memory_not_equal(a, b, 16);
    fake_use(fs);
    fake_free(again);
    fake_free(other);
    assert_int_equal(NT_OS->thread_start(NULL, NULL, &thread), 0);
    assert_int_equal(thread, 0);
    NT_OS->thread_join(thread);
}

static uint64_t traced_run(uint64_t variant) {
    fake_fs *fs = fake_new(9);
    fake_use(fs);
    int dir = open_root();
    int fd = open_new(dir, "a");
    put(fd, variant == 1 ? "abd" : "abc", variant == 2);
    NT_OS->sync_data(fd);
    if (variant == 3) NT_OS->sync_dir(dir);
    NT_OS->close(fd);
    NT_OS->close(dir);
    uint64_t trace = fake_trace(fs);
    fake_free(fs);
    return trace;
}

static void equal_runs_have_equal_traces(void **state) {
    uint64_t first = traced_run(0);
    assert_true(first == traced_run(0));
    for (uint64_t variant = 1; variant < 4; variant++) assert_true(first != traced_run(variant));
    fake_use(*state);
}

static void hashes_tell_images_apart(void **state) {
    fake_fs *fs = *state;
    uint64_t hashes[40];
    int dir = open_root();
    int fd = open_new(dir, "a");
    NT_OS->sync_dir(dir);
    for (int i = 0; i < 40; i++) {
        put(fd, "x", (uint64_t)i * 100);
        hashes[i] = fake_hash(fs);
        for (int j = 0; j < i; j++) assert_true(hashes[i] != hashes[j]);
        fake_fs *image = image_of(fs, FAKE_ALL, 0);
        assert_true(fake_hash(image) == hashes[i]);
        fake_free(image);
    }
    NT_OS->rename_at(dir, "a", "b");
    assert_true(fake_hash(fs) != hashes[39]);
    NT_OS->close(fd);
    NT_OS->close(dir);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_FAKE(files_hold_what_is_written),
        ON_FAKE(mappings_are_the_file),
        ON_FAKE(directories_have_entries),
        ON_FAKE(locks_belong_to_descriptors),
        ON_FAKE(the_nth_call_fails),
        ON_FAKE(leaks_are_counted),
        ON_FAKE(the_disk_fills_up),
        ON_FAKE(a_store_that_could_die_is_noticed),
        ON_FAKE(clocks_and_chance_are_the_tests_own),
        ON_FAKE(equal_runs_have_equal_traces),
        ON_FAKE(hashes_tell_images_apart),
    };
    return cmocka_run_group_tests(tests, begin_all, NULL);
}
