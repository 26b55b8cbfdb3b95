/*
 * open: from a path to an open store and back, and destroying one.
 *
 * Opening is a ladder, each rung undone where a later one fails: directory -> lock -> newest log ->
 * recovery -> one publish -> leftovers.
 */
#ifndef NT_ENGINE_OPEN_H
#define NT_ENGINE_OPEN_H

#include "engine/db.h"

typedef struct nt_open_options {
    int read_only;
    int no_mmap;
    uint64_t hint_every; /* writes after which the hint is saved; 0: in pauses and at close */
    int accept_damage;   /* what was lost in damage is given up, and said so in the log */
} nt_open_options;

/* Opens the store in `path` into *db. On failure *db holds nothing. Errors as ntee_open. */
ntee_status nt_db_open(nt_db *db, const char *path, const nt_open_options *options, ntee_error *err);

/* Closes: syncs, appends a clean mark (not where `failed`), cuts the log to its end, lets the lock go.
 * Everything is released in any case. With `destroy` the store's files are removed before the lock is.
 * `path` is only needed then. */
ntee_status nt_db_close(nt_db *db, int failed, const char *destroy, ntee_error *err);

/* Destroys a store that nobody has open. Errors as ntee_destroy. */
ntee_status nt_db_destroy(const char *path, ntee_error *err);

/* In a forked child: closes the child's copy of the lock's descriptor, which leaves the parent's lock
 * alone. */
void nt_db_forget_lock(nt_db *db);

#endif
