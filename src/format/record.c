#include "format/record.h"

#include <string.h>

#include "base/bytes.h"
#include "base/hash.h"

/* ---- The log's header ---------------------------------------------------------------------------- */

static const uint8_t LOG_MAGIC[8] = NT_LOG_MAGIC;

enum {
    HEADER_VERSION = 8,
    HEADER_LENGTH = 12,
    HEADER_STORE_ID = 16,
    HEADER_GENERATION = 32,
    HEADER_BASE = 40,
    HEADER_SALT = 48,
    HEADER_DURABLE = 56,
    HEADER_BLOB_OLDEST = 64,
    HEADER_ZEROS = 72,
    HEADER_CHECK = 120,
    STORE_ID_SIZE = 16
};

static const uint64_t BASE_LIMIT = (uint64_t)1 << 48;

void nt_log_header_encode(uint8_t out[NT_LOG_HEADER_SIZE], const nt_log_header *header) {
    memset(out, 0, NT_LOG_HEADER_SIZE);
    memcpy(out, LOG_MAGIC, sizeof LOG_MAGIC);
    nt_store32(out + HEADER_VERSION, header->version);
    nt_store32(out + HEADER_LENGTH, NT_LOG_HEADER_SIZE);
    memcpy(out + HEADER_STORE_ID, header->store_id, STORE_ID_SIZE);
    nt_store64(out + HEADER_GENERATION, header->generation);
    nt_store64(out + HEADER_BASE, header->base);
    nt_store64(out + HEADER_SALT, header->salt);
    nt_store64(out + HEADER_DURABLE, header->durable);
    nt_store64(out + HEADER_BLOB_OLDEST, header->blob_oldest);
    nt_store64(out + HEADER_CHECK, nt_hash64(out, HEADER_CHECK, 0));
}

static int all_zero(const uint8_t *bytes, size_t len) {
    uint8_t seen = 0;
    for (size_t i = 0; i < len; i++) seen |= bytes[i];
    return seen == 0;
}

/* What is wrong with a header whose version is ours, or NULL. The fields count only once the checksum
 * holds. */
static const char *header_fault(const uint8_t *bytes, size_t len, const nt_log_header *header) {
    if (len < NT_LOG_HEADER_SIZE) return "the log's header is cut off";
    if (nt_load64(bytes + HEADER_CHECK) != nt_hash64(bytes, HEADER_CHECK, 0)) {
        return "the checksum of the log's header is wrong";
    }
    if (nt_load32(bytes + HEADER_LENGTH) != NT_LOG_HEADER_SIZE) return "the log's header has a strange size";
    if (!all_zero(bytes + HEADER_ZEROS, HEADER_CHECK - HEADER_ZEROS)) return "the log's header is not clean";
    if (header->generation == 0) return "the log's generation is 0";
    if (header->base % 8 != 0 || header->base >= BASE_LIMIT) return "the log's base is out of bounds";
    if (header->durable % 8 != 0 || header->durable < NT_LOG_START) {
        return "the log's durable length is out of bounds";
    }
    return NULL;
}

ntee_status nt_log_header_decode(const uint8_t *bytes, size_t len, nt_log_header *header,
                                 const char *name, ntee_error *err) {
    if (len < HEADER_LENGTH || memcmp(bytes, LOG_MAGIC, sizeof LOG_MAGIC) != 0) {
        return nt_fail_corrupt(err, name, 0, "not a log");
    }
    uint32_t version = nt_load32(bytes + HEADER_VERSION);
    if (version != NT_FORMAT_VERSION) {
        return nt_fail(err, NTEE_VERSION, "%s: written in format %u, this library knows %u", name, version,
                       NT_FORMAT_VERSION);
    }
    nt_log_header read = {.version = version};
    if (len >= NT_LOG_HEADER_SIZE) {
        memcpy(read.store_id, bytes + HEADER_STORE_ID, STORE_ID_SIZE);
        read.generation = nt_load64(bytes + HEADER_GENERATION);
        read.base = nt_load64(bytes + HEADER_BASE);
        read.salt = nt_load64(bytes + HEADER_SALT);
        read.durable = nt_load64(bytes + HEADER_DURABLE);
        read.blob_oldest = nt_load64(bytes + HEADER_BLOB_OLDEST);
    }
    const char *fault = header_fault(bytes, len, &read);
    if (fault != NULL) return nt_fail_corrupt(err, name, 0, fault);
    *header = read;
    return NTEE_OK;
}

