/*
 * record: where every byte of the log lies. FORMAT.md is its prose; the two change together.
 *
 * A log is a header of 128 bytes, a copy of it, and then frames. A frame is a head of 40 bytes and a body;
 * the body of a data frame is records. Everything is 8-byte aligned. This module encodes and decodes, in
 * memory; it does no I/O and keeps no state. What it encodes is the caller's responsibility (an op within the
 * rules of its kind, a key of 1 to 65,535 bytes); what it decodes may be anything.
 *
 * Checksums, all XXH3:
 *  - a record's key check covers its kind, flags, lengths, deadline, terms, key and sequence number; its
 *    value check covers the value's bytes (or blob reference, or counter cell). Both are seeded with the
 *    store's id only, so that they can be taken before the writer's turn and copied by a rewrite.
 *  - a frame's digest covers the heads of its records (and so, through their checks, everything) or the
 *    whole body of another frame; its head check covers the head, the digest, the store's current salt and
 *    the offset in the file, and is seeded with the store's id. So stale, doubled and misplaced bytes never
 *    verify, and nobody who can only write values can make bytes that do.
 */
#ifndef NT_FORMAT_RECORD_H
#define NT_FORMAT_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "format/op.h"

#define NT_FORMAT_VERSION 0u /* 0: a draft; may still change */

/* ---- The log's header ---- */

#define NT_LOG_MAGIC "NTEE-LOG"
#define NT_LOG_HEADER_SIZE 128u
#define NT_LOG_COPY 4096u /* offset of the header's copy */
#define NT_LOG_START (NT_LOG_COPY + NT_LOG_HEADER_SIZE) /* offset of the first frame */

typedef struct nt_log_header {
    uint32_t version;
    uint8_t store_id[16];
    uint64_t generation;  /* 1, 2, ...: one more with each rewrite */
    uint64_t base;        /* the store-wide position of this file's offset 0; a multiple of 8 */
    uint64_t salt;        /* the first current salt */
    uint64_t durable;     /* offset that was synced when the file got its name */
    uint64_t blob_oldest; /* oldest blob generation still alive; 0: none */
} nt_log_header;

/* Writes the header's 128 bytes; its checksum is made here. */
void nt_log_header_encode(uint8_t out[NT_LOG_HEADER_SIZE], const nt_log_header *header);
/* Reads the first bytes of a file. NTEE_CORRUPT (noise, a bad checksum), NTEE_VERSION (another format, whose
 * other fields are not looked at). `name` is the file's, for the message. */
ntee_status nt_log_header_decode(const uint8_t *bytes, size_t len, nt_log_header *header,
                                 const char *name, ntee_error *err);
/* The seed of all record checksums of a store. */
uint64_t nt_store_seed(const uint8_t store_id[16]);

/* ---- Records ---- */

#define NT_RECORD_HEAD_SIZE 24u
#define NT_RECORD_LEAST 32u /* a head and a key of one byte */

/* Bytes of the op's record, padding included: a multiple of 8. */
uint64_t nt_record_size(const nt_op *op);

/* Writes the record with both checks prepared but no sequence number: the place of the number holds the key
 * check's 64-bit hash until nt_record_number. `out` has nt_record_size(op) bytes. */
void nt_record_encode(uint8_t *out, const nt_op *op, uint64_t seed);
/* The same in two steps: everything but the checks, which nt_record_check prepares for a store; for another
 * store, or once more, it may be called again. Returns the record's size. */
void nt_record_lay_out(uint8_t *out, const nt_op *op);
uint64_t nt_record_check(uint8_t *record, uint64_t seed);
/* Gives an encoded record its sequence number and so its final key check. Once. */
void nt_record_number(uint8_t *record, uint64_t sequence);

/* Reads a record's structure: lengths within `remaining`, known kind and flags, zero padding. Checks no
 * checksum. Returns its size, or 0 where it is malformed (*op then means nothing). op->value is set for puts
 * whose value is in the log, at its place even where it is empty; pointers go into `record`. */
uint64_t nt_record_decode(const uint8_t *record, uint64_t remaining, nt_op *op);
/* How much of a record to read, where it is not mapped. `len` of its bytes (at least NT_RECORD_HEAD_SIZE)
 * are in `head`: the answer is the size that they claim, checked against nothing; or, where they end before
 * the length of the terms, as many bytes as it takes to tell, which is more than `len`. So: while the
 * answer is more than there is, check it against the log's end, read so many, ask again. At most about 8
 * GiB. */
uint64_t nt_record_claimed_size(const uint8_t *head, uint64_t len);
/* The same up to the key's end: what a record without its value is. The answer is not a multiple of 8. */
uint64_t nt_record_claimed_front(const uint8_t *head, uint64_t len);
/* As nt_record_decode, of a record without its value: `remaining` may end at the key's end. Returns the size
 * up to there, or 0. op->value is NULL, and what is in the value section (a blob reference, a counter's
 * birth) 0. */
