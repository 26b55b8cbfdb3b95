/*
 * layout: the sizes and offsets that bindings and programs compiled earlier rely on. A change here is a
 * change of the ABI and raises NTEE_ABI.
 */
#include <ntee.h>

#define AT(type, member, offset) \
    _Static_assert(offsetof(type, member) == (offset), #type "." #member " moved")
#define SIZE(type, size) _Static_assert(sizeof(type) == (size), #type " changed its size")

_Static_assert(NTEE_ABI == 1, "this file describes another ABI");

AT(ntee_error, status, 0);
AT(ntee_error, os_errno, 4);
AT(ntee_error, offset, 8);
AT(ntee_error, item, 16);
AT(ntee_error, message, 24);
SIZE(ntee_error, 256);

AT(ntee_reply, length, 0);
AT(ntee_reply, needed, 8);
AT(ntee_reply, count, 16);
AT(ntee_reply, keys_len, 24);
AT(ntee_reply, values_len, 32);
AT(ntee_reply, scan, 40);
AT(ntee_reply, kind, 48);
AT(ntee_reply, flags, 52);
AT(ntee_reply, error, 56);
SIZE(ntee_reply, 312);

AT(ntee_call, db, 0);
AT(ntee_call, op, 8);
AT(ntee_call, flags, 12);
AT(ntee_call, in, 16);
AT(ntee_call, in_len, 24);
AT(ntee_call, out, 32);
AT(ntee_call, out_cap, 40);
AT(ntee_call, reply, 48);
SIZE(ntee_call, 56);
_Static_assert(NTEE_UNITS_MAX == 256, "the longest key of units changed");

AT(ntee_options, size, 0);
AT(ntee_options, flags, 8);
AT(ntee_options, sync_interval_ms, 12);
AT(ntee_options, hint_every, 16);
AT(ntee_options, reserved, 24);
SIZE(ntee_options, 80);

AT(ntee_put_options, size, 0);
AT(ntee_put_options, ttl_ms, 8);
SIZE(ntee_put_options, 64);

AT(ntee_range, lower, 0);
AT(ntee_range, upper, 16);
AT(ntee_range, flags, 32);
SIZE(ntee_range, 40);

AT(ntee_scan_options, range, 8);
AT(ntee_scan_options, after, 48);
AT(ntee_scan_options, limit, 64);
AT(ntee_scan_options, flags, 72);
SIZE(ntee_scan_options, 112);

AT(ntee_stats_t, size, 0);
AT(ntee_stats_t, records, 8);
AT(ntee_stats_t, main_bytes, 16);
AT(ntee_stats_t, blob_bytes, 24);
SIZE(ntee_stats_t, 72);

AT(ntee_details_t, size, 0);
AT(ntee_details_t, records, 8);
AT(ntee_details_t, main_bytes, 16);
AT(ntee_details_t, blob_bytes, 24);
AT(ntee_details_t, sequence, 32);
AT(ntee_details_t, durable_sequence, 40);
AT(ntee_details_t, sync_lag_ms, 48);
AT(ntee_details_t, state, 56);
AT(ntee_details_t, open_scans, 64);
AT(ntee_details_t, was_clean, 72);
AT(ntee_details_t, replayed, 80);
AT(ntee_details_t, cut_bytes, 88);
AT(ntee_details_t, salvaged_bytes, 96);
AT(ntee_details_t, damaged, 104);
AT(ntee_details_t, suspect_bytes, 112);
AT(ntee_details_t, log_generation, 120);
SIZE(ntee_details_t, 192);
AT(ntee_place, offset, 0);
AT(ntee_place, length, 8);
SIZE(ntee_place, 16);

_Static_assert(NTEE_OK == 0 && NTEE_NOT_FOUND == 1 && NTEE_CORRUPT == 7, "codes moved");
_Static_assert(NTEE_SHORT_BUFFER == 17 && NTEE_WOULD_BLOCK == 18, "codes moved");
_Static_assert(NTEE_OP_GET == 1 && NTEE_OP_SYNC == 10 && NTEE_AT_HAND == 1, "operations moved");
_Static_assert(NTEE_OP_SHAPE == 11 && NTEE_OP_FIELDS == 12 && NTEE_FIELDS == 2, "operations moved");
_Static_assert(NTEE_OP_DETAILS == 13 && NTEE_OP_VERIFY == 14, "operations moved");
_Static_assert(NTEE_STATE_READ_ONLY == 1 && NTEE_STATE_FAILED == 2, "states moved");
_Static_assert(NTEE_ACCEPT_DAMAGE == 8, "flags moved");
_Static_assert(NTEE_BINARY == 0 && NTEE_JSON == 1 && NTEE_OBJECT == 2, "kinds moved");
_Static_assert(NTEE_COUNTER == 3 && NTEE_MISSING == 4, "kinds moved");
