/*
 * ntee.h - the whole C contract of libntee, an embedded log-structured key-value engine.
 *
 * A store is one directory: an append-only log, and an index of all keys in RAM. Read this page first:
 *
 *  - One process writes to a store at a time. A second open of the same directory, by any process or
 *    in the same one, fails at once with NTEE_LOCKED. Read-only openers share the store with each
 *    other, not with a writer. The lock dies with its holder.
 *  - Inside the process all functions but ntee_close, ntee_drop and ntee_scan_close may be called from
 *    any thread at the same time. Readers take no lock: they never wait for each other, nor for a
 *    batch or a sync.
 *  - After fork() a child must not use its parent's handles: every call answers NTEE_FORKED.
 *  - Network file systems, drives that lie about a flush, and other programs that write into the
 *    directory are outside what this library can promise.
 *  - All keys live in RAM: about 11 bytes for a 16-byte key written in order, about 35 for a random one,
 *    and 4 more once it has been read.
 *
 * Durability, in two tiers chosen at open:
 *
 *  - fast (default): when a write returns, it survives a crash or kill -9 of the process. A background
 *    thread syncs at least every sync_interval_ms (default 100), so a power loss loses at most the
 *    writes of that last moment, never an earlier one, and never a part of a batch.
 *  - NTEE_SYNC_EVERY_WRITE: when a write returns, it survives power loss. Writers that wait at the
 *    same time share one sync. A write becomes visible only when it is durable.
 *
 * Conventions:
 *
 *  1. Every function that can fail returns an ntee_status; 0 is success. ntee_last_error() has the
 *     detail of the calling thread's last failed call.
 *  2. Keys and values are a pointer and a length in bytes. Any bytes are allowed; keys are ordered
 *     as memcmp orders them, a key before its extensions. A pointer may be NULL where its length is 0.
 *  3. The caller owns every buffer that it passes, the library keeps none of them after the call,
 *     and it hands out no memory but opaque handles, each with its closing function.
 *  4. Option structs are zero for "default"; their first member is their own size; reserved members
 *     must be zero. Options that a later version will know are refused with NTEE_INVALID until then.
 *  5. A failed write leaves no trace, except where a sync failed: then the write is invisible in this
 *     handle (NTEE_SYNC_EVERY_WRITE), may or may not be there after reopening, and every later write
 *     and sync gets the same error until the store is opened anew; reads go on.
 *
 * The shortest program:
 *
 *     ntee *db;
 *     if (ntee_open("data", NULL, &db) != NTEE_OK) { puts(ntee_last_error()->message); return 1; }
 *     ntee_put(db, "greeting", 8, "hello", 5, NULL);
 *     char buf[64]; size_t len;
 *     if (ntee_get(db, "greeting", 8, buf, sizeof buf, &len, NULL) == NTEE_OK)
 *         printf("%.*s\n", (int)len, buf);
 *     ntee_close(db);
 */
#ifndef NTEE_H
#define NTEE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define NTEE_API __attribute__((visibility("default")))
#else
#define NTEE_API
#endif

/* ---- Version ------------------------------------------------------------------------------------ */

#define NTEE_VERSION_MAJOR 0
#define NTEE_VERSION_MINOR 1
#define NTEE_VERSION_PATCH 0
#define NTEE_VERSION_STRING "0.1.0"
/* Raised whenever a program built against an older header could misbehave with this library. */
#define NTEE_ABI 1

/* ntee_version returns the library's version as text, "0.1.0". Static memory. */
NTEE_API const char *ntee_version(void);
/* ntee_abi returns the library's NTEE_ABI; compare it with the header's. */
NTEE_API int ntee_abi(void);

/* ---- Limits ------------------------------------------------------------------------------------- */

#define NTEE_KEY_MAX 65535u            /* bytes of a key; the least is 1 */
#define NTEE_VALUE_MAX 4294967295u     /* bytes of a value; the least is 0 */
#define NTEE_BATCH_MAX (1u << 30)      /* bytes of a batch as encoded by ntee_batch or for ntee_run */

/* ---- Status ------------------------------------------------------------------------------------- */

