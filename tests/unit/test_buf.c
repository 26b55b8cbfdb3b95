/* The growing buffer: contents stay, failures change nothing, lengths do not wrap. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "fake/fake_os.h"

static void appended_bytes_come_back_in_order(void **state) {
    nt_buf buf = {0};
    (void)state;
    for (unsigned i = 0; i < 10000; i++) {
        uint8_t byte = (uint8_t)(i * 7);
        assert_int_equal(nt_buf_append(&buf, &byte, 1), 1);
    }
    assert_int_equal(buf.len, 10000);
    for (unsigned i = 0; i < 10000; i++) assert_int_equal(buf.data[i], (uint8_t)(i * 7));
    nt_buf_free(&buf);
    assert_null(buf.data);
    assert_int_equal(buf.len + buf.cap, 0);
    assert_int_equal(nt_buf_append(&buf, "again", 5), 1);
    assert_memory_equal(buf.data, "again", 5);
    nt_buf_free(&buf);
}

static void appending_nothing_is_fine(void **state) {
    nt_buf buf = {0};
    (void)state;
    assert_int_equal(nt_buf_append(&buf, NULL, 0), 1);
    assert_int_equal(buf.len, 0);
    nt_buf_free(&buf);
}

static void reserve_makes_room_once(void **state) {
    nt_buf buf = {0};
    (void)state;
    assert_int_equal(nt_buf_reserve(&buf, 1000), 1);
    assert_true(buf.cap >= 1000);
    const uint8_t *data = buf.data;
    static const uint8_t BYTES[1000] = {1};
    assert_int_equal(nt_buf_append(&buf, BYTES, 1000), 1);
    assert_ptr_equal(buf.data, data);
    nt_buf_free(&buf);
}

static void growth_is_geometric(void **state) {
    fake_fs *fs = fake_new(1);
    nt_buf buf = {0};
    (void)state;
    fake_use(fs);
    for (unsigned i = 0; i < 100000; i++) assert_int_equal(nt_buf_append(&buf, "x", 1), 1);
    assert_true(fake_count(fs, FAKE_ALLOC) < 20);
    nt_buf_free(&buf);
    fake_use(NULL);
    fake_free(fs);
}

static void short_memory_changes_nothing(void **state) {
    fake_fs *fs = fake_new(1);
    nt_buf buf = {0};
    (void)state;
    fake_use(fs);
    assert_int_equal(nt_buf_append(&buf, "hello", 5), 1);
    fake_fail(fs, (fake_fault){.call = FAKE_ALLOC, .nth = 1, .error = 12});
    assert_int_equal(nt_buf_reserve(&buf, 1 << 20), 0);
    assert_int_equal(buf.len, 5);
    assert_memory_equal(buf.data, "hello", 5);
    assert_int_equal(nt_buf_reserve(&buf, 1 << 20), 1);
    assert_memory_equal(buf.data, "hello", 5);
    nt_buf_free(&buf);
    fake_use(NULL);
    fake_free(fs);
}

static void lengths_do_not_wrap(void **state) {
    nt_buf buf = {0};
    (void)state;
    assert_int_equal(nt_buf_append(&buf, "hello", 5), 1);
    assert_int_equal(nt_buf_reserve(&buf, SIZE_MAX), 0);
    assert_int_equal(nt_buf_reserve(&buf, SIZE_MAX - 4), 0);
    assert_int_equal(buf.len, 5);
    assert_memory_equal(buf.data, "hello", 5);
    nt_buf_free(&buf);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appended_bytes_come_back_in_order), cmocka_unit_test(appending_nothing_is_fine),
        cmocka_unit_test(reserve_makes_room_once),           cmocka_unit_test(growth_is_geometric),
        cmocka_unit_test(short_memory_changes_nothing),      cmocka_unit_test(lengths_do_not_wrap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
