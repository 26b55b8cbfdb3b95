#include "fault/images.h"

#include <stdio.h>

#include "api/handle.h"

enum { WRITES_MOST = 3, SECOND_LIVES = 4 };

/* What the images of images are tried with. */
static const effort SMALL = {.event_odds = 6, .masks = 4, .randoms = 2, .pages = 1, .kills = 1};

static fake_fs *make_image(const subject *s, const crash *how) {
    return how->power_loss ? fake_crash(s->fs, &how->plan) : fake_kill(s->fs, how->tear);
}

/* What an image may hold. */
static void allowed(const subject *s, int power_loss, states *list) {
    const oracle *o = &s->oracle;
    const states *from = power_loss || s->forgetful ? &o->legal : &o->current;
    for (size_t i = 0; i < from->count; i++) states_add(list, &from->at[i]);
    for (size_t i = 0; i < o->flight.count && !power_loss; i++) states_add(list, &o->flight.at[i]);
}

/* After an open nothing lies behind the last frame, and no file is left that has no place. */
static void check_files(const subject *s) {
    ntee_stats_t stats = {.size = sizeof stats};
    uint64_t size = 0;
    if (fake_bytes(s->fs, SUBJECT_LOG, &size) == NULL) sim_fail("after open there is no log");
    if (fake_exists(s->fs, SUBJECT_LOG ".tmp")) sim_fail("a .tmp file outlives an open");
    if (ntee_stats(s->db, &stats) != NTEE_OK || stats.main_bytes != size)
        sim_fail("after open the log has %llu bytes, its frames end at %llu", (unsigned long long)size,
                 (unsigned long long)stats.main_bytes);
}

static void child_of(subject *child, const subject *parent, fake_fs *image, uint64_t hash) {
    *child = *parent;
    child->fs = image;
    child->db = NULL;
    child->poisoned = 0;
    child->oracle = (oracle){0};
    child->random = (rng){mix(hash, parent->serial)};
    child->flags = (hash & 8 ? NTEE_NO_MMAP : 0u) | (hash & 16 ? NTEE_SYNC_EVERY_WRITE : 0u);
    child->watched = 0;
    child->tolerant = 0;
    fake_set(image)->capacity = 0; /* of a disk that was full, space has come back */
    child->depth = parent->depth > 0 ? parent->depth - 1 : 0;
    child->effort = &SMALL;
}

/* The same image once more, crashed at every call of its recovery: what comes out must be what came out
 * before. But what a kill left in memory only may still be lost to a power loss. */
static void crash_recovery(const subject *parent, const crash *how, const subject *opened) {
    subject again;
    fake_fs *image = make_image(parent, how);
    child_of(&again, parent, image, 0);
    again.flags = opened->flags;
    again.random = (rng){mix(opened->oracle.view.hash, how->plan.seed)};
    again.effort = parent->effort;
    again.depth = parent->depth > 1 ? 1 : 0;
    again.recoveries = parent->recoveries - 1;
    sim_use(image);
    oracle_reset(&again.oracle, &opened->oracle.view);
    for (size_t i = 0; i < parent->oracle.legal.count && !how->power_loss; i++)
        states_add(&again.oracle.legal, &parent->oracle.legal.at[i]);
    images_watch(&again);
    states wanted = {NULL, 0, 0};
    states_add(&wanted, &opened->oracle.view);
    uint64_t before = the_sim.counts.checked;
    if (subject_open(&again, &wanted)) images_ignore(&again);
    the_sim.counts.recoveries += the_sim.counts.checked - before;
    fake_hook(image, NULL, NULL);
    free(wanted.at);
    again.tolerant = 1;
    (void)subject_close(&again);
    oracle_end(&again.oracle);
    fake_free(image);
}

/* Goes on with an image that opened well: writes, crashes, and so on. */
static void second_life(subject *child) {
    uint64_t writes = rng_between(&child->random, 1, WRITES_MOST);
    images_watch(child);
    for (uint64_t i = 0; i < writes; i++) {
        op o = subject_random_op(child);
        if (!subject_do(child, &o)) break;
    }
    images_ignore(child);
}

/* What recovery made of it stays as it is. */
static void reopen_once(subject *child) {
    op o = {.kind = OP_REOPEN};
    (void)subject_do(child, &o);
}

/* A reader of the image sees what a writer will see, and changes nothing. */
static void read_only(const subject *child, state *found) {
    ntee_options options = {.size = sizeof options, .flags = NTEE_READ_ONLY | (child->flags & NTEE_NO_MMAP)};
    uint64_t before = fake_hash(child->fs);
    const char *why = NULL;
    ntee *db;
    memset(found, 0, sizeof *found);
    state_finish(found);
    ntee_status status = ntee_open(SUBJECT_PATH, &options, &db);
    if (status == NTEE_NOT_FOUND) return;
    if (status != NTEE_OK) {
        sim_fail("read-only open: %s", ntee_last_error()->message);
        return;
    }
    if (!subject_read(db, found, &why)) sim_fail("after a read-only open: %s", why);
    if (ntee_close(db) != NTEE_OK) sim_fail("close after a read-only open");
    if (fake_hash(child->fs) != before) sim_fail("a read-only open changes files");
}

