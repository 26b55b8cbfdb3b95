#include "base/epoch.h"

#include "base/os.h"

#define FIRST_SLOTS 16u /* where a search for a free slot begins; few, so that the scan is short */

/* Threads differ in where their stacks lie, so those that run side by side seldom meet in a slot. */
static uint32_t first_slot(void) {
    char here;
    uint64_t mixed = ((uint64_t)(uintptr_t)&here >> 12) * 0x9E3779B97F4A7C15ull;
    return (uint32_t)(mixed >> 57) % FIRST_SLOTS;
}

/* Why a scan that misses the slot misses nothing: then its look at `reach` or at the slot came before ours,
 * in the one order of all these accesses, and so the clock that it went by is seen by the last load here,
 * and whatever was stored before that clock is seen by the loads that follow. */
static int claim(nt_epoch *epoch, uint32_t i, const _Atomic uint64_t *clock) {
    _Atomic uint64_t *slot = &epoch->slots[i].number;
    if (atomic_load_explicit(slot, memory_order_relaxed) != 0) return 0;
    uint32_t reach = atomic_load(&epoch->reach);
    while (reach <= i && !atomic_compare_exchange_weak(&epoch->reach, &reach, i + 1u)) {}
    uint64_t nobody = 0;
    if (!atomic_compare_exchange_strong(slot, &nobody, atomic_load(clock))) return 0;
    (void)atomic_load(clock);
    return 1;
}

uint32_t nt_epoch_enter(nt_epoch *epoch, const _Atomic uint64_t *clock) {
    uint32_t first = first_slot();
    for (;;) {
        for (uint32_t i = 0; i < NT_EPOCH_SLOTS; i++) {
            uint32_t slot = (first + i) % NT_EPOCH_SLOTS;
            if (claim(epoch, slot, clock)) return slot;
        }
        nt_os_yield("epoch full");
        nt_epoch_pause();
    }
}

int nt_epoch_try(nt_epoch *epoch, const _Atomic uint64_t *clock, uint32_t *slot) {
    uint32_t first = first_slot();
    for (uint32_t i = 0; i < FIRST_SLOTS; i++) {
        *slot = (first + i) % FIRST_SLOTS;
        if (claim(epoch, *slot, clock)) return 1;
    }
    return 0;
}

uint64_t nt_epoch_oldest(nt_epoch *epoch) {
    uint64_t oldest = UINT64_MAX;
    uint32_t reach = atomic_load(&epoch->reach);
    for (uint32_t i = 0; i < reach; i++) {
        uint64_t number = atomic_load(&epoch->slots[i].number);
        if (number != 0 && number < oldest) oldest = number;
    }
    return oldest;
}
