#include "engine/scan.h"

#include <string.h>

#include "base/bytes.h"
#include "base/os.h"
#include "engine/get.h"

#define ENTRIES_A_STEP 64

/* A range as ranks of one tree: entries [low, high). */
typedef struct span {
    uint64_t low;
    uint64_t high;
} span;

static ntee_status check_bound(const void *bytes, size_t len, ntee_error *err) {
    if (!bytes && len) return nt_fail(err, NTEE_INVALID, "a bound of a range is NULL");
    if (len > NTEE_KEY_MAX)
        return nt_fail(err, NTEE_TOO_LARGE, "a bound of a range has %zu bytes, the limit is %u",
                       len, NTEE_KEY_MAX);
    return NTEE_OK;
}

static ntee_status check_options(const ntee_scan_options *options, ntee_error *err) {
    static const uint64_t zero[4];
    const ntee_range *range = &options->range;
    if (options->size != sizeof *options || options->reserved32 || range->reserved ||
        memcmp(options->reserved, zero, sizeof zero) != 0)
        return nt_fail(err, NTEE_INVALID, "the scan options' size or a reserved member is wrong");
    if (options->flags & ~(uint32_t)(NTEE_REVERSE | NTEE_VALUES | NTEE_SKIP_CORRUPT))
        return nt_fail(err, NTEE_INVALID, "unknown scan flags %#x", options->flags);
    if (range->flags & ~(uint32_t)(NTEE_PREFIX | NTEE_LOWER_GT | NTEE_UPPER_LTE))
        return nt_fail(err, NTEE_INVALID, "unknown range flags %#x", range->flags);
    if ((range->flags & NTEE_PREFIX) && (range->upper || range->flags != NTEE_PREFIX))
        return nt_fail(err, NTEE_INVALID, "a prefix goes with no other bound");
    ntee_status status = check_bound(range->lower, range->lower_len, err);
    if (status == NTEE_OK) status = check_bound(range->upper, range->upper_len, err);
    if (status == NTEE_OK) status = check_bound(options->after, options->after_len, err);
    return status;
}

static span find_span(const nt_arena *arena, nt_root root, const ntee_scan_options *options) {
    const ntee_range *range = &options->range;
    span s = {0, nt_tree_count(arena, root)};
    if (range->lower)
        s.low = nt_tree_rank(arena, root, range->lower, range->lower_len,
                             (range->flags & NTEE_LOWER_GT) != 0);
    if (range->flags & NTEE_PREFIX) {
        if (range->lower)
            s.high = nt_tree_rank_after_prefix(arena, root, range->lower, range->lower_len);
    } else if (range->upper) {
        s.high = nt_tree_rank(arena, root, range->upper, range->upper_len,
                              (range->flags & NTEE_UPPER_LTE) != 0);
    }
    if (options->after) {
        int down = (options->flags & NTEE_REVERSE) != 0;
        uint64_t rank = nt_tree_rank(arena, root, options->after, options->after_len, !down);
        if (down && rank < s.high) s.high = rank;
        if (!down && rank > s.low) s.low = rank;
    }
    if (s.high < s.low) s.high = s.low;
    return s;
}

/* Places the walk at the beginning of a range that is not empty. */
static void place_up(nt_walk *walk, const nt_arena *arena, nt_root root,
                     const ntee_scan_options *options) {
    const ntee_range *range = &options->range;
    const void *key = range->lower;
    size_t len = range->lower_len;
    int place = range->flags & NTEE_LOWER_GT ? NT_WALK_AFTER : NT_WALK_BEFORE;
    if (options->after &&
        (!key || nt_compare(options->after, options->after_len, key, len) >= 0)) {
        key = options->after;
        len = options->after_len;
        place = NT_WALK_AFTER;
    }
    if (key)
        nt_walk_seek(walk, arena, root, key, len, place);
    else
        nt_walk_first(walk, arena, root);
}

