/*
 * wire: the framed bytes that cross the library's border: writes, keys and scan requests in, pages out.
 * docs/wire.md is its prose; the Node binding has a twin of this module.
 *
 * Requests are packed without alignment; every length in them is checked here. Values in a page stand between
 * '[' and ']' with ',' between them, so that a page of JSON values is one JSON array.
 */
#ifndef NT_FORMAT_WIRE_H
#define NT_FORMAT_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/status.h"
#include "format/op.h"

/* ---- Writes ---- */

enum { NT_WIRE_PUT = 1, NT_WIRE_DELETE = 2, NT_WIRE_PUT_IF_ABSENT = 3 };
#define NT_WIRE_WRITE_HEAD 8u

typedef struct nt_wire_write {
    uint8_t type;   /* NT_WIRE_* */
    uint8_t object; /* 1: the caller has made the value as the text of a JSON object */
    uint16_t key_len;
    uint32_t value_len;
    const uint8_t *key;
    const uint8_t *value;
} nt_wire_write;

typedef struct nt_wire_reader {
    const uint8_t *at;
    size_t remaining;
    int64_t item; /* position of the item that was read last; -1 at first */
} nt_wire_reader;

/* Reads the next write: 1, 0 at the end, or -1 with *err set (its item says which): malformed, a key of 0
 * bytes, options of later versions. */
int nt_wire_next_write(nt_wire_reader *reader, nt_wire_write *write, ntee_error *err);
/* Appends a write; 1, or 0 where memory is short. Lengths are within the limits. */
int nt_wire_add_write(nt_buf *buf, uint8_t type, const void *key, size_t key_len, const void *value,
                      size_t value_len);

/* ---- Keys ---- */

/* Reads the next key of a key list: 1, 0 at the end, or -1 with *err set (NTEE_INVALID). */
int nt_wire_next_key(nt_wire_reader *reader, const uint8_t **key, size_t *key_len, ntee_error *err);

/* ---- Scan requests ---- */

/* A scan as the public header's struct; pointers go into `in`. A bound that is there is never NULL, one that
 * is not there is NULL. Whether the flags go together is for ntee_scan_open's checks. NTEE_INVALID,
 * NTEE_TOO_LARGE. */
ntee_status nt_wire_scan(const void *in, size_t in_len, ntee_scan_options *scan, ntee_error *err);

/* ---- Pages ---- */

/*
 * A page of records is planned first and filled then: the planner is told every entry's lengths, in order,
 * and says whether it still fits; nt_page_fill then gives each entry's place, for the caller to copy key and
 * value.
 *
 *   | keys, one behind the other | [ value , value , ... ] |  free  | entry n-1 ... entry 1 entry 0 |
 *
 * An entry with a value is 8 bytes: u16 key length, u8 kind, u8 0, u32 value length. Without values it is the
 * u16 key length alone (nt_walk_take_keys of store/tree_walk writes those). Entry 0 ends at the capacity.
 *
 * Invariant: keys_len + values_len + 8 * count <= capacity.
 */
typedef struct nt_page_plan {
    uint8_t *data;
    uint64_t capacity;   /* a multiple of 8 */
    uint64_t count;
    uint64_t keys_len;
    uint64_t values_len; /* brackets and commas included; 0 only where the capacity is 0 */
    uint64_t filled;     /* entries filled so far */
    uint64_t key_at;     /* where the filling stands: in the keys, */
    uint64_t value_at;   /* and in the values: at the bracket or comma before the next one */
    uint8_t seen;        /* OR of all key bytes */
    int all_json;        /* every entry is NTEE_JSON, NTEE_OBJECT or NTEE_MISSING */
} nt_page_plan;

#define NT_PAGE_ENTRY_SIZE 8u

/* Begins a page in `data`; `capacity` is rounded down to a multiple of 8. */
void nt_page_begin(nt_page_plan *page, void *data, size_t capacity);
/* Plans an entry: 1, or 0 where it does not fit (the page is as it was). The text of an NTEE_MISSING entry is
 * "null", whatever `value_len` says. Not once the filling has begun. */
int nt_page_add(nt_page_plan *page, size_t key_len, uint64_t value_len, ntee_kind kind);
/* Bytes of a page that holds just this entry (4 bytes of value for NTEE_MISSING); a multiple of 8. */
uint64_t nt_page_needed(size_t key_len, uint64_t value_len);
/* Forgets planned entries from number `count` on (one turned out to be damaged), filled ones too; what was
 * filled before them stays. Afterwards `seen` may name bytes of a key that is gone. */
void nt_page_truncate(nt_page_plan *page, uint64_t count);
/* After planning: gives the place of entry number `filled`'s key and value (their planned lengths) and goes
 * on to the next one. The caller copies the bytes; nt_page_seen then notes the key's. The value of an
 * NTEE_MISSING entry is written already. */
void nt_page_fill(nt_page_plan *page, uint8_t **key, uint8_t **value);
void nt_page_seen(nt_page_plan *page, const uint8_t *key, size_t key_len);
/* Ends a page: the closing bracket. Every planned entry has been filled. A page of no entries is "[]". */
void nt_page_end(nt_page_plan *page);

#endif