uint64_t nt_store_seed(const uint8_t store_id[16]) { return nt_hash64(store_id, STORE_ID_SIZE, 0); }

/* ---- Records ------------------------------------------------------------------------------------- */

enum {
    RECORD_KEY_CHECK = 0,
    RECORD_VALUE_CHECK = 4,
    RECORD_SEQUENCE = 8,
    RECORD_KIND = 16, /* what the key check covers begins here */
    RECORD_FLAGS = 17,
    RECORD_KEY_LEN = 18,
    RECORD_VALUE_LEN = 20,
    DEADLINE_SIZE = 8,
    TERMS_LEN_SIZE = 4,
    BLOB_REF_SIZE = 24,
    COUNTER_SIZE = 16
};

enum {
    FLAG_DEADLINE = 1,
    FLAG_TERMS = 2,
    FLAG_BLOB = 4,
    FLAG_VALUE_KIND = 0x30,
    VALUE_KIND_SHIFT = 4
};

/* The flags that a kind of record may have, and must have. */
typedef struct kind_rule {
    uint8_t allowed;
    uint8_t required;
} kind_rule;

static const kind_rule RULES[NT_OP_KIND_MAX + 1] = {
    [NT_OP_PUT] = {FLAG_DEADLINE | FLAG_TERMS | FLAG_BLOB | FLAG_VALUE_KIND, 0},
    [NT_OP_COUNTER] = {FLAG_DEADLINE, 0},
    [NT_OP_EXPIRE] = {FLAG_DEADLINE, FLAG_DEADLINE},
};

static uint8_t flags_of(const nt_op *op) {
    int flags = op->value_kind << VALUE_KIND_SHIFT;
    if (op->expires) flags |= FLAG_DEADLINE;
    if (op->terms_len > 0) flags |= FLAG_TERMS;
    if (op->in_blob) flags |= FLAG_BLOB;
    return (uint8_t)((flags & RULES[op->kind].allowed) | RULES[op->kind].required);
}

/* The value length that stands in the head. */
static uint32_t value_len_of(const nt_op *op) {
    if (op->kind == NT_OP_PUT) return op->value_len;
    return op->kind == NT_OP_COUNTER ? COUNTER_SIZE : 0;
}

/* Bytes of the value section. */
static uint64_t section_of(const nt_op *op) {
    return op->kind == NT_OP_PUT && op->in_blob ? BLOB_REF_SIZE : value_len_of(op);
}

/* Offset of the key, from what the flags say. */
static uint64_t key_at_of(uint8_t flags, uint32_t terms_len) {
    uint64_t at = NT_RECORD_HEAD_SIZE;
    if (flags & FLAG_DEADLINE) at += DEADLINE_SIZE;
    if (flags & FLAG_TERMS) at += (uint64_t)TERMS_LEN_SIZE + terms_len;
    return at;
}

uint64_t nt_record_size(const nt_op *op) {
    return nt_align8(key_at_of(flags_of(op), op->terms_len) + op->key_len + section_of(op));
}

static void write_section(uint8_t *at, const nt_op *op, uint64_t len) {
    if (op->kind == NT_OP_COUNTER) {
        nt_store64(at, op->cell);
        nt_store64(at + 8, (uint64_t)op->first);
    } else if (op->in_blob && len > 0) {
        nt_store64(at, op->blob.generation);
        nt_store64(at + 8, op->blob.offset);
        nt_store64(at + 16, op->blob.check);
    } else if (len > 0) {
        memcpy(at, op->value, len);
    }
}

void nt_record_lay_out(uint8_t *out, const nt_op *op) {
    uint8_t flags = flags_of(op);
    uint64_t section = section_of(op);
    uint8_t *at = out + NT_RECORD_HEAD_SIZE;
    out[RECORD_KIND] = op->kind;
    out[RECORD_FLAGS] = flags;
    nt_store16(out + RECORD_KEY_LEN, op->key_len);
    nt_store32(out + RECORD_VALUE_LEN, value_len_of(op));
    if (flags & FLAG_DEADLINE) {
        nt_store64(at, (uint64_t)op->deadline);
        at += DEADLINE_SIZE;
    }
    if (flags & FLAG_TERMS) {
        nt_store32(at, op->terms_len);
        memcpy(at + TERMS_LEN_SIZE, op->terms, op->terms_len);
        at += TERMS_LEN_SIZE + (uint64_t)op->terms_len;
    }
    memcpy(at, op->key, op->key_len);
    at += op->key_len;
    write_section(at, op, section);
    uint64_t used = (uint64_t)(at - out) + section;
    memset(out + used, 0, nt_align8(used) - used);
}