typedef int ntee_status;
enum {
    NTEE_OK = 0,
    NTEE_NOT_FOUND = 1,     /* no such key; no such store (read-only open) */
    NTEE_INVALID = 2,       /* an argument outside its rule */
    NTEE_TOO_LARGE = 3,     /* a key, value or batch over its limit */
    NTEE_LOCKED = 4,        /* another handle has the store open */
    NTEE_IO = 5,            /* the operating system refused; os_errno says why */
    NTEE_FULL = 6,          /* no space: ENOSPC, EDQUOT or EFBIG */
    NTEE_CORRUPT = 7,       /* a checksum says the bytes are not what was written */
    NTEE_VERSION = 8,       /* written by a newer format than this library knows */
    NTEE_NOMEM = 9,         /* out of memory; nothing changed */
    NTEE_TYPE = 10,         /* the key holds another kind of record */
    NTEE_OVERFLOW = 11,     /* int64 overflow; nothing changed */
    NTEE_EXISTS = 12,       /* it is there already */
    NTEE_CLOSED = 13,       /* the handle is closed */
    NTEE_READONLY = 14,     /* a write on a read-only handle */
    NTEE_FORKED = 15,       /* a parent's handle used in a forked child */
    NTEE_CANCELLED = 16,    /* stopped on request */
    NTEE_SHORT_BUFFER = 17, /* C only: the result is longer than the caller's buffer */
    NTEE_WOULD_BLOCK = 18   /* C only: asked for NTEE_AT_HAND, and the answer is not */
};

/* ntee_strerror returns a short English text for a status. Static memory, never NULL. */
NTEE_API const char *ntee_strerror(ntee_status status);
/* ntee_status_name returns the name of a status, "NTEE_IO". Static memory, never NULL. */
NTEE_API const char *ntee_status_name(ntee_status status);

/* What went wrong. Messages name files, offsets, keys and errno texts, never values. */
typedef struct ntee_error {
    int32_t status;
    int32_t os_errno;   /* 0 where the operating system had no part in it */
    int64_t offset;     /* byte offset in the file that the message names, or -1 */
    int64_t item;       /* position in a batch or key list, or -1 */
    char message[232];  /* NUL-terminated UTF-8 */
} ntee_error;

/*
 * ntee_last_error returns the detail of the last call that failed on this thread. It is never NULL,
 * belongs to the thread, and stays until the thread's next failing call.
 */
NTEE_API const ntee_error *ntee_last_error(void);

/* ---- Opening and closing ------------------------------------------------------------------------ */

typedef struct ntee ntee; /* an open store */

enum {
    NTEE_READ_ONLY = 1,        /* shared lock, writes nothing; NTEE_NOT_FOUND without a store */
    NTEE_SYNC_EVERY_WRITE = 2, /* the durable tier */
    NTEE_NO_MMAP = 4,          /* pread and pwrite only: slower, but a dying disk gives NTEE_IO
                                  instead of killing the process with SIGBUS */
    NTEE_ACCEPT_DAMAGE = 8     /* what was lost in damage that no key can be named for is given up: the
                                  older records that may be out of date for it are read again */
};

typedef struct ntee_options {
    size_t size;               /* sizeof(ntee_options) */
    uint32_t flags;            /* NTEE_READ_ONLY, NTEE_SYNC_EVERY_WRITE, ... */
    uint32_t sync_interval_ms; /* 1 to 60000; 0: 100 */
    uint64_t hint_every;       /* the index is saved after so many writes, so that opening has no more than
                                  those, and those of the last sync interval, to read again; 0: at close
                                  and in pauses */
    uint64_t reserved[7];      /* zero */
} ntee_options;

/*
 * ntee_open opens the store in directory `path` (NUL-terminated), making it and its missing parents
 * (0700, files 0600, whatever the umask). `options` may be NULL. After a crash it recovers by itself.
 * On success *db is set, else it is NULL.
 * NTEE_INVALID, NTEE_LOCKED, NTEE_NOT_FOUND, NTEE_IO, NTEE_FULL, NTEE_CORRUPT, NTEE_VERSION, NTEE_NOMEM.
 */
NTEE_API ntee_status ntee_open(const char *path, const ntee_options *options, ntee **db);

