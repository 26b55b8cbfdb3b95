/*
 * hint: the saved index, a cache of the keydir beside the log. FORMAT.md has its bytes.
 *
 * Loading fills a keydir's turn from the longest valid prefix of the file's pieces, in a fraction of the
 * time that reading the log takes. Saving appends a delta (the records since the last piece) or writes a new
 * snapshot of a whole version. Nothing is ever synced: a file that is torn, stale, foreign or damaged is
 * found out by its checks and counts as missing, from the first bad piece on.
 *
 * Invariants:
 *  H1. A hint is never trusted over the log: the caller compares the frame that its place names, and whoever
 *      reads a record verifies it and its key.
 *  H2. A hint speaks of nothing but what a sync of the log has covered: the caller sees to that.
 *  H3. Whatever the file's bytes are, loading takes no more memory than its buffer (256 KiB, or the largest
 *      entry that the file has room for) and what the keydir needs for entries that are in the file.
 *  H4. A failure while saving leaves a hint that loads as it was before, or none.
 */
#ifndef NT_KEYDIR_HINT_H
#define NT_KEYDIR_HINT_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/status.h"
#include "format/piece.h"
#include "keydir/keydir.h"

#define NT_HINT_SUFFIX ".hint"
#define NT_HINT_NAME_SIZE 32 /* a name, its ".tmp" and NUL */

/* The log that a hint belongs to. */
typedef struct nt_hint_id {
    uint8_t store_id[16];
    uint64_t generation;
    uint64_t base; /* the position of the log's offset 0 */
    uint64_t seed; /* the store's */
} nt_hint_id;

/* Where reading the log goes on, and the frame before that. */
typedef nt_piece_place nt_hint_place;

/* Writes the name of the hint beside the log of this generation: at most NT_HINT_NAME_SIZE - 4 bytes. */
void nt_hint_name(char out[NT_HINT_NAME_SIZE], uint64_t generation);

/* ---- Loading ---- */

typedef struct nt_hint_loaded {
    uint64_t pieces; /* that counted; 0: there is no hint, and the rest means nothing, but for `touched` */
    nt_hint_place place; /* of the last one */
    uint64_t check;      /* its check */
    uint64_t bytes;      /* of the file, that they take */
    uint64_t snapshot_entries;
    uint64_t delta_entries;
    int touched; /* with pieces 0: 1 where the keydir's turn has to be rolled back */
} nt_hint_loaded;

/* Reads the hint `name` in `dir` into the keydir's turn, whose version has no keys yet. `log_size` is the
 * log's size: what speaks of more does not count. A file that is missing, cannot be read or is anything else
 * is no failure: it has no pieces that count. NTEE_NOMEM: roll the turn back. The caller then looks whether
 * the frame that *place names is in the log, and rolls back where it is not. */
ntee_status nt_hint_load(int dir, const char *name, const nt_hint_id *id, uint64_t log_size,
                         nt_keydir *keydir, nt_hint_loaded *loaded, ntee_error *err);

/* ---- Saving: one thread at a time uses a saver ---- */

/* A hint that is being kept, in the caller's memory, which does not move. Read it, change nothing. */
typedef struct nt_hint_saver {
    int fd;              /* -1: there is no hint to append to; the next piece has to be a snapshot */
    nt_hint_place place; /* up to which the hint speaks */
    uint64_t snapshot_entries; /* of the hint's snapshot */
    uint64_t delta_entries;    /* of all its deltas: worth a new snapshot when there are many */
    uint64_t pieces;
    uint64_t bytes;      /* of the file */
    uint64_t pending;    /* bytes of the delta in the making: the caller ends it after about NT_HINT_DELTA */
    /* The rest is the module's own. */
    int dir;
    char name[NT_HINT_NAME_SIZE];
    nt_hint_id id;
    uint64_t check;      /* the last piece's */
    uint64_t entries;    /* in the delta in the making */
    uint64_t flushed;    /* bytes of its body that are in the file */
    ntee_status failed;  /* of an add; `error` says more */
    ntee_error error;
    nt_buf buf;          /* room for the head, then what of the body is not in the file */
    nt_hash_stream hash; /* of what is */
} nt_hint_saver;

#define NT_HINT_DELTA (1u << 20)

/* Begins to keep the hint `name` in `dir`, a descriptor that stays open for as long as the saver is.
 * `loaded` is what nt_hint_load found, or NULL: the saver goes on behind those pieces, and cuts off what
 * follows. Where there are none, or the file cannot be opened, it has no hint. Any file of that name stays
 * until a snapshot takes its place. */
void nt_hint_open(nt_hint_saver *saver, int dir, const char *name, const nt_hint_id *id,
                  const nt_hint_loaded *loaded);
/* Ends it; a delta in the making is forgotten. */
void nt_hint_close(nt_hint_saver *saver);

/* Writes a new hint: all keys of `version`, whose entries all lie before `place` in the log, all of which a
 * sync has covered. The version is protected by the caller throughout. It takes the place of the hint
 * before, and a delta in the making is forgotten. NTEE_FULL, NTEE_IO, NTEE_NOMEM: all is as it was before. */
ntee_status nt_hint_snapshot(nt_hint_saver *saver, const nt_keydir *keydir, const nt_version *version,
                             const nt_hint_place *place, ntee_error *err);

/* Begins a delta: of the records from saver->place on. One that has not been ended is forgotten. 1, or 0
 * where there is no hint to append to. */
int nt_hint_delta_begin(nt_hint_saver *saver);
/* Adds a record that is known to be whole, and its position: in the order of the log, leaving none out. Its
 * bytes are copied. A failure is kept for nt_hint_delta_end. */
void nt_hint_delta_add(nt_hint_saver *saver, uint64_t position, const uint8_t *record);
/* Ends the delta: writes it, if `place` is further than the hint's. All added records lie before `place`,
 * which a sync has covered, and there are no others between. NTEE_FULL, NTEE_IO, NTEE_NOMEM: the hint is
 * removed, and a snapshot has to be the next piece. */
ntee_status nt_hint_delta_end(nt_hint_saver *saver, const nt_hint_place *place, ntee_error *err);

#endif