/* Takes the checksums of a record whose value section begins at `value_at`. */
static inline void check_parts(uint8_t *record, uint64_t value_at, uint64_t section, uint64_t seed) {
    uint64_t hash = nt_hash64(record + RECORD_KIND, value_at - RECORD_KIND, seed);
    nt_store32(record + RECORD_VALUE_CHECK, (uint32_t)nt_hash64(record + value_at, section, seed));
    nt_store64(record + RECORD_SEQUENCE, hash);
}

void nt_record_encode(uint8_t *out, const nt_op *op, uint64_t seed) {
    nt_record_lay_out(out, op);
    check_parts(out, key_at_of(flags_of(op), op->terms_len) + op->key_len, section_of(op), seed);
}

void nt_record_number(uint8_t *record, uint64_t sequence) {
    uint64_t hash = nt_load64(record + RECORD_SEQUENCE);
    nt_store32(record + RECORD_KEY_CHECK, nt_hash_finish(hash, sequence));
    nt_store64(record + RECORD_SEQUENCE, sequence);
}

uint64_t nt_record_claimed_front(const uint8_t *head, uint64_t len) {
    uint8_t flags = head[RECORD_FLAGS];
    uint32_t terms_len = 0;
    if (flags & FLAG_TERMS) {
        uint64_t before_terms = key_at_of(flags, 0);
        if (len < before_terms) return before_terms;
        terms_len = nt_load32(head + before_terms - TERMS_LEN_SIZE);
    }
    return key_at_of(flags, terms_len) + nt_load16(head + RECORD_KEY_LEN);
}

uint64_t nt_record_claimed_size(const uint8_t *head, uint64_t len) {
    uint8_t flags = head[RECORD_FLAGS];
    uint64_t before_terms = key_at_of(flags, 0);
    if ((flags & FLAG_TERMS) && len < before_terms) return before_terms;
    uint64_t section = flags & FLAG_BLOB ? BLOB_REF_SIZE : nt_load32(head + RECORD_VALUE_LEN);
    return nt_align8(nt_record_claimed_front(head, len) + section);
}

uint64_t nt_record_check(uint8_t *record, uint64_t seed) {
    uint64_t value_at = nt_record_claimed_front(record, UINT64_MAX);
    uint64_t len = nt_load32(record + RECORD_VALUE_LEN);
    uint64_t section = record[RECORD_FLAGS] & FLAG_BLOB ? BLOB_REF_SIZE : len;
    check_parts(record, value_at, section, seed);
    return nt_align8(value_at + section);
}

/*
 * Whether the head of a record follows the rules of its kind; fills what it says into *op and clears the
 * rest. Field by field, since gcc makes a slow `rep stos` of `*op = (nt_op){0}`.
 */
static int read_head(const uint8_t *record, nt_op *op) {
    uint8_t kind = record[RECORD_KIND];
    uint8_t flags = record[RECORD_FLAGS];
    if (kind == 0 || kind > NT_OP_KIND_MAX) return 0;
    kind_rule rule = RULES[kind];
    if ((flags & ~rule.allowed) != 0 || (flags & rule.required) != rule.required) return 0;
    op->kind = kind;
    op->value_kind = (uint8_t)(flags >> VALUE_KIND_SHIFT);
    op->expires = (flags & FLAG_DEADLINE) != 0;
    op->in_blob = (flags & FLAG_BLOB) != 0;
    op->key_len = nt_load16(record + RECORD_KEY_LEN);
    op->value_len = nt_load32(record + RECORD_VALUE_LEN);
    op->terms_len = 0;
    op->value = NULL;
    op->terms = NULL;
    op->deadline = 0;
    op->sequence = nt_load64(record + RECORD_SEQUENCE);
    op->blob.generation = op->blob.offset = op->blob.check = 0;
    op->cell = 0;
    op->first = 0;
    return op->key_len > 0 && op->value_kind <= NTEE_OBJECT && op->value_len == value_len_of(op);
}