/*
 * ntee_close syncs what was written, closes the store and frees the handle; NULL is allowed. No other
 * call on the handle, its scans included, may be running or follow. The handle is gone even where an
 * error is returned: NTEE_IO or NTEE_FULL says that the last writes may not be on disk yet.
 */
NTEE_API ntee_status ntee_close(ntee *db);

/*
 * ntee_destroy deletes the store in `path`: the files that are a store's own, then the directory if
 * it is empty. Files it does not know stay. A missing directory, or one without a store, is left alone
 * (NTEE_OK). NTEE_LOCKED where somebody has it open; NTEE_INVALID, NTEE_IO.
 */
NTEE_API ntee_status ntee_destroy(const char *path);

/* ntee_drop closes the store as ntee_close does and then destroys it, without letting go of the lock.
 * NTEE_READONLY on a read-only handle: then it is closed, and not destroyed. */
NTEE_API ntee_status ntee_drop(ntee *db);

/* ---- One key ------------------------------------------------------------------------------------ */

typedef struct ntee_put_options {
    size_t size;          /* sizeof(ntee_put_options) */
    uint64_t ttl_ms;      /* zero; a later version arms an expiry with it */
    uint64_t reserved[6]; /* zero */
} ntee_put_options;

/*
 * ntee_put writes a record, replacing the key's old one. `options` may be NULL. Durable as the tier
 * says when it returns.
 * NTEE_INVALID, NTEE_TOO_LARGE, NTEE_READONLY, NTEE_FULL, NTEE_IO, NTEE_NOMEM, NTEE_CLOSED, NTEE_FORKED.
 */
NTEE_API ntee_status ntee_put(ntee *db, const void *key, size_t key_len, const void *value,
                              size_t value_len, const ntee_put_options *options);

/* ntee_put_if_absent is ntee_put where the key is missing, and NTEE_EXISTS (nothing changed) else. */
NTEE_API ntee_status ntee_put_if_absent(ntee *db, const void *key, size_t key_len, const void *value,
                                        size_t value_len, const ntee_put_options *options);

/* ntee_delete removes a key. NTEE_NOT_FOUND, and nothing is written, where it is missing; else as put. */
NTEE_API ntee_status ntee_delete(ntee *db, const void *key, size_t key_len);

/* What a value is. Noted when it was written, so that a reader never has to guess. */
typedef enum ntee_kind {
    NTEE_BINARY = 0, /* any bytes that are not one valid JSON text */
    NTEE_JSON = 1,   /* one valid JSON text (RFC 8259, valid UTF-8) that is not an object */
    NTEE_OBJECT = 2, /* one valid JSON text that is an object */
    NTEE_COUNTER = 3,/* an int64 as decimal text; a later version makes them */
    NTEE_MISSING = 4 /* in pages of ntee_run's NTEE_OP_GET_MANY: no such key */
} ntee_kind;

/*
 * ntee_get copies a value into the caller's buffer. *len is its length in bytes and *kind (may be
 * NULL) what it is. Where the value is longer than `cap`, nothing is copied, *len and *kind are set
 * and the answer is NTEE_SHORT_BUFFER. The bytes were checked against their checksum in this call.
 * NTEE_NOT_FOUND, NTEE_SHORT_BUFFER, NTEE_INVALID, NTEE_TOO_LARGE, NTEE_CORRUPT, NTEE_IO, NTEE_FORKED.
 */
NTEE_API ntee_status ntee_get(ntee *db, const void *key, size_t key_len, void *buf, size_t cap,
                              size_t *len, ntee_kind *kind);

/* ntee_has answers NTEE_OK where the key is there and NTEE_NOT_FOUND where not. It reads RAM only. */
NTEE_API ntee_status ntee_has(ntee *db, const void *key, size_t key_len);

/* ---- Batches ------------------------------------------------------------------------------------ */

typedef struct ntee_batch ntee_batch; /* writes that are to happen together; one thread at a time */

/* ntee_batch_new returns an empty batch, or NULL where memory is short. */
NTEE_API ntee_batch *ntee_batch_new(void);
/* ntee_batch_free frees a batch; NULL is allowed. */
NTEE_API void ntee_batch_free(ntee_batch *batch);
/* ntee_batch_clear empties a batch and keeps its memory for the next one. */
NTEE_API void ntee_batch_clear(ntee_batch *batch);
/* ntee_batch_count returns the number of writes in a batch. */
NTEE_API size_t ntee_batch_count(const ntee_batch *batch);
/*
 * ntee_batch_put and ntee_batch_delete add a write; key and value are copied. A refused write
 * (NTEE_INVALID, NTEE_TOO_LARGE, NTEE_NOMEM) leaves the batch as it was.
 */
