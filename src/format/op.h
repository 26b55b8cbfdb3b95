/*
 * op: one thing that happened to a store.
 *
 * Put, delete, eviction, expiry and counter birth are kinds of one struct; a batch is several of them in one
 * frame. An op points into memory that its holder knows about (the caller's arguments, a frame image, or the
 * mapped log) and owns nothing.
 */
#ifndef NT_FORMAT_OP_H
#define NT_FORMAT_OP_H

#include <stdint.h>

/* Numbers on disk: never renumber. */
typedef enum nt_op_kind {
    NT_OP_PUT = 1,
    NT_OP_DELETE = 2,
    NT_OP_EVICT = 3,    /* a delete that an index's maxPerValue caused */
    NT_OP_COUNTER = 4,  /* the birth of a counter: its cell and first value */
    NT_OP_EXPIRE = 5,   /* sets a live key's deadline */
    NT_OP_PERSIST = 6,  /* clears a live key's deadline */
    NT_OP_DAMAGED = 7,  /* the key's record was found damaged by a rewrite: it answers NTEE_CORRUPT */
    NT_OP_KIND_MAX = 7
} nt_op_kind;

/* Where a large value lies, in place of its bytes. */
typedef struct nt_blob_ref {
    uint64_t generation; /* of the blob file */
    uint64_t offset;
    uint64_t check;      /* over the blob's chunk checksums */
} nt_blob_ref;

typedef struct nt_op {
    uint8_t kind;         /* nt_op_kind */
    uint8_t value_kind;   /* ntee_kind: NTEE_BINARY, NTEE_JSON, NTEE_OBJECT; puts only */
    uint8_t expires;      /* 1: deadline is set */
    uint8_t in_blob;      /* 1: blob is set, value is NULL */
    uint16_t key_len;
    uint32_t value_len;   /* of the value itself, also where it lies in a blob */
    uint32_t terms_len;
    const uint8_t *key;
    const uint8_t *value;
    const uint8_t *terms; /* index terms, encoded; see FORMAT.md */
    int64_t deadline;     /* milliseconds since 1970, absolute */
    uint64_t sequence;    /* the write order; 0: not numbered yet */
    nt_blob_ref blob;
    uint64_t cell;        /* counters: index in the cells file, and the value at birth */
    int64_t first;
} nt_op;

/* Whether this version of the library can apply an op: a later one's are refused rather than misread. */
static inline int nt_op_is_known(const nt_op *op) {
    return (op->kind == NT_OP_PUT && !op->expires && !op->in_blob && !op->terms_len) ||
           op->kind == NT_OP_DELETE || op->kind == NT_OP_EVICT || op->kind == NT_OP_DAMAGED;
}

#endif
