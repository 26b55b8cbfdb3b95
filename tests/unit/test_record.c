/* The log's header and its records: what is encoded decodes, and nothing else does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/os.h"
#include "log_support.h"

/* ---- The header ---------------------------------------------------------------------------------- */

static void header_round_trips(void **state) {
    (void)state;
    uint8_t bytes[NT_LOG_HEADER_SIZE];
    nt_log_header got;
    ntee_error err;
    memset(bytes, 0xAA, sizeof bytes);
    nt_log_header_encode(bytes, &HEADER);
    assert_int_equal(nt_log_header_decode(bytes, sizeof bytes, &got, "x.log", &err), NTEE_OK);
    assert_memory_equal(got.store_id, HEADER.store_id, 16);
    assert_int_equal(got.version, HEADER.version);
    assert_int_equal(got.generation, HEADER.generation);
    assert_int_equal(got.base, HEADER.base);
    assert_int_equal(got.salt, HEADER.salt);
    assert_int_equal(got.durable, HEADER.durable);
    assert_int_equal(got.blob_oldest, HEADER.blob_oldest);
    assert_int_equal(nt_store_seed(got.store_id), nt_hash64(HEADER.store_id, 16, 0));
}

static void every_flipped_bit_of_a_header_is_refused(void **state) {
    (void)state;
    uint8_t bytes[NT_LOG_HEADER_SIZE];
    nt_log_header got;
    ntee_error err;
    nt_log_header_encode(bytes, &HEADER);
    for (size_t bit = 0; bit < sizeof bytes * 8; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        int in_version = bit >= 64 && bit < 96;
        ntee_status status = nt_log_header_decode(bytes, sizeof bytes, &got, "x.log", &err);
        assert_int_equal(status, in_version ? NTEE_VERSION : NTEE_CORRUPT);
        assert_int_equal(err.status, status);
        assert_non_null(strstr(err.message, "x.log"));
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}

static void every_truncated_header_is_refused(void **state) {
    (void)state;
    uint8_t bytes[NT_LOG_HEADER_SIZE];
    nt_log_header got;
    ntee_error err;
    nt_log_header_encode(bytes, &HEADER);
    for (size_t len = 0; len < sizeof bytes; len++) {
        uint8_t *exact = malloc(len + 1);
        memcpy(exact, bytes, len);
        assert_int_equal(nt_log_header_decode(exact, len, &got, "x.log", &err), NTEE_CORRUPT);
        free(exact);
    }
}

static void a_newer_format_is_known_by_its_first_twelve_bytes(void **state) {
    (void)state;
    uint8_t bytes[12] = "NTEE-LOG";
    nt_log_header got;
    ntee_error err;
    nt_store32(bytes + 8, NT_FORMAT_VERSION + 1);
    assert_int_equal(nt_log_header_decode(bytes, sizeof bytes, &got, "x.log", &err), NTEE_VERSION);
}

static void nonsense_under_a_good_checksum_is_refused(void **state) {
    (void)state;
    static const struct {
        size_t at;
        uint64_t value;
    } bad[] = {
        {32, 0},                         /* generation */
        {40, 4},                         /* base: not a multiple of 8 */
        {40, (uint64_t)1 << 48},         /* base: too large */
        {56, 120},                       /* durable: within the header */
        {56, 132},                       /* durable: not a multiple of 8 */
        {72, 1},                         /* zeros */
        {112, (uint64_t)1 << 63},
        {8, (uint64_t)136 << 32},        /* size of the header */
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        uint8_t bytes[NT_LOG_HEADER_SIZE];
        nt_log_header got;
        ntee_error err;
        nt_log_header_encode(bytes, &HEADER);
        nt_store64(bytes + bad[i].at, bad[i].value);
        nt_store64(bytes + 120, nt_hash64(bytes, 120, 0));
        assert_int_equal(nt_log_header_decode(bytes, sizeof bytes, &got, "x.log", &err), NTEE_CORRUPT);
    }
}

/* ---- Records ------------------------------------------------------------------------------------- */

static void same_bytes(const uint8_t *a, const uint8_t *b, size_t len) {
    if (len > 0) assert_memory_equal(a, b, len);
}

static void same_op(const nt_op *got, const nt_op *op) {
    assert_int_equal(got->kind, op->kind);
    assert_int_equal(got->value_kind, op->value_kind);
    assert_int_equal(got->expires, op->expires);
    assert_int_equal(got->in_blob, op->in_blob);
    assert_int_equal(got->key_len, op->key_len);
    assert_int_equal(got->value_len, op->value_len);
    assert_int_equal(got->terms_len, op->terms_len);
    assert_true(got->deadline == op->deadline);
    assert_true(got->cell == op->cell && got->first == op->first);
    assert_memory_equal(&got->blob, &op->blob, sizeof op->blob);
    same_bytes(got->key, op->key, op->key_len);
    same_bytes(got->terms, op->terms, op->terms_len);
    if (op->value == NULL) assert_null(got->value);
    else same_bytes(got->value, op->value, op->value_len);
}

/* Encodes, numbers, decodes and compares one op in exactly the memory that it needs. */
static void round_trip(const nt_op *op, uint64_t sequence) {
    uint64_t size = nt_record_size(op);
    uint8_t *record = malloc(size);
    nt_op got;
    assert_non_null(record);
    assert_int_equal(size % 8, 0);
    memset(record, 0xEE, size);
    nt_record_encode(record, op, SEED);
    nt_record_number(record, sequence);
    assert_int_equal(nt_record_decode(record, size, &got), size);
    assert_int_equal(nt_record_decode(record, size + 8, &got), size);
    assert_int_equal(nt_record_decode(record, size - 1, &got), 0);
    assert_int_equal(nt_record_decode(record, size, &got), size);
    same_op(&got, op);
    assert_int_equal(got.sequence, sequence);
    assert_true(nt_record_key_ok(record, &got, SEED));
    assert_true(nt_record_value_ok(record, &got, SEED));
    assert_false(nt_record_key_ok(record, &got, SEED + 1));
    assert_false(nt_record_value_ok(record, &got, SEED + 1));
    uint64_t have = NT_RECORD_HEAD_SIZE, need;
    int rounds = 0;
    while ((need = nt_record_claimed_size(record, have)) > have) {
        assert_true(need <= size && ++rounds <= 2);
        have = need;
    }
    assert_true(have == size || have == NT_RECORD_HEAD_SIZE);
    assert_int_equal(nt_record_claimed_size(record, size), size);
    free(record);
}

static void every_kind_and_flag_round_trips(void **state) {
    (void)state;
    static const uint16_t keys[] = {1, 2, 7, 8, 9, 16, 240, 65535};
    static const uint32_t values[] = {0, 1, 7, 8, 15, 120, 4096};
    for (uint8_t kind = 1; kind <= NT_OP_KIND_MAX; kind++) {
        for (unsigned shape = 0; shape < 24; shape++) {
            for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
                for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
                    nt_op op = make_op(kind, shape, keys[k], values[v], 1 + (uint32_t)(k * v) % 40);
                    round_trip(&op, UINT64_C(1) << (v * 9));
                }
            }
        }
    }
}

