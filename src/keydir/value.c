#include "keydir/value.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/os.h"
#include "format/record.h"
#include "keydir/keydir.h"

static ntee_status fail(const nt_source *source, uint64_t offset, const char *reason,
                        const nt_wanted *wanted, ntee_error *err) {
    char key[96];
    char what[192];
    if (!wanted) return nt_fail_corrupt(err, nt_log_name(source->log), offset, reason);
    snprintf(what, sizeof what, "%s, key %s", reason,
             nt_show_key(key, sizeof key, wanted->key, wanted->key_len));
    return nt_fail_corrupt(err, nt_log_name(source->log), offset, what);
}

static ntee_status corrupt(const nt_source *source, uint64_t offset, const nt_wanted *wanted,
                           ntee_error *err) {
    return fail(source, offset, "the record does not match its checksum", wanted, err);
}

/* Whether nothing is known about what came after a position. */
static inline int doubtful(const nt_source *source, uint64_t position) { return position < source->trusted; }

static ntee_status doubt(const nt_source *source, uint64_t position, const nt_wanted *wanted,
                         ntee_error *err) {
    return fail(source, position - source->base,
                "what was written later is damaged, so the record may be out of date", wanted, err);
}

ntee_status nt_fetch_doubt(const nt_source *source, uint64_t entry, const void *key, size_t key_len,
                           ntee_error *err) {
    nt_wanted wanted = {key, key_len};
    uint64_t position = nt_entry_position(entry);
    return doubtful(source, position) ? doubt(source, position, &wanted, err) : NTEE_OK;
}

/* Copies the record at `offset` into memory. *size is its size, or more than `remaining` where what it
 * claims cannot be. */
static ntee_status copy_record(nt_fetch *fetch, const nt_source *source, uint64_t offset,
                               uint64_t remaining, uint64_t *size, ntee_error *err) {
    size_t got = (size_t)(remaining < sizeof fetch->small ? remaining : sizeof fetch->small);
    ntee_status status = nt_log_read(source->log, offset, fetch->small, got, err);
    if (status != NTEE_OK) return status;
    fetch->record = fetch->small;
    while ((*size = nt_record_claimed_size(fetch->record, got)) > got) {
        if (*size > remaining) return NTEE_OK;
        uint8_t *grown = nt_realloc(fetch->owned, (size_t)*size);
        if (!grown) {
            nt_fetch_end(fetch);
            return nt_fail(err, NTEE_NOMEM, "no memory for a record of the log");
        }
        fetch->owned = grown;
        fetch->record = grown;
        status = nt_log_read(source->log, offset, grown, (size_t)*size, err);
        if (status != NTEE_OK) {
            nt_fetch_end(fetch);
            return status;
        }
        got = (size_t)*size;
    }
    return NTEE_OK;
}

/* Sets fetch->record to the record and decodes it. *whole is 0 where its structure is broken. */
static inline ntee_status locate(nt_fetch *fetch, const nt_source *source, uint64_t offset,
                                 uint64_t remaining, int *whole, ntee_error *err) {
    uint64_t size = remaining;
    *whole = 0;
    if (remaining < NT_RECORD_HEAD_SIZE) return NTEE_OK;
    fetch->record = nt_log_view(source->log, offset, (size_t)remaining);
    if (!fetch->record) {
        ntee_status status = copy_record(fetch, source, offset, remaining, &size, err);
        if (status != NTEE_OK || size > remaining) return status;
    }
    *whole = nt_record_decode(fetch->record, size, &fetch->op) != 0;
    return NTEE_OK;
}

ntee_status nt_fetch_begin(nt_fetch *fetch, const nt_source *source, uint64_t entry, uint64_t end,
                           const nt_wanted *wanted, ntee_error *err) {
    uint64_t position = nt_entry_position(entry);
    uint64_t offset = position - source->base;
    int whole;
    fetch->owned = NULL;
    if (doubtful(source, position)) return doubt(source, position, wanted, err);
    if ((entry & NT_ENTRY_DAMAGED) || position >= end) return corrupt(source, offset, wanted, err);
    ntee_status status = locate(fetch, source, offset, end - position, &whole, err);
    if (status != NTEE_OK) return status;
    const nt_op *op = &fetch->op;
    if (!whole || op->kind != NT_OP_PUT || !nt_record_key_ok(fetch->record, op, source->seed) ||
        (wanted && nt_compare(op->key, op->key_len, wanted->key, wanted->key_len) != 0) ||
        !nt_record_value_ok(fetch->record, op, source->seed)) {
        nt_fetch_end(fetch);
        return corrupt(source, offset, wanted, err);
    }
    return NTEE_OK;
}

ntee_status nt_fetch_again(nt_fetch *fetch, const nt_source *source, uint64_t entry, uint64_t end,
                           ntee_error *err) {
    uint64_t position = nt_entry_position(entry);
    int whole;
    fetch->owned = NULL;
    ntee_status status =
        locate(fetch, source, position - source->base, end - position, &whole, err);
    if (status != NTEE_OK) return status;
    if (whole && (fetch->owned || fetch->record == fetch->small)) /* other bytes may have come this time */
        whole = nt_record_key_ok(fetch->record, &fetch->op, source->seed) &&
                nt_record_value_ok(fetch->record, &fetch->op, source->seed);
    if (whole && fetch->op.value) return NTEE_OK;
    nt_fetch_end(fetch);
    return corrupt(source, position - source->base, NULL, err);
}

void nt_fetch_end(nt_fetch *fetch) {
    if (fetch->owned) nt_free(fetch->owned);
    fetch->owned = NULL;
}

uint64_t nt_fetch_claim(const nt_source *source, uint64_t entry) {
    uint64_t offset = nt_entry_position(entry) - source->base;
    if (!nt_log_at_hand(source->log, offset, NT_RECORD_HEAD_SIZE)) return 0;
    const uint8_t *head = nt_log_view(source->log, offset, NT_RECORD_HEAD_SIZE);
    return head ? nt_record_claimed_size(head, NT_RECORD_HEAD_SIZE) : 0;
}

uint64_t nt_fetch_at_hand(const nt_source *source, uint64_t entry, uint64_t most) {
    uint64_t offset = nt_entry_position(entry) - source->base;
    uint64_t size = nt_fetch_claim(source, entry);
    return size <= most && nt_log_at_hand(source->log, offset, (size_t)size) ? size : 0;
}

void nt_fetch_ahead(const nt_source *source, uint64_t entry) {
    const uint8_t *at =
        nt_log_view(source->log, nt_entry_position(entry) - source->base, NT_RECORD_HEAD_SIZE);
    if (!at) return;
    __builtin_prefetch(at);
    __builtin_prefetch(at + 64);
    __builtin_prefetch(at + 128);
    __builtin_prefetch(at + 192);
}
