/*
 * value: from an entry to bytes that can be trusted.
 *
 * Fetching a record checks both of its checksums and, where the caller names one, its key, on every read.
 * In the mapped log the record is looked at in place; otherwise it is copied into memory that the fetch
 * owns.
 */
#ifndef NT_KEYDIR_VALUE_H
#define NT_KEYDIR_VALUE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "format/op.h"
#include "store/log.h"

/* Where positions lead, and under which seed records verify. */
typedef struct nt_source {
    nt_log *log;
    uint64_t base; /* the log's position 0 */
    uint64_t seed;
    uint64_t trusted; /* records below this position may be out of date, see nt_fetch_begin; at least base */
} nt_source;

typedef struct nt_fetch {
    const uint8_t *record; /* the encoded record */
    nt_op op;              /* decoded; points into it */
    uint8_t *owned;        /* memory to free, or NULL */
    uint8_t small[504];    /* copy of a short record where there is no mapping */
} nt_fetch;

/* A key to compare the stored one with; NULL compares nothing (a scan: the tree gave the entry). */
typedef struct nt_wanted {
    const void *key;
    size_t key_len;
} nt_wanted;

/* Fetches the record of `entry`, all of it below position `end`. NTEE_CORRUPT, also where the record is not
 * trusted (damage behind it may have taken its successor), names file, offset and, where wanted, key;
 * NTEE_IO, NTEE_NOMEM. After NTEE_OK call nt_fetch_end. */
ntee_status nt_fetch_begin(nt_fetch *fetch, const nt_source *source, uint64_t entry, uint64_t end,
                           const nt_wanted *wanted, ntee_error *err);
/* The same for a record that a fetch of this version has already verified. */
ntee_status nt_fetch_again(nt_fetch *fetch, const nt_source *source, uint64_t entry, uint64_t end,
                           ntee_error *err);
void nt_fetch_end(nt_fetch *fetch);
/* Whether it is known at all that the record of `entry` is its key's newest one: NTEE_OK, or NTEE_CORRUPT
 * naming the key. Reads nothing. */
ntee_status nt_fetch_doubt(const nt_source *source, uint64_t entry, const void *key, size_t key_len,
                           ntee_error *err);

/* The bytes that the record of `entry` takes, where fetching it is short work: at most `most` of them, all
 * in memory as far as is known. Else 0. */
uint64_t nt_fetch_at_hand(const nt_source *source, uint64_t entry, uint64_t most);
/* The bytes that the record of `entry` claims to take, or 0 where even that is not known to be in memory. */
uint64_t nt_fetch_claim(const nt_source *source, uint64_t entry);
/* Starts loading a mapped record into the processor's cache. */
void nt_fetch_ahead(const nt_source *source, uint64_t entry);

#endif
