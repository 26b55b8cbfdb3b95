/* ntee_run: one framed call, for bindings. */
#include <string.h>

#include "api/handle.h"
#include "base/bytes.h"
#include "base/os.h"
#include "engine/commit.h"
#include "engine/get.h"
#include "engine/scan.h"
#include "engine/verify.h"

/* A call's arguments, checked. */
typedef struct call {
    ntee *db;
    const void *in;
    size_t in_len;
    void *out;
    size_t out_cap;
    int at_hand;
    int fields;
    ntee_reply *reply;
} call;

static ntee_status would_block(ntee_error *err) {
    return nt_fail(err, NTEE_WOULD_BLOCK, "the answer is not at hand");
}

/* ---- One key, several keys, writes ---- */

/* Puts a zero and the fields of the object in `out` behind it, where it fits a shape and there is room. */
static void add_fields(const call *c, size_t len) {
    size_t place = (size_t)nt_align8(len + 1u), text_len = 0;
    if (len > NT_SHAPES_TEXT || place > c->out_cap || c->out_cap - place < NT_SHAPES_ROOM) return;
    uint8_t *text = c->out;
    uint32_t number = nt_shapes_match(&c->db->shapes, text, len, 0, text + place, &text_len);
    if (text_len != len) return; /* white space is behind it */
    text[len] = 0;
    c->reply->count = number;
}

static ntee_status run_get(const call *c, ntee_error *err) {
    size_t len = 0;
    ntee_kind kind = NTEE_BINARY;
    ntee_status status = nt_get(&c->db->db, c->in, c->in_len, c->out, c->out_cap, &len, &kind,
                                c->at_hand, err);
    c->reply->length = len;
    c->reply->needed = len;
    c->reply->kind = (uint32_t)kind;
    if (c->fields && status == NTEE_OK && kind == NTEE_OBJECT) add_fields(c, len);
    return status;
}

static ntee_status run_get_many(const call *c, ntee_error *err) {
    nt_page_plan page;
    nt_page_begin(&page, c->out, c->out_cap);
    ntee_status status = nt_get_many(&c->db->db, c->in, c->in_len, &page, c->at_hand,
                                     &c->reply->needed, err);
    c->reply->count = page.count;
    c->reply->values_len = page.values_len;
    c->reply->flags = NTEE_PAGE_VALUES | (page.all_json ? NTEE_PAGE_ALL_JSON : 0u);
    return status;
}

static ntee_status run_write(const call *c, ntee_error *err) {
    nt_write write;
    if (c->at_hand && c->in_len > NT_AT_HAND_BYTES) return would_block(err);
    nt_write_begin(&write, &c->db->db);
    ntee_status status = nt_write_add_framed(&write, c->in, c->in_len, err);
    if (status == NTEE_OK) status = nt_handle_write(c->db, &write, c->at_hand, err);
    c->reply->count = status == NTEE_OK ? write.effective : 0;
    nt_write_end(&write);
    return status;
}

/* ---- Scans ---- */

static void describe(const call *c, const ntee_page *page) {
    c->reply->count = page->count;
    c->reply->keys_len = page->keys_len;
    c->reply->values_len = page->values_len;
    c->reply->flags = page->flags;
    c->reply->needed = page->needed;
}

/* Puts a scan into a free slot; its number, or 0 where memory is short. */
static uint64_t keep_scan(ntee *db, nt_scan *scan) {
    uint64_t number = 0;
    uint32_t slot = 0;
    pthread_mutex_lock(&db->scans_mutex);
    while (slot < db->scan_count && db->scans[slot].scan) slot++;
    if (slot == db->scan_count) {
        uint32_t count = db->scan_count ? db->scan_count * 2 : 8;
        nt_scan_slot *grown = nt_realloc(db->scans, count * sizeof *grown);
        if (!grown) goto out;
        memset(grown + slot, 0, (count - slot) * sizeof *grown);
        db->scans = grown;
        db->scan_count = count;
    }
    db->scans[slot].scan = scan;
    db->scans[slot].busy = 0;
    db->scans[slot].generation++;
    number = (uint64_t)db->scans[slot].generation << 32 | (slot + 1u);
out:
    pthread_mutex_unlock(&db->scans_mutex);
    return number;
}

