#include "format/piece.h"

#include "base/bytes.h"
#include "base/hash.h"
#include "format/record.h"

static const uint8_t MAGIC[8] = NT_PIECE_MAGIC;

enum {
    HEAD_VERSION = 8,
    HEAD_KIND = 12,
    HEAD_ZEROS = 13,
    HEAD_STORE_ID = 16,
    HEAD_GENERATION = 32,
    HEAD_BODY = 40,
    HEAD_ENTRIES = 48,
    HEAD_COVERED = 56,
    HEAD_NUMBER = 64,
    HEAD_FRAME_CHECK = 72,
    HEAD_LAST = 80,
    HEAD_DURABLE = 88,
    HEAD_SALT = 96,
    HEAD_SEQUENCE = 104,
    HEAD_DIGEST = 112,
    HEAD_PREVIOUS = 120,
    HEAD_CHECK = 128,
    SECTION_ROOT = 0,
    SECTION_ZEROS = 4,
    SECTION_COUNT = 8,
    POSITION_SIZE = 8 /* ahead of a record */
};

void nt_piece_encode(uint8_t out[NT_PIECE_HEAD_SIZE], nt_piece *piece, uint64_t seed) {
    const nt_piece_place *place = &piece->place;
    memcpy(out, MAGIC, sizeof MAGIC);
    nt_store32(out + HEAD_VERSION, NT_FORMAT_VERSION);
    out[HEAD_KIND] = piece->kind;
    memset(out + HEAD_ZEROS, 0, HEAD_STORE_ID - HEAD_ZEROS);
    memcpy(out + HEAD_STORE_ID, piece->store_id, sizeof piece->store_id);
    nt_store64(out + HEAD_GENERATION, piece->generation);
    nt_store64(out + HEAD_BODY, piece->body);
    nt_store64(out + HEAD_ENTRIES, piece->entries);
    nt_store64(out + HEAD_COVERED, place->covered);
    nt_store64(out + HEAD_NUMBER, place->number);
    nt_store64(out + HEAD_FRAME_CHECK, place->check);
    nt_store64(out + HEAD_LAST, place->last);
    nt_store64(out + HEAD_DURABLE, place->durable);
    nt_store64(out + HEAD_SALT, place->salt);
    nt_store64(out + HEAD_SEQUENCE, place->sequence);
    nt_store64(out + HEAD_DIGEST, piece->digest);
    nt_store64(out + HEAD_PREVIOUS, piece->previous);
    piece->check = nt_hash64(out, HEAD_CHECK, seed);
    nt_store64(out + HEAD_CHECK, piece->check);
}

/* Whether there can be such a place in a log. */
static int place_ok(const nt_piece_place *place) {
    if (place->covered % 8 != 0 || place->covered < NT_LOG_START) return 0;
    if (place->number == 0) return place->check == 0 && place->last == 0 && place->durable == 0;
    if (place->last % 8 != 0 || place->last < NT_LOG_START || place->last >= place->covered) return 0;
    return place->durable <= place->last;
}

int nt_piece_decode(const uint8_t *bytes, size_t len, uint64_t seed, nt_piece *piece) {
    if (len < NT_PIECE_HEAD_SIZE || memcmp(bytes, MAGIC, sizeof MAGIC) != 0) return 0;
    if (nt_load32(bytes + HEAD_VERSION) != NT_FORMAT_VERSION) return 0;
    piece->check = nt_load64(bytes + HEAD_CHECK);
    if (piece->check != nt_hash64(bytes, HEAD_CHECK, seed)) return 0;
    piece->kind = bytes[HEAD_KIND];
    memcpy(piece->store_id, bytes + HEAD_STORE_ID, sizeof piece->store_id);
    piece->generation = nt_load64(bytes + HEAD_GENERATION);
    piece->body = nt_load64(bytes + HEAD_BODY);
    piece->entries = nt_load64(bytes + HEAD_ENTRIES);
    piece->place = (nt_piece_place){
        .covered = nt_load64(bytes + HEAD_COVERED),
        .number = nt_load64(bytes + HEAD_NUMBER),
        .check = nt_load64(bytes + HEAD_FRAME_CHECK),
        .last = nt_load64(bytes + HEAD_LAST),
        .durable = nt_load64(bytes + HEAD_DURABLE),
        .salt = nt_load64(bytes + HEAD_SALT),
        .sequence = nt_load64(bytes + HEAD_SEQUENCE),
    };
    piece->digest = nt_load64(bytes + HEAD_DIGEST);
    piece->previous = nt_load64(bytes + HEAD_PREVIOUS);
    if (bytes[HEAD_ZEROS] || bytes[HEAD_ZEROS + 1] || bytes[HEAD_ZEROS + 2]) return 0;
    if (piece->kind != NT_PIECE_DELTA && (piece->kind != NT_PIECE_SNAPSHOT || piece->previous != 0)) return 0;
    return piece->body % 8 == 0 && place_ok(&piece->place);
}

/* ---- Snapshots ---- */

void nt_piece_section_encode(uint8_t *out, uint32_t root, uint64_t count) {
    nt_store32(out + SECTION_ROOT, root);
    nt_store32(out + SECTION_ZEROS, 0);
    nt_store64(out + SECTION_COUNT, count);
}

uint64_t nt_piece_section_decode(const uint8_t *bytes, uint64_t remaining, uint32_t *root, uint64_t *count) {
    if (remaining < NT_PIECE_SECTION_SIZE || nt_load32(bytes + SECTION_ZEROS) != 0) return 0;
    *root = nt_load32(bytes + SECTION_ROOT);
    *count = nt_load64(bytes + SECTION_COUNT);
    return NT_PIECE_SECTION_SIZE;
}

/* ---- Deltas ---- */

uint64_t nt_piece_record_size(const uint8_t *record) {
    return nt_align8(POSITION_SIZE + nt_record_claimed_front(record, UINT64_MAX));
}

void nt_piece_record_encode(uint8_t *out, uint64_t position, const uint8_t *record) {
    uint64_t front = nt_record_claimed_front(record, UINT64_MAX), used = POSITION_SIZE + front;
    nt_store64(out, position);
    memcpy(out + POSITION_SIZE, record, front);
    memset(out + used, 0, nt_align8(used) - used);
}

uint64_t nt_piece_record_claim(const uint8_t *bytes, uint64_t len) {
    return nt_align8(POSITION_SIZE + nt_record_claimed_front(bytes + POSITION_SIZE, len - POSITION_SIZE));
}

uint64_t nt_piece_record_decode(const uint8_t *bytes, uint64_t remaining, uint64_t *position, nt_op *op) {
    if (remaining < NT_PIECE_RECORD_LEAST) return 0;
    uint64_t front = nt_record_decode_front(bytes + POSITION_SIZE, remaining - POSITION_SIZE, op);
    if (front == 0) return 0;
    uint64_t used = POSITION_SIZE + front, size = nt_align8(used);
    if (size > remaining) return 0;
    for (uint64_t i = used; i < size; i++) {
        if (bytes[i] != 0) return 0;
    }
    *position = nt_load64(bytes);
    return size;
}
