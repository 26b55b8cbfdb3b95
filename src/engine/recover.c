#include "engine/recover.h"

#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/os.h"

#define READ_AHEAD (1u << 20)
#define ZEROS_A_STEP 4096u

/* Bytes of the log in order: in place where it is mapped, else through a buffer. */
typedef struct reader {
    const nt_log *log;
    uint64_t end;
    nt_buf buf;
    uint64_t buf_at; /* offset of buf.data[0] */
} reader;

/* Gives at least min(len, end - offset) bytes at `offset`. NULL with *err set where they cannot be read. */
static const uint8_t *look(reader *r, uint64_t offset, uint64_t len, ntee_error *err) {
    uint64_t left = r->end - offset;
    if (len > left) len = left;
    const uint8_t *at = nt_log_view(r->log, offset, (size_t)len);
    if (at) return at;
    if (offset >= r->buf_at && offset - r->buf_at <= r->buf.len &&
        len <= r->buf.len - (offset - r->buf_at))
        return r->buf.data + (offset - r->buf_at);
    uint64_t want = len < READ_AHEAD ? READ_AHEAD : len;
    if (want > left) want = left;
    r->buf.len = 0;
    if (!nt_buf_reserve(&r->buf, (size_t)want + 8)) {
        nt_fail(err, NTEE_NOMEM, "no memory to read %s", nt_log_name(r->log));
        return NULL;
    }
    if (nt_log_read(r->log, offset, r->buf.data, (size_t)want, err) != NTEE_OK) return NULL;
    r->buf.len = (size_t)want;
    r->buf_at = offset;
    return r->buf.data;
}

/* Reads as much of the head at `offset` as nt_frame_head_ok wants. NULL with *err set where it cannot be
 * read. */
static const uint8_t *look_head(reader *r, uint64_t offset, ntee_error *err) {
    return look(r, offset, NT_FRAME_OPEN_SIZE, err);
}

/* Verifies the frame at `offset`. 0 with *err set where it cannot be read. The body is read only once the
 * head says how long it is: any other word that looks like a size would have the rest of the file read for
 * it. */
static int verify(reader *r, uint64_t offset, uint64_t salt, nt_frame_state *state,
                  nt_frame *frame, ntee_error *err) {
    uint64_t left = r->end - offset;
    *state = NT_FRAME_END;
    if (left < NT_FRAME_HEAD_SIZE) return 1;
    const uint8_t *at = look_head(r, offset, err);
    if (!at) return 0;
    *state = nt_load64(at) ? NT_FRAME_BAD_HEAD : NT_FRAME_END;
    if (!nt_frame_head_ok(at, left, salt, offset, frame)) return 1;
    at = look(r, offset, frame->size, err);
    if (!at) return 0;
    *state = nt_frame_verify(at, left, salt, offset, frame);
    return 1;
}

/* What the walk over the frames knows. */
typedef struct chain {
    uint64_t at; /* offset behind the last good frame */
    uint64_t salt;
    uint64_t number;
    uint64_t check;
    uint64_t durable;
    uint64_t frames;
    int clean; /* the last frame is a clean mark */
} chain;

/* Whether a frame that verifies on its own is the next one of the chain. */
static int chains(const chain *c, const nt_frame *frame) {
    if (frame->number != c->number + 1 || frame->durable > c->at || frame->durable < c->durable)
        return 0;
    if (frame->kind != NT_FRAME_OPEN) return 1;
    uint64_t salt, previous;
    nt_frame_open_decode(frame, &salt, &previous);
    return previous == c->check;
}

static void follow(chain *c, const nt_frame *frame) {
    uint64_t previous;
    if (frame->kind == NT_FRAME_OPEN) nt_frame_open_decode(frame, &c->salt, &previous);
    c->at += frame->size;
    c->number = frame->number;
    c->check = frame->check;
    c->durable = frame->durable;
    c->frames++;
    c->clean = frame->kind == NT_FRAME_MARK && (frame->flags & NT_FRAME_CLEAN);
}