/* The same for a range that is walked downwards: the smaller of the upper bound and `after`. */
static void place_down(nt_walk *walk, const nt_arena *arena, nt_root root,
                       const ntee_scan_options *options, uint64_t high) {
    const ntee_range *range = &options->range;
    if (options->after &&
        nt_tree_rank(arena, root, options->after, options->after_len, 0) == high) {
        nt_walk_seek(walk, arena, root, options->after, options->after_len, NT_WALK_BEFORE);
    } else if ((range->flags & NTEE_PREFIX) && range->lower) {
        nt_walk_seek(walk, arena, root, range->lower, range->lower_len, NT_WALK_AFTER_PREFIX);
    } else if (range->upper) {
        nt_walk_seek(walk, arena, root, range->upper, range->upper_len,
                     range->flags & NTEE_UPPER_LTE ? NT_WALK_AFTER : NT_WALK_BEFORE);
    } else {
        nt_walk_last(walk, arena, root);
    }
}

ntee_status nt_scan_begin(nt_scan *scan, nt_db *db, const ntee_scan_options *options,
                          ntee_error *err) {
    memset(scan, 0, sizeof *scan);
    ntee_status status = check_options(options, err);
    if (status != NTEE_OK) return status;
    const nt_arena *arena = nt_keydir_arena(db->keydir);
    nt_view view = nt_keydir_enter(db->keydir);
    if (nt_keydir_hold(db->keydir, view)) {
        nt_root root = view.version->roots[NT_ROOT_KEYS];
        span s = find_span(arena, root, options);
        scan->db = db;
        scan->version = view.version;
        scan->flags = options->flags;
        scan->remaining = s.high - s.low;
        if (options->limit && options->limit < scan->remaining) scan->remaining = options->limit;
        if (options->flags & NTEE_REVERSE)
            place_down(&scan->walk, arena, root, options, s.high);
        else
            place_up(&scan->walk, arena, root, options);
    } else {
        status = nt_fail(err, NTEE_NOMEM, "no memory to hold a state of the store");
    }
    nt_keydir_leave(db->keydir, view);
    return status;
}

void nt_scan_end(nt_scan *scan) {
    if (!scan->version) return;
    nt_keydir_drop(scan->db->keydir, scan->version);
    nt_buf_free(&scan->entries);
    scan->version = NULL;
}

static uint64_t step(nt_scan *scan) {
    return scan->flags & NTEE_REVERSE ? nt_walk_prev(&scan->walk) : nt_walk_next(&scan->walk);
}

static ntee_status fill_keys(nt_scan *scan, nt_key_sink sink, ntee_page *page, ntee_error *err) {
    int up = !(scan->flags & NTEE_REVERSE);
    nt_walk_take_keys(&scan->walk, up, &sink);
    scan->remaining -= sink.count;
    page->count = sink.count;
    page->keys_len = (uint64_t)(sink.bytes - page->data);
    page->flags = sink.seen < 128 ? NTEE_PAGE_KEYS_ASCII : 0;
    page->more = scan->remaining != 0;
    if (sink.count || !scan->remaining) return NTEE_OK;
    nt_walk ahead = scan->walk;
    if (up)
        nt_walk_next(&ahead);
    else
        nt_walk_prev(&ahead);
    page->needed = nt_align8(nt_walk_key_length(&ahead, up) + 2u + 64u);
    return nt_fail(err, NTEE_SHORT_BUFFER, "the next key needs a page of %llu bytes",
                   (unsigned long long)page->needed);
}

/* Verifies the record of the entry that the walk has just stepped over, and plans it. *fits is 0 where the
 * page is full. */
static ntee_status plan_record(nt_scan *scan, uint64_t entry, nt_page_plan *plan, int *fits,
                               uint64_t *needed, ntee_error *err) {
    nt_fetch fetch;
    ntee_status status = nt_fetch_begin(&fetch, &scan->db->source, entry,
                                        scan->version->log_end, NULL, err);
    if (status != NTEE_OK) return status;
    const nt_op *op = &fetch.op;
    *fits = nt_page_add(plan, op->key_len, op->value_len, (ntee_kind)op->value_kind);
    *needed = nt_page_needed(op->key_len, op->value_len);
    nt_log_touched(scan->db->source.log, nt_entry_position(entry) - scan->db->source.base,
                   nt_record_size(op));
    nt_fetch_end(&fetch);
    if (*fits && !nt_buf_append(&scan->entries, &entry, sizeof entry)) {
        nt_page_truncate(plan, plan->count - 1);
        return nt_fail(err, NTEE_NOMEM, "no memory for a page of records");
    }
    return NTEE_OK;
}

