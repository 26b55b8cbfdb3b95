#include "model/driver.h"

#include <stdio.h>

static void *need(void *memory) {
    if (memory == NULL) {
        fputs("out of memory\n", stderr);
        abort();
    }
    return memory;
}

void driver_end(driver *d) {
    free(d->request);
    free(d->out);
    d->request = d->out = NULL;
    d->request_cap = d->out_cap = 0;
}

/* ---- Framed bytes -------------------------------------------------------------------------------- */

static void frame_bytes(driver *d, const void *bytes, size_t len) {
    if (len > d->request_cap - d->request_len) {
        d->request_cap = (d->request_len + len) * 2 + 1024;
        d->request = need(realloc(d->request, d->request_cap));
    }
    if (len > 0) memcpy(d->request + d->request_len, bytes, len);
    d->request_len += len;
}

static void frame_number(driver *d, uint64_t number, size_t len) { frame_bytes(d, &number, len); }

static void frame_write(driver *d, const write_item *item) {
    frame_number(d, (uint64_t)item->type, 2);
    frame_number(d, item->key_len, 2);
    frame_number(d, item->value_len, 4);
    frame_bytes(d, item->key, item->key_len);
    frame_bytes(d, item->value, item->value_len);
}

static void frame_scan(driver *d, const ntee_scan_options *options) {
    const ntee_range *range = &options->range;
    uint32_t flags = options->flags | range->flags << 8;
    if (range->lower) flags |= 1u << 16;
    if (range->upper) flags |= 1u << 17;
    if (options->after) flags |= 1u << 18;
    d->request_len = 0;
    frame_number(d, flags, 8);
    frame_number(d, options->limit, 8);
    frame_number(d, range->lower ? range->lower_len : 0, 4);
    frame_number(d, range->upper ? range->upper_len : 0, 4);
    frame_number(d, options->after ? options->after_len : 0, 8);
    if (range->lower) frame_bytes(d, range->lower, range->lower_len);
    if (range->upper) frame_bytes(d, range->upper, range->upper_len);
    if (options->after) frame_bytes(d, options->after, options->after_len);
}

/* The framed call, tried at hand first now and then; what is not at hand is done the long way. */
static ntee_status run(driver *d, uint32_t op, const void *in, size_t in_len, void *out, size_t cap,
                       ntee_reply *reply) {
    if (rng_one_in(d->random, 2)) {
        ntee_status status = ntee_run(d->db, op, NTEE_AT_HAND, in, in_len, out, cap, reply);
        if (status != NTEE_WOULD_BLOCK) return status;
    }
    return ntee_run(d->db, op, 0, in, in_len, out, cap, reply);
}

static ntee_status run_request(driver *d, uint32_t op, void *out, size_t cap, ntee_reply *reply) {
    return run(d, op, d->request, d->request_len, out, cap, reply);
}

/* ---- Writes -------------------------------------------------------------------------------------- */

static ntee_status framed_write(driver *d, const write_item *items, size_t count, int64_t *effective) {
    ntee_reply reply;
    d->request_len = 0;
    for (size_t i = 0; i < count; i++) frame_write(d, &items[i]);
    ntee_status status = run_request(d, NTEE_OP_WRITE, NULL, 0, &reply);
    *effective = (int64_t)reply.count;
    return status;
}

ntee_status driver_write(driver *d, const write_item *item) {
    int64_t effective;
    if (d->framed) {
        ntee_status status = framed_write(d, item, 1, &effective);
        if (status == NTEE_OK && item->type == DRIVER_DELETE && effective == 0) return NTEE_NOT_FOUND;
        return status;
    }
    switch (item->type) {
    case DRIVER_DELETE: return ntee_delete(d->db, item->key, item->key_len);
    case DRIVER_PUT: return ntee_put(d->db, item->key, item->key_len, item->value, item->value_len, NULL);
    default:
        return ntee_put_if_absent(d->db, item->key, item->key_len, item->value, item->value_len, NULL);
    }
}

