/*
 * scan: the keys of a range, page by page, all from one version; and counting them without visiting.
 *
 * A range is turned into two ranks at the beginning, so a scan is a walk over a known number of entries
 * and compares no keys on its way.
 */
#ifndef NT_ENGINE_SCAN_H
#define NT_ENGINE_SCAN_H

#include "base/buf.h"
#include "engine/db.h"
#include "format/wire.h"
#include "store/tree_walk.h"

typedef struct nt_scan {
    nt_db *db;
    const nt_version *version; /* held */
    nt_walk walk;
    uint64_t remaining;
    uint32_t flags;            /* NTEE_REVERSE, NTEE_VALUES, NTEE_SKIP_CORRUPT */
    nt_buf entries;            /* the page in the making */
} nt_scan;

/* Begins a scan and holds its version. */
ntee_status nt_scan_begin(nt_scan *scan, nt_db *db, const ntee_scan_options *options,
                          ntee_error *err);
void nt_scan_end(nt_scan *scan);

/* Fills `buf` with the next entries; *page says what is in it. As ntee_scan_page. */
ntee_status nt_scan_fill(nt_scan *scan, void *buf, size_t cap, ntee_page *page, ntee_error *err);

/* Whether the whole rest is small and its records are known to be in memory. */
int nt_scan_at_hand(const nt_scan *scan);
/* A buffer that probably holds the whole rest: for callers that want one page. */
uint64_t nt_scan_estimate(const nt_scan *scan);

/* The number of live keys in a range; NULL: all. */
ntee_status nt_count(nt_db *db, const ntee_scan_options *options, uint64_t *count, ntee_error *err);

/* The number of all live keys. */
ntee_status nt_count_all(nt_db *db, uint64_t *count, ntee_error *err);

#endif
