/* Scans and counts of the C API. */
#include "api/handle.h"
#include "base/os.h"
#include "engine/scan.h"

struct ntee_scan {
    ntee *db;
    nt_scan scan;
};

ntee_status ntee_scan_open(ntee *db, const ntee_scan_options *options, ntee_scan **out) {
    static const ntee_scan_options all = {.size = sizeof(ntee_scan_options)};
    ntee_error *err = nt_last_error();
    if (!out) return nt_fail(err, NTEE_INVALID, "the place for the scan is NULL");
    *out = NULL;
    ntee_status status = nt_handle_check(db, err);
    if (status != NTEE_OK) return status;
    ntee_scan *scan = nt_alloc(sizeof *scan);
    if (!scan) return nt_fail(err, NTEE_NOMEM, "no memory for a scan");
    scan->db = db;
    status = nt_scan_begin(&scan->scan, &db->db, options ? options : &all, err);
    if (status == NTEE_OK)
        *out = scan;
    else
        nt_free(scan);
    return status;
}

ntee_status ntee_scan_page(ntee_scan *scan, void *buf, size_t cap, ntee_page *page) {
    ntee_error *err = nt_last_error();
    if (!scan || !page) return nt_fail(err, NTEE_INVALID, "the scan or the page is NULL");
    ntee_status status = nt_handle_check(scan->db, err);
    return status == NTEE_OK ? nt_scan_fill(&scan->scan, buf, cap, page, err) : status;
}

void ntee_scan_close(ntee_scan *scan) {
    ntee_error ignored;
    if (!scan || nt_handle_check(scan->db, &ignored) != NTEE_OK) return;
    nt_scan_end(&scan->scan);
    nt_free(scan);
}

ntee_status ntee_count(ntee *db, const ntee_range *range, uint64_t *count) {
    ntee_scan_options options = {.size = sizeof options};
    ntee_error *err = nt_last_error();
    ntee_status status = nt_handle_check(db, err);
    if (status != NTEE_OK) return status;
    if (!count) return nt_fail(err, NTEE_INVALID, "the place for the count is NULL");
    if (range) options.range = *range;
    return nt_count(&db->db, &options, count, err);
}
