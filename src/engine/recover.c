#include "engine/recover.h"

#include "base/buf.h"
#include "engine/salvage.h"
#include "engine/save.h"
#include "engine/trail.h"

/* A place of the log that does not verify, below W, and where the trail goes on behind it. */
typedef struct gap {
    uint64_t from;
    nt_trail after;
} gap;

/* One recovery. */
typedef struct recovery {
    nt_db *db;
    nt_reader reader;
    nt_trail start;    /* where reading begins: behind what the hint has, or at the first frame */
    nt_trail trail;
    nt_buf gaps;       /* gap each, in the order of the file */
    uint64_t open_gap; /* where the last gap ends that may have held more records, until one comes; else 0 */
    uint64_t open_len; /* bytes of it that may have been records */
    int forgiven;      /* what is missing in front of the next record has been accepted */
} recovery;

static const gap *gap_at(const recovery *r, size_t i) {
    return i * sizeof(gap) < r->gaps.len ? (const gap *)(const void *)r->gaps.data + i : NULL;
}

static ntee_status no_memory(ntee_error *err) {
    return nt_fail(err, NTEE_NOMEM, "no memory to read a damaged log");
}

/* ---- First pass: where the log ends, and where it is damaged ------------------------------------------ */

/* Walks the frames and finds the gaps. *used is where the last byte that is not zero ends. */
static ntee_status walk(recovery *r, uint64_t *used, ntee_error *err) {
    nt_trail *c = &r->trail;
    nt_frame frame;
    for (;;) {
        int got = nt_trail_next(&r->reader, c, &frame, err);
        if (got < 0) return err->status;
        if (got) {
            nt_trail_follow(c, &frame);
            continue;
        }
        *used = c->at;
        if (c->clean && c->at == r->reader.end) return NTEE_OK;
        gap g = {.from = c->at};
        ntee_status status = nt_trail_resume(&r->reader, c, &g.after, used, err);
        if (status != NTEE_OK) return status;
        if (g.after.at == r->reader.end) return NTEE_OK;
        if (!nt_buf_append(&r->gaps, &g, sizeof g)) return no_memory(err);
        *c = g.after;
    }
}

/* Decides what the gaps are. Below W they are damage; the first one above it is the torn end, though frames
 * that verify follow it. What the header calls synced and is not there is damage as well. */
static ntee_status judge(recovery *r, uint64_t used, ntee_error *err) {
    nt_recovery *found = &r->db->recovery;
    uint64_t durable = r->trail.durable > r->db->header.durable ? r->trail.durable : r->db->header.durable;
    if (r->start.at > durable) durable = r->start.at;
    uint64_t end = r->trail.at;
    if (end < durable) {
        gap g = {.from = end, .after = r->trail};
        g.after.at = durable;
        g.after.loose = 1;
        g.after.clean = 0;
        if (!nt_buf_append(&r->gaps, &g, sizeof g)) return no_memory(err);
        end = durable;
    }
    found->clean = r->trail.clean && end == r->reader.end;
    for (size_t i = 0; gap_at(r, i); i++) {
        if (gap_at(r, i)->from < durable) continue;
        end = gap_at(r, i)->from;
        found->salvage = (used > r->trail.at ? used : r->trail.at) - end;
        r->gaps.len = i * sizeof(gap);
        found->clean = 0;
    }
    found->durable = durable;
    found->end = end;
    found->cut = used > end ? used - end : 0;
    if (found->salvage > found->cut) found->cut = found->salvage;
    return NTEE_OK;
}

/* ---- Second pass: what the records say --------------------------------------------------------------- */

/* Whether sequence numbers are contiguous at an offset: a rewrite leaves out what is dead. */
static int contiguous(const nt_db *db, uint64_t offset) {
    return db->header.generation == 1 || offset >= db->header.durable;
}

static nt_damage *damage_at(const nt_recovery *found, size_t i) {
    return (nt_damage *)(void *)found->damage.data + i;
}

