/* The framed bytes that cross the border: the golden vectors, round trips, and everything malformed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/os.h"
#include "format/json.h"
#include "format/wire.h"
#include "golden.h"

static golden *vectors;

static int read_vectors(void **state) {
    (void)state;
    vectors = golden_open(__FILE__, "tests/golden/wire.json");
    return vectors ? 0 : -1;
}

static int free_vectors(void **state) {
    (void)state;
    golden_close(vectors);
    return 0;
}

static nt_wire_reader reader_of(const uint8_t *bytes, size_t len) {
    return (nt_wire_reader){.at = bytes, .remaining = len, .item = -1};
}

static void say(const golden *vector) { print_message("%s\n", golden_text(vector, "what")); }

/* ---- Writes -------------------------------------------------------------------------------------- */

static void golden_writes_read_and_write(void **state) {
    (void)state;
    for (golden *v = golden_get(vectors, "writes")->first; v; v = v->next) {
        size_t len;
        uint8_t *bytes = golden_bytes(golden_text(v, "hex"), &len);
        nt_wire_reader reader = reader_of(bytes, len);
        nt_buf out = {0};
        nt_wire_write write;
        ntee_error err;
        int64_t count = 0;
        say(v);
        for (golden *item = golden_get(v, "items")->first; item; item = item->next) {
            assert_int_equal(nt_wire_next_write(&reader, &write, &err), 1);
            assert_int_equal(reader.item, count++);
            assert_int_equal(write.type, golden_number(item, "type"));
            assert_int_equal(write.object, 0);
            assert_true(golden_same(golden_text(item, "key"), write.key, write.key_len));
            assert_true(golden_same(golden_text(item, "value"), write.value, write.value_len));
            assert_true(nt_wire_add_write(&out, write.type, write.key, write.key_len, write.value,
                                          write.value_len));
        }
        assert_int_equal(nt_wire_next_write(&reader, &write, &err), 0);
        assert_int_equal(out.len, len);
        if (len > 0) assert_memory_equal(out.data, bytes, len);
        nt_buf_free(&out);
        free(bytes);
    }
    for (golden *v = golden_get(vectors, "object_writes")->first; v; v = v->next) {
        size_t len;
        uint8_t *bytes = golden_bytes(golden_text(v, "hex"), &len);
        nt_wire_reader reader = reader_of(bytes, len);
        nt_wire_write write;
        ntee_error err;
        say(v);
        assert_int_equal(nt_wire_next_write(&reader, &write, &err), 1);
        assert_int_equal(write.type, golden_number(v, "type"));
        assert_int_equal(write.object, 1);
        assert_true(golden_same(golden_text(v, "key"), write.key, write.key_len));
        assert_true(golden_same(golden_text(v, "value"), write.value, write.value_len));
        assert_int_equal(nt_wire_next_write(&reader, &write, &err), 0);
        free(bytes);
    }
}

/* Reads to the end with `next`, which gives 1, 0 or -1. */
static int read_all(nt_wire_reader *reader, int keys, ntee_error *err) {
    nt_wire_write write;
    const uint8_t *key;
    size_t key_len;
    int got;
    do got = keys ? nt_wire_next_key(reader, &key, &key_len, err) : nt_wire_next_write(reader, &write, err);
    while (got == 1);
    return got;
}

static void golden_mistakes_are_refused(void **state) {
    (void)state;
    for (int keys = 0; keys < 2; keys++) {
        for (golden *v = golden_get(vectors, keys ? "bad_keys" : "bad_writes")->first; v; v = v->next) {
            size_t len;
            uint8_t *bytes = golden_bytes(golden_text(v, "hex"), &len);
            nt_wire_reader reader = reader_of(bytes, len);
            ntee_error err = {0};
            say(v);
            assert_int_equal(read_all(&reader, keys, &err), -1);
            assert_string_equal(golden_text(v, "status"), ntee_status_name(err.status));
            assert_int_equal(err.item, golden_number(v, "item"));
            free(bytes);
        }
    }
}