static int check_image(const subject *parent, subject *child, const crash *how, int read_first) {
    states wanted = {NULL, 0, 0};
    state read;
    allowed(parent, how->power_loss, &wanted);
    if (read_first) read_only(child, &read);
    int good = subject_open(child, &wanted);
    free(wanted.at);
    if (good && read_first && read.hash != child->oracle.view.hash)
        sim_fail("a read-only open shows another state");
    if (good) check_files(child);
    return good;
}

/* Adds the image to what is printed of a failure in it; gives what was there before. */
static void describe(const subject *s, const crash *how, char before[]) {
    static const char *const modes[] = {"none", "all", "mask", "random", "pages"};
    uint64_t detail = how->power_loss ? how->plan.mask ^ how->plan.seed : how->tear;
    memcpy(before, the_sim.moment, sizeof the_sim.moment);
    snprintf(the_sim.moment, sizeof the_sim.moment, "%.100s%s%s at call kind %d, %s %#llx", before,
             before[0] ? "; then " : "", how->power_loss ? "power loss" : "kill", s->call,
             how->power_loss ? modes[how->plan.mode] : "tear", (unsigned long long)detail);
}

static void look_into(const subject *s, const crash *how, fake_fs *image, uint64_t hash) {
    subject child;
    child_of(&child, s, image, hash);
    sim_use(image);
    if (check_image(s, &child, how, hash % 16 == 2)) {
        if (s->recoveries > 0 && s->effort->recovery && hash % s->effort->recovery == 0) {
            crash_recovery(s, how, &child);
            sim_use(image);
        }
        if (s->depth > 0 && hash % SECOND_LIVES == 0) second_life(&child);
        else if (hash % 16 == 1) reopen_once(&child);
    }
    child.tolerant = 1;
    (void)subject_close(&child);
    oracle_end(&child.oracle);
    sim_use(s->fs);
}

void images_check(subject *s, const crash *how) {
    fake_fs *image = make_image(s, how);
    uint64_t hash = fake_hash(image);
    uint64_t against = oracle_hash(&s->oracle, how->power_loss);
    if (!how->power_loss) against = mix(against, fake_pending(image));
    if (sim_note_image(hash, against)) {
        char before[sizeof the_sim.moment];
        describe(s, how, before);
        look_into(s, how, image, hash);
        memcpy(the_sim.moment, before, sizeof before);
    }
    fake_free(image);
}

int images_continue(subject *s, const crash *how) {
    fake_fs *image = make_image(s, how);
    states wanted = {NULL, 0, 0};
    allowed(s, how->power_loss, &wanted);
    images_ignore(s);
    if (s->db) {
        (void)ntee_close(s->db);
        s->db = NULL;
    }
    fake_free(s->fs);
    s->fs = image;
    sim_use(image);
    int good = subject_open(s, &wanted);
    free(wanted.at);
    return good;
}

/* ---- Moments ------------------------------------------------------------------------------------- */

static void masks_of_moment(subject *s) {
    const effort *e = s->effort;
    size_t pending = fake_pending(s->fs);
    uint64_t all = pending < 63 ? (uint64_t)1 << pending : UINT64_MAX;
    crash how = {.power_loss = 1, .plan.mode = FAKE_MASK};
    if (all <= e->masks) {
        for (how.plan.mask = 0; how.plan.mask < all; how.plan.mask++) images_check(s, &how);
        return;
    }
    how.plan.mode = FAKE_NONE;
    images_check(s, &how);
    how.plan.mode = FAKE_ALL;
    images_check(s, &how);
    how.plan.mode = FAKE_MASK;
    for (uint32_t i = 0; i < e->masks; i++) {
        how.plan.mask = rng_next(&s->random);
        images_check(s, &how);
    }
}

void images_of_moment(subject *s, int running) {
    const effort *e = s->effort;
    the_sim.counts.moments++;
    if (!running) masks_of_moment(s);
    for (uint32_t i = 0; i < e->randoms && !running; i++)
        images_check(s, &(crash){1, {.mode = FAKE_RANDOM, .seed = rng_next(&s->random)}, 0});
    for (uint32_t i = 0; i < e->pages && !running; i++)
        images_check(s, &(crash){1, {.mode = FAKE_PAGES, .seed = rng_next(&s->random)}, 0});
    for (uint32_t i = 0; i < e->kills; i++)
        images_check(s, &(crash){.tear = running ? rng_next(&s->random) | 1 : 0});
}

static void on_event(void *arg, fake_fs *fs, const fake_event *event) {
    subject *s = arg;
    int tearable = event->call == FAKE_STORE || event->call == FAKE_WRITE;
    (void)fs;
    if (event->call == FAKE_YIELD || (!event->after && !tearable)) return;
    s->call = (int)event->call;
    if (rng_one_in(&s->random, s->effort->event_odds)) images_of_moment(s, !event->after);
    s->call = 0;
}

static void on_answer(subject *s) {
    if (s->watched && rng_one_in(&s->random, s->effort->event_odds)) images_of_moment(s, 0);
}

void images_watch(subject *s) {
    s->watched = 1;
    fake_hook(s->fs, on_event, s);
    subject_moment = on_answer;
}

void images_ignore(subject *s) {
    s->watched = 0;
    fake_hook(s->fs, NULL, NULL);
}