NTEE_API ntee_status ntee_batch_put(ntee_batch *batch, const void *key, size_t key_len,
                                    const void *value, size_t value_len,
                                    const ntee_put_options *options);
NTEE_API ntee_status ntee_batch_delete(ntee_batch *batch, const void *key, size_t key_len);
/*
 * ntee_write applies a batch in order, a later write of the same key wins: all of it or nothing, in
 * RAM and on disk; readers see it all at once; one sync in the durable tier. Deleting a missing key
 * is no error. The batch can be used again. An empty one does nothing. Errors as ntee_put.
 */
NTEE_API ntee_status ntee_write(ntee *db, const ntee_batch *batch);

/* ---- Ranges ------------------------------------------------------------------------------------- */

enum {
    NTEE_PREFIX = 1,    /* `lower` is a prefix: all keys that begin with it; `upper` unused */
    NTEE_LOWER_GT = 2,  /* `lower` itself is left out (gt instead of gte) */
    NTEE_UPPER_LTE = 4  /* `upper` itself is included (lte instead of lt) */
};

/* A range of keys. All zero: every key. A NULL bound is open; an inverted range is empty. */
typedef struct ntee_range {
    const void *lower;
    size_t lower_len; /* at most NTEE_KEY_MAX, as all lengths here */
    const void *upper;
    size_t upper_len;
    uint32_t flags;   /* NTEE_PREFIX | NTEE_LOWER_GT | NTEE_UPPER_LTE */
    uint32_t reserved;
} ntee_range;

/* ntee_count counts the live keys of a range without visiting them. `range` NULL: all keys. */
NTEE_API ntee_status ntee_count(ntee *db, const ntee_range *range, uint64_t *count);

enum {
    NTEE_REVERSE = 1,     /* descending */
    NTEE_VALUES = 2,      /* records, not keys only */
    NTEE_SKIP_CORRUPT = 4 /* leave out records whose checksum fails, instead of NTEE_CORRUPT */
};

typedef struct ntee_scan_options {
    size_t size;          /* sizeof(ntee_scan_options) */
    ntee_range range;
    const void *after;    /* go on behind this key (below it in reverse); NULL: from the start */
    size_t after_len;
    uint64_t limit;       /* at most so many entries; 0: no limit */
    uint32_t flags;       /* NTEE_REVERSE | NTEE_VALUES | NTEE_SKIP_CORRUPT */
    uint32_t reserved32;  /* zero */
    uint64_t reserved[4]; /* zero */
} ntee_scan_options;

typedef struct ntee_scan ntee_scan; /* a walk over one state of the store; one thread at a time */

/* One page of a scan, in the caller's buffer; read it with ntee_page_next. */
typedef struct ntee_page {
    const uint8_t *data;   /* the caller's buffer */
    uint64_t capacity;     /* its size */
    uint64_t count;        /* entries in this page */
    uint64_t keys_len;     /* bytes of keys, from data on */
    uint64_t values_len;   /* bytes of values, behind the keys */
    uint32_t flags;        /* NTEE_PAGE_* */
    uint32_t more;         /* 1: the scan has further entries */
    uint64_t needed;       /* with NTEE_SHORT_BUFFER: a buffer this large holds the next entry */
    uint64_t next, key_at, value_at; /* ntee_page_next's place; zero at first */
} ntee_page;

enum {
    NTEE_PAGE_VALUES = 1,     /* entries have values */
    NTEE_PAGE_KEYS_ASCII = 2, /* every byte of every key is below 128 */
    NTEE_PAGE_ALL_JSON = 4    /* every value is NTEE_JSON, NTEE_OBJECT or NTEE_MISSING */
};

/*
 * ntee_scan_open begins a scan: keys in byte order, of the state that the store has at this moment,
 * whatever is written later. `options` NULL: all keys. An open scan keeps the memory of its state;
 * close it. NTEE_INVALID, NTEE_TOO_LARGE, NTEE_NOMEM, NTEE_FORKED.
 */
