#include "fault/sim.h"

#include <stdarg.h>
#include <stdio.h>

enum { PRINT_MOST = 8 };

sim the_sim;

/* A set of hashes, never 0. */
typedef struct hashes {
    uint64_t *at;
    uint64_t count;
    uint64_t cap; /* a power of two */
} hashes;

static hashes images, checks;

static int insert(hashes *set, uint64_t hash);

static void grow(hashes *set) {
    hashes larger = {NULL, 0, set->cap ? set->cap * 2 : 1 << 16};
    larger.at = calloc(larger.cap, sizeof *larger.at);
    if (larger.at == NULL) abort();
    for (uint64_t i = 0; i < set->cap; i++)
        if (set->at[i]) (void)insert(&larger, set->at[i]);
    free(set->at);
    *set = larger;
}

static int insert(hashes *set, uint64_t hash) {
    if (set->count * 2 >= set->cap) grow(set);
    if (hash == 0) hash = 1;
    uint64_t i = hash & (set->cap - 1);
    while (set->at[i] != 0) {
        if (set->at[i] == hash) return 0;
        i = (i + 1) & (set->cap - 1);
    }
    set->at[i] = hash;
    set->count++;
    return 1;
}

static void clear(hashes *set) {
    free(set->at);
    *set = (hashes){NULL, 0, 0};
}

void sim_use(fake_fs *fs) {
    fake_use(fs);
    if (fs != NULL && the_sim.table != NULL) nt_os_now = the_sim.table;
}

void sim_fail(const char *format, ...) {
    va_list args;
    if (the_sim.counts.failures++ >= PRINT_MOST || the_sim.quiet) return;
    printf("power_loss: FAILED: ");
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    if (the_sim.moment[0]) printf("\n  in %s", the_sim.moment);
    printf("\n  replay: NT_SEED=%llu NT_RUN=%llu power_loss %s%s%s\n", (unsigned long long)the_sim.seed,
           (unsigned long long)the_sim.run, the_sim.mode, the_sim.variant ? "  # " : "",
           the_sim.variant ? the_sim.variant : "");
    fflush(stdout);
}

int sim_note_image(uint64_t image, uint64_t against) {
    the_sim.counts.images++;
    if (insert(&images, image)) the_sim.counts.distinct++;
    if (!insert(&checks, mix(image, against))) return 0;
    the_sim.counts.checked++;
    return 1;
}

void sim_begin(const char *mode, uint64_t seed) {
    clear(&images);
    clear(&checks);
    the_sim = (sim){.seed = seed, .mode = mode, .started = seconds_now(), .table = the_sim.table};
    the_sim.replaying = getenv("NT_RUN") != NULL;
    printf("power_loss %s: NT_SEED=%llu\n", mode, (unsigned long long)seed);
    fflush(stdout);
}

int sim_report(void) {
    const sim_counts *c = &the_sim.counts;
    double seconds = seconds_now() - the_sim.started;
    printf("power_loss %s: %llu workloads, %llu operations, %llu moments, %llu images, %llu checked, "
           "%llu distinct states (%.0f a second), %llu crashes in recovery, %llu failures, %.1f s\n",
           the_sim.mode, (unsigned long long)c->workloads, (unsigned long long)c->operations,
           (unsigned long long)c->moments, (unsigned long long)c->images, (unsigned long long)c->checked,
           (unsigned long long)c->distinct, (double)c->distinct / (seconds + 1e-9),
           (unsigned long long)c->recoveries, (unsigned long long)c->failures, seconds);
    fflush(stdout);
    clear(&images);
    clear(&checks);
    return c->failures == 0;
}
