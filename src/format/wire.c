#include "format/wire.h"

#include <string.h>

#include "base/bytes.h"

/* ---- Writes -------------------------------------------------------------------------------------- */

enum {
    WRITE_TYPE = 0,
    WRITE_FLAGS = 1,
    WRITE_KEY_LEN = 2,
    WRITE_VALUE_LEN = 4,
    WRITE_FLAG_TTL = 1,
    WRITE_FLAG_INDEX = 2,
    WRITE_FLAG_OBJECT = 4
};

/* Refuses the reader's current item: -1, what the readers answer. */
static int refuse(const nt_wire_reader *reader, ntee_error *err, const char *why) {
    nt_fail(err, NTEE_INVALID, "item %lld: %s", (long long)reader->item, why);
    err->item = reader->item;
    return -1;
}

/* What is wrong with a write's head, or NULL. */
static const char *write_fault(const uint8_t *head) {
    uint8_t type = head[WRITE_TYPE];
    uint8_t flags = head[WRITE_FLAGS];
    if (type < NT_WIRE_PUT || type > NT_WIRE_PUT_IF_ABSENT) return "no such type of write";
    if (flags & ~(WRITE_FLAG_TTL | WRITE_FLAG_INDEX | WRITE_FLAG_OBJECT)) return "unknown flags";
    if (flags & WRITE_FLAG_TTL) return "a time to live is not supported yet";
    if (flags & WRITE_FLAG_INDEX) return "index values are not supported yet";
    if (nt_load16(head + WRITE_KEY_LEN) == 0) return "the key is empty";
    if (type == NT_WIRE_DELETE && nt_load32(head + WRITE_VALUE_LEN) != 0) return "a delete with a value";
    if (flags & WRITE_FLAG_OBJECT && nt_load32(head + WRITE_VALUE_LEN) < 2) return "not an object";
    return NULL;
}

int nt_wire_next_write(nt_wire_reader *reader, nt_wire_write *write, ntee_error *err) {
    if (reader->remaining == 0) return 0;
    reader->item++;
    if (reader->remaining < NT_WIRE_WRITE_HEAD) return refuse(reader, err, "cut off");
    const uint8_t *head = reader->at;
    const char *fault = write_fault(head);
    if (fault != NULL) return refuse(reader, err, fault);
    size_t left = reader->remaining - NT_WIRE_WRITE_HEAD;
    uint16_t key_len = nt_load16(head + WRITE_KEY_LEN);
    uint32_t value_len = nt_load32(head + WRITE_VALUE_LEN);
    if (key_len > left || value_len > left - key_len) return refuse(reader, err, "cut off");
    *write = (nt_wire_write){
        .type = head[WRITE_TYPE],
        .object = (head[WRITE_FLAGS] & WRITE_FLAG_OBJECT) != 0,
        .key_len = key_len,
        .value_len = value_len,
        .key = head + NT_WIRE_WRITE_HEAD,
        .value = head + NT_WIRE_WRITE_HEAD + key_len,
    };
    reader->at = write->value + value_len;
    reader->remaining = left - key_len - value_len;
    return 1;
}

int nt_wire_add_write(nt_buf *buf, uint8_t type, const void *key, size_t key_len, const void *value,
                      size_t value_len) {
    if (!nt_buf_reserve(buf, NT_WIRE_WRITE_HEAD + key_len + value_len)) return 0;
    uint8_t *at = buf->data + buf->len;
    at[WRITE_TYPE] = type;
    at[WRITE_FLAGS] = 0;
    nt_store16(at + WRITE_KEY_LEN, (uint16_t)key_len);
    nt_store32(at + WRITE_VALUE_LEN, (uint32_t)value_len);
    memcpy(at + NT_WIRE_WRITE_HEAD, key, key_len);
    if (value_len > 0) memcpy(at + NT_WIRE_WRITE_HEAD + key_len, value, value_len);
    buf->len += NT_WIRE_WRITE_HEAD + key_len + value_len;
    return 1;
}

/* ---- Keys ---------------------------------------------------------------------------------------- */

enum { KEY_HEAD = 2 };

int nt_wire_next_key(nt_wire_reader *reader, const uint8_t **key, size_t *key_len, ntee_error *err) {
    if (reader->remaining == 0) return 0;
    reader->item++;
    if (reader->remaining < KEY_HEAD) return refuse(reader, err, "cut off");
    size_t len = nt_load16(reader->at);
    if (len == 0) return refuse(reader, err, "the key is empty");
    if (len > reader->remaining - KEY_HEAD) return refuse(reader, err, "cut off");
    *key = reader->at + KEY_HEAD;
    *key_len = len;
    reader->at += KEY_HEAD + len;
    reader->remaining -= KEY_HEAD + len;
    return 1;
}