/* Takes a scan for one page (or to end it): NULL where the number is not an open one, or it is busy. */
static nt_scan *take_scan(ntee *db, uint64_t number) {
    nt_scan *scan = NULL;
    uint64_t slot = (number & 0xFFFFFFFFu) - 1u;
    pthread_mutex_lock(&db->scans_mutex);
    if (slot < db->scan_count && db->scans[slot].generation == number >> 32 &&
        !db->scans[slot].busy) {
        scan = db->scans[slot].scan;
        db->scans[slot].busy = scan != NULL;
    }
    pthread_mutex_unlock(&db->scans_mutex);
    return scan;
}

/* Gives a scan back, or lets its slot go. */
static void give_back(ntee *db, uint64_t number, int ended) {
    nt_scan_slot *slot;
    pthread_mutex_lock(&db->scans_mutex);
    slot = &db->scans[(number & 0xFFFFFFFFu) - 1u];
    slot->busy = 0;
    if (ended) slot->scan = NULL;
    pthread_mutex_unlock(&db->scans_mutex);
}

static void end_scan(nt_scan *scan) {
    nt_scan_end(scan);
    nt_free(scan);
}

void nt_handle_end_scans(struct ntee *db) {
    for (uint32_t i = 0; i < db->scan_count; i++)
        if (db->scans[i].scan) end_scan(db->scans[i].scan);
    nt_free(db->scans);
    db->scans = NULL;
    db->scan_count = 0;
}

static ntee_status run_scan(const call *c, ntee_error *err) {
    ntee_scan_options options;
    ntee_page page;
    ntee_status status = nt_wire_scan(c->in, c->in_len, &options, err);
    if (status != NTEE_OK) return status;
    nt_scan *scan = nt_alloc(sizeof *scan);
    if (!scan) return nt_fail(err, NTEE_NOMEM, "no memory for a scan");
    status = nt_scan_begin(scan, &c->db->db, &options, err);
    if (status != NTEE_OK) {
        nt_free(scan);
        return status;
    }
    if (c->at_hand && !nt_scan_at_hand(scan)) {
        c->reply->needed = nt_scan_estimate(scan);
        c->reply->count = scan->remaining;
        status = would_block(err);
        goto end;
    }
    status = nt_scan_fill(scan, c->out, c->out_cap, &page, err);
    describe(c, &page);
    if (status != NTEE_OK || !page.more) goto end;
    if (c->at_hand) {
        c->reply->needed = nt_scan_estimate(scan) + c->out_cap;
        status = would_block(err);
        goto end;
    }
    c->reply->scan = keep_scan(c->db, scan);
    if (c->reply->scan) return NTEE_OK;
    status = nt_fail(err, NTEE_NOMEM, "no memory for a scan");
end:
    end_scan(scan);
    return status;
}

static ntee_status no_scan(ntee_error *err) {
    return nt_fail(err, NTEE_INVALID, "there is no such open scan, or it is busy");
}

static ntee_status run_scan_next(const call *c, ntee_error *err) {
    ntee_page page;
    if (c->in_len != 8) return no_scan(err);
    uint64_t number = nt_load64(c->in);
    nt_scan *scan = take_scan(c->db, number);
    if (!scan) return no_scan(err);
    c->reply->scan = number;
    if (c->at_hand && !nt_scan_at_hand(scan)) {
        c->reply->needed = nt_scan_estimate(scan);
        give_back(c->db, number, 0);
        return would_block(err);
    }
    ntee_status status = nt_scan_fill(scan, c->out, c->out_cap, &page, err);
    int ended = status == NTEE_OK && !page.more;
    describe(c, &page);
    give_back(c->db, number, ended);
    if (!ended) return status;
    c->reply->scan = 0;
    end_scan(scan);
    return status;
}

