/* What piece encodes it decodes again, and whatever else it is given it refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "format/piece.h"
#include "format/record.h"
#include "support.h"

enum { HEAD = NT_PIECE_HEAD_SIZE };

static const uint64_t SEED = 0x5EED;

static nt_piece random_piece(nt_random *r) {
    nt_piece piece;
    nt_random_fill(r, (uint8_t *)&piece, sizeof piece);
    piece.kind = nt_random_below(r, 2) ? NT_PIECE_SNAPSHOT : NT_PIECE_DELTA;
    if (piece.kind == NT_PIECE_SNAPSHOT) piece.previous = 0;
    piece.body &= ~(uint64_t)7;
    piece.place.last = NT_LOG_START + 8 * nt_random_below(r, 1u << 20);
    piece.place.covered = piece.place.last + 40 + 8 * nt_random_below(r, 1u << 20);
    piece.place.durable = nt_random_below(r, piece.place.last + 1);
    if (nt_random_below(r, 4) == 0) {
        piece.place.number = piece.place.check = piece.place.last = piece.place.durable = 0;
    }
    return piece;
}

static void heads_come_back_as_they_were(void **state) {
    (void)state;
    nt_random r = nt_random_start("heads");
    for (int i = 0; i < 2000; i++) {
        nt_piece piece = random_piece(&r), got;
        uint8_t *bytes = malloc(HEAD);
        nt_piece_encode(bytes, &piece, SEED);
        memset(&got, 0xA5, sizeof got);
        assert_int_equal(nt_piece_decode(bytes, HEAD, SEED, &got), 1);
        assert_int_equal(got.kind, piece.kind);
        assert_memory_equal(got.store_id, piece.store_id, 16);
        assert_true(got.generation == piece.generation && got.body == piece.body && got.entries == piece.entries);
        assert_memory_equal(&got.place, &piece.place, sizeof got.place);
        assert_true(got.digest == piece.digest && got.previous == piece.previous && got.check == piece.check);
        assert_int_equal(nt_piece_decode(bytes, HEAD, SEED + 1, &got), 0);
        free(bytes);
    }
}

static void a_head_has_its_fields_where_the_format_says(void **state) {
    (void)state;
    nt_piece piece = {.kind = NT_PIECE_DELTA, .generation = 0x0201, .body = 0x1110, .entries = 0x21,
                      .place = {0x3138, 0x41, 0x51, 0x3110, 0x3001, 0x81, 0x91}, .digest = 0xA1, .previous = 0xB1};
    uint8_t out[HEAD], expected[HEAD] = "NTEEHINT";
    static const struct {
        int at;
        uint64_t value;
    } fields[] = {{32, 0x0201}, {40, 0x1110}, {48, 0x21}, {56, 0x3138}, {64, 0x41}, {72, 0x51}, {80, 0x3110},
                  {88, 0x3001}, {96, 0x81}, {104, 0x91}, {112, 0xA1}, {120, 0xB1}};
    memset(piece.store_id, 'i', 16);
    nt_piece_encode(out, &piece, SEED);
    nt_store32(expected + 8, NT_FORMAT_VERSION);
    expected[12] = 2;
    memset(expected + 16, 'i', 16);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        nt_store64(expected + fields[i].at, fields[i].value);
    }
    nt_store64(expected + 128, nt_hash64(expected, 128, SEED));
    assert_memory_equal(out, expected, HEAD);
}

static void a_damaged_head_is_refused(void **state) {
    (void)state;
    nt_random r = nt_random_start("damage");
    nt_piece piece = random_piece(&r), got;
    uint8_t bytes[HEAD];
    nt_piece_encode(bytes, &piece, SEED);
    for (int bit = 0; bit < HEAD * 8; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_int_equal(nt_piece_decode(bytes, HEAD, SEED, &got), 0);
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    for (size_t len = 0; len < HEAD; len++) {
        uint8_t *exact = malloc(len ? len : 1);
        memcpy(exact, bytes, len);
        assert_int_equal(nt_piece_decode(exact, len, SEED, &got), 0);
        free(exact);
    }
    assert_int_equal(nt_piece_decode(bytes, HEAD, SEED, &got), 1);
}

/* The checks of these are right. */
#define FRONT (NT_LOG_START - 128u) /* offsets are as if the log began at 128 */

