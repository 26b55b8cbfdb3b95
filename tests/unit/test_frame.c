/* Frames: a log of them reads back, and no damage of it goes unseen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "log_support.h"

#define NEW_SALT UINT64_C(0x5555666677778888)

/* ---- A log with every kind of frame and record --------------------------------------------------- */

typedef struct test_log {
    uint8_t *bytes;
    uint64_t len;
    uint64_t ends[64]; /* offset behind each frame */
    uint64_t frames;
    uint64_t salt;
    uint64_t check;
    uint64_t sequence;
} test_log;

static void log_start(test_log *log) {
    *log = (test_log){.bytes = calloc(1, 1 << 16), .len = NT_LOG_START, .salt = SALT};
    nt_log_header header = HEADER;
    header.durable = NT_LOG_START;
    nt_log_header_encode(log->bytes, &header);
}

static void log_added(test_log *log, const nt_frame *frame) {
    log->len += frame->size;
    log->check = frame->check;
    log->ends[log->frames++] = log->len;
}

static nt_frame log_frame(const test_log *log, uint8_t kind) {
    uint64_t durable = log->frames ? log->ends[log->frames / 2] : 0;
    return (nt_frame){.kind = kind, .number = log->frames + 1, .durable = durable};
}

static void log_open(test_log *log, uint64_t salt) {
    nt_frame frame = log_frame(log, 0);
    nt_frame_open_encode(log->bytes + log->len, &frame, SEED, salt, log->check, log->len);
    log->salt = salt;
    log_added(log, &frame);
}

/* Numbers the records of a data frame's image from `first` on; returns how many there are. */
static uint64_t number_records(uint8_t *image, uint64_t size, uint64_t first) {
    uint64_t at = NT_FRAME_HEAD_SIZE, count = 0;
    while (at < size) {
        uint64_t record_size = nt_record_claimed_size(image + at, size - at);
        nt_record_number(image + at, first + count);
        at += record_size;
        count++;
    }
    return count;
}

static void log_data(test_log *log, const nt_op *ops, size_t count) {
    nt_frame frame = log_frame(log, NT_FRAME_DATA);
    uint8_t *image = log->bytes + log->len;
    uint64_t size = NT_FRAME_HEAD_SIZE;
    for (size_t i = 0; i < count; i++) {
        nt_record_encode(image + size, &ops[i], SEED);
        size += nt_record_size(&ops[i]);
    }
    assert_int_equal(number_records(image, size, log->sequence + 1), count);
    log->sequence += count;
    nt_frame_seal(image, size, &frame, SEED, log->salt, log->len);
    log_added(log, &frame);
}

static void log_other(test_log *log, uint8_t kind, uint8_t flags, const void *body, uint64_t len) {
    nt_frame frame = log_frame(log, kind);
    frame.flags = flags;
    if (len > 0) memcpy(log->bytes + log->len + NT_FRAME_HEAD_SIZE, body, len);
    nt_frame_seal(log->bytes + log->len, NT_FRAME_HEAD_SIZE + len, &frame, SEED, log->salt, log->len);
    log_added(log, &frame);
}

/* A log with every kind of frame and record. */
static test_log whole_log(void) {
    static const uint8_t schema[24] = {1, 0, 0, 0, 0, 0, 0, 0, /* one index: */
                                       3, 1, 1, 4, 0, 0, 0, 0, 0, 0, 0, 0, 'n', 'a', 'm', 'e'};
    test_log log;
    nt_op ops[NT_OP_KIND_MAX + 8];
    nt_random r = {1};
    fill_pool(&r);
    log_start(&log);
    log_open(&log, NEW_SALT);
    for (uint8_t kind = 1; kind <= NT_OP_KIND_MAX; kind++) {
        ops[kind - 1] = make_op(kind, kind, (uint16_t)(kind * 3), kind * 5u, 6);
        log_data(&log, &ops[kind - 1], 1);
    }
    for (unsigned shape = 0; shape < 8; shape++) {
        ops[NT_OP_KIND_MAX + shape] = make_op(NT_OP_PUT, shape | shape << 3, 5, shape, 9);
    }
    log_data(&log, ops, NT_OP_KIND_MAX + 8);
    log_other(&log, NT_FRAME_SCHEMA, 0, schema, sizeof schema);
    log_other(&log, NT_FRAME_MARK, 0, NULL, 0);
    log_open(&log, SALT + 9);
    log_data(&log, ops, 2);
    log_other(&log, NT_FRAME_MARK, NT_FRAME_CLEAN, NULL, 0);
    return log;
}