/* Says that records below a position may be out of date, because of the last damage before it. 0 where memory
 * is short. */
static int blame(recovery *r, uint64_t offset, uint64_t position) {
    nt_recovery *found = &r->db->recovery;
    nt_damage none = {.offset = offset}; /* nothing else is wrong: numbers were left out */
    if (!found->damage.len && !nt_buf_append(&found->damage, &none, sizeof none)) return 0;
    damage_at(found, found->damage.len / sizeof none - 1)->suspect = position;
    return 1;
}

/* Applies one record to the keydir's turn. A number that was left out says that a record is lost: then every
 * record before this one may be out of date. */
static ntee_status apply(recovery *r, const nt_op *op, uint64_t offset, ntee_error *err) {
    nt_db *db = r->db;
    uint64_t position = db->source.base + offset, old;
    if (!nt_op_is_known(op))
        return nt_fail(err, NTEE_VERSION, "%s has records that need a newer version", nt_log_name(db->log));
    if (op->sequence != db->sequence + 1 && contiguous(db, offset) && !r->forgiven &&
        !blame(r, offset, position))
        return no_memory(err);
    r->forgiven = 0;
    r->open_gap = 0;
    if (!nt_keydir_apply(db->keydir, op, position, NULL, &old))
        return nt_fail(err, NTEE_NOMEM, "no memory for the index");
    db->sequence = op->sequence;
    db->recovery.records++;
    return NTEE_OK;
}

/* Applies a good frame's records. */
static ntee_status apply_frame(recovery *r, const nt_frame *frame, uint64_t offset, ntee_error *err) {
    uint64_t at = 0, size, len = frame->size - NT_FRAME_HEAD_SIZE;
    ntee_status status = NTEE_OK;
    for (; at < len && status == NTEE_OK; at += size) {
        nt_op op;
        size = nt_record_decode(frame->body + at, len - at, &op);
        status = apply(r, &op, offset + NT_FRAME_HEAD_SIZE + at, err);
    }
    return status;
}

/* Checks a good frame's records: all of them by their key check, those that were never synced by their value
 * check too. */
static int records_hold(const nt_db *db, const nt_frame *frame, uint64_t offset) {
    uint64_t at = 0, size;
    int deep = offset + frame->size > db->recovery.durable;
    for (; at < frame->size - NT_FRAME_HEAD_SIZE; at += size) {
        const uint8_t *record = frame->body + at;
        nt_op op;
        size = nt_record_decode(record, frame->size - NT_FRAME_HEAD_SIZE - at, &op);
        if (!size || !nt_record_key_ok(record, &op, db->source.seed)) return 0;
        if (deep && !nt_record_value_ok(record, &op, db->source.seed)) return 0;
    }
    return 1;
}

/* Decodes the record at `at` of a gap, where one stands that belongs there: under a good key check, with a
 * number that may follow the last one `skipped` bytes before. 1, or 0; -1 with *err set. */
static int rescue_one(recovery *r, uint64_t at, uint64_t to, uint64_t skipped, uint64_t *size, nt_op *op,
                      ntee_error *err) {
    const nt_db *db = r->db;
    uint64_t known_len = NT_RECORD_HEAD_SIZE;
    const uint8_t *record = nt_reader_look(&r->reader, at, known_len, err);
    if (!record) return -1;
    uint64_t ahead = nt_record_sequence(record) - db->sequence;
    if (ahead == 0 || ahead > (contiguous(db, at) ? 1 + skipped / NT_RECORD_LEAST : INT64_MAX)) return 0;
    while ((*size = nt_record_claimed_size(record, known_len)) > known_len) {
        if (*size > to - at) return 0;
        known_len = *size;
        record = nt_reader_look(&r->reader, at, known_len, err);
        if (!record) return -1;
    }
    return nt_record_decode(record, *size, op) != 0 && nt_record_key_ok(record, op, db->source.seed);
}

/* Applies the records between `from` and `to` that are whole, though no frame around them verifies. Their
 * values are checked whenever they are read, like all values. */
