/*
 * log_map: the insides of a log that have to do with blocks and mappings. For log.c and log_map.c only.
 *
 * Three parties touch a log at the same time: the writer (appends), the background (nt_log_prepare) and
 * readers. Plain members belong to the writer, those called `ahead` to the background, all that is shared is
 * atomic.
 *
 * The file is covered by a grid of NT_LOG_WINDOW bytes. A window begins on the grid and maps two cells, so
 * that a frame of up to one cell that begins in the first never straddles its end. The background maps the
 * window after the current one and puts it into `next`; the writer takes it from there, or maps one itself
 * where the background is late.
 *
 * Pages: where the system has large ones (2 MiB) for files, the processor finds its way through a large log
 * faster. But a store into a large page makes all of it dirty, and so every sync would write it out whole.
 * So large pages are for writers that fill them soon; when such a writer turns slow it goes on with pwrite,
 * which makes no more dirty than it writes, until it has left the large pages behind (`large_end`).
 *
 * Invariants:
 *  M1. A window is unmapped only by the holder of `preparing`, and only where the writer has retired it: so
 *      the background can populate the current window while the writer leaves it.
 *  M2. Nothing is stored through a window beyond `allocated`.
 *  M3. A reader mapping that covers a frame is published before the tail that lies behind the frame; it
 *      stays until the log is closed.
 */
#ifndef NT_STORE_LOG_MAP_H
#define NT_STORE_LOG_MAP_H

#include <stdatomic.h>

#include "store/log.h"

#define NT_LOG_SIZE_MAX ((uint64_t)1 << 48) /* bytes of one file */

enum {
    NT_LOG_NAME_MAX = 64,
    NT_LOG_WINDOWS = 16,       /* windows mapped at a time, the retired ones included */
    NT_LOG_READERS = 24,       /* 1 GiB, doubled until NT_LOG_SIZE_MAX */
    NT_LOG_REGION = 64 << 10   /* bytes that one residence mark speaks of */
};

/* States of a window. */
enum { NT_LOG_WINDOW_FREE, NT_LOG_WINDOW_USED, NT_LOG_WINDOW_RETIRED };

typedef struct nt_log_window {
    _Atomic int state;
    uint64_t from; /* file offset, a multiple of NT_LOG_WINDOW */
    uint8_t *at;   /* 2 * NT_LOG_WINDOW bytes */
} nt_log_window;

/* A mapping of [0, len) for readers, with one mark for every region; the marks may be missing. */
typedef struct nt_log_reader {
    const uint8_t *at;
    size_t len;
    _Atomic unsigned char *marks;
} nt_log_reader;

struct nt_log {
    /* The writer's. Frames that end at or before `limit` need no more than a copy into the window. */
    uint8_t *window_at;
    uint64_t window_from;
    uint64_t limit;
    _Atomic uint64_t tail;
    _Atomic int write_error; /* errno of an append that could not be undone (L3), else 0 */
    _Atomic int sync_error;  /* errno of a sync (L4), else 0 */
    int map_write;           /* 1: append through windows */
    int map_read;            /* 1: make reader mappings */
    int appended;            /* 1: an append or a reserve took place */
    _Atomic int plain;       /* 1: no window for now: its pages are large, and the writer is slow */
    uint64_t no_window;      /* mapping a window failed: none is tried below this offset */
    char apart[64];          /* readers do not share a cache line with what every append changes */

    _Atomic(nt_log_reader *) reader; /* the newest mapping, or NULL */
    nt_log_reader readers[NT_LOG_READERS];
    int reader_count;
    int fd;
    int dir;
    int flags;
    char name[NT_LOG_NAME_MAX];

    _Atomic uint64_t synced;
    _Atomic uint64_t allocated;
    _Atomic int no_allocate;          /* the file system has no fallocate */
    _Atomic int started;              /* the writer has begun: the background may prepare */
    _Atomic int preparing;            /* held by whoever may unmap windows */
    _Atomic(nt_log_window *) current; /* what the writer writes through, or NULL */
    _Atomic(nt_log_window *) next;    /* mapped ahead by the background, or NULL */
    _Atomic int fast;                 /* 1: the writer fills large pages soon */
    _Atomic uint64_t large_end;       /* all large pages lie below */
    nt_log_window windows[NT_LOG_WINDOWS];
    _Atomic uint64_t prepare_at;      /* the tail at which nt_log_prepare is worth a call */

    uint64_t ahead_tail;              /* the tail at the last nt_log_prepare */
    uint64_t ahead_rate;              /* bytes appended between two of them, lately */
    uint64_t ahead_speed;             /* bytes in 100 ms, lately */
    uint64_t ahead_from;              /* tail and time (now_boot) from which the speed is measured */
    int64_t ahead_since;
    uint64_t ahead_region;            /* the region whose residence is looked at next */
    int64_t ahead_looked;             /* when residence was looked at, now_boot */
};

/* Makes sure that [tail, end) has blocks. Writer. NTEE_FULL, NTEE_IO: nothing changed. */
ntee_status nt_log_map_blocks(nt_log *log, uint64_t end, ntee_error *err);
/* The same as far as the disk has room for it. */
void nt_log_map_spare(nt_log *log, uint64_t end);

/* Makes the current window one that holds [tail, end), and sets window_at, window_from and limit: 1, or 0
 * where there is none to be had. Writer; the blocks are there. */
int nt_log_map_window(nt_log *log, uint64_t end);

/* Makes the readers' mapping cover [0, end) if that can be. Writer, before the tail moves. */
void nt_log_map_reader(nt_log *log, uint64_t end);

/* Marks [offset, offset + len) as resident. Any thread. */
void nt_log_map_mark(nt_log *log, uint64_t offset, size_t len);

/* Unmaps everything. Nobody else uses the log. */
void nt_log_map_close(nt_log *log);

#endif
