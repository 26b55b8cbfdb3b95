#include "engine/trail.h"

#include "base/bytes.h"

#define READ_AHEAD (1u << 20)
#define ZEROS_A_STEP 4096u

void nt_reader_begin(nt_reader *reader, const nt_log *log, uint64_t seed, uint64_t end) {
    *reader = (nt_reader){.log = log, .seed = seed, .end = end};
}

void nt_reader_end(nt_reader *reader) { nt_buf_free(&reader->buf); }

const uint8_t *nt_reader_look(nt_reader *r, uint64_t offset, uint64_t len, ntee_error *err) {
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

nt_trail nt_trail_start(const nt_log_header *header) {
    return (nt_trail){.at = NT_LOG_START, .salt = header->salt, .durable = NT_LOG_START};
}

/* Whether a frame that verifies on its own is the next one. */
static int fits(const nt_trail *c, const nt_frame *frame) {
    if (frame->durable < c->durable) return 0;
    if (c->loose) return frame->number > c->number;
    if (frame->number != c->number + 1) return 0;
    if (frame->kind != NT_FRAME_OPEN) return 1;
    uint64_t salt, previous;
    nt_frame_open_decode(frame, &salt, &previous);
    return previous == c->check;
}

/* The body is looked at only once the head says how long it is: any other word that looks like a size would
 * have the rest of the file read for it. */
int nt_trail_next(nt_reader *r, const nt_trail *c, nt_frame *frame, ntee_error *err) {
    uint64_t left = r->end - c->at;
    if (left < NT_FRAME_HEAD_SIZE) return 0;
    const uint8_t *at = nt_reader_look(r, c->at, NT_FRAME_OPEN_SIZE, err);
    if (!at) return -1;
    if (!nt_frame_head_ok(at, left, r->seed, c->salt, c->at, frame) || !fits(c, frame)) return 0;
    at = nt_reader_look(r, c->at, frame->size, err);
    if (!at) return -1;
    return nt_frame_verify(at, left, r->seed, c->salt, c->at, frame) == NT_FRAME_GOOD;
}

void nt_trail_follow(nt_trail *c, const nt_frame *frame) {
    uint64_t previous;
    if (frame->kind == NT_FRAME_OPEN) nt_frame_open_decode(frame, &c->salt, &previous);
    c->last = c->at;
    c->at += frame->size;
    c->number = frame->number;
    c->check = frame->check;
    c->durable = frame->durable;
    c->frames++;
    c->loose = 0;
    c->clean = frame->kind == NT_FRAME_MARK && (frame->flags & NT_FRAME_CLEAN);
}

/* Moves *at to the next word that is not zero, or to the end: what was allocated ahead is long and empty. */
static int skip_zeros(nt_reader *r, uint64_t *at, ntee_error *err) {
    while (r->end - *at >= 8) {
        uint64_t left = r->end - *at;
        uint64_t len = (left < ZEROS_A_STEP ? left : ZEROS_A_STEP) & ~(uint64_t)7u;
        const uint8_t *bytes = nt_reader_look(r, *at, len, err);
        if (!bytes) return 0;
        for (uint64_t i = 0; i < len; i += 8, *at += 8)
            if (nt_load64(bytes + i)) return 1;
    }
    return 1;
}

ntee_status nt_trail_resume(nt_reader *r, const nt_trail *c, nt_trail *found, uint64_t *used,
                            ntee_error *err) {
    nt_frame frame;
    *found = *c;
    *used = c->at;
    found->loose = 1;
    found->clean = 0;
    for (uint64_t at = c->at;; at += 8) {
        if (!skip_zeros(r, &at, err)) return err->status;
        if (r->end - at < 8) break;
        const uint8_t *bytes = nt_reader_look(r, at, NT_FRAME_OPEN_SIZE, err);
        if (!bytes) return err->status;
        found->at = at;
        if (nt_frame_head_ok(bytes, r->end - at, r->seed, c->salt, at, &frame) && fits(found, &frame) &&
            at > c->at)
            return NTEE_OK;
        *used = at + 8;
    }
    found->at = r->end;
    return NTEE_OK;
}