ntee_status driver_batch(driver *d, const write_item *items, size_t count, int64_t *effective) {
    if (d->framed) return framed_write(d, items, count, effective);
    ntee_batch *batch = need(ntee_batch_new());
    ntee_status status = NTEE_OK;
    for (size_t i = 0; i < count && status == NTEE_OK; i++) {
        const write_item *item = &items[i];
        if (item->type == DRIVER_DELETE) status = ntee_batch_delete(batch, item->key, item->key_len);
        else status = ntee_batch_put(batch, item->key, item->key_len, item->value, item->value_len, NULL);
    }
    if (status == NTEE_OK) status = ntee_write(d->db, batch);
    ntee_batch_free(batch);
    *effective = -1;
    return status;
}

/* ---- Reads --------------------------------------------------------------------------------------- */

static void make_room(driver *d, size_t cap) {
    if (cap <= d->out_cap) return;
    d->out = need(realloc(d->out, cap));
    d->out_cap = cap;
}

static ntee_status get_once(driver *d, const uint8_t *key, size_t key_len, size_t cap, size_t *len,
                            ntee_kind *kind) {
    ntee_reply reply;
    make_room(d, cap);
    if (!d->framed) return ntee_get(d->db, key, key_len, d->out, cap, len, kind);
    ntee_status status = run(d, NTEE_OP_GET, key, key_len, d->out, cap, &reply);
    *len = (size_t)reply.length;
    *kind = (ntee_kind)reply.kind;
    return status;
}

ntee_status driver_get(driver *d, const uint8_t *key, size_t key_len, size_t cap, size_t *len,
                       ntee_kind *kind) {
    make_room(d, 16);
    if (cap < d->out_cap) memset(d->out + cap, 0xEE, d->out_cap - cap < 16 ? d->out_cap - cap : 16);
    ntee_status status = get_once(d, key, key_len, cap, len, kind);
    if (status != NTEE_SHORT_BUFFER) return status;
    if (*len <= cap) return NTEE_SHORT_BUFFER; /* it says that it would have fitted: wrong */
    return get_once(d, key, key_len, *len, len, kind);
}

ntee_status driver_has(driver *d, const uint8_t *key, size_t key_len) {
    ntee_reply reply;
    if (!d->framed) return ntee_has(d->db, key, key_len);
    return run(d, NTEE_OP_HAS, key, key_len, NULL, 0, &reply);
}

ntee_status driver_get_many(driver *d, const write_item *keys, size_t count, ntee_page *page) {
    ntee_reply reply;
    d->request_len = 0;
    for (size_t i = 0; i < count; i++) {
        frame_number(d, keys[i].key_len, 2);
        frame_bytes(d, keys[i].key, keys[i].key_len);
    }
    make_room(d, 64);
    size_t cap = 8 * rng_between(d->random, 1, d->out_cap / 8);
    ntee_status status = run_request(d, NTEE_OP_GET_MANY, d->out, cap, &reply);
    if (status == NTEE_SHORT_BUFFER) {
        cap = (size_t)(reply.needed + 7) & ~(size_t)7;
        make_room(d, cap);
        status = run_request(d, NTEE_OP_GET_MANY, d->out, cap, &reply);
    }
    *page = (ntee_page){.data = d->out,
                        .capacity = cap,
                        .count = reply.count,
                        .keys_len = reply.keys_len,
                        .values_len = reply.values_len,
                        .flags = reply.flags};
    return status;
}

ntee_status driver_count(driver *d, const ntee_range *range, uint64_t *count) {
    ntee_scan_options options = {.size = sizeof options};
    ntee_reply reply;
    if (!d->framed) return ntee_count(d->db, range, count);
    if (range) options.range = *range;
    frame_scan(d, &options);
    ntee_status status = run_request(d, NTEE_OP_COUNT, NULL, 0, &reply);
    *count = reply.count;
    return status;
}

