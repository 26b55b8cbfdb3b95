/*
 * epoch: how readers say what they may still be looking at, without a lock.
 *
 * A reader claims a slot for the length of one call and writes into it the number of the newest
 * published version *before* it loads that version. The writer, before it frees anything, looks for
 * the oldest number in any slot. A slot's number is a lower bound: the reader may have loaded a newer
 * version. That is harmless, since "free what was retired at or before the oldest number" only errs
 * on the side of keeping.
 *
 * Slots are claimed per call by compare-and-swap and never owned by a thread, so that threads may come
 * and go, and a call may run on any stack.
 */
#ifndef NT_BASE_EPOCH_H
#define NT_BASE_EPOCH_H

#include <stdatomic.h>
#include <stdint.h>

#define NT_EPOCH_SLOTS 128u

typedef struct nt_epoch_slot {
    _Alignas(128) _Atomic uint64_t number; /* 0: free */
} nt_epoch_slot;

typedef struct nt_epoch {
    _Atomic uint32_t reach; /* the slots that were ever claimed are below */
    nt_epoch_slot slots[NT_EPOCH_SLOTS];
} nt_epoch; /* zeroed: all free */

/* Claims a slot and writes *clock (never 0) into it, sequentially consistent with the loads that follow.
 * Returns the slot. Where all are taken it tries again until one is free. */
uint32_t nt_epoch_enter(nt_epoch *epoch, const _Atomic uint64_t *clock);

/* The same for a guest, who can do without: *slot and 1, or 0 where the few slots that guests may have are
 * taken. Guests may wait for each other inside, so they must leave slots for readers, who never do. */
int nt_epoch_try(nt_epoch *epoch, const _Atomic uint64_t *clock, uint32_t *slot);

/* A short breath between two looks at a word that another thread will change soon. */
static inline void nt_epoch_pause(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/* Gives a slot back (release). */
static inline void nt_epoch_leave(nt_epoch *epoch, uint32_t slot) {
    atomic_store_explicit(&epoch->slots[slot].number, 0, memory_order_release);
}

/* The smallest number in any slot, or UINT64_MAX. What the caller stored before it last stored to the clock
 * (sequentially consistent, and before this call) is seen by every reader whom this call does not see. */
uint64_t nt_epoch_oldest(nt_epoch *epoch);

#endif
