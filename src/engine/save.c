#include "engine/save.h"

#include <string.h>

#include "base/bytes.h"

/* Without a wish, a hint is kept for a log from this size on. */
#define LOG_LEAST (1u << 20)
/* Writes worth a delta, without a wish. */
#define DELTA_LEAST 65536u

static nt_hint_id id_of(const nt_db *db) {
    nt_hint_id id = {.generation = db->header.generation, .base = db->header.base, .seed = db->source.seed};
    memcpy(id.store_id, db->header.store_id, sizeof id.store_id);
    return id;
}

static nt_hint_place place_of(const nt_trail *trail, uint64_t sequence) {
    return (nt_hint_place){.covered = trail->at,
                           .number = trail->number,
                           .check = trail->check,
                           .last = trail->last,
                           .durable = trail->number ? trail->durable : 0,
                           .salt = trail->salt,
                           .sequence = sequence};
}

static nt_trail trail_of(const nt_hint_place *place) {
    return (nt_trail){.at = place->covered,
                      .salt = place->salt,
                      .number = place->number,
                      .check = place->check,
                      .last = place->last,
                      .durable = place->number ? place->durable : NT_LOG_START};
}

/* ---- Loading ---- */

/* Whether the log has the frame that a place names. 1 or 0; -1 with *err set. */
static int is_there(const nt_db *db, const nt_hint_place *place, ntee_error *err) {
    nt_reader reader;
    nt_frame frame;
    if (place->number == 0) return place->covered == NT_LOG_START && place->salt == db->header.salt;
    nt_reader_begin(&reader, db->log, db->source.seed, nt_log_tail(db->log));
    const uint8_t *at = nt_reader_look(&reader, place->last, NT_FRAME_OPEN_SIZE, err);
    int there = -1;
    if (at) {
        uint64_t left = reader.end - place->last;
        there = nt_frame_head_ok(at, left, reader.seed, place->salt, place->last, &frame) &&
                frame.number == place->number && frame.check == place->check &&
                frame.durable == place->durable && place->last + frame.size == place->covered;
    }
    nt_reader_end(&reader);
    return there;
}

ntee_status nt_save_load(nt_db *db, nt_trail *trail, ntee_error *err) {
    nt_hint_loaded *loaded = &db->saving.loaded;
    nt_hint_id id = id_of(db);
    char name[NT_HINT_NAME_SIZE];
    nt_hint_name(name, id.generation);
    ntee_status status = nt_hint_load(db->dir, name, &id, nt_log_tail(db->log), db->keydir, loaded, err);
    if (status != NTEE_OK) return status;
    const nt_hint_place *place = &loaded->place;
    int there = loaded->pieces ? is_there(db, place, err) : 0;
    if (there < 0) return err->status;
    if (there) {
        *trail = trail_of(place);
        db->sequence = place->sequence;
        return NTEE_OK;
    }
    if (loaded->pieces || loaded->touched) {
        nt_keydir_rollback(db->keydir);
        if (!nt_keydir_begin(db->keydir)) return nt_fail(err, NTEE_NOMEM, "no memory for the index");
    }
    memset(loaded, 0, sizeof *loaded);
    return NTEE_OK;
}

/* ---- Saving ---- */

/* Goes to where the hint ends, if there is one: what is saved next has to begin there. */
static void go_back(nt_saving *s) {
    if (s->saver.fd < 0) return;
    s->trail = trail_of(&s->saver.place);
    s->sequence = s->saver.place.sequence;
}

void nt_save_begin(nt_db *db, const nt_trail *end) {
    nt_saving *s = &db->saving;
    nt_hint_id id = id_of(db);
    char name[NT_HINT_NAME_SIZE];
    nt_hint_name(name, id.generation);
    nt_hint_open(&s->saver, db->dir, name, &id, s->loaded.pieces ? &s->loaded : NULL);
    /* What is doubtful is for the log alone to say. */
    s->on = !db->recovery.damage.len;
    s->opened = 1;
    s->trail = *end;
    s->sequence = db->sequence;
    go_back(s);
}