static void read_section(const uint8_t *at, nt_op *op) {
    if (op->kind == NT_OP_COUNTER) {
        op->cell = nt_load64(at);
        op->first = (int64_t)nt_load64(at + 8);
    } else if (op->in_blob) {
        op->blob.generation = nt_load64(at);
        op->blob.offset = nt_load64(at + 8);
        op->blob.check = nt_load64(at + 16);
    } else if (op->kind == NT_OP_PUT) {
        op->value = at;
    }
}

/* Whether the bytes of [used, size) are zero, at most 7 of them. size is at least 8. */
static int padding_ok(const uint8_t *record, uint64_t used, uint64_t size) {
    if (used == size) return 1;
    return nt_load64(record + size - 8) >> (8 * (8 - (size - used))) == 0;
}

/* What nearly every record is: a put of a key and a value, nothing else. */
static inline int is_plain_put(const uint8_t *record) {
    return record[RECORD_KIND] == NT_OP_PUT && (record[RECORD_FLAGS] & ~(3u << VALUE_KIND_SHIFT)) == 0;
}

/* The same as decode_any, for a plain put: no branches on flags. */
static inline uint64_t decode_plain_put(const uint8_t *record, uint64_t remaining, nt_op *op) {
    uint32_t value_len = nt_load32(record + RECORD_VALUE_LEN);
    uint16_t key_len = nt_load16(record + RECORD_KEY_LEN);
    uint64_t used = (uint64_t)NT_RECORD_HEAD_SIZE + key_len + value_len;
    uint64_t size = nt_align8(used);
    uint8_t value_kind = (uint8_t)(record[RECORD_FLAGS] >> VALUE_KIND_SHIFT);
    if (key_len == 0 || value_kind > NTEE_OBJECT || size > remaining || !padding_ok(record, used, size))
        return 0;
    op->kind = NT_OP_PUT;
    op->value_kind = value_kind;
    op->expires = 0;
    op->in_blob = 0;
    op->key_len = key_len;
    op->value_len = value_len;
    op->terms_len = 0;
    op->key = record + NT_RECORD_HEAD_SIZE;
    op->value = op->key + key_len;
    op->terms = NULL;
    op->deadline = 0;
    op->sequence = nt_load64(record + RECORD_SEQUENCE);
    op->blob.generation = op->blob.offset = op->blob.check = 0;
    op->cell = 0;
    op->first = 0;
    return size;
}

/* Reads a record up to its key's end, which it returns; NULL where it is malformed or does not fit. */
static const uint8_t *read_front(const uint8_t *record, uint64_t remaining, nt_op *op) {
    if (!read_head(record, op)) return NULL;
    uint64_t left = remaining - NT_RECORD_HEAD_SIZE;
    const uint8_t *at = record + NT_RECORD_HEAD_SIZE;
    if (op->expires) {
        if (left < DEADLINE_SIZE) return NULL;
        op->deadline = (int64_t)nt_load64(at);
        at += DEADLINE_SIZE;
        left -= DEADLINE_SIZE;
    }
    if (record[RECORD_FLAGS] & FLAG_TERMS) {
        if (left < TERMS_LEN_SIZE) return NULL;
        op->terms_len = nt_load32(at);
        op->terms = at + TERMS_LEN_SIZE;
        left -= TERMS_LEN_SIZE;
        if (op->terms_len == 0 || op->terms_len > left) return NULL;
        at += TERMS_LEN_SIZE + (uint64_t)op->terms_len;
        left -= op->terms_len;
    }
    if (op->key_len > left) return NULL;
    op->key = at;
    return at + op->key_len;
}

static uint64_t decode_any(const uint8_t *record, uint64_t remaining, nt_op *op) {
    const uint8_t *at = read_front(record, remaining, op);
    if (!at) return 0;
    uint64_t front = (uint64_t)(at - record), section = section_of(op);
    if (section > remaining - front) return 0;
    read_section(at, op);
    uint64_t size = nt_align8(front + section);
    if (size > remaining || !padding_ok(record, front + section, size)) return 0;
    return size;
}

uint64_t nt_record_decode(const uint8_t *record, uint64_t remaining, nt_op *op) {
    if (remaining < NT_RECORD_HEAD_SIZE) return 0;
    return is_plain_put(record) ? decode_plain_put(record, remaining, op) : decode_any(record, remaining, op);
}

