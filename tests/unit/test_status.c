/* Texts and errors: every status has one of each, messages stay within bounds and UTF-8. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/status.h"

static void every_status_has_a_name_and_a_text_of_its_own(void **state) {
    (void)state;
    for (ntee_status s = NTEE_OK; s <= NTEE_WOULD_BLOCK; s++) {
        assert_int_equal(strncmp(ntee_status_name(s), "NTEE_", 5), 0);
        assert_string_not_equal(ntee_status_name(s), "NTEE_UNKNOWN");
        assert_true(strlen(ntee_strerror(s)) > 5);
        for (ntee_status t = NTEE_OK; t < s; t++) {
            assert_string_not_equal(ntee_status_name(s), ntee_status_name(t));
            assert_string_not_equal(ntee_strerror(s), ntee_strerror(t));
        }
    }
    assert_string_equal(ntee_status_name(NTEE_IO), "NTEE_IO");
    assert_string_equal(ntee_status_name(NTEE_WOULD_BLOCK), "NTEE_WOULD_BLOCK");
}

static void a_number_that_is_no_status_has_texts_too(void **state) {
    static const ntee_status WRONG[] = {-1, NTEE_WOULD_BLOCK + 1, INT32_MIN, INT32_MAX};
    (void)state;
    for (size_t i = 0; i < sizeof WRONG / sizeof WRONG[0]; i++) {
        assert_string_equal(ntee_status_name(WRONG[i]), "NTEE_UNKNOWN");
        assert_string_equal(ntee_strerror(WRONG[i]), "unknown status");
    }
}

static void fail_fills_the_error_and_returns_its_status(void **state) {
    ntee_error err;
    (void)state;
    memset(&err, 0xEE, sizeof err);
    assert_int_equal(nt_fail(&err, NTEE_INVALID, "no %s: %d", "luck", 13), NTEE_INVALID);
    assert_int_equal(err.status, NTEE_INVALID);
    assert_int_equal(err.os_errno, 0);
    assert_int_equal(err.offset, -1);
    assert_int_equal(err.item, -1);
    assert_string_equal(err.message, "no luck: 13");
    for (size_t i = strlen(err.message); i < sizeof err.message; i++) assert_int_equal(err.message[i], 0);
}

static void an_error_may_quote_itself(void **state) {
    ntee_error err;
    (void)state;
    nt_fail(&err, NTEE_IO, "first");
    nt_fail(&err, NTEE_IO, "second after %s", err.message);
    assert_string_equal(err.message, "second after first");
}

static void os_errors_become_full_nomem_or_io(void **state) {
    static const struct { int number; ntee_status status; } CASES[] = {
        {ENOSPC, NTEE_FULL}, {EDQUOT, NTEE_FULL}, {EFBIG, NTEE_FULL}, {ENOMEM, NTEE_NOMEM},
        {EIO, NTEE_IO}, {EACCES, NTEE_IO}, {EINTR, NTEE_IO}, {9999, NTEE_IO}};
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        ntee_error err;
        assert_int_equal(nt_fail_os(&err, CASES[i].number, "write", "log-1"), CASES[i].status);
        assert_int_equal(err.os_errno, CASES[i].number);
        assert_non_null(strstr(err.message, "cannot write log-1: "));
        assert_non_null(strstr(err.message, "errno"));
    }
}

static void corruption_names_file_and_offset(void **state) {
    ntee_error err;
    (void)state;
    assert_int_equal(nt_fail_corrupt(&err, "log-1", 4096, "bad checksum"), NTEE_CORRUPT);
    assert_int_equal(err.offset, 4096);
    assert_string_equal(err.message, "log-1 at offset 4096: bad checksum");
    nt_fail_corrupt(&err, "log-1", UINT64_MAX, "odd");
    assert_true(err.offset == INT64_MAX);
}

static int is_utf8(const char *text) {
    const unsigned char *p = (const unsigned char *)text;
    while (*p != 0) {
        size_t more = *p < 0x80 ? 0 : *p >= 0xF0 ? 3 : *p >= 0xE0 ? 2 : 1;
        if (*p >= 0x80 && *p < 0xC2) return 0;
        p++;
        for (; more > 0; more--) {
            if ((*p++ & 0xC0) != 0x80) return 0;
        }
    }
    return 1;
}

static void long_messages_are_cut_at_a_character(void **state) {
    char path[1024];
    (void)state;
    for (size_t shift = 0; shift < 8; shift++) {
        ntee_error err;
        memset(path, 'x', shift);
        size_t at = shift;
        while (at + 8 < sizeof path) {
            memcpy(path + at, "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x90", 8);
            path[at + 8] = (char)0x91;
            at += 9;
            if (at + 9 >= sizeof path) break;
        }
        path[at] = 0;
        nt_fail(&err, NTEE_IO, "%s", path);
        assert_int_equal(strlen(err.message), sizeof err.message - 1);
        assert_true(is_utf8(err.message));
    }
}

static void bytes_that_are_not_utf8_become_question_marks(void **state) {
    ntee_error err;
    (void)state;
    nt_fail(&err, NTEE_IO, "a%sz", "\xFF\xC0\x80\xED\xA0\x80\xF4\x90\x80\x80\xE2\x82");
    assert_string_equal(err.message, "a????????????z");
    nt_fail(&err, NTEE_IO, "%s", "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x90\x91");
    assert_string_equal(err.message, "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x90\x91");
}

static void keys_are_shown_as_ascii(void **state) {
    char out[64];
    (void)state;
    assert_string_equal(nt_show_key(out, sizeof out, "user:1", 6), "user:1");
    assert_string_equal(nt_show_key(out, sizeof out, "a\0b\xFF\n\\~", 7), "a\\x00b\\xff\\x0a\\x5c~");
    assert_string_equal(nt_show_key(out, sizeof out, NULL, 0), "");
}

static void keys_are_cut_to_fit(void **state) {
    char out[64];
    (void)state;
    assert_string_equal(nt_show_key(out, 8, "0123456", 7), "0123456");
    assert_string_equal(nt_show_key(out, 8, "01234567", 8), "0123...");
    assert_string_equal(nt_show_key(out, 8, "012345\x01", 7), "0123...");
    assert_string_equal(nt_show_key(out, 8, "\x01\x02", 2), "\\x01...");
    assert_string_equal(nt_show_key(out, 7, "\x01\x02", 2), "...");
    assert_string_equal(nt_show_key(out, 3, "abc", 3), "..");
    assert_string_equal(nt_show_key(out, 1, "abc", 3), "");
    out[0] = 'q';
    nt_show_key(out, 0, "abc", 3);
    assert_int_equal(out[0], 'q');
    for (size_t cap = 1; cap < sizeof out; cap++) {
        memset(out, 'q', sizeof out);
        nt_show_key(out, cap, "some\x01key\x02with\xFFmany\nbytes, longer than all", 40);
        assert_true(strlen(out) < cap);
    }
}

static void *other_thread(void *arg) {
    assert_ptr_not_equal(nt_last_error(), arg);
    assert_int_equal(ntee_last_error()->status, NTEE_OK);
    assert_int_equal(ntee_last_error()->offset, -1);
    nt_fail(nt_last_error(), NTEE_FULL, "of the other thread");
    return NULL;
}

static void the_last_error_belongs_to_its_thread(void **state) {
    pthread_t thread;
    (void)state;
    nt_fail(nt_last_error(), NTEE_TYPE, "mine");
    assert_int_equal(pthread_create(&thread, NULL, other_thread, nt_last_error()), 0);
    pthread_join(thread, NULL);
    assert_int_equal(ntee_last_error()->status, NTEE_TYPE);
    assert_string_equal(ntee_last_error()->message, "mine");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_a_name_and_a_text_of_its_own),
        cmocka_unit_test(a_number_that_is_no_status_has_texts_too),
        cmocka_unit_test(fail_fills_the_error_and_returns_its_status),
        cmocka_unit_test(an_error_may_quote_itself),
        cmocka_unit_test(os_errors_become_full_nomem_or_io),
        cmocka_unit_test(corruption_names_file_and_offset),
        cmocka_unit_test(long_messages_are_cut_at_a_character),
        cmocka_unit_test(bytes_that_are_not_utf8_become_question_marks),
        cmocka_unit_test(keys_are_shown_as_ascii),
        cmocka_unit_test(keys_are_cut_to_fit),
        cmocka_unit_test(the_last_error_belongs_to_its_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