/* Whether every record of a good data frame passes both of its checks. */
static int records_hold(const nt_frame *frame) {
    uint64_t len = frame->size - NT_FRAME_HEAD_SIZE;
    const uint8_t *at = frame->body;
    if (frame->kind != NT_FRAME_DATA) return 1;
    while (len > 0) {
        nt_op op;
        uint64_t size = nt_record_decode(at, len, &op);
        if (size == 0 || !nt_record_key_ok(at, &op, SEED) || !nt_record_value_ok(at, &op, SEED)) return 0;
        at += size;
        len -= size;
    }
    return 1;
}

/* Reads a log's frames in a row as a reader does; returns how many hold, and the state at the first that does
 * not. */
static uint64_t read_log(const uint8_t *bytes, uint64_t len, nt_frame_state *state) {
    uint64_t at = NT_LOG_START, count = 0, salt = SALT, check = 0;
    for (;;) {
        nt_frame frame;
        *state = nt_frame_verify(bytes + at, len - at, SEED, salt, at, &frame);
        if (*state != NT_FRAME_GOOD || frame.number != count + 1 || !records_hold(&frame)) return count;
        if (frame.kind == NT_FRAME_OPEN) {
            uint64_t cited;
            nt_frame_open_decode(&frame, &salt, &cited);
            if (cited != check) return count;
        }
        check = frame.check;
        at += frame.size;
        count++;
    }
}

static void a_log_of_every_kind_reads_back(void **state) {
    (void)state;
    nt_frame_state end;
    test_log log = whole_log();
    assert_int_equal(read_log(log.bytes, log.len, &end), log.frames);
    assert_int_equal(end, NT_FRAME_END);
    assert_int_equal(read_log(log.bytes, log.len + 64, &end), log.frames); /* zeros behind it */
    assert_int_equal(end, NT_FRAME_END);
    assert_int_equal(log.frames, 1 + NT_OP_KIND_MAX + 1 + 2 + 1 + 2);
    free(log.bytes);
}