/* Moves *at to the next word that is not zero, or to the end: what was allocated ahead is long and empty. */
static int skip_zeros(reader *r, uint64_t *at, ntee_error *err) {
    while (r->end - *at >= 8) {
        uint64_t left = r->end - *at;
        uint64_t len = (left < ZEROS_A_STEP ? left : ZEROS_A_STEP) & ~(uint64_t)7u;
        const uint8_t *bytes = look(r, *at, len, err);
        if (!bytes) return 0;
        for (uint64_t i = 0; i < len; i += 8, *at += 8)
            if (nt_load64(bytes + i)) return 1;
    }
    return 1;
}

/* Looks behind the first place that does not verify for frames that do, since they may say that it had been
 * synced: raises *durable to what they say. *cut is where the last byte that is not zero ends. */
static ntee_status search(reader *r, const chain *c, uint64_t *durable, uint64_t *cut,
                          ntee_error *err) {
    uint64_t salt = c->salt;
    uint64_t number = c->number;
    *cut = c->at;
    for (uint64_t at = c->at;; at += 8) {
        nt_frame frame;
        if (!skip_zeros(r, &at, err)) return err->status;
        if (r->end - at < 8) break;
        const uint8_t *bytes = look_head(r, at, err);
        if (!bytes) return err->status;
        *cut = at + 8;
        if (!nt_frame_head_ok(bytes, r->end - at, salt, at, &frame) || frame.number <= number) continue;
        number = frame.number;
        if (frame.durable > *durable) *durable = frame.durable;
        if (frame.kind == NT_FRAME_OPEN) {
            uint64_t previous;
            nt_frame_open_decode(&frame, &salt, &previous);
        }
    }
    return NTEE_OK;
}

static ntee_status damage(const nt_db *db, uint64_t offset, ntee_error *err) {
    return nt_fail_corrupt(err, nt_log_name(db->log), offset,
                           "bytes that had been synced are not what was written");
}

/* First pass: walks the frames. Fills *c and db->recovery. */
static ntee_status find_end(nt_db *db, reader *r, chain *c, ntee_error *err) {
    nt_frame frame;
    nt_frame_state state;
    for (;;) {
        if (!verify(r, c->at, c->salt, &state, &frame, err)) return err->status;
        if (state != NT_FRAME_GOOD || !chains(c, &frame)) break;
        follow(c, &frame);
    }
    uint64_t durable = c->durable > db->header.durable ? c->durable : db->header.durable;
    uint64_t cut = c->at;
    db->recovery.clean = c->clean && c->at == r->end;
    if (!db->recovery.clean) {
        ntee_status status = search(r, c, &durable, &cut, err);
        if (status != NTEE_OK) return status;
    }
    if (c->at < durable) return damage(db, c->at, err);
    db->recovery.durable = durable;
    db->recovery.end = c->at;
    db->recovery.frames = c->frames;
    db->recovery.cut = cut - c->at;
    return NTEE_OK;
}

/* Whether this version of the library can apply an op; a later one's are refused rather than misread. */
static int known(const nt_op *op) {
    return (op->kind == NT_OP_PUT && !op->expires && !op->in_blob && !op->terms_len) ||
           op->kind == NT_OP_DELETE || op->kind == NT_OP_EVICT || op->kind == NT_OP_DAMAGED;
}

/* Checks a good frame's records: all of them by their key check, those that were never synced by their value
 * check too. Returns 1, or 0 with the offset of the first bad one. */
static int records_hold(const nt_db *db, const nt_frame *frame, uint64_t offset, uint64_t *bad) {
    uint64_t at = 0, size;
    int deep = offset + frame->size > db->recovery.durable;
    for (; at < frame->size - NT_FRAME_HEAD_SIZE; at += size) {
        const uint8_t *record = frame->body + at;
        nt_op op;
        *bad = offset + NT_FRAME_HEAD_SIZE + at;
        size = nt_record_decode(record, frame->size - NT_FRAME_HEAD_SIZE - at, &op);
        if (!size || !nt_record_key_ok(record, &op, db->source.seed)) return 0;
        if (deep && !nt_record_value_ok(record, &op, db->source.seed)) return 0;
    }
    return 1;
}

