/*
 * recover: what a log means. FORMAT.md, "Reading a log", is the algorithm.
 *
 * Two passes. The first walks the frames, finds where the good ones end and how far the log was durable,
 * and tells a torn end from damage. The second applies the records, through the same nt_keydir_apply as a
 * live write, and checks those that were never synced completely. It never looks at a clock.
 */
#ifndef NT_ENGINE_RECOVER_H
#define NT_ENGINE_RECOVER_H

#include "engine/db.h"

/* Fills db->keydir, salt, number, check, sequence and recovery from db->log, cuts a torn end off, and
 * after an unclean end writes what was not synced once more. On a read-only store nothing is written. */
ntee_status nt_recover(nt_db *db, ntee_error *err);

#endif