NTEE_API ntee_status ntee_scan_open(ntee *db, const ntee_scan_options *options, ntee_scan **scan);
/*
 * ntee_scan_page fills `buf` (8-byte aligned) with the next entries and describes them in *page.
 * page->count 0 and page->more 0: the end. NTEE_SHORT_BUFFER: the next entry alone needs
 * page->needed bytes; the scan stands where it stood. NTEE_CORRUPT names the key; calling again
 * goes on behind it. NTEE_INVALID, NTEE_IO, NTEE_FORKED.
 */
NTEE_API ntee_status ntee_scan_page(ntee_scan *scan, void *buf, size_t cap, ntee_page *page);
/* ntee_scan_close ends a scan; NULL is allowed. Close all scans before the store. */
NTEE_API void ntee_scan_close(ntee_scan *scan);

typedef struct ntee_entry {
    const void *key;
    size_t key_len;
    const void *value; /* NULL in scans of keys only */
    size_t value_len;
    ntee_kind kind;
} ntee_entry;

/*
 * ntee_page_next gives the page's next entry (pointers into the caller's buffer): 1, or 0 at its end. It is
 * inline because a program may call it for millions of keys; docs/wire.md has the layout that it reads.
 * Whatever a page says, no entry lies outside of its capacity.
 */
static inline int ntee_page_next(ntee_page *page, ntee_entry *entry) {
    const unsigned size = page->flags & NTEE_PAGE_VALUES ? 8 : 2; /* of what says how long an entry is */
    const uint64_t capacity = page->capacity & ~(uint64_t)7, next = page->next, at = page->key_at;
    const uint8_t *head, *value;
    uint64_t len, value_at;
    if (next >= page->count || next >= (size == 8 ? capacity / 8 : capacity / 2)) return 0;
    if (page->keys_len > capacity || page->values_len > capacity - page->keys_len) return 0;
    head = page->data + capacity - (next + 1) * size; /* these lie at the end, the first one last */
    len = head[0] | (uint64_t)head[1] << 8;
    if (at > page->keys_len || len > page->keys_len - at) return 0;
    entry->key = page->data + at;
    entry->key_len = (size_t)len;
    entry->value = NULL;
    entry->value_len = 0;
    entry->kind = NTEE_BINARY;
    page->key_at = at + len;
    if (size == 8) {
        value = page->data + page->keys_len;
        len = head[4] | (uint64_t)head[5] << 8 | (uint64_t)head[6] << 16 | (uint64_t)head[7] << 24;
        value_at = page->value_at;
        if (value_at >= page->values_len || len > page->values_len - value_at - 1) return 0;
        entry->value = value + value_at + 1; /* behind a bracket or comma */
        entry->value_len = (size_t)len;
        entry->kind = (ntee_kind)head[2];
        page->value_at = value_at + 1 + len;
    }
    page->next = next + 1;
    return 1;
}

/* ---- The store as a whole ----------------------------------------------------------------------- */

typedef struct ntee_stats {
    size_t size;          /* in: sizeof(ntee_stats) */
    uint64_t records;     /* live keys */
    uint64_t main_bytes;  /* length of the log, dead records included */
    uint64_t blob_bytes;  /* 0 until values have a side file */
    uint64_t reserved[5];
} ntee_stats_t;

/* ntee_stats fills *stats from memory. NTEE_INVALID, NTEE_FORKED. */
NTEE_API ntee_status ntee_stats(ntee *db, ntee_stats_t *stats);

enum {
    NTEE_STATE_GOOD = 0,
    NTEE_STATE_READ_ONLY = 1,
    NTEE_STATE_FAILED = 2 /* a sync, or an append that could not be undone, has failed: reads go on */
};

/* All that is known about an open store without reading it. All members are uint64_t, so that bindings can
 * take it as it is. */
