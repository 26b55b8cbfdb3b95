/*
 * recover: what a log means. FORMAT.md, "Reading a log", is the algorithm.
 *
 * Two passes. The first walks the frames, over the places that do not verify (trail.h), finds where the good
 * ones end and how far the log was durable, and so tells damage from a torn end. The second applies the
 * records, through the same nt_keydir_apply as a live write, and checks those that were never synced
 * completely. It never looks at a clock.
 *
 * In damage, whole records are rescued by their own checks. Whether one is missing is told by the sequence
 * numbers, which are contiguous as they are written; then all that was written before may be out of date, and
 * is not trusted (nt_source.trusted) until it is written anew or the damage is accepted, which a mark in the
 * log says.
 */
#ifndef NT_ENGINE_RECOVER_H
#define NT_ENGINE_RECOVER_H

#include "engine/db.h"

/* Fills db->keydir, salt, number, check, sequence, source.trusted and recovery from db->log, cuts a torn end
 * off, and after an unclean end writes what was not synced once more. On a read-only store nothing is
 * written. NTEE_CORRUPT where the file is shorter than it was when it got its name. */
ntee_status nt_recover(nt_db *db, ntee_error *err);

#endif
