#include "model/checks.h"

#include <stdarg.h>
#include <stdio.h>

void fail(const model *m, const char *format, ...) {
    va_list args;
    va_start(args, format);
    printf("model: FAILED in operation %llu of episode %llu: ", (unsigned long long)m->operation,
           (unsigned long long)m->episode);
    vprintf(format, args);
    va_end(args);
    printf("\nreplay: NT_SEED=%llu NT_EPISODE=%llu\n", (unsigned long long)m->seed,
           (unsigned long long)m->episode);
    fflush(stdout);
    abort();
}

void expect(const model *m, ntee_status got, ntee_status wanted, const char *what) {
    if (got == wanted) return;
    fail(m, "%s gives %s, not %s; last error: %s", what, ntee_status_name(got), ntee_status_name(wanted),
         ntee_last_error()->message);
}

void reference_span(const reference *ref, const ntee_range *range, size_t *low, size_t *high) {
    *low = 0;
    *high = ref->count;
    if (range->lower)
        *low = reference_rank(ref, range->lower, range->lower_len, (range->flags & NTEE_LOWER_GT) != 0);
    if (range->flags & NTEE_PREFIX) {
        if (range->lower) *high = reference_rank_after_prefix(ref, range->lower, range->lower_len);
    } else if (range->upper) {
        *high = reference_rank(ref, range->upper, range->upper_len, (range->flags & NTEE_UPPER_LTE) != 0);
    }
    if (*high < *low) *high = *low;
}

static void span_of_scan(const reference *ref, const ntee_scan_options *options, size_t *low, size_t *high) {
    int down = (options->flags & NTEE_REVERSE) != 0;
    reference_span(ref, &options->range, low, high);
    if (options->after) {
        size_t rank = reference_rank(ref, options->after, options->after_len, !down);
        if (down && rank < *high) *high = rank;
        if (!down && rank > *low) *low = rank;
        if (*high < *low) *high = *low;
    }
    if (options->limit && *high - *low > options->limit) {
        if (down) *low = *high - (size_t)options->limit;
        else *high = *low + (size_t)options->limit;
    }
}

static void check_entry(const model *m, const entry *wanted, const ntee_entry *got, int values) {
    if (got->key_len != wanted->key_len || memcmp(got->key, wanted->bytes, wanted->key_len) != 0)
        fail(m, "a scan gives another key (%zu bytes; wanted %zu)", got->key_len, wanted->key_len);
    if (!values) return;
    if (got->kind != wanted->kind || got->value_len != wanted->value_len ||
        (got->value_len > 0 && memcmp(got->value, entry_value(wanted), got->value_len) != 0))
        fail(m, "a scan gives another value (%zu bytes, kind %d; wanted %zu, %d)", got->value_len,
             (int)got->kind, wanted->value_len, (int)wanted->kind);
}

/* What the page's flags claim has to be so. */
static void check_flags(const model *m, const ntee_page *page, int ascii, int json) {
    if (((page->flags & NTEE_PAGE_KEYS_ASCII) != 0) > ascii) fail(m, "a page claims ASCII keys");
    if (page->flags & NTEE_PAGE_VALUES && ((page->flags & NTEE_PAGE_ALL_JSON) != 0) > json)
        fail(m, "a page claims JSON values");
}

void held_page(model *m, held *h) {
    ntee_page page;
    ntee_entry got = {0};
    int more, ascii = 1, json = 1;
    expect(m, cursor_page(&h->c, &page, &more), NTEE_OK, "scan page");
    if (page.count > h->high - h->low)
        fail(m, "a scan gives %llu entries, %zu are left", (unsigned long long)page.count, h->high - h->low);
    if (page.count == 0 && more) fail(m, "an empty page that is not the last");
    for (uint64_t i = 0; i < page.count; i++) {
        const entry *wanted = h->down ? h->frozen.at[--h->high] : h->frozen.at[h->low++];
        if (!ntee_page_next(&page, &got)) fail(m, "a page ends at %llu", (unsigned long long)i);
        check_entry(m, wanted, &got, (page.flags & NTEE_PAGE_VALUES) != 0);
        for (size_t k = 0; k < got.key_len; k++) ascii &= wanted->bytes[k] < 128;
        json &= wanted->kind != NTEE_BINARY;
    }
    if (ntee_page_next(&page, &got)) fail(m, "a page goes on behind its end");
    check_flags(m, &page, ascii, json);
    if (more == (h->low == h->high))
        fail(m, "a scan says more=%d with %zu entries left", more, h->high - h->low);
    h->ended = !more;
}

void held_open(model *m, held *h, const ntee_scan_options *options, size_t cap) {
    *h = (held){.open = 1, .down = (options->flags & NTEE_REVERSE) != 0};
    reference_copy(&h->frozen, &m->ref);
    span_of_scan(&h->frozen, options, &h->low, &h->high);
    expect(m, cursor_open(&h->c, &m->d, options, cap), NTEE_OK, "scan");
}

void held_close(held *h) {
    if (!h->open) return;
    cursor_close(&h->c);
    reference_clear(&h->frozen);
    h->open = 0;
}

void check_scan(model *m, const ntee_scan_options *options, size_t cap) {
    held h;
    held_open(m, &h, options, cap);
    do held_page(m, &h);
    while (!h.ended);
    held_close(&h);
}

void check_counts(model *m) {
    uint64_t records, all;
    expect(m, driver_records(&m->d, &records), NTEE_OK, "stats");
    expect(m, driver_count(&m->d, NULL, &all), NTEE_OK, "count of all");
    if (records != m->ref.count || all != m->ref.count)
        fail(m, "%llu records and a count of %llu, not %zu", (unsigned long long)records,
             (unsigned long long)all, m->ref.count);
}