/* Applies a frame's records to the keydir's turn. */
static ntee_status apply(nt_db *db, const nt_frame *frame, uint64_t offset, ntee_error *err) {
    uint64_t at = 0, size, old;
    if (frame->kind == NT_FRAME_SCHEMA)
        return nt_fail(err, NTEE_VERSION, "%s has an index schema, which needs a newer version",
                       nt_log_name(db->log));
    for (; at < frame->size - NT_FRAME_HEAD_SIZE; at += size) {
        nt_op op;
        uint64_t position = db->source.base + offset + NT_FRAME_HEAD_SIZE + at;
        size = nt_record_decode(frame->body + at, frame->size - NT_FRAME_HEAD_SIZE - at, &op);
        if (!known(&op))
            return nt_fail(err, NTEE_VERSION, "%s has records that need a newer version",
                           nt_log_name(db->log));
        if (!nt_keydir_apply(db->keydir, &op, position, NULL, &old))
            return nt_fail(err, NTEE_NOMEM, "no memory for the index");
        db->sequence = op.sequence;
        db->recovery.records++;
    }
    return NTEE_OK;
}

/* Second pass: applies the records up to recovery.end, or to the first frame above W whose records do not
 * hold, which then is the torn end. */
static ntee_status fold(nt_db *db, reader *r, chain *c, ntee_error *err) {
    nt_frame frame;
    nt_frame_state state;
    uint64_t bad;
    ntee_status status = NTEE_OK;
    while (c->at < db->recovery.end) {
        if (!verify(r, c->at, c->salt, &state, &frame, err)) return err->status;
        if (state != NT_FRAME_GOOD) return damage(db, c->at, err);
        if (frame.kind == NT_FRAME_DATA && !records_hold(db, &frame, c->at, &bad)) {
            if (c->at < db->recovery.durable) return damage(db, bad, err);
            db->recovery.cut += db->recovery.end - c->at;
            db->recovery.end = c->at;
            break;
        }
        if (frame.kind == NT_FRAME_DATA || frame.kind == NT_FRAME_SCHEMA)
            status = apply(db, &frame, c->at, err);
        if (status != NTEE_OK) return status;
        follow(c, &frame);
    }
    return status;
}

static chain chain_start(const nt_log_header *header) {
    chain c = {.at = NT_LOG_HEADER_SIZE, .salt = header->salt, .durable = NT_LOG_HEADER_SIZE};
    return c;
}

/* Brings the file in line with what was read. */
static ntee_status settle(nt_db *db, ntee_error *err) {
    ntee_status status = nt_log_cut(db->log, db->recovery.end, err);
    db->durable_start = db->recovery.durable;
    if (status != NTEE_OK || db->read_only || db->recovery.clean) return status;
    db->durable_start = db->recovery.end;
    return nt_log_rewrite(db->log, db->recovery.durable, 1, err);
}

ntee_status nt_recover(nt_db *db, ntee_error *err) {
    reader r = {.log = db->log, .end = nt_log_tail(db->log)};
    chain c = chain_start(&db->header);
    ntee_status status;
    if (db->header.durable > r.end || db->header.durable < NT_LOG_HEADER_SIZE)
        return damage(db, r.end, err);
    status = find_end(db, &r, &c, err);
    if (status != NTEE_OK) goto out;
    if (!nt_keydir_begin(db->keydir)) {
        status = nt_fail(err, NTEE_NOMEM, "no memory for the index");
        goto out;
    }
    c = chain_start(&db->header);
    status = fold(db, &r, &c, err);
    if (status == NTEE_OK) status = settle(db, err);
    if (status != NTEE_OK) {
        nt_keydir_rollback(db->keydir);
        goto out;
    }
    nt_keydir_publish(db->keydir, nt_keydir_seal(db->keydir, db->sequence,
                                                 db->source.base + db->recovery.end));
    db->salt = c.salt;
    db->number = c.number;
    db->check = c.check;
out:
    nt_buf_free(&r.buf);
    return status;
}