uint64_t nt_record_decode_front(const uint8_t *record, uint64_t remaining, nt_op *op) {
    if (remaining < NT_RECORD_HEAD_SIZE) return 0;
    const uint8_t *end = read_front(record, remaining, op);
    return end ? (uint64_t)(end - record) : 0;
}

uint64_t nt_record_sequence(const uint8_t *record) { return nt_load64(record + RECORD_SEQUENCE); }

int nt_record_key_ok(const uint8_t *record, const nt_op *op, uint64_t seed) {
    const uint8_t *from = record + RECORD_KIND;
    uint64_t hash = nt_hash64(from, (size_t)(op->key + op->key_len - from), seed);
    return nt_load32(record + RECORD_KEY_CHECK) == nt_hash_finish(hash, op->sequence);
}

int nt_record_value_ok(const uint8_t *record, const nt_op *op, uint64_t seed) {
    uint64_t hash = nt_hash64(op->key + op->key_len, section_of(op), seed);
    return nt_load32(record + RECORD_VALUE_CHECK) == (uint32_t)hash;
}

/* ---- Frames -------------------------------------------------------------------------------------- */

enum {
    FRAME_WORDS = 0,
    FRAME_KIND = 4,
    FRAME_FLAGS = 5,
    FRAME_ZEROS = 6,
    FRAME_CHECK = 8,
    FRAME_NUMBER = 16,
    FRAME_DURABLE = 24,
    FRAME_DIGEST = 32,
    OPEN_SALT = 0, /* in an open frame's body */
    OPEN_PREVIOUS = 8
};

static uint64_t head_check(const uint8_t *head, uint64_t seed, uint64_t salt, uint64_t offset) {
    uint8_t covered[48];
    memcpy(covered, head, 8);
    memcpy(covered + 8, head + FRAME_NUMBER, 24);
    nt_store64(covered + 32, salt);
    nt_store64(covered + 40, offset);
    return nt_hash64(covered, sizeof covered, seed);
}

uint64_t nt_frame_digest(const uint8_t *record, uint64_t digest) {
    return nt_hash64(record, NT_RECORD_HEAD_SIZE, digest);
}

/* The digest of a body that we made ourselves. */
static uint64_t body_digest(uint8_t kind, const uint8_t *body, uint64_t len) {
    if (kind != NT_FRAME_DATA) return nt_hash64(body, len, 0);
    uint64_t digest = 0;
    while (len > 0) {
        uint64_t size = nt_record_claimed_size(body, len);
        digest = nt_frame_digest(body, digest);
        body += size;
        len -= size;
    }
    return digest;
}

void nt_frame_seal(uint8_t *image, uint64_t size, nt_frame *frame, uint64_t seed, uint64_t salt,
                   uint64_t offset) {
    frame->digest = body_digest(frame->kind, image + NT_FRAME_HEAD_SIZE, size - NT_FRAME_HEAD_SIZE);
    nt_frame_seal_digested(image, size, frame, seed, salt, offset);
}

void nt_frame_seal_digested(uint8_t *image, uint64_t size, nt_frame *frame, uint64_t seed, uint64_t salt,
                            uint64_t offset) {
    frame->size = size;
    frame->body = image + NT_FRAME_HEAD_SIZE;
    nt_store32(image + FRAME_WORDS, (uint32_t)(size / 8));
    image[FRAME_KIND] = frame->kind;
    image[FRAME_FLAGS] = frame->flags;
    nt_store16(image + FRAME_ZEROS, 0);
    nt_store64(image + FRAME_NUMBER, frame->number);
    nt_store64(image + FRAME_DURABLE, frame->durable);
    nt_store64(image + FRAME_DIGEST, frame->digest);
    frame->check = head_check(image, seed, salt, offset);
    nt_store64(image + FRAME_CHECK, frame->check);
}

void nt_frame_open_encode(uint8_t *image, nt_frame *frame, uint64_t seed, uint64_t new_salt,
                          uint64_t previous_check, uint64_t offset) {
    frame->kind = NT_FRAME_OPEN;
    frame->flags = 0;
    nt_store64(image + NT_FRAME_HEAD_SIZE + OPEN_SALT, new_salt);
    nt_store64(image + NT_FRAME_HEAD_SIZE + OPEN_PREVIOUS, previous_check);
    nt_frame_seal(image, NT_FRAME_OPEN_SIZE, frame, seed, new_salt, offset);
}

