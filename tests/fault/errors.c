/* The n-th call of every kind fails, for every n: once, or from there on. */
#include <errno.h>
#include <stdio.h>

#include "api/handle.h"
#include "fault/images.h"
#include "fault/modes.h"

static const effort EFFORT = {.event_odds = 1, .masks = 4, .randoms = 2, .pages = 1, .kills = 1};

/* What every run does: all kinds of calls, with and without an end that was not clean. */
static const struct {
    op_kind kind;
    uint32_t key;
    uint32_t count;
    uint32_t size_class;
} SCRIPT[] = {
    {OP_PUT, 0, 1, 5},    {OP_PUT, 1, 1, 2},           {OP_BATCH, 1, 3, 3}, {OP_STEP, 0, 0, 0},
    {OP_DELETE, 0, 1, 0}, {OP_SYNC, 0, 0, 0},          {OP_STEP, 0, 0, 0},  {OP_PREPARE, 0, 0, 0},
    {OP_PUT, 4, 1, 14},   {OP_PUT_IF_ABSENT, 5, 1, 6}, {OP_PUT, 4, 1, 15},  {OP_PREPARE, 0, 0, 0},
    {OP_REOPEN, 0, 0, 0}, {OP_PUT, 2, 1, 1},           {OP_STEP, 0, 0, 0},  {OP_STEP, 0, 0, 0},
    {OP_DELETE, 4, 1, 0}, {OP_DROP, 0, 0, 0},          {OP_PUT, 0, 1, 4},   {OP_BATCH, 0, 2, 10},
    {OP_DESTROY, 0, 0, 0}, {OP_PUT, 3, 1, 12},         {OP_PUT, 4, 1, 4},
};

typedef struct variant {
    uint32_t flags;
    int no_allocate;
    int evict;       /* what a failed sync did not write vanishes from view */
    fake_fault fault;
} variant;

static char description[160];

static void describe(const variant *v) {
    snprintf(description, sizeof description,
             "flags %u, no_allocate %d, evict %d, call %d, nth %llu, errno %d, sticky %d", v->flags,
             v->no_allocate, v->evict, (int)v->fault.call, (unsigned long long)v->fault.nth, v->fault.error,
             v->fault.sticky);
    the_sim.variant = description;
}

/* A write that failed must not show, and reads go on; unless the fault hits just these reads. */
static void check_view(subject *s, const char *when) {
    uint64_t fired = fake_fired(s->fs);
    state found;
    const char *why;
    int good = subject_read(s->db, &found, &why);
    if (fake_fired(s->fs) != fired) return;
    if (!good) sim_fail("%s: %s (%s)", when, why, ntee_last_error()->message);
    else if (s->settled && found.hash != s->oracle.view.hash) sim_fail("%s: a failed write shows", when);
    else if (!states_have(&s->oracle.current, &found)) sim_fail("%s: a state that never was", when);
}

/* With bytes lost from view, every answer is the right value or NTEE_CORRUPT. */
static void check_evicted(subject *s) {
    for (uint32_t key = 0; key < KEYS; key++) {
        uint32_t value, wanted = s->oracle.view.value[key];
        ntee_status status = subject_get(s->db, key, &value);
        if (status == NTEE_CORRUPT && wanted) continue;
        if (status != (wanted ? NTEE_OK : NTEE_NOT_FOUND) || value != wanted)
            sim_fail("after an eviction a read gives %s and value %u, not %u", ntee_status_name(status),
                     value, wanted);
    }
}

/* A handle that a failed sync has poisoned refuses everything with the first errno; another one works. */
static void check_next_write(subject *s, const variant *v) {
    op put = subject_make_op(s, OP_PUT, 6, 1, 3);
    int poisoned = s->poisoned;
    if (!s->settled) return;
    s->tolerant = poisoned;
    if (!subject_do(s, &put)) return;
    if (!poisoned) return;
    if (ntee_last_error()->os_errno != v->fault.error)
        sim_fail("a refused write names errno %d, not %d", ntee_last_error()->os_errno, v->fault.error);
    if (s->sync_fails && ntee_sync(s->db) == NTEE_OK)
        sim_fail("a sync succeeds after one has failed");
}

static int open_first(subject *s) {
    states wanted = {NULL, 0, 0};
    states_add(&wanted, &s->oracle.view);
    int good = subject_open(s, &wanted);
    free(wanted.at);
    return good;
}

