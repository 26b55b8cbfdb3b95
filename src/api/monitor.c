#define _POSIX_C_SOURCE 200809L
#include "api/monitor.h"

#include <time.h>

int nt_monitor_init(nt_monitor *monitor) {
    pthread_condattr_t attributes;
    if (pthread_mutex_init(&monitor->mutex, NULL)) return 0;
    if (pthread_condattr_init(&attributes)) goto no_attributes;
#ifndef __APPLE__
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
#endif
    int failed = pthread_cond_init(&monitor->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    if (!failed) return 1;
no_attributes:
    pthread_mutex_destroy(&monitor->mutex);
    return 0;
}

void nt_monitor_destroy(nt_monitor *monitor) {
    pthread_cond_destroy(&monitor->changed);
    pthread_mutex_destroy(&monitor->mutex);
}

void nt_monitor_lock(nt_monitor *monitor) { pthread_mutex_lock(&monitor->mutex); }

void nt_monitor_unlock(nt_monitor *monitor) { pthread_mutex_unlock(&monitor->mutex); }

void nt_monitor_wait(nt_monitor *monitor) {
    pthread_cond_wait(&monitor->changed, &monitor->mutex);
}

void nt_monitor_wait_ms(nt_monitor *monitor, int64_t ms) {
    struct timespec at = {0};
#ifdef __APPLE__
    at.tv_sec = (time_t)(ms / 1000);
    at.tv_nsec = (long)(ms % 1000) * 1000000L;
    pthread_cond_timedwait_relative_np(&monitor->changed, &monitor->mutex, &at);
#else
    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += (time_t)(ms / 1000);
    at.tv_nsec += (long)(ms % 1000) * 1000000L;
    if (at.tv_nsec >= 1000000000L) {
        at.tv_sec++;
        at.tv_nsec -= 1000000000L;
    }
    pthread_cond_timedwait(&monitor->changed, &monitor->mutex, &at);
#endif
}

void nt_monitor_wake(nt_monitor *monitor) { pthread_cond_broadcast(&monitor->changed); }