static ntee_status rescue(recovery *r, uint64_t from, uint64_t to, ntee_error *err) {
    nt_recovery *found = &r->db->recovery;
    nt_damage damage = {.offset = from, .length = to - from};
    size_t mine = found->damage.len / sizeof damage;
    uint64_t at = from, last = from, size;
    int filled = 1; /* all of it is records, with frame heads between them */
    nt_op op;
    r->forgiven = 0; /* from here on something else may be missing */
    if (!nt_buf_append(&found->damage, &damage, sizeof damage)) return no_memory(err);
    while (to - at >= NT_RECORD_LEAST) {
        int got = rescue_one(r, at, to, at - last, &size, &op, err);
        if (got < 0) return err->status;
        if (!got) {
            at += 8;
            continue;
        }
        ntee_status status = apply(r, &op, at, err);
        if (status != NTEE_OK) return status;
        damage_at(found, mine)->rescued++;
        filled &= at - last == NT_FRAME_HEAD_SIZE || (at == last && last != from);
        at += size;
        last = at;
    }
    if ((filled && last == to) || to - from < NT_FRAME_HEAD_SIZE + NT_RECORD_LEAST) return NTEE_OK;
    if (!contiguous(r->db, from)) damage_at(found, mine)->suspect = r->db->source.base + to;
    r->open_gap = to;
    r->open_len = to - from;
    return NTEE_OK;
}

/* Whether an accepted place is a damage as it was found now: what has come since is not accepted. */
static int is_accepted(const nt_accept *place, const nt_damage *damage) {
    return damage->offset >= place->offset && damage->offset - place->offset <= place->length &&
           damage->length <= place->length - (damage->offset - place->offset) &&
           damage->rescued == place->rescued;
}

/* Takes what a frame accepts off the list. Both are in the order of the file. */
static void accept(recovery *r, const nt_frame *frame) {
    nt_recovery *found = &r->db->recovery;
    size_t count = found->damage.len / sizeof(nt_damage), kept = 0;
    uint64_t at = 0, len = frame->size - NT_FRAME_HEAD_SIZE, last_end = 0;
    for (size_t i = 0; i < count; i++) {
        nt_damage damage = *damage_at(found, i);
        nt_accept place = {0};
        for (; at < len; at += NT_ACCEPT_SIZE) { /* to the first one that does not end before it */
            place = nt_frame_accept_decode(frame->body + at);
            if (place.offset + place.length >= damage.offset + damage.length) break;
        }
        if (at < len && is_accepted(&place, &damage)) continue;
        *damage_at(found, kept++) = damage;
        last_end = damage.offset + damage.length;
    }
    found->damage.len = kept * sizeof(nt_damage);
    r->forgiven = kept < count && last_end != r->open_gap;
    if (r->forgiven) r->open_gap = 0;
}

/* What a frame says besides records. */
static ntee_status heed(recovery *r, const nt_frame *frame, ntee_error *err) {
    if (frame->kind == NT_FRAME_SCHEMA)
        return nt_fail(err, NTEE_VERSION, "%s has an index schema, which needs a newer version",
                       nt_log_name(r->db->log));
    if (frame->kind == NT_FRAME_ACCEPT) accept(r, frame);
    return NTEE_OK;
}

/* Applies the records up to recovery.end, or to the first frame above W whose records do not hold, which then
 * is the torn end. */
static ntee_status fold(recovery *r, ntee_error *err) {
    nt_recovery *found = &r->db->recovery;
    nt_trail *c = &r->trail;
    size_t gaps = 0;
    nt_frame frame;
    ntee_status status = NTEE_OK;
    while (c->at < found->end && status == NTEE_OK) {
        const gap *next = gap_at(r, gaps);
        if (next && next->from == c->at) {
            status = rescue(r, c->at, next->after.at, err);
            *c = next->after;
            gaps++;
            continue;
        }
        int got = nt_trail_next(&r->reader, c, &frame, err);
        if (got < 0) return err->status;
        if (!got)
            return nt_fail_corrupt(err, nt_log_name(r->db->log), c->at,
                                   "other bytes came at the second reading");
        if (frame.kind != NT_FRAME_DATA) {
            status = heed(r, &frame, err);
        } else if (records_hold(r->db, &frame, c->at)) {
            status = apply_frame(r, &frame, c->at, err);
        } else if (c->at < found->durable) {
            status = rescue(r, c->at, c->at + frame.size, err);
        } else {
            found->cut += found->end - c->at;
            found->salvage = found->cut;
            found->end = c->at;
            break;
        }
        if (status == NTEE_OK) nt_trail_follow(c, &frame);
    }
    return status;
}