typedef struct ntee_details {
    uint64_t size;             /* in: sizeof(ntee_details_t) */
    uint64_t records;          /* as ntee_stats */
    uint64_t main_bytes;
    uint64_t blob_bytes;
    uint64_t sequence;         /* number of the newest write; every put and delete gets one */
    uint64_t durable_sequence; /* writes up to this number survive power loss */
    uint64_t sync_lag_ms;      /* the longest that a write has waited so far for the end of its sync */
    uint64_t state;            /* NTEE_STATE_* */
    uint64_t open_scans;       /* scans that keep an older state of the store in memory */
    uint64_t was_clean;        /* recovery: 1 where the store had been closed */
    uint64_t replayed;         /* ... writes that were read from the log */
    uint64_t cut_bytes;        /* ... bytes of writes that a crash had left torn, cut off */
    uint64_t salvaged_bytes;   /* ... those of them in which later writes were whole: see the salvage files */
    uint64_t damaged;          /* ... places of the log that are not what was written (ntee_damage) */
    uint64_t suspect_bytes;    /* ... records in the first so many bytes of the log may be out of date, since
                                  one behind them is lost: reading them is NTEE_CORRUPT. 0: none */
    uint64_t log_generation;   /* the log's file is this number, as 8 or more hexadecimal digits, with .log */
    uint64_t reserved[8];
} ntee_details_t;

/* ntee_details fills *details from memory. NTEE_INVALID, NTEE_FORKED. */
NTEE_API ntee_status ntee_details(ntee *db, ntee_details_t *details);

typedef struct ntee_place {
    uint64_t offset; /* in the log */
    uint64_t length; /* bytes */
} ntee_place;

/* ntee_damage lists the damaged places that opening the store found: the first `cap` of them go to `places`
 * (which may be NULL where cap is 0), *count is their number. NTEE_INVALID, NTEE_FORKED. */
NTEE_API ntee_status ntee_damage(ntee *db, ntee_place *places, size_t cap, size_t *count);

/*
 * ntee_verify reads every byte of the log, and each record that the index leads to, and compares them with
 * their checksums; reads and writes go on meanwhile. The saved index, a cache, is not looked at. Each
 * difference is an NTEE_CORRUPT error with file, offset and, where it is known, key; one damaged place may
 * give several. The first `cap` go to `found` (NULL where cap is 0), *count is their number. NTEE_OK whatever
 * was found; NTEE_INVALID, NTEE_IO, NTEE_NOMEM, NTEE_FORKED: the walk was not completed.
 */
NTEE_API ntee_status ntee_verify(ntee *db, ntee_error *found, size_t cap, size_t *count);

/* ntee_sync returns when everything written before the call survives power loss. NTEE_IO, NTEE_FULL. */
NTEE_API ntee_status ntee_sync(ntee *db);

/* ---- For bindings: one call, framed bytes in and out -------------------------------------------- */

/*
 * ntee_run is one entry for language bindings. It takes a framed request and gives a framed answer,
 * carries its error in the caller's memory (so it may run on any thread), and with NTEE_AT_HAND it
 * answers only if that cannot block: no lock is contended, the bytes are in memory and the result is
 * small (64 KiB of values, 1,000 keys); else NTEE_WOULD_BLOCK, nothing is done, and the same request can be
 * handed to another thread without the flag. docs/wire.md has every layout.
 *
 *   op                 in                         out            reply
 *   NTEE_OP_GET        the key                    the value      length, kind
 *   NTEE_OP_HAS        the key                    -              status only
 *   NTEE_OP_GET_MANY   keys, framed               a page         as a page
 *   NTEE_OP_WRITE      writes, framed             -              count: writes that had an effect
 *   NTEE_OP_SCAN       a scan request, framed     a page         as a page; scan: not 0 = more
 *   NTEE_OP_SCAN_NEXT  u64 scan                   a page         the same
 *   NTEE_OP_SCAN_CLOSE u64 scan                   -              -
 *   NTEE_OP_COUNT      a scan request, framed     -              count
 *   NTEE_OP_STATS      -                          3 u64          records, main_bytes, blob_bytes
 *   NTEE_OP_SYNC       -                          -              -
 *   NTEE_OP_DETAILS    -                          see below      count: damaged places; length
 *   NTEE_OP_VERIFY     -                          ntee_errors    count: differences, also those left out
 *   NTEE_OP_SHAPE      names, framed              -              count: the shape's number, 0 = full
 *   NTEE_OP_FIELDS     JSON texts, commas between fields, framed count: texts; length: bytes of in
 *
 * NTEE_OP_DETAILS gives an ntee_details_t and behind it an ntee_place for each damaged place. NTEE_OP_VERIFY
 * fills `out` with as many ntee_errors as it has room for, and is never at hand. Both want `out` to be 8-byte
 * aligned.
 *
 * Where `out` is too small: NTEE_SHORT_BUFFER with reply->needed. A scan number is only good for this
 * handle; the open ones are closed with it.
 *
 * Shapes spare a binding the parsing of flat JSON objects. NTEE_OP_SHAPE tells the handle the member names
 * of such objects, in order (at most 16 shapes); an object that fits one is then taken apart into fields of
 * 8 bytes, one a member: its number as a double, or where its string lies. NTEE_OP_GET with NTEE_FIELDS puts
 * a NUL and them behind the value, and the shape's number into reply->count (0: none fits; then parse the
 * text).
 * NTEE_OP_FIELDS does it for the values of a page: it takes texts from the front of `in`, at most 16 KiB of
 * them or a single longer one, and is called again for the rest. It reads nothing but `in`.
 */