static void run_script(subject *s, const variant *v) {
    if (!open_first(s)) return;
    for (size_t i = 0; i < sizeof SCRIPT / sizeof SCRIPT[0]; i++) {
        op o = subject_make_op(s, SCRIPT[i].kind, SCRIPT[i].key, SCRIPT[i].count, SCRIPT[i].size_class);
        uint64_t fired = fake_fired(s->fs);
        if (!subject_do(s, &o)) return;
        if (fake_fired(s->fs) != fired && !v->fault.sticky && !v->evict) check_view(s, "after an operation");
    }
}

/* The fault is over: what is there has to be right, and to stay right. */
static void check_end(subject *s, const variant *v) {
    if (s->db && v->evict) {
        check_evicted(s);
    } else if (s->db) {
        check_view(s, "after the fault");
        check_next_write(s, v);
    }
    images_of_moment(s, 0);
    s->tolerant = 1;
    (void)subject_close(s);
    images_of_moment(s, 0);
    if (fake_leaks(s->fs, 1)) sim_fail("something is left behind");
    s->tolerant = 0;
    if (subject_open(s, v->evict ? &s->oracle.legal : &s->oracle.current)) {
        op put = subject_make_op(s, OP_PUT, 7, 1, 3), reopen = {.kind = OP_REOPEN};
        if (subject_do(s, &put)) (void)subject_do(s, &reopen);
    }
    (void)subject_close(s);
}

/* 1 where the fault was met. */
static int run_one(uint64_t seed, uint64_t run, const variant *v) {
    subject s = {
        .effort = &EFFORT, .flags = v->flags, .keys = KEYS, .tolerant = 1, .random = {mix(seed, run)}};
    s.forgetful = v->evict;
    s.sync_fails = v->fault.call == FAKE_SYNC;
    the_sim.run = run;
    the_sim.counts.workloads++;
    describe(v);
    s.fs = fake_new(mix(seed, run));
    fake_set(s.fs)->no_allocate = v->no_allocate;
    fake_set(s.fs)->evict_on_failure = v->evict;
    sim_use(s.fs);
    oracle_reset(&s.oracle, NULL);
    fake_fail(s.fs, v->fault);
    run_script(&s, v);
    int fired = fake_fired(s.fs) > 0;
    fake_heal(s.fs);
    check_end(&s, v);
    oracle_end(&s.oracle);
    if (fake_leaks(s.fs, 0)) fake_abandon(s.fs);
    else fake_free(s.fs);
    return fired;
}

/* Every n of one kind of call, up to the run to be replayed. */
static void sweep(uint64_t seed, uint64_t *run, uint64_t only, variant v) {
    int met = 1;
    for (v.fault.nth = 1; met && *run <= only; v.fault.nth++, ++*run) met = run_one(seed, *run, &v);
}

int mode_errors(uint64_t seed, uint64_t only) {
    static const uint32_t flags[4] = {0, NTEE_NO_MMAP, NTEE_SYNC_EVERY_WRITE,
                                      NTEE_NO_MMAP | NTEE_SYNC_EVERY_WRITE};
    static const int errors[] = {EIO, ENOSPC, EINTR, EMFILE, 0};
    uint64_t run = 0;
    sim_begin("errors", seed);
    for (int f = 0; f < 4; f++) {
        for (int call = FAKE_OPEN_DIR; call <= FAKE_ALLOC; call++) {
            for (size_t e = 0; e < sizeof errors / sizeof errors[0]; e++) {
                int error = call == FAKE_ALLOC ? ENOMEM : errors[e];
                if (error == 0 && call != FAKE_READ && call != FAKE_WRITE) continue;
                if (call == FAKE_ALLOC && e > 0) continue;
                for (int sticky = 0; sticky <= (error != EINTR); sticky++) {
                    variant v = {.flags = flags[f], .fault = {(fake_call)call, 1, error, sticky}};
                    v.no_allocate = e == 1 && call != FAKE_ALLOCATE;
                    sweep(seed, &run, only, v);
                    v.evict = 1;
                    if (call == FAKE_SYNC) sweep(seed, &run, only, v);
                }
            }
        }
    }
    the_sim.variant = NULL;
    return sim_report();
}