/* Has the error of a damaged record, which the walk has just stepped over, name its key. */
static void name_key(nt_scan *scan, uint64_t entry, ntee_error *err) {
    int up = !(scan->flags & NTEE_REVERSE);
    size_t len = nt_walk_key_length(&scan->walk, up);
    nt_fetch fetch;
    ntee_error named;
    scan->entries.len = 0;
    if (!nt_buf_reserve(&scan->entries, len)) return; /* then file and offset have to do */
    nt_walk_key(&scan->walk, up, scan->entries.data);
    nt_wanted wanted = {scan->entries.data, len};
    ntee_status status = nt_fetch_begin(&fetch, &scan->db->source, entry, scan->version->log_end,
                                        &wanted, &named);
    if (status == NTEE_OK) nt_fetch_end(&fetch);
    if (status == NTEE_CORRUPT) *err = named;
}

/* Plans entries until the page is full, the scan ends, or a record cannot be read: then the page ends
 * before it. */
static ntee_status plan_page(nt_scan *scan, nt_page_plan *plan, uint64_t *needed,
                             ntee_error *err) {
    uint64_t ahead[ENTRIES_A_STEP];
    while (scan->remaining) {
        nt_walk front = scan->walk;
        int up = !(scan->flags & NTEE_REVERSE);
        size_t want = scan->remaining < ENTRIES_A_STEP ? (size_t)scan->remaining : ENTRIES_A_STEP;
        size_t got = nt_walk_take_values(&front, up, ahead, want);
        for (size_t i = 0; i < got; i++) nt_fetch_ahead(&scan->db->source, ahead[i]);
        for (size_t i = 0; i < got; i++) {
            int fits = 1;
            ntee_status status = plan_record(scan, ahead[i], plan, &fits, needed, err);
            if (status != NTEE_OK && (status != NTEE_CORRUPT || !(scan->flags & NTEE_SKIP_CORRUPT))) {
                if (plan->count) return NTEE_OK; /* the next page begins with it */
                if (status != NTEE_CORRUPT) return status;
                step(scan);
                scan->remaining--;
                name_key(scan, ahead[i], err);
                return status;
            }
            if (!fits) return NTEE_OK;
            step(scan);
            scan->remaining--;
        }
    }
    return NTEE_OK;
}

static ntee_status fill_page(nt_scan *scan, nt_page_plan *plan, ntee_error *err) {
    for (uint64_t i = 0; i < plan->count; i++) {
        uint64_t entry = nt_load64(scan->entries.data + i * sizeof(uint64_t));
        uint8_t *key, *value;
        nt_fetch fetch;
        ntee_status status =
            nt_fetch_again(&fetch, &scan->db->source, entry, scan->version->log_end, err);
        if (status != NTEE_OK) return status;
        uint64_t key_at = plan->key_at, value_at = plan->value_at;
        nt_page_fill(plan, &key, &value);
        /* A dying disk may give other bytes than it gave to the plan: they must not outgrow their place. */
        if (fetch.op.key_len != plan->key_at - key_at ||
            fetch.op.value_len != plan->value_at - value_at - 1u) {
            nt_fetch_end(&fetch);
            return nt_fail_corrupt(err, nt_log_name(scan->db->log), nt_entry_position(entry) -
                                   scan->db->source.base, "the record changed while it was read");
        }
        memcpy(key, fetch.op.key, fetch.op.key_len);
        nt_page_seen(plan, fetch.op.key, fetch.op.key_len);
        if (fetch.op.value_len) memcpy(value, fetch.op.value, fetch.op.value_len);
        nt_fetch_end(&fetch);
    }
    nt_page_end(plan);
    return NTEE_OK;
}

