/*
 * verify: reading every byte of a store and comparing it with its checksums.
 *
 * Two walks over one version. The first goes through the log as recovery does and finds what does not verify,
 * live or not. The second goes through the keys and reads each record that the index names. It changes
 * nothing, and readers and writers go on meanwhile.
 */
#ifndef NT_ENGINE_VERIFY_H
#define NT_ENGINE_VERIFY_H

#include "engine/db.h"

/* Where differences go: found[0] to found[cap - 1] get the first ones, *count counts all. */
typedef struct nt_findings {
    ntee_error *found;
    size_t cap;
    uint64_t count;
} nt_findings;

/* NTEE_OK whatever is found; NTEE_IO and NTEE_NOMEM where the walk itself cannot go on. */
ntee_status nt_verify(nt_db *db, nt_findings *findings, ntee_error *err);

#endif