uint64_t nt_record_decode_front(const uint8_t *record, uint64_t remaining, nt_op *op);
/* The sequence number in a record's head. */
uint64_t nt_record_sequence(const uint8_t *record);
/* 1 where the check holds. `op` is what nt_record_decode made of `record`. */
int nt_record_key_ok(const uint8_t *record, const nt_op *op, uint64_t seed);
int nt_record_value_ok(const uint8_t *record, const nt_op *op, uint64_t seed);

/* ---- Frames ---- */

#define NT_FRAME_HEAD_SIZE 40u
#define NT_FRAME_OPEN_SIZE (NT_FRAME_HEAD_SIZE + 16u)
#define NT_FRAME_MARK_SIZE NT_FRAME_HEAD_SIZE

typedef enum nt_frame_kind {
    NT_FRAME_DATA = 1,   /* records: one write or one batch */
    NT_FRAME_OPEN = 2,   /* a writer opened the store: its new salt, the head check of the frame before */
    NT_FRAME_MARK = 3,   /* nothing but the head: how far the log is durable */
    NT_FRAME_SCHEMA = 4, /* the index schema from here on */
    NT_FRAME_ACCEPT = 5  /* places before it whose damage is accepted: NT_ACCEPT_SIZE bytes each */
} nt_frame_kind;

enum { NT_FRAME_CLEAN = 1 }; /* flag of a MARK: the store was closed, everything before it is synced */

/* A place in the body of an ACCEPT frame. */
#define NT_ACCEPT_SIZE 24u

typedef struct nt_accept {
    uint64_t offset;
    uint64_t length;
    uint64_t rescued; /* records that were found in it */
} nt_accept;

/* Writes and reads one. */
void nt_frame_accept_encode(uint8_t out[NT_ACCEPT_SIZE], const nt_accept *accept);
nt_accept nt_frame_accept_decode(const uint8_t bytes[NT_ACCEPT_SIZE]);

typedef struct nt_frame {
    uint8_t kind;
    uint8_t flags;
    uint64_t size;     /* bytes, head included */
    uint64_t number;   /* counts frames of this file: contiguous, from 1 */
    uint64_t durable;  /* durable-up-to: offset known synced when the frame was written */
    uint64_t check;    /* the head check */
    uint64_t digest;
    const uint8_t *body;
} nt_frame;

/* In all of these `seed` is the store's (nt_store_seed). */

/* Seals a frame image: `image` is `size` bytes (a multiple of 8), the body is in place, with its records
 * numbered. Fills the head from frame->kind, flags, number and durable; sets size, check, digest and body. */
void nt_frame_seal(uint8_t *image, uint64_t size, nt_frame *frame, uint64_t seed, uint64_t salt,
                   uint64_t offset);

/* The same for a data frame whose digest is in frame->digest. */
void nt_frame_seal_digested(uint8_t *image, uint64_t size, nt_frame *frame, uint64_t seed, uint64_t salt,
                            uint64_t offset);
/* The digest of a data frame's records up to and with this one, which is numbered; `digest` is that of those
 * before it, 0 where it is the first. */
uint64_t nt_frame_digest(const uint8_t *record, uint64_t digest);

/* Writes the whole image of an OPEN frame: NT_FRAME_OPEN_SIZE bytes, sealed with the new salt. Number and
 * durable are frame's; sets the rest of it. */
void nt_frame_open_encode(uint8_t *image, nt_frame *frame, uint64_t seed, uint64_t new_salt,
                          uint64_t previous_check, uint64_t offset);
/* The new salt and the cited check of an OPEN frame whose head nt_frame_head_ok accepted. */
void nt_frame_open_decode(const nt_frame *frame, uint64_t *new_salt, uint64_t *previous_check);

typedef enum nt_frame_state {
    NT_FRAME_GOOD = 0,
    NT_FRAME_END = 1,      /* 8 bytes of zeros, or nothing: the end of what was written */
    NT_FRAME_BAD_HEAD = 2, /* the head does not verify: nothing in it can be trusted */
    NT_FRAME_BAD_BODY = 3  /* the head does, the body's digest or structure does not */
} nt_frame_state;

/* Whether a frame's head verifies at `offset` of the file, `remaining` bytes before the file's end; an OPEN
 * frame's under the salt in its own body. That includes: a size within `remaining` and right for the kind,
 * known kind and flags, durable-up-to at most `offset`. Reads no more than NT_FRAME_OPEN_SIZE bytes (fewer
 * where `remaining` is less), so `remaining` may count bytes that are not in memory. 1, and *frame is set,
 * its body unverified; or 0. For searching, and to know how much to read. */
int nt_frame_head_ok(const uint8_t *at, uint64_t remaining, uint64_t seed, uint64_t salt, uint64_t offset,
                     nt_frame *frame);

/* Verifies a whole frame: its head as above, the digest, and the structure of every record; not the
 * records' own checks, the frame's number, what an OPEN frame cites, nor what a schema says. END: the first
 * 8 bytes are zero, or nothing remains. *frame is set for GOOD, and for BAD_BODY as far as the head goes.
 * Time is linear in the size. */
nt_frame_state nt_frame_verify(const uint8_t *at, uint64_t remaining, uint64_t seed, uint64_t salt,
                               uint64_t offset, nt_frame *frame);

#endif
