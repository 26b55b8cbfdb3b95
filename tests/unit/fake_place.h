/* fake_place: what the tests of the fake file system share: an instance a test, and short ways to use it. */
#ifndef FAKE_PLACE_H
#define FAKE_PLACE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "fake/fake_os.h"

static uint64_t seed;

static inline uint64_t next_random(void) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return seed >> 24;
}

static inline int set_up(void **state) {
    fake_fs *fs = fake_new(seed);
    fake_use(fs);
    *state = fs;
    return 0;
}

static inline int tear_down(void **state) {
    size_t leaks = fake_leaks(*state, 1);
    fake_use(NULL);
    fake_abandon(*state);
    return leaks == 0 ? 0 : -1;
}

static inline int open_root(void) {
    int dir;
    assert_int_equal(NT_OS->open_dir("/", &dir), 0);
    return dir;
}

static inline int open_new(int dir, const char *name) {
    int fd;
    assert_int_equal(NT_OS->open_at(dir, name, NT_OS_WRITE | NT_OS_CREATE, &fd), 0);
    return fd;
}

static inline void put(int fd, const char *text, uint64_t offset) {
    size_t done;
    assert_int_equal(nt_os_write(fd, text, strlen(text), offset, &done), 0);
}

static inline fake_fs *image_of(const fake_fs *fs, fake_mode mode, uint64_t mask) {
    return fake_crash(fs, &(fake_crash_plan){mode, mask, mask});
}

/* The text of a file, in static memory; "-" where there is none. */
static const char *text_of(fake_fs *fs, const char *path) {
    static char text[256];
    uint64_t size;
    const uint8_t *bytes = fake_bytes(fs, path, &size);
    if (bytes == NULL) return "-";
    assert_true(size < sizeof text);
    for (uint64_t i = 0; i < size; i++) text[i] = bytes[i] == 0 ? '0' : (char)bytes[i];
    text[size] = 0;
    return text;
}

static inline int begin_all(void **state) {
    const char *given = getenv("NT_SEED");
    (void)state;
    seed = given != NULL ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
    printf("NT_SEED=%llu\n", (unsigned long long)seed);
    return 0;
}

#define ON_FAKE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

#endif