static void a_head_that_cannot_be_is_refused(void **state) {
    (void)state;
    enum { COVERED = 56, NUMBER = 64, CHECK = 72, LAST = 80, DURABLE = 88, PREVIOUS = 120 };
    static const struct {
        int at, size; /* bytes of a good delta's head that are replaced */
        uint64_t value;
        int fine;
    } cases[] = {
        {8, 4, NT_FORMAT_VERSION + 1, 0}, {12, 1, 0, 0}, {12, 1, 3, 0}, {12, 1, 1, 0}, {13, 1, 1, 0}, {14, 1, 1, 0},
        {15, 1, 0x80, 0}, {40, 8, 4, 0}, {40, 8, 9, 0}, {40, 8, UINT64_MAX - 7, 1}, {COVERED, 8, FRONT + 1004, 0},
        {COVERED, 8, FRONT + 800, 0}, {COVERED, 8, FRONT + 808, 1}, {COVERED, 8, 0, 0}, {LAST, 8, 0, 0},
        {LAST, 8, FRONT + 120, 0}, {LAST, 8, FRONT + 804, 0}, {LAST, 8, FRONT + 1000, 0}, {LAST, 8, FRONT + 992, 1},
        {DURABLE, 8, FRONT + 801, 0}, {DURABLE, 8, FRONT + 800, 1},
        {NUMBER, 8, 0, 0}, {PREVIOUS, 8, 0, 1}, {0, 1, 'n', 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        nt_piece piece = {.kind = NT_PIECE_DELTA, .body = 8, .previous = 3};
        piece.place = (nt_piece_place){FRONT + 1000, 7, 77, FRONT + 800, FRONT + 128, 1, 1};
        nt_piece got;
        uint8_t bytes[HEAD];
        nt_piece_encode(bytes, &piece, SEED);
        memcpy(bytes + cases[i].at, &cases[i].value, (size_t)cases[i].size);
        nt_store64(bytes + 128, nt_hash64(bytes, 128, SEED));
        if (nt_piece_decode(bytes, HEAD, SEED, &got) != cases[i].fine) fail_msg("case %zu", i);
    }
    for (int field = 0; field < 4; field++) { /* before the first frame */
        static const int AT[] = {CHECK, LAST, DURABLE, COVERED};
        nt_piece piece = {.kind = NT_PIECE_SNAPSHOT, .place = {.covered = NT_LOG_START, .salt = 5}}, got;
        uint8_t bytes[HEAD];
        nt_piece_encode(bytes, &piece, SEED);
        assert_int_equal(nt_piece_decode(bytes, HEAD, SEED, &got), 1);
        nt_store64(bytes + AT[field], FRONT + 120);
        nt_store64(bytes + 128, nt_hash64(bytes, 128, SEED));
        assert_int_equal(nt_piece_decode(bytes, HEAD, SEED, &got), 0);
    }
}

static void sections_and_entries_come_back_within_their_bytes(void **state) {
    (void)state;
    uint8_t bytes[32], *exact;
    uint32_t root = 0;
    uint64_t count = 0, value = 0;
    uint16_t key_len = 0;
    nt_piece_section_encode(bytes, 0x01020304, 0x1112131415161718);
    for (size_t len = 0; len <= 16; len++) {
        exact = malloc(len ? len : 1);
        memcpy(exact, bytes, len);
        assert_int_equal(nt_piece_section_decode(exact, len, &root, &count), len < 16 ? 0 : 16);
        free(exact);
    }
    assert_true(root == 0x01020304 && count == 0x1112131415161718);
    bytes[7] = 1;
    assert_int_equal(nt_piece_section_decode(bytes, 16, &root, &count), 0);

    value = key_len = 0;
    nt_piece_entry_encode(bytes, 0x2122232425262728, 9);
    for (size_t len = 0; len <= 19; len++) {
        exact = malloc(len ? len : 1);
        memcpy(exact, bytes, len);
        assert_int_equal(nt_piece_entry_decode(exact, len, &value, &key_len), len < 19 ? 0 : 19);
        free(exact);
    }
    assert_true(value == 0x2122232425262728 && key_len == 9);
    nt_piece_entry_encode(bytes, 8, 0);
    assert_int_equal(nt_piece_entry_decode(bytes, 32, &value, &key_len), 0);
}

static nt_op random_op(nt_random *r, uint8_t *bytes) {
    nt_op op = {.kind = (uint8_t)(1 + nt_random_below(r, NT_OP_KIND_MAX)), .sequence = nt_random_next(r)};
    op.key = bytes;
    op.key_len = (uint16_t)(1 + nt_random_below(r, nt_random_below(r, 20) ? 60 : 65535));
    op.value = bytes + 70000;
    if (op.kind == NT_OP_PUT) {
        op.value_len = (uint32_t)nt_random_below(r, 200);
        op.value_kind = (uint8_t)nt_random_below(r, 3);
        op.in_blob = nt_random_below(r, 4) == 0;
        if (nt_random_below(r, 3) == 0) op.terms_len = (uint32_t)(1 + nt_random_below(r, 300));
    }
    op.terms = bytes + 66000;
    op.expires = op.kind == NT_OP_EXPIRE ||
                 ((op.kind == NT_OP_PUT || op.kind == NT_OP_COUNTER) && nt_random_below(r, 3) == 0);
    if (op.expires) op.deadline = (int64_t)nt_random_next(r);
    if (op.in_blob) op.value = NULL;
    return op;
}

/* Every prefix of an entry: none but the whole one decodes, and what it claims leads there. */
static void check_prefixes(const uint8_t *entry, uint64_t size) {
    uint64_t position;
    nt_op op;
    for (uint64_t len = 0; len < size; len += size > 2000 && len > 100 && len + 50 < size ? 997 : 1) {
        uint8_t *exact = malloc(len ? len : 1);
        memcpy(exact, entry, len);
        assert_int_equal(nt_piece_record_decode(exact, len, &position, &op), 0);
        if (len >= NT_PIECE_RECORD_LEAST) {
            uint64_t claim = nt_piece_record_claim(exact, len);
            assert_true(claim > len && claim <= size);
            assert_true(claim == size || len < 48);
        }
        free(exact);
    }
}

static void records_come_back_without_their_values(void **state) {
    (void)state;
    nt_random r = nt_random_start("records");
    uint8_t *bytes = calloc(1, 80000), *record = malloc(80000);
    for (int i = 0; i < 1500; i++) {
        nt_random_fill(&r, bytes, 100);
        nt_op op = random_op(&r, bytes), got;
        uint64_t position, at = nt_random_next(&r);
        nt_record_encode(record, &op, SEED);
        nt_record_number(record, op.sequence);
        uint64_t size = nt_piece_record_size(record);
        uint8_t *entry = malloc(size);
        nt_piece_record_encode(entry, at, record);
        assert_int_equal(nt_piece_record_claim(entry, size), size);
        memset(&got, 0xA5, sizeof got);
        assert_int_equal(nt_piece_record_decode(entry, size, &position, &got), size);
        assert_true(position == at && got.kind == op.kind && got.sequence == op.sequence);
        assert_true(got.expires == op.expires && got.deadline == op.deadline && got.in_blob == op.in_blob);
        assert_true(got.key_len == op.key_len && memcmp(got.key, op.key, op.key_len) == 0);
        assert_true(got.terms_len == op.terms_len && got.value_kind == op.value_kind && got.value == NULL);
        assert_true(got.cell == 0 && got.first == 0 && got.blob.generation == 0);
        assert_int_equal(nt_record_key_ok(entry + 8, &got, SEED), 1);
        check_prefixes(entry, size);
        uint64_t used = (uint64_t)(got.key + got.key_len - entry);
        assert_true(size == nt_align8(used));
        for (uint64_t k = used; k < size; k++) {
            entry[k] = 1;
            assert_int_equal(nt_piece_record_decode(entry, size, &position, &got), 0);
            entry[k] = 0;
        }
        entry[8 + 16] = 0; /* no kind */
        assert_int_equal(nt_piece_record_decode(entry, size, &position, &got), 0);
        free(entry);
    }
    free(bytes);
    free(record);
}

static void a_hash_of_parts_is_that_of_the_whole(void **state) {
    (void)state;
    nt_random r = nt_random_start("parts");
    static uint8_t bytes[5000];
    nt_random_fill(&r, bytes, sizeof bytes);
    for (int i = 0; i < 500; i++) {
        size_t len = nt_random_below(&r, i % 2 ? 300 : sizeof bytes), done = 0;
        uint64_t seed = i % 3 ? nt_random_next(&r) : 0;
        char room[sizeof(nt_hash_stream) + 8];
        nt_hash_stream *stream = (nt_hash_stream *)(void *)(room + i % 8); /* anywhere */
        nt_hash_begin(stream, seed);
        while (done < len) {
            size_t part = 1 + nt_random_below(&r, len - done);
            nt_hash_add(stream, bytes + done, part);
            done += part;
        }
        assert_true(nt_hash_end(stream) == nt_hash64(bytes, len, seed));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads_come_back_as_they_were),
        cmocka_unit_test(a_head_has_its_fields_where_the_format_says),
        cmocka_unit_test(a_damaged_head_is_refused),
        cmocka_unit_test(a_head_that_cannot_be_is_refused),
        cmocka_unit_test(sections_and_entries_come_back_within_their_bytes),
        cmocka_unit_test(records_come_back_without_their_values),
        cmocka_unit_test(a_hash_of_parts_is_that_of_the_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
