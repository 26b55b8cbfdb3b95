/* Random workloads: an open store, a few dozen operations, crashes among them. */
#include "fault/images.h"
#include "fault/modes.h"

static const effort EFFORT_RANDOM = {.event_odds = 2,
                                     .masks = 12,
                                     .randoms = 4,
                                     .pages = 2,
                                     .kills = 1,
                                     .depth = 1,
                                     .recovery = 50,
                                     .levels = 1};
static const effort EFFORT_RECOVERY = {.event_odds = 12,
                                       .masks = 8,
                                       .randoms = 4,
                                       .pages = 2,
                                       .kills = 1,
                                       .depth = 1,
                                       .recovery = 3,
                                       .levels = 2};

static void choose(subject *s, uint64_t seed, uint64_t run) {
    rng *r = &s->random;
    *r = (rng){mix(seed, run)};
    s->fs = fake_new(rng_next(r));
    s->flags = (run & 1 ? NTEE_NO_MMAP : 0u) | (run & 2 ? NTEE_SYNC_EVERY_WRITE : 0u);
    uint64_t pick = rng_below(r, 100);
    s->sizes = pick < 75 ? 0 : pick < 98 ? 1 : 2;
    s->keys = (uint32_t)rng_between(r, 2, KEYS);
    if (rng_one_in(r, 8)) fake_set(s->fs)->no_allocate = 1;
    if (rng_one_in(r, 16)) fake_set(s->fs)->traits = NT_OS_MAP_READ;
    if (rng_one_in(r, 12)) {
        s->tolerant = 1; /* the disk will be full now and then */
        fake_set(s->fs)->capacity = rng_between(r, 3, 120);
        fake_set(s->fs)->partial_allocate = rng_one_in(r, 2);
    }
}

static crash random_crash(rng *r) {
    crash how = {.power_loss = !rng_one_in(r, 3)};
    how.plan.mode = rng_one_in(r, 3) ? FAKE_PAGES : FAKE_RANDOM;
    how.plan.seed = rng_next(r);
    return how;
}

static int one_operation(subject *s, const effort *effort) {
    if (rng_one_in(&s->random, 24)) {
        crash how = random_crash(&s->random);
        if (!images_continue(s, &how)) return 0;
        if (effort) images_watch(s);
        return 1;
    }
    op o = subject_random_op(s);
    return subject_do(s, &o);
}

int workload_run(uint64_t seed, uint64_t run, const struct effort *effort, uint64_t *trace) {
    subject s = {.effort = effort, .depth = effort ? effort->depth : 0};
    s.recoveries = effort ? effort->levels : 0;
    uint64_t failures = the_sim.counts.failures, before = 0;
    the_sim.run = run;
    the_sim.counts.workloads++;
    choose(&s, seed, run);
    sim_use(s.fs);
    oracle_reset(&s.oracle, NULL);
    if (effort) images_watch(&s);
    states wanted = {NULL, 0, 0};
    states_add(&wanted, &s.oracle.view);
    int good = subject_open(&s, &wanted);
    free(wanted.at);
    uint64_t operations = rng_between(&s.random, 10, 50);
    for (uint64_t i = 0; i < operations && good; i++) {
        before = mix(before, fake_trace(s.fs));
        good = one_operation(&s, effort);
    }
    if (good) good = subject_check(&s, "at the end") && subject_close(&s);
    if (trace) *trace = mix(before, fake_trace(s.fs));
    images_ignore(&s);
    s.tolerant = 1;
    (void)subject_close(&s);
    oracle_end(&s.oracle);
    fake_free(s.fs);
    return good && the_sim.counts.failures == failures;
}

static int run_until(uint64_t seed, uint64_t states, uint64_t only, const effort *effort,
                     const uint64_t *counter) {
    if (only != UINT64_MAX) {
        (void)workload_run(seed, only, effort, NULL);
        return sim_report();
    }
    for (uint64_t run = 0; *counter < states && the_sim.counts.failures < 100; run++)
        (void)workload_run(seed, run, effort, NULL);
    return sim_report();
}

int mode_random(uint64_t seed, uint64_t states, uint64_t only) {
    sim_begin("random", seed);
    return run_until(seed, states, only, &EFFORT_RANDOM, &the_sim.counts.distinct);
}

int mode_recovery(uint64_t seed, uint64_t states, uint64_t only) {
    sim_begin("recovery", seed);
    return run_until(seed, states, only, &EFFORT_RECOVERY, &the_sim.counts.recoveries);
}

int mode_determinism(uint64_t seed, uint64_t runs) {
    sim_begin("determinism", seed);
    for (uint64_t run = 0; run < runs; run++) {
        uint64_t first, second;
        (void)workload_run(seed, run, NULL, &first);
        (void)workload_run(seed, run, NULL, &second);
        if (first != second) sim_fail("the same seed makes different calls");
    }
    return sim_report();
}