/* ---- Scan requests ------------------------------------------------------------------------------- */

enum {
    SCAN_FLAGS = 0,
    SCAN_ZERO = 4,
    SCAN_LIMIT = 8,
    SCAN_LOWER_LEN = 16,
    SCAN_UPPER_LEN = 20,
    SCAN_AFTER_LEN = 24,
    SCAN_ZERO_TOO = 28,
    SCAN_HEAD = 32
};

enum {
    SCAN_OPTIONS = NTEE_REVERSE | NTEE_VALUES | NTEE_SKIP_CORRUPT,
    SCAN_RANGE_SHIFT = 8,
    SCAN_RANGE = NTEE_PREFIX | NTEE_LOWER_GT | NTEE_UPPER_LTE,
    SCAN_HAS_LOWER = 1 << 16,
    SCAN_HAS_UPPER = 1 << 17,
    SCAN_HAS_AFTER = 1 << 18,
    SCAN_KNOWN = SCAN_OPTIONS | SCAN_RANGE << SCAN_RANGE_SHIFT | SCAN_HAS_LOWER | SCAN_HAS_UPPER |
                 SCAN_HAS_AFTER
};

/* One of the three bounds behind the head. */
typedef struct scan_bound {
    const void *bytes; /* NULL: not there */
    uint32_t len;
} scan_bound;

/* Takes a bound of the request: its length from the head, its bytes from *at on, where *left remain. */
static ntee_status take_bound(uint32_t len, int present, const uint8_t **at, size_t *left, scan_bound *bound,
                              ntee_error *err) {
    *bound = (scan_bound){0};
    if (!present && len == 0) return NTEE_OK;
    if (!present) return nt_fail(err, NTEE_INVALID, "scan request: a bound that is not there has a length");
    if (len > NTEE_KEY_MAX) return nt_fail(err, NTEE_TOO_LARGE, "scan request: a bound of %u bytes", len);
    if (len > *left) return nt_fail(err, NTEE_INVALID, "scan request: cut off");
    *bound = (scan_bound){.bytes = *at, .len = len};
    *at += len;
    *left -= len;
    return NTEE_OK;
}

ntee_status nt_wire_scan(const void *in, size_t in_len, ntee_scan_options *scan, ntee_error *err) {
    const uint8_t *head = in;
    scan_bound lower, upper, after;
    if (in_len < SCAN_HEAD) return nt_fail(err, NTEE_INVALID, "scan request: cut off");
    uint32_t flags = nt_load32(head + SCAN_FLAGS);
    if ((flags & ~(uint32_t)SCAN_KNOWN) != 0 || nt_load32(head + SCAN_ZERO) != 0 ||
        nt_load32(head + SCAN_ZERO_TOO) != 0) {
        return nt_fail(err, NTEE_INVALID, "scan request: unknown flags");
    }
    const uint8_t *at = head + SCAN_HEAD;
    size_t left = in_len - SCAN_HEAD;
    ntee_status status = take_bound(nt_load32(head + SCAN_LOWER_LEN), (flags & SCAN_HAS_LOWER) != 0, &at,
                                    &left, &lower, err);
    if (status != NTEE_OK) return status;
    status = take_bound(nt_load32(head + SCAN_UPPER_LEN), (flags & SCAN_HAS_UPPER) != 0, &at, &left, &upper,
                        err);
    if (status != NTEE_OK) return status;
    status = take_bound(nt_load32(head + SCAN_AFTER_LEN), (flags & SCAN_HAS_AFTER) != 0, &at, &left, &after,
                        err);
    if (status != NTEE_OK) return status;
    if (left != 0) return nt_fail(err, NTEE_INVALID, "scan request: bytes behind its end");
    *scan = (ntee_scan_options){
        .size = sizeof *scan,
        .range = {.lower = lower.bytes,
                  .lower_len = lower.len,
                  .upper = upper.bytes,
                  .upper_len = upper.len,
                  .flags = (flags >> SCAN_RANGE_SHIFT) & SCAN_RANGE},
        .after = after.bytes,
        .after_len = after.len,
        .limit = nt_load64(head + SCAN_LIMIT),
        .flags = flags & SCAN_OPTIONS,
    };
    return NTEE_OK;
}

/* ---- Pages --------------------------------------------------------------------------------------- */

static const char MISSING_TEXT[4] = {'n', 'u', 'l', 'l'};

