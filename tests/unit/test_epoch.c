/* A reader's number is seen by whoever looks for the oldest, and no two readers share a slot. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/epoch.h"

static nt_epoch epoch;
static _Atomic uint64_t clock_now;

static void oldest_is_the_smallest_number_of_those_inside(void **state) {
    (void)state;
    assert_true(nt_epoch_oldest(&epoch) == UINT64_MAX);
    clock_now = 5;
    uint32_t five = nt_epoch_enter(&epoch, &clock_now);
    clock_now = 9;
    uint32_t nine = nt_epoch_enter(&epoch, &clock_now);
    assert_int_not_equal(five, nine);
    assert_int_equal(nt_epoch_oldest(&epoch), 5);
    nt_epoch_leave(&epoch, five);
    assert_int_equal(nt_epoch_oldest(&epoch), 9);
    nt_epoch_leave(&epoch, nine);
    assert_true(nt_epoch_oldest(&epoch) == UINT64_MAX);
}

static void every_slot_can_be_taken_once(void **state) {
    (void)state;
    uint32_t slots[NT_EPOCH_SLOTS];
    uint8_t taken[NT_EPOCH_SLOTS] = {0};
    for (uint32_t i = 0; i < NT_EPOCH_SLOTS; i++) {
        clock_now = 100 + i;
        slots[i] = nt_epoch_enter(&epoch, &clock_now);
        assert_true(slots[i] < NT_EPOCH_SLOTS);
        assert_int_equal(taken[slots[i]]++, 0);
    }
    for (uint32_t i = 0; i < NT_EPOCH_SLOTS; i++) {
        assert_int_equal(nt_epoch_oldest(&epoch), 100 + i);
        nt_epoch_leave(&epoch, slots[i]);
    }
    assert_true(nt_epoch_oldest(&epoch) == UINT64_MAX);
}

static void guests_leave_slots_for_readers(void **state) {
    uint32_t slots[NT_EPOCH_SLOTS], guests = 0;
    (void)state;
    clock_now = 7;
    while (guests < NT_EPOCH_SLOTS && nt_epoch_try(&epoch, &clock_now, &slots[guests])) guests++;
    assert_true(guests >= 2 && guests <= NT_EPOCH_SLOTS / 4);
    assert_int_equal(nt_epoch_oldest(&epoch), 7);
    clock_now = 8;
    uint32_t reader = nt_epoch_enter(&epoch, &clock_now);
    for (uint32_t i = 0; i < guests; i++) {
        assert_int_not_equal(slots[i], reader);
        nt_epoch_leave(&epoch, slots[i]);
    }
    assert_int_equal(nt_epoch_oldest(&epoch), 8);
    assert_int_equal(nt_epoch_try(&epoch, &clock_now, &slots[0]), 1);
    nt_epoch_leave(&epoch, slots[0]);
    nt_epoch_leave(&epoch, reader);
    assert_true(nt_epoch_oldest(&epoch) == UINT64_MAX);
}

static void *enter_and_leave(void *arg) {
    uint32_t slot = nt_epoch_enter(&epoch, &clock_now);
    nt_epoch_leave(&epoch, slot);
    return arg;
}

static void a_reader_waits_where_all_slots_are_taken(void **state) {
    (void)state;
    uint32_t slots[NT_EPOCH_SLOTS];
    pthread_t thread;
    clock_now = 7;
    for (uint32_t i = 0; i < NT_EPOCH_SLOTS; i++) slots[i] = nt_epoch_enter(&epoch, &clock_now);
    assert_int_equal(pthread_create(&thread, NULL, enter_and_leave, NULL), 0);
    for (uint32_t i = 0; i < NT_EPOCH_SLOTS; i++) nt_epoch_leave(&epoch, slots[i]);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(nt_epoch_oldest(&epoch) == UINT64_MAX);
}

/* What a clock number stands for: two places that the writer poisons once nobody may look at the older. */
#define PLACES 64
static _Atomic uint64_t place[PLACES];
static _Atomic int stop;
static _Atomic uint64_t seen_wrong;

static void *read_places(void *arg) {
    while (!atomic_load(&stop)) {
        uint32_t slot = nt_epoch_enter(&epoch, &clock_now);
        uint64_t now = atomic_load(&clock_now);
        for (int i = 0; i < 20; i++) {
            if (atomic_load_explicit(&place[now % PLACES], memory_order_relaxed) != now) seen_wrong++;
        }
        nt_epoch_leave(&epoch, slot);
    }
    return arg;
}

static void nothing_is_taken_from_under_a_reader(void **state) {
    (void)state;
    pthread_t threads[3];
    stop = 0;
    clock_now = 1;
    place[1] = 1;
    for (int i = 0; i < 3; i++) assert_int_equal(pthread_create(&threads[i], NULL, read_places, NULL), 0);
    uint64_t poisoned = 0; /* versions up to here */
    for (uint64_t now = 2; now < 300000; now++) {
        while (now - poisoned >= PLACES) {
            uint64_t oldest = nt_epoch_oldest(&epoch), end = oldest < now - 1 ? oldest : now - 1;
            while (poisoned + 1 < end) {
                atomic_store_explicit(&place[++poisoned % PLACES], 0, memory_order_relaxed);
            }
        }
        atomic_store_explicit(&place[now % PLACES], now, memory_order_relaxed);
        atomic_store(&clock_now, now);
    }
    stop = 1;
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    assert_int_equal(seen_wrong, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(oldest_is_the_smallest_number_of_those_inside),
        cmocka_unit_test(every_slot_can_be_taken_once),
        cmocka_unit_test(guests_leave_slots_for_readers),
        cmocka_unit_test(a_reader_waits_where_all_slots_are_taken),
        cmocka_unit_test(nothing_is_taken_from_under_a_reader),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