static void random_writes_round_trip_and_never_when_cut(void **state) {
    (void)state;
    nt_random r = nt_random_start("random writes");
    static uint8_t pool[70000];
    nt_random_fill(&r, pool, sizeof pool);
    for (int round = 0; round < 300; round++) {
        nt_buf out = {0};
        size_t ends[9] = {0}, count = 1 + (size_t)nt_random_below(&r, 8);
        nt_wire_write in[8], got;
        ntee_error err;
        for (size_t i = 0; i < count; i++) {
            in[i] = (nt_wire_write){.type = (uint8_t)(1 + nt_random_below(&r, 3)),
                                    .key = pool + nt_random_below(&r, 100),
                                    .key_len = (uint16_t)(1 + nt_random_below(&r, round % 50 ? 30 : 65535)),
                                    .value = pool + nt_random_below(&r, 100),
                                    .value_len = (uint32_t)nt_random_below(&r, 50)};
            if (in[i].type == NT_WIRE_DELETE) in[i].value_len = 0;
            assert_true(nt_wire_add_write(&out, in[i].type, in[i].key, in[i].key_len, in[i].value,
                                          in[i].value_len));
            ends[i + 1] = out.len;
        }
        nt_wire_reader reader = reader_of(out.data, out.len);
        for (size_t i = 0; i < count; i++) {
            assert_int_equal(nt_wire_next_write(&reader, &got, &err), 1);
            assert_true(got.type == in[i].type && got.key_len == in[i].key_len);
            assert_int_equal(got.value_len, in[i].value_len);
            assert_memory_equal(got.key, in[i].key, in[i].key_len);
            if (in[i].value_len > 0) assert_memory_equal(got.value, in[i].value, in[i].value_len);
        }
        assert_int_equal(nt_wire_next_write(&reader, &got, &err), 0);
        for (size_t len = 0; len < out.len; len += 1 + len / 300) {
            uint8_t *exact = malloc(len ? len : 1);
            memcpy(exact, out.data, len);
            size_t whole = 0;
            while (ends[whole + 1] <= len) whole++;
            reader = reader_of(exact, len);
            assert_int_equal(read_all(&reader, 0, &err), ends[whole] == len ? 0 : -1);
            assert_int_equal(reader.item, (int64_t)whole - (ends[whole] == len));
            free(exact);
        }
        nt_buf_free(&out);
    }
}

static void every_other_type_and_flag_is_refused(void **state) {
    (void)state;
    for (unsigned type = 0; type < 256; type++) {
        for (unsigned flags = 0; flags < 256; flags++) {
            uint8_t bytes[9] = {(uint8_t)type, (uint8_t)flags, 1, 0, 0, 0, 0, 0, 'k'};
            nt_wire_reader reader = reader_of(bytes, sizeof bytes);
            nt_wire_write write;
            ntee_error err = {0};
            int ok = type >= 1 && type <= 3 && flags == 0;
            assert_int_equal(nt_wire_next_write(&reader, &write, &err), ok ? 1 : -1);
            assert_int_equal(err.status, ok ? NTEE_OK : NTEE_INVALID);
            int later = type == 1 && (flags == 1 || flags == 2);
            if (later) assert_non_null(strstr(err.message, "not supported yet"));
        }
    }
}

static void *no_realloc(void *old, size_t len) {
    (void)old;
    (void)len;
    return NULL;
}

static void a_write_without_memory_leaves_the_buffer(void **state) {
    (void)state;
    nt_buf buf = {0};
    assert_true(nt_wire_add_write(&buf, NT_WIRE_PUT, "k", 1, "v", 1));
    uint8_t *data = buf.data;
    nt_os os = nt_os_posix;
    os.realloc = no_realloc;
    nt_os_now = &os;
    assert_false(nt_wire_add_write(&buf, NT_WIRE_PUT, "k", 1, data, 1 << 20));
    nt_os_now = &nt_os_posix;
    assert_ptr_equal(buf.data, data);
    assert_int_equal(buf.len, NT_WIRE_WRITE_HEAD + 2);
    nt_buf_free(&buf);
}

/* ---- Keys and scan requests ---------------------------------------------------------------------- */