static ntee_status run_scan_close(const call *c, ntee_error *err) {
    if (c->in_len != 8) return no_scan(err);
    uint64_t number = nt_load64(c->in);
    nt_scan *scan = take_scan(c->db, number);
    if (!scan) return no_scan(err);
    give_back(c->db, number, 1);
    end_scan(scan);
    return NTEE_OK;
}

static ntee_status run_count(const call *c, ntee_error *err) {
    ntee_scan_options options;
    ntee_status status = nt_wire_scan(c->in, c->in_len, &options, err);
    return status == NTEE_OK ? nt_count(&c->db->db, &options, &c->reply->count, err) : status;
}

/* ---- The store as a whole ---- */

static ntee_status run_stats(const call *c, ntee_error *err) {
    uint64_t figures[3] = {0, nt_log_tail(c->db->db.log), 0};
    c->reply->needed = sizeof figures;
    if (c->out_cap < sizeof figures)
        return nt_fail(err, NTEE_SHORT_BUFFER, "the figures need %zu bytes", sizeof figures);
    ntee_status status = nt_count_all(&c->db->db, &figures[0], err);
    memcpy(c->out, figures, sizeof figures);
    c->reply->length = sizeof figures;
    return status;
}

static ntee_status run_sync(const call *c, ntee_error *err) {
    if (c->at_hand) return nt_writer_is_dirty(&c->db->writer) ? would_block(err) : NTEE_OK;
    return nt_handle_sync(c->db, err);
}

/* Results that are structs, and no bytes. */
static ntee_status check_aligned(const call *c, ntee_error *err) {
    if ((uintptr_t)c->out % 8 == 0) return NTEE_OK;
    return nt_fail(err, NTEE_INVALID, "the place for the result is not 8-byte aligned");
}

static ntee_status run_details(const call *c, ntee_error *err) {
    ntee_details_t details;
    size_t places = nt_handle_damage(c->db, NULL, 0);
    ntee_status status = check_aligned(c, err);
    if (status == NTEE_OK) status = nt_handle_details(c->db, &details, err);
    if (status != NTEE_OK) return status;
    c->reply->needed = sizeof details + places * sizeof(ntee_place);
    if (c->out_cap < c->reply->needed)
        return nt_fail(err, NTEE_SHORT_BUFFER, "the details need %llu bytes",
                       (unsigned long long)c->reply->needed);
    memcpy(c->out, &details, sizeof details);
    nt_handle_damage(c->db, (ntee_place *)(void *)((uint8_t *)c->out + sizeof details), places);
    c->reply->length = c->reply->needed;
    c->reply->count = details.damaged;
    return NTEE_OK;
}

static ntee_status run_verify(const call *c, ntee_error *err) {
    nt_findings findings = {.found = c->out, .cap = c->out_cap / sizeof(ntee_error)};
    if (c->at_hand) return would_block(err);
    ntee_status status = check_aligned(c, err);
    if (status == NTEE_OK) status = nt_verify(&c->db->db, &findings, err);
    c->reply->count = findings.count;
    c->reply->length = sizeof(ntee_error) * (findings.count < findings.cap ? findings.count : findings.cap);
    return status;
}

/* ---- Shapes ---- */

static ntee_status run_shape(const call *c, ntee_error *err) {
    uint32_t number = 0;
    ntee_status status = nt_shapes_add(&c->db->shapes, c->in, c->in_len, &number, err);
    if (status == NTEE_OK) c->reply->count = number;
    return status;
}

static ntee_status run_fields(const call *c, ntee_error *err) {
    nt_shapes_done done;
    c->reply->needed = NT_FIELD_SIZE + NT_SHAPES_ROOM;
    ntee_status status = nt_shapes_take(&c->db->shapes, c->in, c->in_len, c->out, c->out_cap, &done, err);
    if (status != NTEE_OK) return status;
    c->reply->count = done.texts;
    c->reply->length = done.used;
    return NTEE_OK;
}

