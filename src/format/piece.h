/*
 * piece: where every byte of a saved index lies. FORMAT.md is its prose; the two change together.
 *
 * A hint is pieces, one behind the other: a snapshot of all keys, then deltas, which are the records that
 * came later, without their values. This module encodes and decodes heads and entries, in memory; it does no
 * I/O and keeps no state. What it encodes is the caller's responsibility; what it decodes may be anything.
 * Digests of bodies are the caller's to take and to compare.
 */
#ifndef NT_FORMAT_PIECE_H
#define NT_FORMAT_PIECE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "format/op.h"

#define NT_PIECE_HEAD_SIZE 136u

#define NT_PIECE_MAGIC "NTEEHINT"

typedef enum nt_piece_kind {
    NT_PIECE_SNAPSHOT = 1,
    NT_PIECE_DELTA = 2
} nt_piece_kind;

/* A place between two frames of a log, and all that it takes to go on reading there. */
typedef struct nt_piece_place {
    uint64_t covered;  /* its offset in the log */
    uint64_t number;   /* the last frame before it; 0: none, then check, last and durable are 0 too */
    uint64_t check;    /* that frame's head check, */
    uint64_t last;     /* offset, */
    uint64_t durable;  /* and durable-up-to */
    uint64_t salt;     /* the salt that is current */
    uint64_t sequence; /* the last record's sequence number */
} nt_piece_place;

typedef struct nt_piece {
    uint8_t kind; /* nt_piece_kind */
    uint8_t store_id[16];
    uint64_t generation;
    uint64_t body;     /* bytes behind the head: a multiple of 8 */
    uint64_t entries;
    nt_piece_place place; /* up to which the pieces so far speak */
    uint64_t digest;   /* of the body */
    uint64_t previous; /* the check of the piece before; 0 in a snapshot */
    uint64_t check;
} nt_piece;

/* Writes a head; its check is made here, and set in *piece. */
void nt_piece_encode(uint8_t out[NT_PIECE_HEAD_SIZE], nt_piece *piece, uint64_t seed);
/* Reads a head: 1 where its magic, version, kind and check hold, its zeros are zeros, and body and place can
 * be (offsets are multiples of 8, `last` before `covered`, `durable` at most `last`). Else 0. What it
 * belongs to is for the caller to compare. */
int nt_piece_decode(const uint8_t *bytes, size_t len, uint64_t seed, nt_piece *piece);

/* ---- Snapshots: sections of entries ---- */

#define NT_PIECE_SECTION_SIZE 16u /* the head of a section */
#define NT_PIECE_ENTRY_SIZE 10u   /* an entry without its key */

/* Writes the head of a section: NT_PIECE_SECTION_SIZE bytes. */
void nt_piece_section_encode(uint8_t *out, uint32_t root, uint64_t count);
/* Reads one: its size, or 0 where it is malformed or does not fit. */
uint64_t nt_piece_section_decode(const uint8_t *bytes, uint64_t remaining, uint32_t *root, uint64_t *count);

/* Writes an entry without its key, which belongs behind it: NT_PIECE_ENTRY_SIZE bytes. */
static inline void nt_piece_entry_encode(uint8_t *out, uint64_t value, uint16_t key_len) {
    memcpy(out, &value, 8);
    memcpy(out + 8, &key_len, 2);
}
/* Reads an entry, key included: its size, or 0 where it does not fit or has no key. */
static inline uint64_t nt_piece_entry_decode(const uint8_t *bytes, uint64_t remaining, uint64_t *value,
                                             uint16_t *key_len) {
    if (remaining < NT_PIECE_ENTRY_SIZE) return 0;
    memcpy(value, bytes, 8);
    memcpy(key_len, bytes + 8, 2);
    if (*key_len == 0 || *key_len > remaining - NT_PIECE_ENTRY_SIZE) return 0;
    return NT_PIECE_ENTRY_SIZE + (uint64_t)*key_len;
}

/* ---- Deltas: records without their values ---- */

#define NT_PIECE_RECORD_LEAST 32u /* bytes of an entry that say how long it is, or how many more say so */

/* The bytes of the entry for a record that is known to be whole. */
uint64_t nt_piece_record_size(const uint8_t *record);
/* Writes the entry, nt_piece_record_size bytes. */
void nt_piece_record_encode(uint8_t *out, uint64_t position, const uint8_t *record);
/* How many bytes to have for nt_piece_record_decode. `len` of an entry's bytes (at least
 * NT_PIECE_RECORD_LEAST) are there: the answer is the size that they claim, or, where they end too early to
 * tell, as many as it takes to tell, which is more than `len`. At most about 4 GiB. */
uint64_t nt_piece_record_claim(const uint8_t *bytes, uint64_t len);
/* Reads an entry: its size, or 0 where it is malformed or does not fit. op->value is NULL. */
uint64_t nt_piece_record_decode(const uint8_t *bytes, uint64_t remaining, uint64_t *position, nt_op *op);

#endif