ntee_status driver_records(driver *d, uint64_t *records) {
    ntee_reply reply;
    if (d->framed) {
        uint64_t figures[3] = {0, 0, 0};
        ntee_status status = run(d, NTEE_OP_STATS, NULL, 0, figures, sizeof figures, &reply);
        *records = figures[0];
        return status;
    }
    ntee_stats_t stats = {.size = sizeof stats};
    ntee_status status = ntee_stats(d->db, &stats);
    *records = stats.records;
    return status;
}

ntee_status driver_sync(driver *d) {
    ntee_reply reply;
    return d->framed ? run(d, NTEE_OP_SYNC, NULL, 0, NULL, 0, &reply) : ntee_sync(d->db);
}

/* ---- Scans --------------------------------------------------------------------------------------- */

static void grow(cursor *c, uint64_t cap) {
    c->cap = ((size_t)cap + 7) & ~(size_t)7;
    c->buf = need(realloc(c->buf, c->cap + 8));
}

static void describe(cursor *c, const ntee_reply *reply) {
    c->number = reply->scan;
    c->page = (ntee_page){.data = c->buf,
                          .capacity = c->cap,
                          .count = reply->count,
                          .keys_len = reply->keys_len,
                          .values_len = reply->values_len,
                          .flags = reply->flags,
                          .more = reply->scan != 0};
}

static ntee_status framed_open(cursor *c, const ntee_scan_options *options) {
    ntee_reply reply;
    frame_scan(c->d, options);
    ntee_status status = run_request(c->d, NTEE_OP_SCAN, c->buf, c->cap, &reply);
    if (status == NTEE_SHORT_BUFFER && reply.needed > c->cap) {
        grow(c, reply.needed);
        status =
            ntee_run(c->d->db, NTEE_OP_SCAN, 0, c->d->request, c->d->request_len, c->buf, c->cap, &reply);
    }
    if (status == NTEE_OK) describe(c, &reply);
    c->first = 1;
    return status;
}

ntee_status cursor_open(cursor *c, driver *d, const ntee_scan_options *options, size_t cap) {
    *c = (cursor){.d = d};
    grow(c, cap);
    return d->framed ? framed_open(c, options) : ntee_scan_open(d->db, options, &c->scan);
}

static ntee_status framed_page(cursor *c) {
    ntee_reply reply;
    if (c->first || c->number == 0) {
        if (!c->first) c->page = (ntee_page){.data = c->buf};
        c->first = 0;
        return NTEE_OK;
    }
    ntee_status status = ntee_run(c->d->db, NTEE_OP_SCAN_NEXT, 0, &c->number, 8, c->buf, c->cap, &reply);
    if (status == NTEE_SHORT_BUFFER && reply.needed > c->cap) {
        grow(c, reply.needed);
        status = ntee_run(c->d->db, NTEE_OP_SCAN_NEXT, 0, &c->number, 8, c->buf, c->cap, &reply);
    }
    if (status == NTEE_OK) describe(c, &reply);
    return status;
}

ntee_status cursor_page(cursor *c, ntee_page *page, int *more) {
    ntee_status status;
    if (c->d->framed) {
        status = framed_page(c);
    } else {
        status = ntee_scan_page(c->scan, c->buf, c->cap, &c->page);
        if (status == NTEE_SHORT_BUFFER && c->page.needed > c->cap) {
            grow(c, c->page.needed);
            status = ntee_scan_page(c->scan, c->buf, c->cap, &c->page);
        }
    }
    *page = c->page;
    *more = (int)c->page.more;
    return status;
}

void cursor_close(cursor *c) {
    ntee_reply reply;
    if (c->scan) ntee_scan_close(c->scan);
    if (c->number) ntee_run(c->d->db, NTEE_OP_SCAN_CLOSE, 0, &c->number, 8, NULL, 0, &reply);
    free(c->buf);
    *c = (cursor){0};
}
