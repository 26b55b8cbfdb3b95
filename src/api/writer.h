/*
 * writer: whose turn it is to write, and who waits for which sync.
 *
 * A turn is short: it numbers, stages, appends. In the fast tier it also publishes. In the durable tier
 * the writer then waits for a sync that began after its append: one of those who wait leads, syncs what
 * everybody appended so far, and publishes the newest version staged by then; whoever came meanwhile is
 * covered by the next one. So waiting writers share syncs, and nobody reads what could still be lost.
 *
 * The first failed sync fails the writer for good: it is never tried again (a second sync may claim success
 * for bytes that never reached the disk), and nothing is acknowledged after it.
 *
 * Invariants:
 *  W1. `turn` is held by whoever is in a turn, publishes, or samples (tail, staged) together.
 *  W2. `group` guards syncing, durable and failure; it is never held while waiting for `turn` or a sync.
 *  W3. written is the end of the newest frame that carries data; durable <= what a finished sync covered.
 */
#ifndef NT_API_WRITER_H
#define NT_API_WRITER_H

#include <stdatomic.h>

#include "api/monitor.h"
#include "engine/commit.h"

typedef struct nt_writer {
    nt_db *db;
    int sync_each;
    pthread_mutex_t turn;
    nt_monitor group;
    nt_monitor work; /* the background waits here; guards nothing of the writer's */
    int syncing;
    uint64_t durable;
    uint64_t durable_sequence; /* of the newest write that is durable; under `group` */
    int64_t lag_ms;            /* longest time from a write to the end of its sync; under `group` */
    _Atomic int64_t dirty_since; /* now_boot() of the first write that no sync has sampled, or 0 */
    _Atomic uint64_t written;
    _Atomic uint64_t marked; /* the value of `written` that the newest mark speaks for */
    atomic_int idle; /* the background sleeps until a write wakes it */
    atomic_int failed;
    ntee_error failure;
} nt_writer;

/* 1, or 0 where the system is short of something. */
int nt_writer_init(nt_writer *writer, nt_db *db, int sync_each);
void nt_writer_destroy(nt_writer *writer);

/* Commits a write and returns when it is as durable, and as visible, as the tier says. With `at_hand`
 * NTEE_WOULD_BLOCK instead of waiting for a turn or a sync. */
ntee_status nt_writer_write(nt_writer *writer, nt_write *write, int at_hand, ntee_error *err);

/* Figures for details. */
typedef struct nt_writer_figures {
    uint64_t sequence;         /* of the newest write */
    uint64_t durable_sequence; /* of the newest one that is durable */
    int64_t lag_ms;
    int failed;
} nt_writer_figures;

/* Waits for a turn at most. */
void nt_writer_measure(nt_writer *writer, nt_writer_figures *figures);

/* Returns when everything written before the call is durable. */
ntee_status nt_writer_sync(nt_writer *writer, ntee_error *err);

/* Background: sleeps for `ms`, or, where everything is synced and marked, until a write comes. Returns
 * early when woken and at once where *stop is set (by somebody who holds `work`). */
void nt_writer_rest(nt_writer *writer, int64_t ms, const int *stop);
/* Background: whether there is something to sync; appends a mark where a sync has found nothing new since. */
int nt_writer_is_dirty(const nt_writer *writer);
void nt_writer_mark(nt_writer *writer);

#endif