static void every_flipped_bit_of_a_log_is_detected(void **state) {
    (void)state;
    test_log log = whole_log();
    nt_frame_state end;
    uint64_t frame = 0;
    for (uint64_t bit = NT_LOG_START * 8; bit < log.len * 8; bit++) {
        if (bit / 8 == log.ends[frame]) frame++;
        log.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        uint64_t held = read_log(log.bytes, log.len, &end);
        assert_int_equal(held, frame); /* exactly those before the flip */
        assert_int_not_equal(end, NT_FRAME_END);
        log.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    assert_int_equal(read_log(log.bytes, log.len, &end), log.frames);
    free(log.bytes);
}

static void every_truncation_keeps_the_whole_frames(void **state) {
    (void)state;
    test_log log = whole_log();
    for (uint64_t len = NT_LOG_START; len <= log.len; len++) {
        nt_frame_state end;
        uint64_t whole = 0;
        uint8_t *exact = malloc(len);
        memcpy(exact, log.bytes, len);
        while (whole < log.frames && log.ends[whole] <= len) whole++;
        assert_int_equal(read_log(exact, len, &end), whole);
        int at_edge = len == (whole ? log.ends[whole - 1] : NT_LOG_START);
        assert_int_equal(end, at_edge ? NT_FRAME_END : NT_FRAME_BAD_HEAD);
        free(exact);
    }
    free(log.bytes);
}

/* What a crash leaves of frames written by pieces: each 8-byte word of a frame still zero. */
static void every_word_that_was_not_written_is_detected(void **state) {
    (void)state;
    test_log log = whole_log();
    uint64_t frame = 0;
    for (uint64_t at = NT_LOG_START; at < log.len; at += 8) {
        nt_frame_state end;
        uint64_t word = nt_load64(log.bytes + at);
        if (at == log.ends[frame]) frame++;
        if (word == 0) continue;
        nt_store64(log.bytes + at, 0);
        assert_int_equal(read_log(log.bytes, log.len, &end), frame);
        int first = at == (frame ? log.ends[frame - 1] : NT_LOG_START);
        assert_int_equal(end == NT_FRAME_END, first);
        nt_store64(log.bytes + at, word);
    }
    free(log.bytes);
}

static void frames_hold_only_at_their_place_and_under_their_salt(void **state) {
    (void)state;
    test_log log = whole_log();
    uint64_t at = NT_LOG_START, salt = SALT;
    for (uint64_t i = 0; i < log.frames; i++) {
        nt_frame frame, other;
        uint64_t cited;
        assert_int_equal(nt_frame_verify(log.bytes + at, log.len - at, SEED, salt, at, &frame), NT_FRAME_GOOD);
        int is_open = frame.kind == NT_FRAME_OPEN;
        for (unsigned bit = 0; bit < 64; bit++) {
            uint64_t flip = UINT64_C(1) << bit;
            assert_int_equal(nt_frame_verify(log.bytes + at, log.len - at, SEED, salt ^ flip, at, &other),
                             is_open ? NT_FRAME_GOOD : NT_FRAME_BAD_HEAD);
            assert_int_equal(nt_frame_verify(log.bytes + at, log.len - at, SEED, salt, at ^ flip, &other),
                             NT_FRAME_BAD_HEAD);
        }
        uint8_t *doubled = malloc(frame.size);
        memcpy(doubled, log.bytes + at, frame.size);
        assert_int_equal(nt_frame_verify(doubled, frame.size, SEED, salt, at + frame.size, &other),
                         NT_FRAME_BAD_HEAD);
        free(doubled);
        if (is_open) nt_frame_open_decode(&frame, &salt, &cited);
        at += frame.size;
    }
    free(log.bytes);
}

static void the_number_is_left_to_the_caller(void **state) {
    (void)state;
    uint8_t image[NT_FRAME_MARK_SIZE];
    nt_frame frame = {.kind = NT_FRAME_MARK, .number = 4711, .durable = 800}, got;
    nt_frame_seal(image, sizeof image, &frame, SEED, SALT, 800);
    assert_int_equal(nt_frame_verify(image, sizeof image, SEED, SALT, 800, &got), NT_FRAME_GOOD);
    assert_int_equal(got.number, 4711);
    assert_int_equal(got.durable, 800);
    assert_int_equal(got.check, frame.check);
    assert_int_equal(got.digest, nt_hash64(NULL, 0, 0));
    assert_ptr_equal(got.body, image + NT_FRAME_HEAD_SIZE);
}

static void zeros_and_nothing_are_the_end(void **state) {
    (void)state;
    uint8_t bytes[64] = {0};
    nt_frame frame;
    for (uint64_t remaining = 0; remaining <= sizeof bytes; remaining++) {
        assert_int_equal(nt_frame_verify(bytes, remaining, SEED, SALT, 128, &frame), NT_FRAME_END);
    }
    bytes[7] = 1; /* size 0 but not a zero word */
    for (uint64_t remaining = 8; remaining <= sizeof bytes; remaining++) {
        assert_int_equal(nt_frame_verify(bytes, remaining, SEED, SALT, 128, &frame), NT_FRAME_BAD_HEAD);
    }
    bytes[3] = 1;
    assert_int_equal(nt_frame_verify(bytes, 3, SEED, SALT, 128, &frame), NT_FRAME_END);
    assert_int_equal(nt_frame_verify(bytes, 4, SEED, SALT, 128, &frame), NT_FRAME_BAD_HEAD);
}

/* The head check as FORMAT.md states it. */
static void forge_check(uint8_t *image, uint64_t salt, uint64_t offset) {
    uint8_t covered[48];
    memcpy(covered, image, 8);
    memcpy(covered + 8, image + 16, 24);
    nt_store64(covered + 32, salt);
    nt_store64(covered + 40, offset);
    nt_store64(image + 8, XXH3_64bits_withSeed(covered, 48, SEED));
}

/* A frame head by hand under a good check, over a body of zeros. */
static nt_frame_state forged(uint64_t size, uint8_t kind, uint8_t flags, uint16_t zeros, uint64_t durable,
                             nt_frame *frame) {
    uint8_t image[256] = {0};
    nt_store32(image, (uint32_t)(size / 8));
    image[4] = kind;
    image[5] = flags;
    nt_store16(image + 6, zeros);
    nt_store64(image + 24, durable);
    nt_store64(image + 32, XXH3_64bits_withSeed(image + 40, size - 40, 0));
    forge_check(image, kind == NT_FRAME_OPEN ? 0 : SALT, 512);
    return nt_frame_verify(image, sizeof image, SEED, SALT, 512, frame);
}

static void frames_of_the_wrong_shape_are_refused(void **state) {
    (void)state;
    nt_frame f;
    assert_int_equal(forged(40, NT_FRAME_MARK, 0, 0, 512, &f), NT_FRAME_GOOD);
    assert_int_equal(forged(40, NT_FRAME_MARK, 1, 0, 512, &f), NT_FRAME_GOOD);
    assert_int_equal(forged(40, NT_FRAME_MARK, 2, 0, 512, &f), NT_FRAME_BAD_HEAD);
    assert_int_equal(forged(64, NT_FRAME_ACCEPT, 0, 0, 512, &f), NT_FRAME_GOOD);
    assert_int_equal(forged(112, NT_FRAME_ACCEPT, 0, 0, 512, &f), NT_FRAME_GOOD);
    assert_int_equal(forged(72, NT_FRAME_ACCEPT, 0, 0, 512, &f), NT_FRAME_BAD_HEAD);
    assert_int_equal(forged(64, NT_FRAME_ACCEPT, 1, 0, 512, &f), NT_FRAME_BAD_HEAD);
    assert_int_equal(forged(40, NT_FRAME_ACCEPT, 0, 0, 512, &f), NT_FRAME_BAD_HEAD);
    assert_int_equal(forged(40, NT_FRAME_MARK, 0, 1, 512, &f), NT_FRAME_BAD_HEAD);
    assert_int_equal(forged(40, NT_FRAME_MARK, 0, 0, 520, &f), NT_FRAME_BAD_HEAD); /* durable beyond itself */
    assert_int_equal(forged(40, NT_FRAME_MARK, 0, 0, UINT64_MAX, &f), NT_FRAME_BAD_HEAD);
    assert_int_equal(forged(48, NT_FRAME_MARK, 0, 0, 0, &f), NT_FRAME_BAD_HEAD);
    assert_int_equal(forged(56, NT_FRAME_OPEN, 0, 0, 0, &f), NT_FRAME_GOOD);
    assert_int_equal(forged(56, NT_FRAME_OPEN, 1, 0, 0, &f), NT_FRAME_BAD_HEAD);
    assert_int_equal(forged(48, NT_FRAME_OPEN, 0, 0, 0, &f), NT_FRAME_BAD_HEAD);
    assert_int_equal(forged(64, NT_FRAME_OPEN, 0, 0, 0, &f), NT_FRAME_BAD_HEAD);
    assert_int_equal(forged(48, NT_FRAME_SCHEMA, 0, 0, 0, &f), NT_FRAME_GOOD);
    assert_int_equal(forged(48, NT_FRAME_SCHEMA, 1, 0, 0, &f), NT_FRAME_BAD_HEAD);
    assert_int_equal(forged(40, NT_FRAME_SCHEMA, 0, 0, 0, &f), NT_FRAME_BAD_HEAD);
    assert_int_equal(forged(40, NT_FRAME_DATA, 0, 0, 0, &f), NT_FRAME_BAD_HEAD);
    assert_int_equal(forged(64, NT_FRAME_DATA, 0, 0, 0, &f), NT_FRAME_BAD_HEAD);
    assert_int_equal(forged(72, NT_FRAME_DATA, 1, 0, 0, &f), NT_FRAME_BAD_HEAD);
    assert_int_equal(forged(72, NT_FRAME_DATA, 0, 0, 0, &f), NT_FRAME_BAD_BODY);
    assert_int_equal(forged(40, 0, 0, 0, 0, &f), NT_FRAME_BAD_HEAD);
    assert_int_equal(forged(40, 5, 0, 0, 0, &f), NT_FRAME_BAD_HEAD);
    assert_int_equal(forged(256, NT_FRAME_SCHEMA, 0, 0, 0, &f), NT_FRAME_GOOD);
}

static void a_bad_body_under_a_good_head_says_so(void **state) {
    (void)state;
    uint8_t image[512];
    nt_op ops[3] = {make_op(NT_OP_PUT, 0, 3, 30, 0), make_op(NT_OP_DELETE, 0, 4, 0, 0),
                    make_op(NT_OP_PUT, 1, 5, 2, 0)};
    uint64_t size = NT_FRAME_HEAD_SIZE;
    nt_frame frame = {.kind = NT_FRAME_DATA, .number = 1}, got;
    for (int i = 0; i < 3; i++) {
        nt_record_encode(image + size, &ops[i], SEED);
        size += nt_record_size(&ops[i]);
    }
    assert_int_equal(number_records(image, size, 9), 3);
    nt_frame_seal(image, size, &frame, SEED, SALT, 128);
    assert_int_equal(nt_frame_verify(image, size, SEED, SALT, 128, &got), NT_FRAME_GOOD);
    image[NT_FRAME_HEAD_SIZE + 9] ^= 1; /* a sequence number: the digest */
    memset(&got, 0, sizeof got);
    assert_int_equal(nt_frame_verify(image, size, SEED, SALT, 128, &got), NT_FRAME_BAD_BODY);
    assert_int_equal(got.size, size);
    assert_int_equal(got.number, 1);
    image[NT_FRAME_HEAD_SIZE + 9] ^= 1;
    image[size - 1] ^= 1; /* padding: the structure */
    assert_int_equal(nt_frame_verify(image, size, SEED, SALT, 128, &got), NT_FRAME_BAD_BODY);
    image[size - 1] ^= 1;
    image[NT_FRAME_HEAD_SIZE + 25] ^= 1; /* a key: for the record's own check */
    assert_int_equal(nt_frame_verify(image, size, SEED, SALT, 128, &got), NT_FRAME_GOOD);
    assert_false(records_hold(&got));
}

/* The digest of several records, as FORMAT.md states it; and records whose lengths do not fill the body. */
static void records_must_fill_the_body(void **state) {
    (void)state;
    uint8_t image[512] = {0};
    nt_op op = make_op(NT_OP_PUT, 0, 8, 8, 0); /* 40 bytes */
    nt_frame frame = {.kind = NT_FRAME_DATA, .number = 1}, got;
    nt_record_encode(image + 40, &op, SEED);
    nt_record_encode(image + 80, &op, SEED);
    number_records(image, 120, 5);
    nt_frame_seal(image, 120, &frame, SEED, SALT, 128);
    uint64_t first = XXH3_64bits_withSeed(image + 40, 24, 0);
    assert_true(frame.digest == XXH3_64bits_withSeed(image + 80, 24, first));
    assert_true(nt_load64(image + 32) == frame.digest);
    /* The same digest over a body that ends 8 bytes early, or late. */
    nt_store32(image, 14);
    forge_check(image, SALT, 128);
    assert_int_equal(nt_frame_verify(image, sizeof image, SEED, SALT, 128, &got), NT_FRAME_BAD_BODY);
    nt_store32(image, 16);
    forge_check(image, SALT, 128);
    assert_int_equal(nt_frame_verify(image, sizeof image, SEED, SALT, 128, &got), NT_FRAME_BAD_BODY);
}

static void a_head_is_read_from_few_bytes(void **state) {
    (void)state;
    uint8_t image[NT_FRAME_OPEN_SIZE];
    nt_frame frame = {.number = 1}, got;
    uint64_t salt, cited;
    nt_frame_open_encode(image, &frame, SEED, NEW_SALT, 42, 128);
    uint8_t *exact = malloc(NT_FRAME_OPEN_SIZE);
    memcpy(exact, image, NT_FRAME_OPEN_SIZE);
    assert_true(nt_frame_head_ok(exact, UINT64_MAX, SEED, 0, 128, &got));
    nt_frame_open_decode(&got, &salt, &cited);
    assert_true(salt == NEW_SALT && cited == 42);
    assert_false(nt_frame_head_ok(exact, NT_FRAME_OPEN_SIZE - 1, SEED, 0, 128, &got));
    free(exact);
    /* A data frame of 32 GiB less 8 bytes: its head verifies, whatever is in memory. */
    uint8_t *head = calloc(1, NT_FRAME_HEAD_SIZE);
    nt_store32(head, UINT32_MAX);
    head[4] = NT_FRAME_DATA;
    forge_check(head, SALT, 128);
    assert_true(nt_frame_head_ok(head, UINT64_MAX, SEED, SALT, 128, &got));
    assert_true(got.size == UINT64_C(0xFFFFFFFF) * 8);
    assert_true(nt_frame_head_ok(head, got.size, SEED, SALT, 128, &got));
    assert_false(nt_frame_head_ok(head, got.size - 1, SEED, SALT, 128, &got));
    for (uint64_t remaining = 0; remaining < NT_FRAME_HEAD_SIZE; remaining++) {
        assert_false(nt_frame_head_ok(head, remaining, SEED, SALT, 128, &got));
    }
    free(head);
}

static void a_large_batch_is_numbered_and_verifies(void **state) {
    (void)state;
    enum { COUNT = 100000 };
    nt_op op = make_op(NT_OP_PUT, 0, 8, 8, 0);
    uint64_t record = nt_record_size(&op), size = NT_FRAME_HEAD_SIZE + COUNT * record;
    uint8_t *image = malloc(size);
    nt_frame frame = {.kind = NT_FRAME_DATA, .number = 1}, got;
    for (uint64_t i = 0; i < COUNT; i++) nt_record_encode(image + NT_FRAME_HEAD_SIZE + i * record, &op, SEED);
    assert_int_equal(number_records(image, size, 1000), COUNT);
    nt_frame_seal(image, size, &frame, SEED, SALT, 128);
    assert_int_equal(nt_frame_verify(image, size, SEED, SALT, 128, &got), NT_FRAME_GOOD);
    assert_true(records_hold(&got));
    assert_int_equal(nt_load64(image + size - record + 8), 1000 + COUNT - 1);
    free(image);
}

/* Random bytes, and damage of more than one bit: never accepted. */
static void random_damage_is_detected(void **state) {
    (void)state;
    nt_random r = nt_random_start("random damage");
    test_log log = whole_log();
    uint8_t *bytes = malloc(log.len);
    for (int i = 0; i < 20000; i++) {
        nt_frame_state end;
        uint64_t span = 8 + nt_random_below(&r, 57);
        uint64_t at = NT_LOG_START + nt_random_below(&r, log.len - NT_LOG_START - span);
        uint64_t frame = 0, changed = at;
        memcpy(bytes, log.bytes, log.len);
        switch (nt_random_below(&r, 3)) {
        case 0: nt_random_fill(&r, bytes + at, span); break;
        case 1: memset(bytes + at, nt_random_below(&r, 2) ? 0 : 0xFF, span); break;
        default: memmove(bytes + at, bytes + at + 8, log.len - at - 8); break;
        }
        while (changed < log.len && bytes[changed] == log.bytes[changed]) changed++;
        while (frame < log.frames && log.ends[frame] <= changed) frame++;
        assert_int_equal(read_log(bytes, log.len, &end), frame);
    }
    free(bytes);
    free(log.bytes);
}

/* ---- FORMAT.md's example ------------------------------------------------------------------------- */

/* One line of the example: offset, bytes, meaning. */
static void show(char **out, const uint8_t *log, uint64_t *at, int len, const char *meaning) {
    char hex[64] = "";
    for (int i = 0; i < len; i++) snprintf(hex + i * 3, 4, "%02x ", log[*at + (uint64_t)i]);
    *out += sprintf(*out, "%04x  %-49s %s\n", (unsigned)*at, hex, meaning);
    *at += (uint64_t)len;
}

static void show_frame(char **out, const uint8_t *log, uint64_t *at, const char *what, const char *durable) {
    show(out, log, at, 8, what);
    show(out, log, at, 8, "  head check");
    show(out, log, at, 8, "  frame number");
    show(out, log, at, 8, durable);
    show(out, log, at, 8, "  digest");
}

static void show_record(char **out, const uint8_t *log, uint64_t *at, const char *head) {
    show(out, log, at, 8, "  key check, value check");
    show(out, log, at, 8, "  sequence");
    show(out, log, at, 8, head);
}

static void show_header(char **out, const uint8_t *log, uint64_t *at) {
    show(out, log, at, 8, "NTEE-LOG");
    show(out, log, at, 8, "format version 0, header of 128 bytes");
    show(out, log, at, 16, "store id");
    show(out, log, at, 8, "generation 1");
    show(out, log, at, 8, "base 0");
    show(out, log, at, 8, "salt");
    show(out, log, at, 8, "durable 4224");
    show(out, log, at, 8, "no blobs");
    for (int i = 0; i < 3; i++) show(out, log, at, 16, "zeros");
    show(out, log, at, 8, "check of the header");
    *out += sprintf(*out, "1000  (the header once more)\n");
    *at = NT_LOG_START;
}

/* Appends an open frame of the example. */
static uint64_t example_open(uint8_t *log, uint64_t at, nt_frame *frame, uint64_t durable) {
    nt_frame next = {.number = frame->number + 1, .durable = durable};
    nt_frame_open_encode(log + at, &next, nt_store_seed(log + 16), NEW_SALT, frame->check, at);
    *frame = next;
    return at + next.size;
}

/* Appends a data frame of ops; *sequence is the last one used. */
static uint64_t example_data(uint8_t *log, uint64_t at, nt_frame *frame, const nt_op *ops, int count,
                             uint64_t *sequence) {
    uint64_t size = NT_FRAME_HEAD_SIZE, seed = nt_store_seed(log + 16);
    nt_frame next = {.kind = NT_FRAME_DATA, .number = frame->number + 1, .durable = NT_LOG_START};
    for (int i = 0; i < count; i++) {
        nt_record_encode(log + at + size, &ops[i], seed);
        size += nt_record_size(&ops[i]);
    }
    *sequence += number_records(log + at, size, *sequence + 1);
    nt_frame_seal(log + at, size, &next, seed, NEW_SALT, at);
    *frame = next;
    return at + size;
}

/* A new store; put "a" = {"n":1}; the batch put "b" = hi, delete "a"; close. */
static uint64_t example_log(uint8_t *log) {
    static const nt_op a = {.kind = NT_OP_PUT, .value_kind = NTEE_OBJECT, .key_len = 1, .value_len = 7,
                            .key = (const uint8_t *)"a", .value = (const uint8_t *)"{\"n\":1}"};
    static const nt_op batch[2] = {{.kind = NT_OP_PUT, .key_len = 1, .value_len = 2,
                                    .key = (const uint8_t *)"b", .value = (const uint8_t *)"hi"},
                                   {.kind = NT_OP_DELETE, .key_len = 1, .key = (const uint8_t *)"a"}};
    nt_log_header header = {.generation = 1, .salt = SALT, .durable = NT_LOG_START};
    nt_frame frame = {0};
    uint64_t at = NT_LOG_START, sequence = 0;
    for (uint8_t i = 0; i < 16; i++) header.store_id[i] = i;
    nt_log_header_encode(log, &header);
    nt_log_header_encode(log + NT_LOG_COPY, &header);
    at = example_open(log, at, &frame, NT_LOG_START);
    at = example_open(log, at, &frame, NT_LOG_START);
    at = example_data(log, at, &frame, &a, 1, &sequence);
    at = example_data(log, at, &frame, batch, 2, &sequence);
    uint64_t synced = at;
    at = example_open(log, at, &frame, synced);
    nt_frame mark = {.kind = NT_FRAME_MARK, .flags = NT_FRAME_CLEAN, .number = frame.number + 1,
                     .durable = synced};
    nt_frame_seal(log + at, NT_FRAME_MARK_SIZE, &mark, nt_store_seed(log + 16), NEW_SALT, at);
    return at + mark.size;
}

static void show_open(char **out, const uint8_t *log, uint64_t *at, const char *durable, const char *cited) {
    show_frame(out, log, at, "open frame, 7 words", durable);
    show(out, log, at, 8, "  the salt");
    show(out, log, at, 8, cited);
}

static void example_text(char *out) {
    static uint8_t log[8192];
    uint64_t len = example_log(log), at = 0;
    out += sprintf(out, "```\n");
    show_header(&out, log, &at);
    show_open(&out, log, &at, "  durable-up-to 4224", "  no frame before");
    show_open(&out, log, &at, "  durable-up-to 4224", "  the head check of the frame before");
    show_frame(&out, log, &at, "data frame, 9 words", "  durable-up-to 4224");
    show_record(&out, log, &at, "  put, a JSON object; key of 1, value of 7");
    show(&out, log, &at, 8, "  a, {\"n\":1}, no padding");
    show_frame(&out, log, &at, "data frame, 13 words: a batch", "  durable-up-to 4224");
    show_record(&out, log, &at, "  put, binary; key of 1, value of 2");
    show(&out, log, &at, 8, "  b, hi, padding");
    show_record(&out, log, &at, "  delete; key of 1");
    show(&out, log, &at, 8, "  a, padding");
    show_open(&out, log, &at, "  durable-up-to: its own offset", "  the head check of the frame before");
    show_frame(&out, log, &at, "mark, clean, 5 words", "  durable-up-to: the open frame's offset");
    assert_int_equal(at, len);
    sprintf(out, "```\n");
}

/* NT_PRINT=1 prints what the document should say. */
static void the_example_of_the_document_is_what_the_code_writes(void **state) {
    (void)state;
    static char text[16384];
    example_text(text);
    if (getenv("NT_PRINT")) printf("%s", text);
    char *document = nt_read_project_file(__FILE__, "FORMAT.md", NULL);
    assert_non_null(document);
    assert_non_null(strstr(document, text));
    free(document);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_log_of_every_kind_reads_back),
        cmocka_unit_test(every_flipped_bit_of_a_log_is_detected),
        cmocka_unit_test(every_truncation_keeps_the_whole_frames),
        cmocka_unit_test(every_word_that_was_not_written_is_detected),
        cmocka_unit_test(frames_hold_only_at_their_place_and_under_their_salt),
        cmocka_unit_test(the_number_is_left_to_the_caller),
        cmocka_unit_test(zeros_and_nothing_are_the_end),
        cmocka_unit_test(frames_of_the_wrong_shape_are_refused),
        cmocka_unit_test(a_bad_body_under_a_good_head_says_so),
        cmocka_unit_test(records_must_fill_the_body),
        cmocka_unit_test(a_head_is_read_from_few_bytes),
        cmocka_unit_test(a_large_batch_is_numbered_and_verifies),
        cmocka_unit_test(random_damage_is_detected),
        cmocka_unit_test(the_example_of_the_document_is_what_the_code_writes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
