/*
 * Negative controls: an operating system that lies, in one way at a time. Each lie breaks a promise of the
 * store, and a simulator that does not notice it would notice nothing.
 */
#include <stdio.h>

#include "fault/images.h"
#include "fault/modes.h"

enum { WORKLOADS_MOST = 400 };

static const effort EFFORT = {.event_odds = 2,
                              .masks = 16,
                              .randoms = 6,
                              .pages = 2,
                              .kills = 1,
                              .depth = 1,
                              .recovery = 20,
                              .levels = 1};

static int lie_sync(int fd) {
    (void)fd;
    return 0;
}

static int lie_sync_sometimes(int fd) {
    static uint64_t calls;
    return ++calls % 4 == 0 ? 0 : fake_os.sync_data(fd);
}

static int lie_truncate(int fd, uint64_t size) {
    (void)fd;
    (void)size;
    return 0;
}

static int lie_unlink(int dir, const char *name) {
    (void)dir;
    (void)name;
    return 0;
}

/* The last word of a large write never arrives. */
static int lie_pwrite(int fd, const void *buf, size_t len, uint64_t offset, size_t *moved) {
    int error = fake_os.pwrite(fd, buf, len > 64 ? len - 8 : len, offset, moved);
    if (!error && len > 64) *moved = len;
    return error;
}

/* The same for what is stored in a mapping. */
static void lie_store(void *to, const void *from, size_t len) {
    fake_os.store(to, from, len > 64 ? len - 8 : len);
}

/* One flipped bit in what is read. */
static int lie_pread(int fd, void *buf, size_t len, uint64_t offset, size_t *moved) {
    int error = fake_os.pread(fd, buf, len, offset, moved);
    if (!error && *moved > 300) ((uint8_t *)buf)[299] ^= 4;
    return error;
}

typedef struct control {
    const char *name;
    size_t offset; /* of the member in the table that lies */
    void (*lie)(void);
} control;

#define LIE(member, function) {#member ": " #function, offsetof(nt_os, member), (void (*)(void))(function)}

static const control CONTROLS[] = {
    LIE(sync_data, lie_sync),   LIE(sync_data, lie_sync_sometimes), LIE(sync_dir, lie_sync),
    LIE(truncate, lie_truncate), LIE(unlink_at, lie_unlink),        LIE(pwrite, lie_pwrite),
    LIE(store, lie_store),       LIE(pread, lie_pread),
};

/* How many workloads it takes to notice a lie; 0: it was not noticed. */
static uint64_t notice(uint64_t seed, const control *c) {
    nt_os table = fake_os;
    uint64_t found = 0;
    memcpy((char *)&table + c->offset, &c->lie, sizeof c->lie);
    the_sim.table = &table;
    the_sim.quiet = 1;
    for (uint64_t run = 0; run < WORKLOADS_MOST && !found; run++)
        if (!workload_run(seed, run, &EFFORT, NULL)) found = run + 1;
    the_sim.table = NULL;
    the_sim.quiet = 0;
    return found;
}

int mode_controls(uint64_t seed) {
    int missed = 0;
    sim_begin("controls", seed);
    for (size_t i = 0; i < sizeof CONTROLS / sizeof CONTROLS[0]; i++) {
        uint64_t found = notice(seed, &CONTROLS[i]);
        if (found) printf("  %-30s noticed in workload %llu\n", CONTROLS[i].name, (unsigned long long)found);
        else printf("  %-30s NOT NOTICED in %d workloads\n", CONTROLS[i].name, WORKLOADS_MOST);
        missed += found == 0;
    }
    the_sim.counts.failures = (uint64_t)missed;
    return sim_report();
}