static void random_ops_round_trip(void **state) {
    (void)state;
    nt_random r = nt_random_start("random ops");
    fill_pool(&r);
    for (int i = 0; i < 50000; i++) {
        uint8_t kind = (uint8_t)(1 + nt_random_below(&r, NT_OP_KIND_MAX));
        nt_op op = make_op(kind, (unsigned)nt_random_below(&r, 24),
                           (uint16_t)(1 + nt_random_below(&r, i % 100 ? 60 : 65535)),
                           (uint32_t)nt_random_below(&r, i % 100 ? 300 : 100000),
                           (uint32_t)nt_random_below(&r, 50));
        round_trip(&op, nt_random_next(&r));
    }
}

static void options_that_a_kind_does_not_have_are_left_out(void **state) {
    (void)state;
    uint8_t record[64];
    nt_op got;
    nt_op op = make_op(NT_OP_PUT, 8 | 4 | 2 | 1, 5, 9, 4);
    op.kind = NT_OP_DELETE;
    assert_int_equal(nt_record_size(&op), 32);
    nt_record_encode(record, &op, SEED);
    assert_int_equal(nt_record_decode(record, 32, &got), 32);
    assert_false(got.expires || got.terms_len || got.value_len || got.value_kind || got.in_blob);
}

/* The checks as FORMAT.md states them, from the bytes. */
static void checks_are_what_the_format_says(void **state) {
    (void)state;
    uint8_t record[128];
    nt_op op = make_op(NT_OP_PUT, 1 | 2 | 8, 5, 10, 6);
    uint64_t sequence = 77, key_end = 24 + 8 + 4 + 6 + 5;
    nt_record_encode(record, &op, SEED);
    nt_record_number(record, sequence);
    uint64_t x = XXH3_64bits_withSeed(record + 16, key_end - 16, SEED) ^ (sequence * 0x9E3779B97F4A7C15u);
    x ^= x >> 32;
    x *= 0xD6E8FEB86659FD93u;
    x ^= x >> 32;
    assert_int_equal(nt_load32(record), (uint32_t)x);
    assert_int_equal(nt_load32(record + 4), (uint32_t)XXH3_64bits_withSeed(op.value, 10, SEED));
    assert_int_equal(nt_load64(record + 8), sequence);
    assert_int_equal(record[16], 1);
    assert_int_equal(record[17], 1 | 2 | 1 << 4);
    assert_int_equal(nt_load16(record + 18), 5);
    assert_int_equal(nt_load32(record + 20), 10);
    assert_int_equal(nt_load64(record + 24), op.deadline);
    assert_int_equal(nt_load32(record + 32), 6);
    assert_memory_equal(record + 36, op.terms, 6);
    assert_memory_equal(record + 42, op.key, 5);
    assert_memory_equal(record + 47, op.value, 10);
    assert_int_equal(nt_load32(record + 57) & 0xFFFFFF, 0);
}

