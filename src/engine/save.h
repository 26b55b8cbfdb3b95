/*
 * save: keeping the hint beside the log up to date, and beginning with it when the store is opened.
 *
 * The hint follows the log, not the writers: whoever saves reads the frames that a sync has covered once more
 * and appends their records as a delta, or writes a snapshot of a version where there is no hint yet, or
 * where the deltas have become many. So writers pay nothing for it. One thread at a time: the background's,
 * and at the end whoever closes. Where saving fails, the store goes on without a hint.
 */
#ifndef NT_ENGINE_SAVE_H
#define NT_ENGINE_SAVE_H

#include "engine/db.h"

/* Inside the keydir's turn, which has no keys: loads the hint, if it proves itself and the log has the frame
 * that it names. *trail is where reading the log goes on then, and stays as it is where there is no hint.
 * NTEE_NOMEM, NTEE_IO. */
ntee_status nt_save_load(nt_db *db, nt_trail *trail, ntee_error *err);

/* After recovery, in a store that may be written: begins to keep the hint. `end` is where recovery ended. */
void nt_save_begin(nt_db *db, const nt_trail *end);
/* Ends it. */
void nt_save_end(nt_db *db);

/* When saving is thought of: while others write, in a pause, or at the end. Without a wish nothing is saved
 * while others write, as the second processor is theirs then. */
typedef enum nt_save_when { NT_SAVE_BUSY = 0, NT_SAVE_QUIET = 1, NT_SAVE_CLOSING = 2 } nt_save_when;

/* After a sync: appends what the hint lacks, if that is worth it. */
void nt_save_step(nt_db *db, nt_save_when when);

/* Whether a snapshot is wanted instead. Then nt_keydir_hold_newest gives the version ahead of a sync, and
 * nt_save_snapshot, after it, writes it down and drops it. */
int nt_save_wants_snapshot(const nt_db *db, nt_save_when when);
void nt_save_snapshot(nt_db *db, const nt_version *version);

#endif