void nt_frame_open_decode(const nt_frame *frame, uint64_t *new_salt, uint64_t *previous_check) {
    *new_salt = nt_load64(frame->body + OPEN_SALT);
    *previous_check = nt_load64(frame->body + OPEN_PREVIOUS);
}

void nt_frame_accept_encode(uint8_t out[NT_ACCEPT_SIZE], const nt_accept *accept) {
    nt_store64(out, accept->offset);
    nt_store64(out + 8, accept->length);
    nt_store64(out + 16, accept->rescued);
}

nt_accept nt_frame_accept_decode(const uint8_t bytes[NT_ACCEPT_SIZE]) {
    return (nt_accept){nt_load64(bytes), nt_load64(bytes + 8), nt_load64(bytes + 16)};
}

/* Whether kind, flags and size go together. */
static int shape_ok(const uint8_t *head, uint64_t size) {
    uint8_t flags = head[FRAME_FLAGS];
    if (nt_load16(head + FRAME_ZEROS) != 0) return 0;
    switch (head[FRAME_KIND]) {
    case NT_FRAME_DATA: return flags == 0 && size >= NT_FRAME_HEAD_SIZE + NT_RECORD_LEAST;
    case NT_FRAME_OPEN: return flags == 0 && size == NT_FRAME_OPEN_SIZE;
    case NT_FRAME_MARK: return (flags & ~NT_FRAME_CLEAN) == 0 && size == NT_FRAME_MARK_SIZE;
    case NT_FRAME_SCHEMA: return flags == 0 && size > NT_FRAME_HEAD_SIZE;
    case NT_FRAME_ACCEPT:
        return flags == 0 && size > NT_FRAME_HEAD_SIZE && (size - NT_FRAME_HEAD_SIZE) % NT_ACCEPT_SIZE == 0;
    default: return 0;
    }
}

int nt_frame_head_ok(const uint8_t *at, uint64_t remaining, uint64_t seed, uint64_t salt, uint64_t offset,
                     nt_frame *frame) {
    if (remaining < NT_FRAME_HEAD_SIZE) return 0;
    uint64_t size = (uint64_t)nt_load32(at + FRAME_WORDS) * 8;
    if (size > remaining || !shape_ok(at, size) || nt_load64(at + FRAME_DURABLE) > offset) return 0;
    if (at[FRAME_KIND] == NT_FRAME_OPEN) salt = nt_load64(at + NT_FRAME_HEAD_SIZE + OPEN_SALT);
    if (nt_load64(at + FRAME_CHECK) != head_check(at, seed, salt, offset)) return 0;
    *frame = (nt_frame){
        .kind = at[FRAME_KIND],
        .flags = at[FRAME_FLAGS],
        .size = size,
        .number = nt_load64(at + FRAME_NUMBER),
        .durable = nt_load64(at + FRAME_DURABLE),
        .check = nt_load64(at + FRAME_CHECK),
        .digest = nt_load64(at + FRAME_DIGEST),
        .body = at + NT_FRAME_HEAD_SIZE,
    };
    return 1;
}

/* Whether records that we do not trust fill the body exactly and give the digest. */
static int records_ok(const uint8_t *body, uint64_t len, uint64_t expected) {
    nt_op op;
    uint64_t digest = 0;
    while (len > 0) {
        uint64_t size = nt_record_decode(body, len, &op);
        if (size == 0) return 0;
        digest = nt_frame_digest(body, digest);
        body += size;
        len -= size;
    }
    return digest == expected;
}

nt_frame_state nt_frame_verify(const uint8_t *at, uint64_t remaining, uint64_t seed, uint64_t salt,
                               uint64_t offset, nt_frame *frame) {
    if (remaining >= 8 ? nt_load64(at) == 0 : all_zero(at, remaining)) return NT_FRAME_END;
    if (!nt_frame_head_ok(at, remaining, seed, salt, offset, frame)) return NT_FRAME_BAD_HEAD;
    uint64_t len = frame->size - NT_FRAME_HEAD_SIZE;
    int ok = frame->kind == NT_FRAME_DATA ? records_ok(frame->body, len, frame->digest)
                                          : nt_hash64(frame->body, len, 0) == frame->digest;
    return ok ? NT_FRAME_GOOD : NT_FRAME_BAD_BODY;
}
