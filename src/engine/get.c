#include "engine/get.h"

#include <string.h>

#include "base/bytes.h"
#include "base/os.h"
#include "store/tree.h"

ntee_status nt_check_key(const void *key, size_t key_len, ntee_error *err) {
    if (!key || key_len == 0) return nt_fail(err, NTEE_INVALID, "a key has at least 1 byte");
    if (key_len > NTEE_KEY_MAX)
        return nt_fail(err, NTEE_TOO_LARGE, "the key has %zu bytes, the limit is %u", key_len,
                       NTEE_KEY_MAX);
    return NTEE_OK;
}

/* A status without a text: a miss is no fault and must be cheap. */
static ntee_status quiet(ntee_error *err, ntee_status status) {
    err->status = status;
    err->os_errno = 0;
    err->offset = -1;
    err->item = -1;
    err->message[0] = 0;
    return status;
}

static uint64_t find(const nt_db *db, nt_view view, const void *key, size_t key_len) {
    return nt_tree_find(nt_keydir_arena(db->keydir), view.version->roots[NT_ROOT_KEYS], key,
                        key_len);
}

/* The same for a key whose record is wanted, and brings that near: if it is where it is guessed to be, while
 * the leaf is still on its way. */
static uint64_t find_record(nt_db *db, nt_view view, const nt_wanted *wanted, nt_guess_place *place) {
    const nt_arena *arena = nt_keydir_arena(db->keydir);
    nt_lookup lookup;
    nt_tree_find_begin(arena, view.version->roots[NT_ROOT_KEYS], wanted->key, wanted->key_len, &lookup);
    if (place->bucket) nt_fetch_ahead(&db->source, db->source.base + nt_guess_offset(place));
    uint64_t entry = nt_tree_find_end(arena, &lookup);
    if (entry != NT_ENTRY_NONE &&
        (!place->bucket || !nt_guess_end(place, nt_entry_position(entry) - db->source.base)))
        nt_fetch_ahead(&db->source, entry);
    return entry;
}

/* Copies a fetched value out. */
static ntee_status give(const nt_op *op, void *buf, size_t cap, size_t *len, ntee_kind *kind,
                        ntee_error *err) {
    *len = op->value_len;
    if (kind) *kind = (ntee_kind)op->value_kind;
    if (op->value_len > cap)
        return nt_fail(err, NTEE_SHORT_BUFFER, "the value has %u bytes, the buffer %zu",
                       op->value_len, cap);
    if (op->value_len) memcpy(buf, op->value, op->value_len);
    return NTEE_OK;
}

ntee_status nt_get(nt_db *db, const void *key, size_t key_len, void *buf, size_t cap, size_t *len,
                   ntee_kind *kind, int at_hand, ntee_error *err) {
    nt_wanted wanted = {key, key_len};
    nt_fetch fetch;
    ntee_status status = nt_check_key(key, key_len, err);
    if (status != NTEE_OK) return status;
    nt_guess_place place;
    nt_guess_begin(&db->guess, key, key_len, &place);
    nt_view view = nt_keydir_enter(db->keydir);
    uint64_t entry = find_record(db, view, &wanted, &place);
    if (entry == NT_ENTRY_NONE) {
        status = quiet(err, NTEE_NOT_FOUND);
        goto out;
    }
    if (at_hand && !nt_fetch_at_hand(&db->source, entry, NT_AT_HAND_RECORD)) {
        *len = (size_t)nt_fetch_claim(&db->source, entry);
        status = quiet(err, NTEE_WOULD_BLOCK);
        goto out;
    }
    status = nt_fetch_begin(&fetch, &db->source, entry, view.version->log_end, &wanted, err);
    if (status != NTEE_OK) goto out;
    if (at_hand && fetch.op.value_len > NT_AT_HAND_BYTES) {
        *len = fetch.op.value_len;
        status = quiet(err, NTEE_WOULD_BLOCK);
    } else {
        status = give(&fetch.op, buf, cap, len, kind, err);
    }
    if (!at_hand)
        nt_log_touched(db->source.log, nt_entry_position(entry) - db->source.base,
                       NT_RECORD_HEAD_SIZE + (size_t)fetch.op.key_len + fetch.op.value_len);
    nt_fetch_end(&fetch);
out:
    nt_keydir_leave(db->keydir, view);
    return status;
}

ntee_status nt_has(nt_db *db, const void *key, size_t key_len, ntee_error *err) {
    ntee_status status = nt_check_key(key, key_len, err);
    if (status != NTEE_OK) return status;
    nt_view view = nt_keydir_enter(db->keydir);
    uint64_t entry = find(db, view, key, key_len);
    status = entry == NT_ENTRY_NONE ? quiet(err, NTEE_NOT_FOUND)
                                    : nt_fetch_doubt(&db->source, entry, key, key_len, err);
    nt_keydir_leave(db->keydir, view);
    return status;
}