enum {
    NTEE_OP_GET = 1,
    NTEE_OP_HAS = 2,
    NTEE_OP_GET_MANY = 3,
    NTEE_OP_WRITE = 4,
    NTEE_OP_SCAN = 5,
    NTEE_OP_SCAN_NEXT = 6,
    NTEE_OP_SCAN_CLOSE = 7,
    NTEE_OP_COUNT = 8,
    NTEE_OP_STATS = 9,
    NTEE_OP_SYNC = 10,
    NTEE_OP_SHAPE = 11,
    NTEE_OP_FIELDS = 12,
    NTEE_OP_DETAILS = 13,
    NTEE_OP_VERIFY = 14
};

enum {
    NTEE_AT_HAND = 1,
    NTEE_FIELDS = 2 /* NTEE_OP_GET only */
};

/* 8-byte aligned; the offsets are part of the ABI. */
typedef struct ntee_reply {
    uint64_t length;     /*  0: bytes of the value in out (GET) */
    uint64_t needed;     /*  8: with NTEE_SHORT_BUFFER and NTEE_WOULD_BLOCK: a size that will do */
    uint64_t count;      /* 16 */
    uint64_t keys_len;   /* 24 */
    uint64_t values_len; /* 32 */
    uint64_t scan;       /* 40 */
    uint32_t kind;       /* 48: ntee_kind */
    uint32_t flags;      /* 52: NTEE_PAGE_* */
    ntee_error error;    /* 56: status, errno, offset, item, message; set where the call failed */
} ntee_reply;

/* ntee_run does one operation, as the table above says. Any status; the reply's error has the detail. */
NTEE_API ntee_status ntee_run(ntee *db, uint32_t op, uint32_t flags, const void *in, size_t in_len,
                              void *out, size_t out_cap, ntee_reply *reply);

/* The arguments of ntee_run in memory: for runtimes where each one that crosses costs. The offsets are part
 * of the ABI. */
typedef struct ntee_call {
    ntee *db;          /*  0 */
    uint32_t op;       /*  8 */
    uint32_t flags;    /* 12 */
    const void *in;    /* 16 */
    size_t in_len;     /* 24 */
    void *out;         /* 32 */
    size_t out_cap;    /* 40 */
    ntee_reply *reply; /* 48 */
} ntee_call;

/* ntee_run with its arguments from `call`, which is only read, and not after the return. */
NTEE_API ntee_status ntee_run_call(const ntee_call *call);

/*
 * NTEE_OP_GET and NTEE_OP_HAS of a key that is text in 16-bit units, as many runtimes keep it: in_len counts
 * units, at most NTEE_UNITS_MAX, and `in` is not read. All of them have to be below 128; any other key is
 * refused with NTEE_INVALID, and can be tried with ntee_run_call. The status is in the reply. The result is
 * the value in `out`, as text with a NUL at its end, where NTEE_FIELDS was given and the value fits a shape;
 * else NULL, whatever the status.
 */
#define NTEE_UNITS_MAX 256u
NTEE_API const char *ntee_run_units(const ntee_call *call, const uint16_t *units);

#ifdef __cplusplus
}
#endif

#endif