static void golden_keys_read(void **state) {
    (void)state;
    for (golden *v = golden_get(vectors, "keys")->first; v; v = v->next) {
        size_t len, key_len;
        uint8_t *bytes = golden_bytes(golden_text(v, "hex"), &len);
        const uint8_t *key;
        nt_wire_reader reader = reader_of(bytes, len);
        ntee_error err;
        say(v);
        for (golden *item = golden_get(v, "keys")->first; item; item = item->next) {
            assert_int_equal(nt_wire_next_key(&reader, &key, &key_len, &err), 1);
            assert_true(golden_same(item->text, key, key_len));
        }
        assert_int_equal(nt_wire_next_key(&reader, &key, &key_len, &err), 0);
        free(bytes);
    }
}

static void same_bound(const golden *v, const char *name, const void *bytes, size_t len) {
    golden *want = golden_get(v, name);
    if (want->type == 'n') {
        assert_null(bytes);
        assert_int_equal(len, 0);
    } else {
        assert_non_null(bytes);
        assert_true(golden_same(want->text, bytes, len));
    }
}

static void golden_scans_read(void **state) {
    (void)state;
    for (golden *v = golden_get(vectors, "scans")->first; v; v = v->next) {
        size_t len;
        uint8_t *bytes = golden_bytes(golden_text(v, "hex"), &len);
        ntee_scan_options scan;
        ntee_error err;
        say(v);
        memset(&scan, 0xEE, sizeof scan);
        assert_int_equal(nt_wire_scan(bytes, len, &scan, &err), NTEE_OK);
        assert_int_equal(scan.size, sizeof scan);
        assert_int_equal(scan.flags, golden_number(v, "flags"));
        assert_int_equal(scan.range.flags, golden_number(v, "range_flags"));
        assert_true(scan.limit == golden_number(v, "limit"));
        assert_true(scan.range.reserved == 0 && scan.reserved32 == 0);
        for (int i = 0; i < 4; i++) assert_true(scan.reserved[i] == 0);
        same_bound(v, "lower", scan.range.lower, scan.range.lower_len);
        same_bound(v, "upper", scan.range.upper, scan.range.upper_len);
        same_bound(v, "after", scan.after, scan.after_len);
        free(bytes);
    }
}

static void golden_scan_mistakes_are_refused(void **state) {
    (void)state;
    for (golden *v = golden_get(vectors, "bad_scans")->first; v; v = v->next) {
        size_t len;
        uint8_t *bytes = golden_bytes(golden_text(v, "hex"), &len);
        ntee_scan_options scan;
        ntee_error err = {0};
        say(v);
        ntee_status status = nt_wire_scan(bytes, len, &scan, &err);
        assert_string_equal(golden_text(v, "status"), ntee_status_name(status));
        assert_int_equal(err.status, status);
        free(bytes);
    }
}

static void only_the_known_bits_of_a_scan_are_accepted(void **state) {
    (void)state;
    const uint64_t known = 0x070707;
    for (unsigned bit = 0; bit < 64; bit++) {
        uint8_t head[32] = {0};
        ntee_scan_options scan;
        ntee_error err;
        nt_store64(head, UINT64_C(1) << bit);
        ntee_status status = nt_wire_scan(head, sizeof head, &scan, &err);
        assert_int_equal(status, known >> bit & 1 ? NTEE_OK : NTEE_INVALID);
    }
    assert_int_equal(nt_wire_scan(NULL, 0, &(ntee_scan_options){0}, &(ntee_error){0}), NTEE_INVALID);
}

static void bounds_of_the_largest_key_are_accepted(void **state) {
    (void)state;
    size_t len = 32 + 3 * 65535;
    uint8_t *bytes = calloc(1, len);
    ntee_scan_options scan;
    ntee_error err;
    nt_store32(bytes, 0x070000);
    for (int at = 16; at < 28; at += 4) nt_store32(bytes + at, 65535);
    assert_int_equal(nt_wire_scan(bytes, len, &scan, &err), NTEE_OK);
    assert_ptr_equal(scan.range.lower, bytes + 32);
    assert_ptr_equal(scan.range.upper, bytes + 32 + 65535);
    assert_ptr_equal(scan.after, bytes + 32 + 2 * 65535);
    assert_int_equal(scan.after_len, 65535);
    assert_int_equal(nt_wire_scan(bytes, len - 1, &scan, &err), NTEE_INVALID);
    free(bytes);
}