/* A gap that no record has followed may have held the newest of all: what is before it is suspect, and the
 * numbers that may have been used in it are not used again, so that the next opening sees this, too. */
static int close_gap(recovery *r) {
    if (!r->open_gap) return 1;
    r->db->sequence += 1 + r->open_len / NT_RECORD_LEAST;
    return blame(r, r->open_gap, r->db->source.base + r->open_gap);
}

/* What all the damage together makes doubtful. */
static void sum_up(nt_db *db) {
    nt_recovery *found = &db->recovery;
    for (size_t i = 0; i < found->damage.len / sizeof(nt_damage); i++)
        if (damage_at(found, i)->suspect > found->suspect) found->suspect = damage_at(found, i)->suspect;
    if (!db->accept_damage || !found->damage.len) return;
    found->accepted = 1;
    found->suspect = 0;
}

/* Brings the file in line with what was read. */
static ntee_status settle(nt_db *db, ntee_error *err) {
    nt_recovery *found = &db->recovery;
    db->durable_start = found->durable;
    if (!db->read_only && found->salvage)
        nt_salvage(db->dir, db->log, db->header.generation, found->end, found->salvage);
    ntee_status status = nt_log_cut(db->log, found->end, err);
    if (status != NTEE_OK || db->read_only || found->clean) return status;
    db->durable_start = found->end;
    return nt_log_rewrite(db->log, found->durable, 1, err);
}

/* Both passes, inside the keydir's turn. */
static ntee_status read_all(recovery *r, ntee_error *err) {
    nt_db *db = r->db;
    uint64_t used = 0;
    ntee_status status = walk(r, &used, err);
    if (status == NTEE_OK) status = judge(r, used, err);
    if (status != NTEE_OK) return status;
    r->trail = r->start;
    status = fold(r, err);
    if (status != NTEE_OK) return status;
    if (!close_gap(r)) return no_memory(err);
    db->recovery.frames = r->trail.frames;
    sum_up(db);
    return settle(db, err);
}

ntee_status nt_recover(nt_db *db, ntee_error *err) {
    recovery r = {.db = db, .start = nt_trail_start(&db->header)};
    if (db->header.durable > nt_log_tail(db->log))
        return nt_fail_corrupt(err, nt_log_name(db->log), nt_log_tail(db->log),
                               "the log is shorter than what had been synced");
    if (!nt_keydir_begin(db->keydir)) return nt_fail(err, NTEE_NOMEM, "no memory for the index");
    nt_reader_begin(&r.reader, db->log, db->source.seed, nt_log_tail(db->log));
    ntee_status status = nt_save_load(db, &r.start, err);
    r.trail = r.start;
    if (status == NTEE_OK) status = read_all(&r, err);
    if (status == NTEE_OK) {
        nt_keydir_publish(db->keydir, nt_keydir_seal(db->keydir, db->sequence,
                                                     db->source.base + db->recovery.end));
        db->salt = r.trail.salt;
        db->number = r.trail.number;
        db->check = r.trail.check;
        if (!db->read_only) nt_save_begin(db, &r.trail);
        if (db->recovery.suspect > db->source.trusted) db->source.trusted = db->recovery.suspect;
    } else {
        nt_keydir_rollback(db->keydir);
    }
    nt_reader_end(&r.reader);
    nt_buf_free(&r.gaps);
    return status;
}
