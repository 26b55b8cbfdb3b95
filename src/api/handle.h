/* handle: what an open store is made of, and the table of all of them in this process. */
#ifndef NT_API_HANDLE_H
#define NT_API_HANDLE_H

#include <stdatomic.h>

#include "api/background.h"
#include "api/monitor.h"
#include "api/shapes.h"
#include "api/writer.h"
#include "engine/db.h"
#include "engine/scan.h"

/* Scans that ntee_run has open: a number is slot + 1 in its low half and the slot's generation in the high
 * one. */
typedef struct nt_scan_slot {
    nt_scan *scan;
    uint32_t generation;
    int busy; /* a page is being filled */
} nt_scan_slot;

struct ntee {
    nt_db db;
    nt_writer writer;
    nt_background background;
    _Atomic int forked; /* this is a child's copy of its parent's handle */
    char *path;
    pthread_mutex_t scans_mutex;
    nt_scan_slot *scans;
    uint32_t scan_count;
    nt_shapes shapes; /* what ntee_run takes objects apart by */
    struct ntee *next; /* in the table */
    struct ntee *previous;
};

/* The one piece of global state: every open store, so that a forked child can let go of the locks it
 * inherited. */
void nt_table_add(struct ntee *db);
void nt_table_remove(struct ntee *db);

/* The first thing that every public function does: NTEE_INVALID for NULL, NTEE_FORKED. */
ntee_status nt_handle_check(const struct ntee *db, ntee_error *err);

/* Checks the options of a put; NULL is allowed. NTEE_INVALID. */
ntee_status nt_check_put_options(const ntee_put_options *options, ntee_error *err);

/* Commits a prepared write with the background running; refuses on a read-only store. */
ntee_status nt_handle_write(struct ntee *db, nt_write *write, int at_hand, ntee_error *err);
/* Everything written so far is durable when it returns. */
ntee_status nt_handle_sync(struct ntee *db, ntee_error *err);

/* Fills *details, whatever its size says. */
ntee_status nt_handle_details(struct ntee *db, ntee_details_t *details, ntee_error *err);
/* The damaged places that opening found: how many; the first `cap` go to `places`. */
size_t nt_handle_damage(const struct ntee *db, ntee_place *places, size_t cap);

/* Ends every scan that ntee_run left open. */
void nt_handle_end_scans(struct ntee *db);

#endif