/* A head by hand, at the start of `record`. */
static void craft(uint8_t *record, uint8_t kind, uint8_t flags, uint16_t key_len, uint32_t value_len) {
    memset(record, 0, NT_RECORD_HEAD_SIZE);
    record[16] = kind;
    record[17] = flags;
    nt_store16(record + 18, key_len);
    nt_store32(record + 20, value_len);
}

static void heads_outside_the_rules_are_refused(void **state) {
    (void)state;
    uint8_t record[512] = {0};
    nt_op op;
    int accepted = 0;
    for (unsigned kind = 0; kind < 256; kind++) {
        for (unsigned flags = 0; flags < 256; flags++) {
            for (unsigned value_len = 0; value_len < 32; value_len += 16) {
                craft(record, (uint8_t)kind, (uint8_t)flags, 1, value_len);
                nt_store32(record + (flags & 1 ? 32 : 24), flags & 2 ? 4 : 0); /* the terms' length */
                int known = kind >= 1 && kind <= 7 && (flags & 0xC8) == 0 && (flags & 0x30) != 0x30;
                int ok = known && (kind == 1 || (kind == 4 && (flags & ~1u) == 0 && value_len == 16) ||
                                   (kind == 5 && flags == 1 && value_len == 0) ||
                                   (kind != 4 && kind != 5 && flags == 0 && value_len == 0));
                assert_int_equal(nt_record_decode(record, sizeof record, &op) != 0, ok);
                accepted += ok;
            }
        }
    }
    assert_int_equal(accepted, 24 * 2 + 2 + 1 + 4);
    craft(record, NT_OP_PUT, 0, 0, 5);
    assert_int_equal(nt_record_decode(record, sizeof record, &op), 0);
    craft(record, NT_OP_PUT, 2, 1, 5);
    nt_store32(record + 24, 0);
    assert_int_equal(nt_record_decode(record, sizeof record, &op), 0); /* flagged terms of 0 bytes */
}