static ntee_status dispatch(const call *c, uint32_t op, ntee_error *err) {
    switch (op) {
    case NTEE_OP_GET: return run_get(c, err);
    case NTEE_OP_HAS: return nt_has(&c->db->db, c->in, c->in_len, err);
    case NTEE_OP_GET_MANY: return run_get_many(c, err);
    case NTEE_OP_WRITE: return run_write(c, err);
    case NTEE_OP_SCAN: return run_scan(c, err);
    case NTEE_OP_SCAN_NEXT: return run_scan_next(c, err);
    case NTEE_OP_SCAN_CLOSE: return run_scan_close(c, err);
    case NTEE_OP_COUNT: return run_count(c, err);
    case NTEE_OP_STATS: return run_stats(c, err);
    case NTEE_OP_SYNC: return run_sync(c, err);
    case NTEE_OP_SHAPE: return run_shape(c, err);
    case NTEE_OP_FIELDS: return run_fields(c, err);
    case NTEE_OP_DETAILS: return run_details(c, err);
    case NTEE_OP_VERIFY: return run_verify(c, err);
    default: return nt_fail(err, NTEE_INVALID, "unknown operation %u", op);
    }
}

static ntee_error *begin_reply(ntee_reply *reply) {
    memset(reply, 0, offsetof(ntee_reply, error));
    reply->error.status = NTEE_OK;
    return &reply->error;
}

ntee_status ntee_run(ntee *db, uint32_t op, uint32_t flags, const void *in, size_t in_len,
                     void *out, size_t out_cap, ntee_reply *reply) {
    ntee_call how = {db, op, flags, in, in_len, out, out_cap, reply};
    return ntee_run_call(&how);
}

ntee_status ntee_run_call(const ntee_call *how) {
    ntee_reply *reply = how->reply;
    if (!reply) return nt_fail(nt_last_error(), NTEE_INVALID, "the reply is NULL");
    ntee_error *err = begin_reply(reply);
    call c = {how->db, how->in ? how->in : "", how->in_len, how->out, how->out_cap,
              (how->flags & NTEE_AT_HAND) != 0, (how->flags & NTEE_FIELDS) != 0, reply};
    ntee_status status = nt_handle_check(c.db, err);
    if (status != NTEE_OK) return status;
    if ((!how->in && c.in_len) || (!c.out && c.out_cap) ||
        (how->flags & ~(uint32_t)(NTEE_AT_HAND | NTEE_FIELDS)) || (c.fields && how->op != NTEE_OP_GET))
        return nt_fail(err, NTEE_INVALID, "a buffer is NULL or a flag is unknown");
    return dispatch(&c, how->op, err);
}

/* Makes bytes of units, which are all to be below 128: whether they are. */
static int narrow(const uint16_t *units, size_t count, uint8_t *bytes) {
    uint64_t seen = 0;
    size_t i = 0;
    for (; count - i >= 4; i += 4) {
        uint64_t four = nt_load64(units + i);
        seen |= four;
        four = (four | four >> 8) & 0x0000FFFF0000FFFFu;
        nt_store32(bytes + i, (uint32_t)(four | four >> 16));
    }
    for (; i < count; i++) {
        seen |= units[i];
        bytes[i] = (uint8_t)units[i];
    }
    return (seen & 0xFF80FF80FF80FF80u) == 0;
}

const char *ntee_run_units(const ntee_call *how, const uint16_t *units) {
    uint8_t key[NTEE_UNITS_MAX];
    ntee_call narrowed = *how;
    narrowed.in = key;
    int fits = units && how->in_len <= NTEE_UNITS_MAX && narrow(units, how->in_len, key) &&
               (how->op == NTEE_OP_GET || how->op == NTEE_OP_HAS);
    if (!fits) {
        if (how->reply) nt_fail(begin_reply(how->reply), NTEE_INVALID, "not a short key of ASCII");
        return NULL;
    }
    if (ntee_run_call(&narrowed) != NTEE_OK || how->reply->count == 0) return NULL;
    return how->out;
}
