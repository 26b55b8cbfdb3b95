/* The mutex with a condition: waits end when woken, or when their time is up. */
#include "unit/store.h"

#include "api/monitor.h"

static nt_monitor monitor;
static int turn; /* guarded by the monitor */

static int setup(void **state) {
    (void)state;
    turn = 0;
    return nt_monitor_init(&monitor) ? 0 : -1;
}

static int teardown(void **state) {
    (void)state;
    nt_monitor_destroy(&monitor);
    return 0;
}

static void a_timed_wait_ends_by_itself(void **state) {
    (void)state;
    static const int64_t waits[] = {0, 1, 30, 999, 1001};
    for (int i = 0; i < 5; i++) {
        int64_t begin = t_now();
        nt_monitor_lock(&monitor);
        while (t_now() - begin < waits[i]) nt_monitor_wait_ms(&monitor, waits[i] - (t_now() - begin));
        nt_monitor_unlock(&monitor);
        int64_t took = t_now() - begin;
        assert_true(took >= waits[i] && took < waits[i] + 2000);
    }
}

static void *give(void *arg) {
    t_sleep(20);
    nt_monitor_lock(&monitor);
    turn = (int)(intptr_t)arg;
    nt_monitor_wake(&monitor);
    nt_monitor_unlock(&monitor);
    return NULL;
}

static void a_wait_ends_when_woken(void **state) {
    (void)state;
    for (int timed = 0; timed < 2; timed++) {
        pthread_t thread;
        int64_t begin = t_now();
        nt_monitor_lock(&monitor);
        assert_int_equal(pthread_create(&thread, NULL, give, (void *)(intptr_t)(timed + 1)), 0);
        while (turn != timed + 1) {
            if (timed) nt_monitor_wait_ms(&monitor, 60000);
            else nt_monitor_wait(&monitor);
        }
        nt_monitor_unlock(&monitor);
        assert_true(t_now() - begin < 5000);
        pthread_join(thread, NULL);
    }
}

static void *take(void *arg) {
    nt_monitor_lock(&monitor);
    while (turn == 0) nt_monitor_wait(&monitor);
    ++*(int *)arg;
    nt_monitor_unlock(&monitor);
    return NULL;
}

static void waking_wakes_everyone(void **state) {
    (void)state;
    pthread_t threads[6];
    int woken = 0;
    for (int i = 0; i < 6; i++) assert_int_equal(pthread_create(&threads[i], NULL, take, &woken), 0);
    t_sleep(20);
    give((void *)1);
    for (int i = 0; i < 6; i++) pthread_join(threads[i], NULL);
    assert_int_equal(woken, 6);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_timed_wait_ends_by_itself, setup, teardown),
        cmocka_unit_test_setup_teardown(a_wait_ends_when_woken, setup, teardown),
        cmocka_unit_test_setup_teardown(waking_wakes_everyone, setup, teardown),
    };
    return T_RUN(tests);
}
