/* Every sequence of up to three operations of seven kinds, in both tiers, mapped or not, crashed inside the
 * last one. */
#include "fault/images.h"
#include "fault/modes.h"

enum { KINDS = 7, LONGEST = 3 };

static const effort EFFORT = {
    .event_odds = 1, .masks = 4096, .randoms = 16, .pages = 8, .kills = 4, .depth = 1, .recovery = 0};

/* The operation number `kind`: two keys, given in a fixed order. */
static op make_op(subject *s, unsigned kind) {
    op o = {.kind = OP_PUT, .change.count = 1};
    switch (kind) {
    case 0: o.change.item[0].key = 1; break;
    case 1: o.change.item[0].key = 0; break;
    case 2: o.kind = OP_DELETE; break;
    case 3:
        o.kind = OP_BATCH;
        o.change.count = 2;
        o.change.item[1].key = 1;
        o.change.item[1].value = subject_value(s, 2);
        break;
    case 4: o.kind = OP_SYNC; break;
    case 5: o.kind = OP_STEP; break;
    default: o.kind = OP_REOPEN; break;
    }
    if (kind >= 4) o.change.count = 0;
    if (kind < 4 && kind != 2) o.change.item[0].value = subject_value(s, kind);
    return o;
}

static int prepare(subject *s, uint64_t seed, uint64_t run, uint32_t flags) {
    *s = (subject){.effort = &EFFORT, .flags = flags, .keys = 3, .random = {mix(seed, run)}};
    s->fs = fake_new(mix(seed, run));
    sim_use(s->fs);
    oracle_reset(&s->oracle, NULL);
    states wanted = {NULL, 0, 0};
    states_add(&wanted, &s->oracle.view);
    int good = subject_open(s, &wanted);
    free(wanted.at);
    op put = make_op(s, 1), sync = make_op(s, 4);
    return good && subject_do(s, &put) && subject_do(s, &sync);
}

/* `sequence` has its operations as digits. */
static void run_sequence(uint64_t seed, uint64_t run, uint32_t flags, unsigned length, unsigned sequence) {
    subject s;
    the_sim.run = run;
    the_sim.counts.workloads++;
    int good = prepare(&s, seed, run, flags);
    for (unsigned i = 0; i < length && good; i++, sequence /= KINDS) {
        op o = make_op(&s, sequence % KINDS);
        if (i + 1 == length) {
            s.depth = run % 16 == 0;
            images_watch(&s);
        }
        good = subject_do(&s, &o);
    }
    images_ignore(&s);
    s.tolerant = 1;
    (void)subject_close(&s);
    oracle_end(&s.oracle);
    fake_free(s.fs);
}

int mode_exhaustive(uint64_t seed, uint64_t only) {
    static const uint32_t flags[4] = {0, NTEE_NO_MMAP, NTEE_SYNC_EVERY_WRITE,
                                      NTEE_NO_MMAP | NTEE_SYNC_EVERY_WRITE};
    uint64_t run = 0;
    sim_begin("exhaustive", seed);
    for (int f = 0; f < 4; f++) {
        unsigned sequences = KINDS;
        for (unsigned length = 1; length <= LONGEST; length++, sequences *= KINDS)
            for (unsigned sequence = 0; sequence < sequences; sequence++, run++)
                if (only == UINT64_MAX || only == run) run_sequence(seed, run, flags[f], length, sequence);
    }
    return sim_report();
}
