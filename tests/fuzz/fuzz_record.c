/*
 * fuzz_record: bytes as a log. Frames, records and the header are read from them; what is accepted must come
 * out of the encoder again. So that the fuzzer gets behind the checksums, it can ask that they be made right.
 *
 *   clang -g -O1 -fsanitize=fuzzer,address,undefined -Iinclude -Isrc tests/fuzz/fuzz_record.c \
 *     src/format/record.c src/base/status.c -o fuzz_record && ./fuzz_record -max_total_time=30
 */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "format/record.h"

static const uint64_t SALT = 0x1111222233334444;
static const uint64_t SEED = 0x5555666677778888;

static void must(int ok) {
    if (!ok) abort();
}

/* A decoded op encodes to the same bytes, but for the checks where those were wrong. */
static void encodes_again(const uint8_t *record, uint64_t size, const nt_op *op, uint64_t seed) {
    uint8_t *copy = malloc(size);
    must(copy != NULL && nt_record_size(op) == size);
    nt_record_encode(copy, op, seed);
    nt_record_number(copy, op->sequence);
    must(memcmp(copy + 8, record + 8, size - 8) == 0);
    must((nt_load32(copy) == nt_load32(record)) == nt_record_key_ok(record, op, seed));
    must((nt_load32(copy + 4) == nt_load32(record + 4)) == nt_record_value_ok(record, op, seed));
    free(copy);
}

static void read_records(const uint8_t *at, uint64_t len, uint64_t seed) {
    nt_op op;
    uint64_t size;
    while (len >= NT_RECORD_HEAD_SIZE && (size = nt_record_decode(at, len, &op)) != 0) {
        must(size <= len && size % 8 == 0);
        must(nt_record_claimed_size(at, size) == size);
        encodes_again(at, size, &op, seed);
        at += size;
        len -= size;
    }
}

/* Makes the digest and the head check right, where the size of the frame is within the bytes. */
static void mend(uint8_t *at, uint64_t len, uint64_t offset) {
    uint64_t size = len < NT_FRAME_HEAD_SIZE ? 0 : (uint64_t)nt_load32(at) * 8;
    uint8_t covered[48];
    nt_op op;
    uint64_t digest = 0, done = NT_FRAME_HEAD_SIZE, n;
    if (size < NT_FRAME_HEAD_SIZE || size > len) return;
    if (at[4] != NT_FRAME_DATA) digest = nt_hash64(at + done, size - done, 0);
    else for (; done < size && (n = nt_record_decode(at + done, size - done, &op)) != 0; done += n) {
        digest = nt_hash64(at + done, NT_RECORD_HEAD_SIZE, digest);
    }
    nt_store64(at + 24, nt_load64(at + 24) % (offset + 1));
    nt_store64(at + 32, digest);
    memcpy(covered, at, 8);
    memcpy(covered + 8, at + 16, 24);
    nt_store64(covered + 32, at[4] == NT_FRAME_OPEN && size >= 56 ? nt_load64(at + 40) : SALT);
    nt_store64(covered + 40, offset);
    nt_store64(at + 8, nt_hash64(covered, 48, SEED));
}

static void read_frames(uint8_t *at, uint64_t len, int mended) {
    uint64_t offset = 0;
    nt_frame frame;
    while (offset <= len) {
        if (mended) mend(at + offset, len - offset, offset);
        int head = nt_frame_head_ok(at + offset, len - offset, SEED, SALT, offset, &frame);
        nt_frame_state state = nt_frame_verify(at + offset, len - offset, SEED, SALT, offset, &frame);
        must(head == (state == NT_FRAME_GOOD || state == NT_FRAME_BAD_BODY));
        if (state != NT_FRAME_GOOD) {
            offset += 8;
            continue;
        }
        must(frame.size <= len - offset && frame.durable <= offset);
        if (frame.kind == NT_FRAME_DATA) read_records(frame.body, frame.size - NT_FRAME_HEAD_SIZE, SALT);
        offset += frame.size;
    }
}

static void read_header(uint8_t *bytes, size_t len, int mended) {
    nt_log_header header;
    ntee_error err;
    uint8_t again[NT_LOG_HEADER_SIZE];
    if (mended && len >= NT_LOG_HEADER_SIZE) nt_store64(bytes + 120, nt_hash64(bytes, 120, 0));
    if (nt_log_header_decode(bytes, len, &header, "fuzz", &err) != NTEE_OK) return;
    nt_log_header_encode(again, &header);
    must(memcmp(again, bytes, sizeof again) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    int mended = data[0] & 1;
    uint8_t *bytes = malloc(size);
    if (bytes == NULL) return 0;
    memcpy(bytes, data + 1, size - 1);
    read_records(bytes, size - 1, data[0]);
    read_frames(bytes, size - 1, mended);
    read_header(bytes, size - 1, mended);
    free(bytes);
    return 0;
}