static void padding_must_be_zero(void **state) {
    (void)state;
    for (uint32_t value_len = 0; value_len < 8; value_len++) {
        uint8_t record[64] = {0};
        nt_op op, in = make_op(NT_OP_PUT, 0, 3, value_len, 0);
        uint64_t size = nt_record_size(&in);
        nt_record_encode(record, &in, SEED);
        for (uint64_t at = 24 + 3 + value_len; at < size; at++) {
            record[at] = 1;
            assert_int_equal(nt_record_decode(record, size, &op), 0);
            record[at] = 0x80;
            assert_int_equal(nt_record_decode(record, size, &op), 0);
            record[at] = 0;
        }
        assert_int_equal(nt_record_decode(record, size, &op), size);
    }
}

static void every_truncated_record_is_refused(void **state) {
    (void)state;
    for (unsigned shape = 0; shape < 8; shape++) {
        nt_op op, in = make_op(NT_OP_PUT, shape, 9, 20, 7);
        uint64_t size = nt_record_size(&in);
        uint8_t *record = malloc(size);
        nt_record_encode(record, &in, SEED);
        for (uint64_t len = 0; len < size; len++) {
            uint8_t *exact = malloc(len + 1);
            memcpy(exact, record, len);
            assert_int_equal(nt_record_decode(exact, len, &op), 0);
            free(exact);
        }
        free(record);
    }
}

/* Lengths at the edges of 16, 31 and 32 bits. Only the head and the last word of the untouched pages are
 * read. */
static void lengths_of_gigabytes_do_not_wrap(void **state) {
    (void)state;
    static const uint32_t lens[] = {0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFF0, 0xFFFFFFFF};
    const size_t all = (size_t)9 << 30;
    uint8_t *record = NT_OS->alloc_pages(all);
    if (record == NULL) skip();
    for (size_t v = 0; v < 6; v++) {
        for (size_t t = 0; t <= 6; t++) {
            nt_op op;
            uint64_t size = 24 + 65535 + (uint64_t)lens[v];
            craft(record, NT_OP_PUT, t < 6 ? 2 : 0, 65535, lens[v]);
            nt_store32(record + 24, t < 6 ? lens[t] : 0);
            if (t < 6) size += 4 + (uint64_t)lens[t];
            size = (size + 7) / 8 * 8;
            assert_int_equal(nt_record_claimed_size(record, 28), size);
            assert_int_equal(nt_record_decode(record, size, &op), size);
            assert_int_equal(op.value_len, lens[v]);
            assert_true(op.value + op.value_len <= record + size);
            assert_int_equal(nt_record_decode(record, size - 1, &op), 0);
            assert_int_equal(nt_record_decode(record, 1000, &op), 0);
            assert_int_equal(nt_record_decode(record, size & 0xFFFFFFFF, &op), size >> 32 ? 0 : size);
            assert_int_equal(nt_record_decode(record, all, &op), size);
        }
    }
    NT_OS->free_pages(record, all);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(header_round_trips),
        cmocka_unit_test(every_flipped_bit_of_a_header_is_refused),
        cmocka_unit_test(every_truncated_header_is_refused),
        cmocka_unit_test(a_newer_format_is_known_by_its_first_twelve_bytes),
        cmocka_unit_test(nonsense_under_a_good_checksum_is_refused),
        cmocka_unit_test(random_ops_round_trip), /* fills the pool */
        cmocka_unit_test(every_kind_and_flag_round_trips),
        cmocka_unit_test(options_that_a_kind_does_not_have_are_left_out),
        cmocka_unit_test(checks_are_what_the_format_says),
        cmocka_unit_test(heads_outside_the_rules_are_refused),
        cmocka_unit_test(padding_must_be_zero),
        cmocka_unit_test(every_truncated_record_is_refused),
        cmocka_unit_test(lengths_of_gigabytes_do_not_wrap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
