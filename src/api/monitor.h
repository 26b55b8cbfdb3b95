/* monitor: a mutex and a condition whose timed wait runs on a clock that nobody sets. */
#ifndef NT_API_MONITOR_H
#define NT_API_MONITOR_H

#include <pthread.h>
#include <stdint.h>

typedef struct nt_monitor {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
} nt_monitor;

/* 1, or 0 where the system is short of something. */
int nt_monitor_init(nt_monitor *monitor);
void nt_monitor_destroy(nt_monitor *monitor);
void nt_monitor_lock(nt_monitor *monitor);
void nt_monitor_unlock(nt_monitor *monitor);
/* Waits for a change, or for `ms` milliseconds; may wake for no reason. Locked before and after. */
void nt_monitor_wait(nt_monitor *monitor);
void nt_monitor_wait_ms(nt_monitor *monitor, int64_t ms);
/* Wakes everyone who waits. */
void nt_monitor_wake(nt_monitor *monitor);

#endif
