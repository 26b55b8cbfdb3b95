/*
 * db: the state of one open store, and what may be trusted in it.
 *
 * The engine does one thing from start to end per file: open (with recover), commit, get, scan. It knows no
 * threads and takes no locks; api/ calls what changes this state (commit, mark, close) one at a time, and
 * the reading walks from any thread beside it.
 *
 * Invariants:
 *  D1. `number`, `check` and `salt` describe the newest frame in the log; the next one chains to them.
 *  D2. `sequence` is the newest staged version's.
 *  D3. Before the first frame of this opening an open frame announces `salt` (announced = 1), and once more
 *      wherever NT_ANNOUNCE_EVERY bytes have come since: what is behind damage to it can be read from there.
 *  D4. The lock descriptor is open, and locked, for exactly as long as the store is.
 */
#ifndef NT_ENGINE_DB_H
#define NT_ENGINE_DB_H

#include <stdint.h>

#include "base/buf.h"
#include "base/status.h"
#include "engine/trail.h"
#include "format/record.h"
#include "keydir/hint.h"
#include "keydir/keydir.h"
#include "keydir/value.h"
#include "store/guess.h"
#include "store/log.h"

#define NT_LOCK_NAME "LOCK"
#define NT_ANNOUNCE_EVERY (64u * 1024u)

/* What recovery found and did. */
typedef struct nt_recovery {
    uint64_t durable;   /* W: everything before it had been synced */
    uint64_t end;       /* where the good frames end */
    uint64_t cut;       /* bytes of a torn end that were cut off, trailing zeros not counted */
    uint64_t salvage;   /* of these, bytes to be saved first, since frames that verify are among them */
    uint64_t frames;
    uint64_t records;   /* ops read, live or not */
    int clean;          /* the store had been closed */
    nt_buf damage;      /* nt_damage each: places below W that are not what was written */
    uint64_t suspect;   /* position: a record below it may have been replaced in damage; 0: none */
    int accepted;       /* damage was found, and accepted by this opening */
} nt_recovery;

/* Damaged bytes of the log. */
typedef struct nt_damage {
    uint64_t offset;
    uint64_t length;
    uint64_t rescued; /* records in them that are whole */
    uint64_t suspect; /* position: records below it may be out of date for it; 0: nothing is lost */
} nt_damage;

/* What keeps the hint up to date (save.h). */
typedef struct nt_saving {
    int on;            /* 0: nothing is saved */
    int opened;        /* the saver is */
    uint64_t every;    /* writes after which it is saved; 0: in pauses and at close */
    nt_trail trail;    /* the place in the log that the saver has followed it to */
    uint64_t sequence; /* of the last record before that */
    nt_hint_loaded loaded;
    nt_hint_saver saver;
} nt_saving;

typedef struct nt_db {
    int dir;            /* descriptors; -1: none */
    int lock;
    int read_only;
    int unmapped;       /* the log is read with system calls */
    int accept_damage;  /* what is lost in damage is given up */
    nt_log *log;
    nt_keydir *keydir;
    nt_source source;
    nt_guess guess;     /* no table where the log is not mapped */
    nt_log_header header;
    uint64_t salt;
    uint64_t number;
    uint64_t check;
    uint64_t sequence;
    int announced;
    uint64_t announced_at;  /* where the salt was announced last */
    uint64_t durable_start; /* what was surely synced when the store was opened */
    nt_recovery recovery;
    nt_saving saving;
} nt_db;

/* Makes the table of guesses suit the store. One thread at a time. */
void nt_db_fit_guesses(nt_db *db);

/* What a frame may claim as durable. A clean mark says so of what is before it, not of itself: it may have
 * been written by a process that was killed before its last sync. */
static inline uint64_t nt_db_durable(const nt_db *db) {
    uint64_t synced = nt_log_synced(db->log);
    return synced > db->recovery.end ? synced : db->durable_start;
}

/* Position just behind the newest frame, as versions carry it. */
static inline uint64_t nt_db_end(const nt_db *db) { return db->source.base + nt_log_tail(db->log); }

#endif
