/*
 * background: the one thread of a store. It syncs at least every interval (the fast tier's promise),
 * prepares the log ahead of its tail, and appends a mark when the store goes idle. It starts with the
 * first write, blocks all signals, never calls into the host, and close joins it. Where the seam starts no
 * threads, tests call the step.
 */
#ifndef NT_API_BACKGROUND_H
#define NT_API_BACKGROUND_H

#include <stdatomic.h>
#include <stdint.h>

#include "api/writer.h"

typedef struct nt_background {
    nt_writer *writer;
    int64_t interval_ms;
    atomic_int started;
    int stop; /* guarded by writer->work */
    uintptr_t thread;
} nt_background;

/* Prepares one that is not started yet. */
void nt_background_init(nt_background *background, nt_writer *writer, int64_t interval_ms);
/* Starts the thread, once. NTEE_IO, NTEE_NOMEM where the system has none: the write is refused then, since
 * nobody would sync it. */
ntee_status nt_background_start(nt_background *background, ntee_error *err);
/* Stops and joins it. */
void nt_background_stop(nt_background *background);
/* One tick of the sync interval: sync what is unsynced, else mark. A failure is the writer's from then on. */
void nt_background_step(nt_background *background);

#endif
