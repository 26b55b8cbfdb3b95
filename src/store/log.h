/*
 * log: one append-only file, memory-mapped where that is safe.
 *
 * Appends go through a small writable mapping (a window) of the tail, whose blocks are allocated ahead, so
 * that an append is a memcpy and a full disk is an error code and not a SIGBUS. Reads go through
 * one large read-only mapping that is remapped at twice the size when the file outgrows it; older mappings
 * stay until close, so a reader's pointer is good for as long as the log is open. Without mappings
 * (not safe here, or not wanted) the same file is written with pwrite and read with pread.
 *
 * The log knows bytes and offsets, not what they mean: the caller hands in whole frames, a multiple of 8
 * bytes long, and the first 8 bytes of a frame are stored last, in one release store. A zero word is
 * therefore the end. Allocated, unused space reads as zeros.
 *
 * Invariants:
 *  L1. synced <= tail <= allocated; bytes below tail never change while the log is open.
 *  L2. A mapped file is shortened only by nt_log_cut before the first append, and by nt_log_close.
 *  L3. After a failed append the bytes at tail read as a zero word, or the log is `broken`: it
 *      refuses appends from then on.
 *  L4. After a failed sync the log is broken; the sync is never tried again.
 *
 * Appends, and nt_log_cut, are one thread at a time (the writer's turn); all else may run beside
 * them. nt_log_sync and nt_log_prepare: one thread each at a time.
 */
#ifndef NT_STORE_LOG_H
#define NT_STORE_LOG_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define NT_LOG_SPARE (64u << 10) /* bytes kept for deletes and marks: over a thousand of them */
#define NT_LOG_WINDOW (2u << 20) /* bytes; a larger frame is written with pwrite */

typedef struct nt_log nt_log;

enum {
    NT_LOG_READ_ONLY = 1,
    NT_LOG_NO_MAP_WRITE = 2, /* append with pwrite */
    NT_LOG_NO_MAP_READ = 4   /* read with pread */
};

/* Creates file `name` in directory `dir` holding `len` bytes, complete or not at all: written as
 * `name`.tmp, synced, renamed, directory synced. An old `name`.tmp, and an old `name`, are replaced. Where
 * only the last sync failed, the file is there, and may or may not survive a power loss. */
ntee_status nt_log_create(int dir, const char *name, const void *bytes, size_t len, ntee_error *err);

/* Opens a log; its tail is the file's size until nt_log_cut says better, and nothing counts as synced.
 * NTEE_IO with os_errno ENOENT where there is none. *log is NULL after a failure. */
ntee_status nt_log_open(nt_log **log, int dir, const char *name, int flags, ntee_error *err);

/* Cuts the file to `size` bytes, a multiple of 8, on disk as well, and takes that as the tail and as synced.
 * Writes nothing where the file has that size already. On a read-only log only the tail changes.
 * NTEE_INVALID after the first append or reserve, and beyond the tail. */
ntee_status nt_log_cut(nt_log *log, uint64_t size, ntee_error *err);

/* Writes the bytes in [from, tail) once more, the same ones, and with `sync` syncs: after a crash, or a
 * close whose sync failed, they may be in the page cache only, marked as written. */
ntee_status nt_log_rewrite(nt_log *log, uint64_t from, int sync, ntee_error *err);

/* Syncs, cuts off what was allocated ahead (not after a failure), and frees the log in any case. */
ntee_status nt_log_close(nt_log *log, ntee_error *err);

/* Makes sure that the next `len` bytes, and `spare` more, can be appended without taking blocks, so that an
 * append of them does not find the disk full (where the file system can allocate ahead; else this does
 * nothing). Does not add up: it counts from the tail as it is. What must work on a full disk asks for no
 * spare bytes, and finds those that all else asks for: NT_LOG_SPARE. Writer. NTEE_FULL, NTEE_IO: nothing
 * changed. */
ntee_status nt_log_reserve(nt_log *log, size_t len, size_t spare, ntee_error *err);
/* Appends a frame at the tail: a multiple of 8 bytes, its first word not zero. Never in part (L3). Writer.
 * NTEE_FULL, NTEE_IO, NTEE_NOMEM; NTEE_IO from then on where the log is broken. */
ntee_status nt_log_append(nt_log *log, const void *frame, size_t len, ntee_error *err);

/* Syncs what was appended before the call; no system call where that is synced already. A failure is kept:
 * every later call, and every append, answers with the same errno (L4). */
ntee_status nt_log_sync(nt_log *log, ntee_error *err);
/* Background: allocates blocks and maps the window ahead of the tail; refreshes what is resident. Does
 * nothing on disk before the first append. Meant to be called every few ms while writers are busy, when
 * nt_log_wants_prepare says so, or at least once per sync interval. */
void nt_log_prepare(nt_log *log);
/* Whether the tail has come so far that nt_log_prepare is worth a call. Two loads; any thread. */
int nt_log_wants_prepare(const nt_log *log);

/* Where the next frame goes. Any thread: bytes below it are there to be read. */
uint64_t nt_log_tail(const nt_log *log);
/* Everything below this offset is known to be on disk. */
uint64_t nt_log_synced(const nt_log *log);
/* Whether the log refuses appends for good (L3, L4). */
int nt_log_is_broken(const nt_log *log);
/* The file's name in its directory, for messages. */
const char *nt_log_name(const nt_log *log);

/* The bytes [offset, offset + len) in the read mapping, or NULL where there is none (use nt_log_read).
 * They must lie below a tail that the caller knows. */
const uint8_t *nt_log_view(const nt_log *log, uint64_t offset, size_t len);
/* Copies bytes below the tail into `out`, whichever way the log is read. */
ntee_status nt_log_read(const nt_log *log, uint64_t offset, void *out, size_t len, ntee_error *err);
/* Whether reading these bytes needs no disk, as far as is known without a system call: 64 KiB
 * regions are marked by appends, by nt_log_touched, and by nt_log_prepare. Always 0 without mappings. */
int nt_log_at_hand(const nt_log *log, uint64_t offset, size_t len);
/* Says that these bytes have just been read. */
void nt_log_touched(nt_log *log, uint64_t offset, size_t len);

#endif