void nt_save_end(nt_db *db) {
    if (db->saving.opened) nt_hint_close(&db->saving.saver);
    db->saving.opened = db->saving.on = 0;
}

/* Writes that the hint does not know of, as far as readers see. */
static uint64_t behind(const nt_db *db) {
    nt_view view = nt_keydir_enter(db->keydir);
    uint64_t sequence = view.version->sequence;
    nt_keydir_leave(db->keydir, view);
    return sequence > db->saving.sequence ? sequence - db->saving.sequence : 0;
}

/* Follows the log up to `end`, which is between two frames; with `delta`, into the saver's delta. 0 where it
 * cannot be followed: then nothing is saved any more. */
static int follow(nt_db *db, uint64_t end, int delta, ntee_error *err) {
    nt_saving *s = &db->saving;
    nt_reader reader;
    nt_frame frame;
    int got = 1;
    nt_reader_begin(&reader, db->log, db->source.seed, end);
    while (s->trail.at < end && (got = nt_trail_next(&reader, &s->trail, &frame, err)) == 1) {
        uint64_t at = 0, size, len = frame.kind == NT_FRAME_DATA ? frame.size - NT_FRAME_HEAD_SIZE : 0;
        for (; at < len; at += size) {
            nt_op op;
            size = nt_record_decode(frame.body + at, len - at, &op);
            if (delta)
                nt_hint_delta_add(&s->saver, db->source.base + s->trail.at + NT_FRAME_HEAD_SIZE + at,
                                  frame.body + at);
            s->sequence = op.sequence;
        }
        nt_trail_follow(&s->trail, &frame);
        if (!delta || s->saver.pending < NT_HINT_DELTA) continue;
        nt_hint_place place = place_of(&s->trail, s->sequence);
        delta = nt_hint_delta_end(&s->saver, &place, err) == NTEE_OK && nt_hint_delta_begin(&s->saver);
    }
    nt_reader_end(&reader);
    s->on = got == 1;
    return s->on;
}

int nt_save_wants_snapshot(const nt_db *db, nt_save_when when) {
    const nt_saving *s = &db->saving;
    int closing = when == NT_SAVE_CLOSING;
    if (!s->on || (!s->every && when == NT_SAVE_BUSY)) return 0;
    uint64_t writes = behind(db);
    if (s->saver.fd >= 0) {
        uint64_t most = s->saver.snapshot_entries / 2 + DELTA_LEAST; /* reading them takes time at open */
        if (closing) most = s->saver.snapshot_entries / 8 + 1000;
        return s->saver.delta_entries + writes > most && (closing || writes > 0);
    }
    if (s->every) return closing || writes >= s->every;
    return nt_log_tail(db->log) >= LOG_LEAST && (closing || writes >= DELTA_LEAST);
}

void nt_save_snapshot(nt_db *db, const nt_version *version) {
    nt_saving *s = &db->saving;
    ntee_error ignored;
    uint64_t end = version->log_end - db->source.base;
    if (s->on && end >= s->trail.at && end <= nt_log_synced(db->log) && follow(db, end, 0, &ignored)) {
        nt_hint_place place = place_of(&s->trail, version->sequence);
        (void)nt_hint_snapshot(&s->saver, db->keydir, version, &place, &ignored);
        go_back(s); /* where that failed, the hint before is still there, and knows less */
    }
    nt_keydir_drop(db->keydir, version);
}

void nt_save_step(nt_db *db, nt_save_when when) {
    nt_saving *s = &db->saving;
    int closing = when == NT_SAVE_CLOSING;
    ntee_error ignored;
    if (!s->on || s->saver.fd < 0 || (!s->every && when == NT_SAVE_BUSY)) return;
    uint64_t writes = behind(db), synced = nt_log_synced(db->log);
    uint64_t worth = closing ? 1 : s->every ? s->every : DELTA_LEAST;
    if (writes < worth || synced <= s->trail.at || !nt_hint_delta_begin(&s->saver)) return;
    if (!follow(db, synced, 1, &ignored)) return;
    nt_hint_place place = place_of(&s->trail, s->sequence);
    (void)nt_hint_delta_end(&s->saver, &place, &ignored);
}