/* ---- Replies, and the document's examples -------------------------------------------------------- */

static void golden_replies_are_the_struct(void **state) {
    (void)state;
    for (golden *v = golden_get(vectors, "replies")->first; v; v = v->next) {
        ntee_reply reply = {.length = golden_number(v, "length"),
                            .needed = golden_number(v, "needed"),
                            .count = golden_number(v, "count"),
                            .keys_len = golden_number(v, "keys_len"),
                            .values_len = golden_number(v, "values_len"),
                            .scan = golden_number(v, "scan"),
                            .kind = (uint32_t)golden_number(v, "kind"),
                            .flags = (uint32_t)golden_number(v, "flags"),
                            .error = {.status = (int32_t)golden_number(v, "status"),
                                      .os_errno = (int32_t)golden_number(v, "os_errno"),
                                      .offset = strtoll(golden_text(v, "offset"), NULL, 10),
                                      .item = strtoll(golden_text(v, "item"), NULL, 10)}};
        strncpy(reply.error.message, golden_text(v, "message"), sizeof reply.error.message - 1);
        assert_true(golden_same(golden_text(v, "hex"), &reply, sizeof reply));
    }
}

/* The bytes of an example: lines of an offset, bytes, and their meaning behind two or more spaces. */
static size_t example_bytes(const char *at, uint8_t *bytes, size_t cap) {
    size_t len = 0;
    while (strncmp(at, "```", 3) != 0) {
        assert_int_equal(strtoul(at, NULL, 16), len);
        for (at += 5; at[0] == ' ' && at[1] != ' ' && at[1] != '\n'; at += 3) {
            assert_true(len < cap);
            bytes[len++] = (uint8_t)(golden_digit(at[1]) << 4 | golden_digit(at[2]));
        }
        at = strchr(at, '\n') + 1;
    }
    return len;
}

/* Whether some vector has these bytes, and then nothing but zeros. */
static int is_a_vector(const uint8_t *bytes, size_t len) {
    for (golden *section = vectors->first; section; section = section->next) {
        for (golden *v = section->first; v; v = v->next) {
            size_t size;
            uint8_t *want = golden_bytes(golden_text(v, "hex"), &size);
            int same = size >= len && memcmp(want, bytes, len) == 0;
            for (size_t i = len; i < size; i++) same = same && want[i] == 0;
            free(want);
            if (same) return 1;
        }
    }
    return 0;
}

static void the_examples_of_the_document_are_golden(void **state) {
    (void)state;
    char *document = nt_read_project_file(__FILE__, "docs/wire.md", NULL);
    size_t count = 0;
    assert_non_null(document);
    for (char *at = document; (at = strstr(at, "\n```\n0000 ")) != NULL;) {
        uint8_t bytes[512];
        at += 5;
        if (!is_a_vector(bytes, example_bytes(at, bytes, sizeof bytes))) fail_msg("not golden: %.60s", at);
        count++;
    }
    assert_int_equal(count, 13);
    free(document);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_writes_read_and_write),
        cmocka_unit_test(golden_mistakes_are_refused),
        cmocka_unit_test(random_writes_round_trip_and_never_when_cut),
        cmocka_unit_test(every_other_type_and_flag_is_refused),
        cmocka_unit_test(a_write_without_memory_leaves_the_buffer),
        cmocka_unit_test(golden_keys_read),
        cmocka_unit_test(golden_scans_read),
        cmocka_unit_test(golden_scan_mistakes_are_refused),
        cmocka_unit_test(only_the_known_bits_of_a_scan_are_accepted),
        cmocka_unit_test(bounds_of_the_largest_key_are_accepted),
        cmocka_unit_test(golden_replies_are_the_struct),
        cmocka_unit_test(the_examples_of_the_document_are_golden),
    };
    return cmocka_run_group_tests(tests, read_vectors, free_vectors);
}
