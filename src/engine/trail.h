/*
 * trail: going from frame to frame through a log, and finding the way again behind damage.
 *
 * A trail is a place between two frames, and what the next frame has to fit: its number, the salt, how far
 * the log was durable. A frame that verifies on its own and fits is the next one. Where that is not so,
 * nt_trail_resume looks for the next one that verifies; what is between is a gap.
 */
#ifndef NT_ENGINE_TRAIL_H
#define NT_ENGINE_TRAIL_H

#include "base/buf.h"
#include "base/status.h"
#include "format/record.h"
#include "store/log.h"

/* Bytes of a log in order: in place where it is mapped, else through a buffer. */
typedef struct nt_reader {
    const nt_log *log;
    uint64_t seed;  /* the store's */
    uint64_t end;   /* bytes from here on are not looked at */
    nt_buf buf;
    uint64_t buf_at; /* offset of buf.data[0] */
} nt_reader;

typedef struct nt_trail {
    uint64_t at;      /* offset behind the last frame */
    uint64_t salt;    /* the current one */
    uint64_t number;  /* of the last frame; 0: none */
    uint64_t check;   /* its head check */
    uint64_t last;    /* its offset */
    uint64_t durable; /* the largest durable-up-to so far */
    uint64_t frames;  /* that were followed */
    int loose;        /* what was before is lost: the next frame may cite anything */
    int clean;        /* the last frame is a clean mark */
} nt_trail;

/* Reads nothing yet. nt_reader_end frees its buffer. */
void nt_reader_begin(nt_reader *reader, const nt_log *log, uint64_t seed, uint64_t end);
void nt_reader_end(nt_reader *reader);
/* At least min(len, end - offset) bytes at `offset`, good until the next call; NULL with *err set where they
 * cannot be read. */
const uint8_t *nt_reader_look(nt_reader *reader, uint64_t offset, uint64_t len, ntee_error *err);

/* The place in front of a log's first frame. */
nt_trail nt_trail_start(const nt_log_header *header);
/* Verifies the frame at trail->at and that it is the next one. 1, and *frame is set; 0, it is not; -1 with
 * *err set, it cannot be read. */
int nt_trail_next(nt_reader *reader, const nt_trail *trail, nt_frame *frame, ntee_error *err);
/* Steps over a frame that nt_trail_next gave. */
void nt_trail_follow(nt_trail *trail, const nt_frame *frame);

/* Looks from trail->at on for the next frame whose head verifies and that belongs behind the last one. *found
 * is the place in front of it; found->at is reader->end where there is none. *used is where the last byte
 * that was looked at and is not zero ends. Time is linear in what is skipped. */
ntee_status nt_trail_resume(nt_reader *reader, const nt_trail *trail, nt_trail *found, uint64_t *used,
                            ntee_error *err);

#endif