/* The planned entries of a get_many, and what they need where the page is too small. */
typedef struct many {
    nt_buf entries;
    uint64_t needed;
    int full;
} many;

/* Looks one key up, verifies its record, and plans its place in the page. */
static ntee_status plan_one(nt_db *db, nt_view view, const nt_wanted *wanted, nt_page_plan *page,
                            int at_hand, many *plan, ntee_error *err) {
    nt_guess_place place;
    nt_guess_begin(&db->guess, wanted->key, wanted->key_len, &place);
    uint64_t entry = find_record(db, view, wanted, &place);
    uint64_t value_len = 4; /* "null" */
    ntee_kind kind = NTEE_MISSING;
    nt_fetch fetch;
    if (entry != NT_ENTRY_NONE) {
        if (at_hand && !nt_fetch_at_hand(&db->source, entry, NT_AT_HAND_RECORD))
            return quiet(err, NTEE_WOULD_BLOCK);
        ntee_status status =
            nt_fetch_begin(&fetch, &db->source, entry, view.version->log_end, wanted, err);
        if (status != NTEE_OK) return status;
        value_len = fetch.op.value_len;
        kind = (ntee_kind)fetch.op.value_kind;
        nt_fetch_end(&fetch);
    }
    plan->needed += value_len + 1 + NT_PAGE_ENTRY_SIZE;
    if (at_hand && (plan->needed > NT_AT_HAND_BYTES + 64 || page->count >= NT_AT_HAND_KEYS))
        return quiet(err, NTEE_WOULD_BLOCK);
    plan->full |= !nt_page_add(page, 0, value_len, kind);
    if (!nt_buf_append(&plan->entries, &entry, sizeof entry))
        return nt_fail(err, NTEE_NOMEM, "no memory for a list of keys");
    return NTEE_OK;
}

/* Copies the planned values into the page. */
static ntee_status fill_many(nt_db *db, nt_view view, nt_page_plan *page, const many *plan,
                             ntee_error *err) {
    for (size_t at = 0; at < plan->entries.len; at += sizeof(uint64_t)) {
        uint64_t entry = nt_load64(plan->entries.data + at);
        uint8_t *key, *value;
        uint64_t value_at = page->value_at;
        nt_fetch fetch;
        nt_page_fill(page, &key, &value);
        if (entry == NT_ENTRY_NONE) {
            memcpy(value, "null", 4);
            continue;
        }
        ntee_status status =
            nt_fetch_again(&fetch, &db->source, entry, view.version->log_end, err);
        if (status != NTEE_OK) return status;
        /* A dying disk may give other bytes than it gave to the plan: they must not outgrow their place. */
        if (fetch.op.value_len != page->value_at - value_at - 1u) {
            nt_fetch_end(&fetch);
            return nt_fail_corrupt(err, nt_log_name(db->log), nt_entry_position(entry) - db->source.base,
                                   "the record changed while it was read");
        }
        if (fetch.op.value_len) memcpy(value, fetch.op.value, fetch.op.value_len);
        nt_fetch_end(&fetch);
    }
    nt_page_end(page);
    return NTEE_OK;
}

ntee_status nt_get_many(nt_db *db, const void *keys, size_t len, nt_page_plan *page, int at_hand,
                        uint64_t *needed, ntee_error *err) {
    nt_wire_reader reader = {.at = keys, .remaining = len, .item = -1};
    many plan = {.needed = 16};
    const uint8_t *key;
    size_t key_len;
    int got;
    ntee_status status = NTEE_OK;
    nt_view view = nt_keydir_enter(db->keydir);
    while ((got = nt_wire_next_key(&reader, &key, &key_len, err)) == 1) {
        nt_wanted wanted = {key, key_len};
        status = nt_check_key(key, key_len, err);
        if (status == NTEE_OK) status = plan_one(db, view, &wanted, page, at_hand, &plan, err);
        if (status != NTEE_OK) {
            err->item = reader.item;
            goto out;
        }
    }
    if (got < 0) {
        status = err->status;
        goto out;
    }
    *needed = plan.needed;
    if (plan.full)
        status = nt_fail(err, NTEE_SHORT_BUFFER, "the values need a page of %llu bytes",
                         (unsigned long long)plan.needed);
    else
        status = fill_many(db, view, page, &plan, err);
out:
    nt_buf_free(&plan.entries);
    nt_keydir_leave(db->keydir, view);
    return status;
}