static ntee_status fill_records(nt_scan *scan, uint8_t *data, size_t cap, ntee_page *page,
                                ntee_error *err) {
    nt_page_plan plan;
    uint64_t needed = 0;
    uint64_t remaining = scan->remaining;
    nt_walk begin = scan->walk;
    nt_page_begin(&plan, data, cap);
    scan->entries.len = 0;
    ntee_status status = plan_page(scan, &plan, &needed, err);
    if (status != NTEE_OK) return status;
    if (plan.count == 0 && scan->remaining) {
        page->needed = needed;
        return nt_fail(err, NTEE_SHORT_BUFFER, "the next record needs a page of %llu bytes",
                       (unsigned long long)needed);
    }
    if (plan.capacity < NT_PAGE_ENTRY_SIZE) return NTEE_OK; /* the end, and no room to say "[]" */
    status = fill_page(scan, &plan, err);
    if (status != NTEE_OK) { /* stands where it stood */
        scan->walk = begin;
        scan->remaining = remaining;
        return status;
    }
    page->count = plan.count;
    page->keys_len = plan.keys_len;
    page->values_len = plan.values_len;
    page->flags = NTEE_PAGE_VALUES | (plan.seen < 128 ? NTEE_PAGE_KEYS_ASCII : 0u) |
                  (plan.all_json ? NTEE_PAGE_ALL_JSON : 0u);
    page->more = scan->remaining != 0;
    return NTEE_OK;
}

ntee_status nt_scan_fill(nt_scan *scan, void *buf, size_t cap, ntee_page *page, ntee_error *err) {
    memset(page, 0, sizeof *page);
    cap &= ~(size_t)7u;
    if ((!buf && cap) || ((uintptr_t)buf & 7u))
        return nt_fail(err, NTEE_INVALID, "a page's buffer is NULL or not 8-byte aligned");
    page->data = buf;
    page->capacity = cap;
    if (scan->flags & NTEE_VALUES) return fill_records(scan, buf, cap, page, err);
    nt_key_sink sink = {.bytes = buf, .lens = (uint8_t *)buf + cap, .budget = scan->remaining};
    return fill_keys(scan, sink, page, err);
}

int nt_scan_at_hand(const nt_scan *scan) {
    if (scan->remaining > NT_AT_HAND_KEYS) return 0;
    if (!(scan->flags & NTEE_VALUES)) return 1;
    nt_walk walk = scan->walk;
    uint64_t entries[ENTRIES_A_STEP];
    uint64_t left = scan->remaining;
    uint64_t bytes = 0;
    while (left) {
        size_t want = left < ENTRIES_A_STEP ? (size_t)left : ENTRIES_A_STEP;
        size_t got =
            nt_walk_take_values(&walk, !(scan->flags & NTEE_REVERSE), entries, want);
        for (size_t i = 0; i < got; i++) {
            uint64_t size = nt_fetch_at_hand(&scan->db->source, entries[i], NT_AT_HAND_RECORD);
            if (!size) return 0;
            bytes += size - NT_RECORD_HEAD_SIZE;
            if (bytes > NT_AT_HAND_BYTES) return 0;
        }
        left -= got;
        if (got < want) break;
    }
    return 1;
}

uint64_t nt_scan_estimate(const nt_scan *scan) {
    nt_walk walk = scan->walk;
    int up = !(scan->flags & NTEE_REVERSE);
    uint64_t bytes = 0, sampled = 0, each;
    while (sampled < 16 && sampled < scan->remaining) {
        uint64_t entry = up ? nt_walk_next(&walk) : nt_walk_prev(&walk);
        if (entry == NT_TREE_NONE) break;
        bytes += nt_walk_key_length(&walk, up);
        sampled++;
    }
    each = sampled ? bytes / sampled + 4 : 0;
    if (scan->flags & NTEE_VALUES) each += 256 + NT_PAGE_ENTRY_SIZE;
    return nt_align8(scan->remaining * each + scan->remaining * each / 8 + 1024);
}

ntee_status nt_count(nt_db *db, const ntee_scan_options *options, uint64_t *count,
                     ntee_error *err) {
    ntee_status status = check_options(options, err);
    if (status != NTEE_OK) return status;
    nt_view view = nt_keydir_enter(db->keydir);
    span s = find_span(nt_keydir_arena(db->keydir), view.version->roots[NT_ROOT_KEYS], options);
    nt_keydir_leave(db->keydir, view);
    *count = s.high - s.low;
    if (options->limit && options->limit < *count) *count = options->limit;
    return NTEE_OK;
}

ntee_status nt_count_all(nt_db *db, uint64_t *count, ntee_error *err) {
    ntee_scan_options all = {.size = sizeof all};
    return nt_count(db, &all, count, err);
}