enum {
    ENTRY_KEY_LEN = 0,
    ENTRY_KIND = 2,
    ENTRY_ZERO = 3,
    ENTRY_VALUE_LEN = 4,
    BRACKETS = 2
};

static uint8_t *entry_at(const nt_page_plan *page, uint64_t index) {
    return page->data + page->capacity - (index + 1) * NT_PAGE_ENTRY_SIZE;
}

static int is_json(uint8_t kind) { return kind == NTEE_JSON || kind == NTEE_OBJECT || kind == NTEE_MISSING; }

void nt_page_begin(nt_page_plan *page, void *data, size_t capacity) {
    *page = (nt_page_plan){.data = data, .capacity = capacity & ~(size_t)7, .all_json = 1};
    if (page->capacity > 0) page->values_len = BRACKETS;
}

int nt_page_add(nt_page_plan *page, size_t key_len, uint64_t value_len, ntee_kind kind) {
    uint64_t room = page->capacity - page->keys_len - page->values_len - page->count * NT_PAGE_ENTRY_SIZE;
    uint64_t comma = page->count > 0;
    if (kind == NTEE_MISSING) value_len = sizeof MISSING_TEXT;
    uint64_t fixed = NT_PAGE_ENTRY_SIZE + key_len + comma;
    if (fixed > room || value_len > room - fixed) return 0;
    uint8_t *entry = entry_at(page, page->count);
    nt_store16(entry + ENTRY_KEY_LEN, (uint16_t)key_len);
    entry[ENTRY_KIND] = (uint8_t)kind;
    entry[ENTRY_ZERO] = 0;
    nt_store32(entry + ENTRY_VALUE_LEN, (uint32_t)value_len);
    page->count++;
    page->keys_len += key_len;
    page->values_len += value_len + comma;
    if (!is_json((uint8_t)kind)) page->all_json = 0;
    return 1;
}

uint64_t nt_page_needed(size_t key_len, uint64_t value_len) {
    return nt_align8(NT_PAGE_ENTRY_SIZE + BRACKETS + key_len + value_len);
}

/* Takes the last planned entry back. */
static void drop_last(nt_page_plan *page) {
    const uint8_t *entry = entry_at(page, --page->count);
    uint64_t key_len = nt_load16(entry + ENTRY_KEY_LEN);
    uint64_t value_len = nt_load32(entry + ENTRY_VALUE_LEN);
    page->keys_len -= key_len;
    page->values_len -= value_len + (page->count > 0);
    if (page->filled > page->count) {
        page->filled--;
        page->key_at -= key_len;
        page->value_at -= value_len + 1;
    }
}

/* The values follow the keys, so where some are in place already they move down with the keys' new end. */
void nt_page_truncate(nt_page_plan *page, uint64_t count) {
    const uint8_t *values = page->data + page->keys_len;
    while (page->count > count) drop_last(page);
    if (page->value_at > 0) memmove(page->data + page->keys_len, values, page->value_at);
    page->all_json = 1;
    for (uint64_t i = 0; i < page->count; i++) page->all_json &= is_json(entry_at(page, i)[ENTRY_KIND]);
}

void nt_page_fill(nt_page_plan *page, uint8_t **key, uint8_t **value) {
    const uint8_t *entry = entry_at(page, page->filled);
    uint8_t *at = page->data + page->keys_len + page->value_at;
    uint32_t value_len = nt_load32(entry + ENTRY_VALUE_LEN);
    *at = page->filled == 0 ? '[' : ',';
    *key = page->data + page->key_at;
    *value = at + 1;
    if (entry[ENTRY_KIND] == NTEE_MISSING) memcpy(*value, MISSING_TEXT, sizeof MISSING_TEXT);
    page->key_at += nt_load16(entry + ENTRY_KEY_LEN);
    page->value_at += (uint64_t)value_len + 1;
    page->filled++;
}

void nt_page_seen(nt_page_plan *page, const uint8_t *key, size_t key_len) {
    uint64_t wide = 0;
    uint8_t seen = page->seen;
    for (; key_len >= 8; key += 8, key_len -= 8) wide |= nt_load64(key);
    for (; key_len > 0; key++, key_len--) seen |= *key;
    wide |= wide >> 32;
    wide |= wide >> 16;
    wide |= wide >> 8;
    page->seen = (uint8_t)(seen | wide);
}

void nt_page_end(nt_page_plan *page) {
    if (page->capacity == 0) return;
    uint8_t *at = page->data + page->keys_len + page->value_at;
    if (page->count == 0) *at++ = '[';
    *at = ']';
}
