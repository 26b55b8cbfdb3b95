/*
 * driver: the public API in its two forms, behind one set of calls: the functions of ntee.h, or ntee_run
 * with framed bytes (with and without NTEE_AT_HAND). What is said of one form has to be true of the other.
 */
#ifndef TESTS_MODEL_DRIVER_H
#define TESTS_MODEL_DRIVER_H

#include "model/random.h"
#include "ntee.h"

typedef struct driver {
    ntee *db;
    int framed;
    rng *random;
    uint8_t *request; /* framed bytes in the making */
    size_t request_len;
    size_t request_cap;
    uint8_t *out;     /* what get gave */
    size_t out_cap;
} driver;

enum { DRIVER_PUT = 1, DRIVER_DELETE = 2, DRIVER_PUT_IF_ABSENT = 3 };

typedef struct write_item {
    int type;
    const uint8_t *key;
    size_t key_len;
    const uint8_t *value;
    size_t value_len;
} write_item;

void driver_end(driver *d);

/* One write. */
ntee_status driver_write(driver *d, const write_item *item);
/* A batch of puts and deletes. *effective is what ntee_run says, or -1. */
ntee_status driver_batch(driver *d, const write_item *items, size_t count, int64_t *effective);
/* The value is in d->out. `cap` is what the first try offers; a short answer is checked and tried again. */
ntee_status driver_get(driver *d, const uint8_t *key, size_t key_len, size_t cap, size_t *len,
                       ntee_kind *kind);
ntee_status driver_has(driver *d, const uint8_t *key, size_t key_len);
/* Framed only: values of several keys as a page in d->out. */
ntee_status driver_get_many(driver *d, const write_item *keys, size_t count, ntee_page *page);
ntee_status driver_count(driver *d, const ntee_range *range, uint64_t *count);
ntee_status driver_records(driver *d, uint64_t *records);
ntee_status driver_sync(driver *d);

/* An open scan. */
typedef struct cursor {
    driver *d;
    ntee_scan *scan;    /* the direct form */
    uint64_t number;    /* the framed form; 0: at its end */
    int first;          /* framed: the opening call's page has not been given yet */
    ntee_page page;
    uint8_t *buf;
    size_t cap;
} cursor;

/* `cap` is the size of the pages. */
ntee_status cursor_open(cursor *c, driver *d, const ntee_scan_options *options, size_t cap);
/* Gives the next page; *more says whether to go on. A buffer that is too small grows as the store says. */
ntee_status cursor_page(cursor *c, ntee_page *page, int *more);
void cursor_close(cursor *c);

#endif
