#include "fault/subject.h"

#include <stdio.h>

#include "api/handle.h"
#include "base/bytes.h"
#include "engine/save.h"

enum { CLASSES = 16, KEY_MOST = 320, PAGE_SIZE = 6 << 20 };

static const uint32_t SIZES[CLASSES] = {8,   9,    16,   31,   40,   100,  300,   432,
                                        500, 1000, 3900, 4096, 9000, 20000, 70000, (1 << 20) + 4000};
/* How many of the classes a workload draws from. */
static const uint32_t CLASSES_OF[3] = {9, 13, 16};

static struct {
    uint32_t len;
    uint8_t bytes[KEY_MOST];
} names[KEYS];

static uint8_t *value_bytes; /* a value in the making */
static uint8_t *page_bytes;  /* what a scan gave */
static uint8_t *get_bytes;   /* what a get gave */

void (*subject_moment)(subject *s);

/* ---- Keys and values ----------------------------------------------------------------------------- */

void subject_setup(void) {
    for (uint32_t i = 0; i < KEYS; i++) {
        uint8_t *bytes = names[i].bytes;
        names[i].len = 1 + i % 3;
        memset(bytes, 'a' + (int)(i / 3), KEY_MOST);
        if (i % 8 == 5) bytes[0] = 0;
        if (i % 8 == 6) names[i].len = 250 + i;
        bytes[names[i].len - 1] = (uint8_t)(i * 10);
    }
    value_bytes = malloc(2 << 20);
    page_bytes = malloc(PAGE_SIZE);
    get_bytes = malloc(2 << 20);
    if (!value_bytes || !page_bytes || !get_bytes) abort();
}

uint32_t subject_value(subject *s, uint32_t size_class) { return ++s->serial * CLASSES + size_class; }

uint64_t subject_value_size(uint32_t number) { return SIZES[number % CLASSES]; }

static const uint8_t *make_value(uint32_t number) {
    uint64_t size = subject_value_size(number);
    nt_store32(value_bytes, number);
    nt_store32(value_bytes + 4, ~number);
    for (uint64_t at = 8; at < size; at += 8) nt_store64(value_bytes + at, mix(number, at));
    return value_bytes;
}

/* The number of a value that was read, or 0 where it is none that was ever made. */
static uint32_t number_of(const void *value, size_t len) {
    if (len < 8) return 0;
    uint32_t number = nt_load32(value);
    if (number == 0 || len != subject_value_size(number)) return 0;
    return memcmp(make_value(number), value, len) == 0 ? number : 0;
}

static uint32_t key_of(const void *bytes, size_t len) {
    uint32_t i = 0;
    while (i < KEYS && (names[i].len != len || memcmp(names[i].bytes, bytes, len) != 0)) i++;
    return i;
}

/* ---- Reading ------------------------------------------------------------------------------------- */

static const char *read_records(ntee *db, state *found) {
    ntee_scan_options options = {.size = sizeof options, .flags = NTEE_VALUES};
    ntee_scan *scan = NULL;
    ntee_page page;
    ntee_entry e = {0};
    const char *why = NULL;
    if (ntee_scan_open(db, &options, &scan) != NTEE_OK) return "a scan cannot be opened";
    do {
        if (ntee_scan_page(scan, page_bytes, PAGE_SIZE, &page) != NTEE_OK) why = "a scan fails";
        while (!why && ntee_page_next(&page, &e)) {
            uint32_t key = key_of(e.key, e.key_len);
            if (key == KEYS) {
                why = "a scan gives a key that was never written";
                break;
            }
            if (found->value[key]) why = "a scan gives a key twice";
            found->value[key] = number_of(e.value, e.value_len);
            if (!found->value[key]) why = "a scan gives a value that was never written";
        }
    } while (!why && page.more);
    ntee_scan_close(scan);
    return why;
}

static const char *read_keys(ntee *db, uint64_t *count) {
    static uint8_t last[KEY_MOST];
    ntee_scan_options options = {.size = sizeof options, .flags = NTEE_REVERSE};
    ntee_scan *scan = NULL;
    ntee_page page;
    ntee_entry e = {0};
    size_t last_len = 0;
    *count = 0;
    if (ntee_scan_open(db, &options, &scan) != NTEE_OK) return "a scan of keys cannot be opened";
    const char *why = ntee_scan_page(scan, page_bytes, PAGE_SIZE, &page) ? "a scan of keys fails" : NULL;
    while (!why && ntee_page_next(&page, &e)) {
        if (*count && nt_compare(e.key, e.key_len, last, last_len) >= 0) why = "a scan is out of order";
        if (key_of(e.key, e.key_len) == KEYS) why = "a scan gives a key that was never written";
        last_len = e.key_len < KEY_MOST ? e.key_len : KEY_MOST;
        memcpy(last, e.key, last_len);
        ++*count;
    }
    ntee_scan_close(scan);
    return why;
}

ntee_status subject_get(ntee *db, uint32_t key, uint32_t *value) {
    size_t len = 0;
    ntee_status status = ntee_get(db, names[key].bytes, names[key].len, get_bytes, 2 << 20, &len, NULL);
    *value = status == NTEE_OK ? number_of(get_bytes, len) : 0;
    return status;
}

static const char *read_one(ntee *db, uint32_t key, uint32_t wanted) {
    uint32_t value;
    ntee_status has = ntee_has(db, names[key].bytes, names[key].len);
    ntee_status got = subject_get(db, key, &value);
    if (has != got) return "get and has disagree";
    if (got == NTEE_NOT_FOUND) return wanted ? "get misses a key that a scan gives" : NULL;
    if (got != NTEE_OK) return "get fails";
    return value == wanted && wanted ? NULL : "get and a scan disagree";
}

int subject_read(ntee *db, state *found, const char **why) {
    ntee_stats_t stats = {.size = sizeof stats};
    uint64_t count = 0, keys = 0, there = 0;
    memset(found, 0, sizeof *found);
    *why = read_records(db, found);
    state_finish(found);
    for (uint32_t key = 0; key < KEYS && !*why; key++) {
        *why = read_one(db, key, found->value[key]);
        there += found->value[key] != 0;
    }
    if (!*why) *why = read_keys(db, &keys);
    if (!*why && (ntee_count(db, NULL, &count) || ntee_stats(db, &stats))) *why = "count or stats fails";
    if (!*why && (count != there || keys != there || stats.records != there))
        *why = "counts and scans disagree";
    return *why == NULL;
}

int subject_check(subject *s, const char *when) {
    state found;
    const char *why;
    if (!subject_read(s->db, &found, &why)) {
        sim_fail("%s: %s (%s)", when, why, ntee_last_error()->message);
        return 0;
    }
    if (found.hash == s->oracle.view.hash) return 1;
    sim_fail("%s: the open store does not show what was written", when);
    return 0;
}

/* Says on a replayed run what was found, and what was allowed. */
static void print_state(const char *what, const state *s) {
    printf("  %s:", what);
    for (int i = 0; i < KEYS; i++)
        if (s->value[i]) printf(" %d=%u", i, s->value[i]);
    printf("\n");
}

static void explain(const state *found, const states *wanted) {
    if (!the_sim.replaying || the_sim.quiet) return;
    print_state("found", found);
    for (size_t i = 0; i < wanted->count; i++) print_state("allowed", &wanted->at[i]);
}

/* ---- Opening and closing ------------------------------------------------------------------------- */

int subject_open(subject *s, const states *wanted) {
    ntee_options options = {.size = sizeof options, .flags = s->flags, .hint_every = rng_below(&s->random, 3)};
    state found;
    const char *why;
    ntee_status status = ntee_open(SUBJECT_PATH, &options, &s->db);
    if (status != NTEE_OK) {
        s->db = NULL;
        if (!s->tolerant) sim_fail("open: %s", ntee_last_error()->message);
        return 0;
    }
    s->poisoned = 0;
    s->settled = 0;
    if (!subject_read(s->db, &found, &why)) {
        if (!s->tolerant) sim_fail("after open: %s (%s)", why, ntee_last_error()->message);
        return 0;
    }
    if (!states_have(wanted, &found)) {
        sim_fail("after open: the state is none of the %zu that are allowed", wanted->count);
        explain(&found, wanted);
        return 0;
    }
    oracle_reset(&s->oracle, &found);
    s->settled = 1;
    return 1;
}

int subject_close(subject *s) {
    if (s->db == NULL) return 1;
    ntee_status status = ntee_close(s->db);
    s->db = NULL;
    if (status == NTEE_OK) {
        if (s->poisoned && s->sync_fails) sim_fail("close succeeds after a sync has failed");
        if (!s->poisoned) oracle_durable(&s->oracle);
        return 1;
    }
    if (!s->tolerant) sim_fail("close: %s", ntee_last_error()->message);
    return s->tolerant;
}

/* ---- Operations ---------------------------------------------------------------------------------- */

static uint32_t random_class(subject *s) {
    if (s->sizes == 2 && !rng_one_in(&s->random, 12)) return (uint32_t)rng_below(&s->random, 13);
    return (uint32_t)rng_below(&s->random, CLASSES_OF[s->sizes]);
}

op subject_random_op(subject *s) {
    rng *r = &s->random;
    uint64_t pick = rng_below(r, 100);
    op o = {.kind = OP_PUT, .change.count = 1};
    o.change.item[0].key = (uint32_t)rng_below(r, s->keys);
    if (pick < 32) {
        o.change.item[0].value = subject_value(s, random_class(s));
    } else if (pick < 52) {
        o.kind = OP_DELETE;
    } else if (pick < 58) {
        o.kind = OP_PUT_IF_ABSENT;
        o.change.item[0].value = subject_value(s, random_class(s));
    } else if (pick < 74) {
        o.kind = OP_BATCH;
        o.change.count = (uint32_t)rng_between(r, 1, ITEMS_MOST);
        for (uint32_t i = 0; i < o.change.count; i++) {
            o.change.item[i].key = (uint32_t)rng_below(r, s->keys);
            o.change.item[i].value = rng_one_in(r, 3) ? 0 : subject_value(s, random_class(s));
        }
    } else {
        static const op_kind others[13] = {OP_SYNC,   OP_SYNC,    OP_STEP,    OP_STEP,    OP_STEP,
                                           OP_STEP,   OP_PREPARE, OP_PREPARE, OP_PREPARE, OP_REOPEN,
                                           OP_REOPEN, OP_REOPEN,  OP_DROP};
        o.change.count = 0;
        o.kind = others[(pick - 74) / 2];
        if (o.kind == OP_DROP && rng_one_in(r, 2)) o.kind = OP_DESTROY;
    }
    return o;
}

op subject_make_op(subject *s, op_kind kind, uint32_t key, uint32_t count, uint32_t size_class) {
    op o = {.kind = kind, .change.count = count};
    for (uint32_t i = 0; i < count; i++) {
        o.change.item[i].key = key + i;
        if (kind != OP_DELETE) o.change.item[i].value = subject_value(s, size_class);
    }
    return o;
}

static ntee_status write_batch(subject *s, const change *c) {
    ntee_batch *batch = ntee_batch_new();
    if (batch == NULL) return NTEE_NOMEM;
    ntee_status status = NTEE_OK;
    for (uint32_t i = 0; i < c->count && status == NTEE_OK; i++) {
        uint32_t key = c->item[i].key, value = c->item[i].value;
        if (value == 0) {
            status = ntee_batch_delete(batch, names[key].bytes, names[key].len);
        } else {
            status = ntee_batch_put(batch, names[key].bytes, names[key].len, make_value(value),
                                    (size_t)subject_value_size(value), NULL);
        }
    }
    if (status == NTEE_OK) status = ntee_write(s->db, batch);
    ntee_batch_free(batch);
    return status;
}

static ntee_status write_op(subject *s, const op *o) {
    uint32_t key = o->change.item[0].key, value = o->change.item[0].value;
    size_t size = (size_t)subject_value_size(value);
    const uint8_t *name = names[key].bytes;
    switch (o->kind) {
    case OP_PUT: return ntee_put(s->db, name, names[key].len, make_value(value), size, NULL);
    case OP_DELETE: return ntee_delete(s->db, name, names[key].len);
    case OP_PUT_IF_ABSENT:
        return ntee_put_if_absent(s->db, name, names[key].len, make_value(value), size, NULL);
    default: return write_batch(s, &o->change);
    }
}

/* The answer that a write without an effect gets, or NTEE_OK. */
static ntee_status no_effect(const subject *s, const op *o) {
    int there = s->oracle.view.value[o->change.item[0].key] != 0;
    if (o->kind == OP_DELETE && !there) return NTEE_NOT_FOUND;
    if (o->kind == OP_PUT_IF_ABSENT && there) return NTEE_EXISTS;
    return NTEE_OK;
}

static int do_write(subject *s, const op *o) {
    ntee_status wanted = no_effect(s, o);
    if (wanted == NTEE_OK) oracle_sent(&s->oracle, &o->change);
    ntee_status status = write_op(s, o);
    if (status == wanted) {
        if (s->poisoned && status == NTEE_OK) sim_fail("a write is acknowledged after a failed sync");
        if (wanted == NTEE_OK) oracle_acked(&s->oracle, &o->change);
        if (wanted == NTEE_OK && s->flags & NTEE_SYNC_EVERY_WRITE) oracle_durable(&s->oracle);
        return 1;
    }
    oracle_failed(&s->oracle);
    /* Where no fault was injected, there is one reason: the disk is full. Then nothing else has changed. */
    if (s->tolerant && fake_fired(s->fs) == 0 && status == NTEE_FULL) return subject_check(s, "disk full");
    if (s->tolerant && fake_fired(s->fs) && status != NTEE_OK && status != NTEE_NOT_FOUND &&
        status != NTEE_EXISTS)
        return 1;
    sim_fail("a write answers %s, not %s: %s", ntee_status_name(status), ntee_status_name(wanted),
             ntee_last_error()->message);
    return 0;
}

static int do_sync(subject *s) {
    ntee_status status = ntee_sync(s->db);
    if (status == NTEE_OK) {
        oracle_durable(&s->oracle);
        return 1;
    }
    if (!s->tolerant) sim_fail("sync: %s", ntee_last_error()->message);
    return s->tolerant;
}

static int do_step(subject *s) {
    nt_background_step(&s->db->background);
    if (!atomic_load(&s->db->writer.failed)) oracle_durable(&s->oracle);
    else if (!s->tolerant) sim_fail("the background fails: %s", s->db->writer.failure.message);
    return s->tolerant || !atomic_load(&s->db->writer.failed);
}

static int do_reopen(subject *s) {
    states wanted = {NULL, 0, 0};
    if (!subject_close(s)) return 0;
    if (rng_one_in(&s->random, 3)) s->flags ^= NTEE_NO_MMAP;
    const states *from = s->forgetful ? &s->oracle.legal : &s->oracle.current;
    for (size_t i = 0; i < from->count; i++) states_add(&wanted, &from->at[i]);
    int good = subject_open(s, &wanted);
    free(wanted.at);
    return good;
}

static int do_destroy(subject *s, int drop) {
    ntee_status status;
    if (!drop && !subject_close(s)) return 0;
    oracle_destroying(&s->oracle);
    status = drop ? ntee_drop(s->db) : ntee_destroy(SUBJECT_PATH);
    if (drop) s->db = NULL;
    if (status != NTEE_OK) {
        if (!s->tolerant) sim_fail("destroy: %s", ntee_last_error()->message);
        oracle_failed(&s->oracle);
        return s->tolerant && subject_open(s, &s->oracle.current);
    }
    oracle_reset(&s->oracle, NULL);
    if (fake_exists(s->fs, SUBJECT_LOG)) sim_fail("destroy leaves the log");
    if (subject_moment) subject_moment(s);
    states empty = {NULL, 0, 0};
    states_add(&empty, &s->oracle.view);
    int good = subject_open(s, &empty);
    free(empty.at);
    return good;
}

static int do_one(subject *s, const op *o) {
    switch (o->kind) {
    case OP_SYNC: return do_sync(s);
    case OP_STEP: return do_step(s);
    case OP_PREPARE: /* saving may come long after the sync that it rests on */
        nt_log_prepare(s->db->db.log);
        nt_save_step(&s->db->db, NT_SAVE_CLOSING);
        return 1;
    case OP_REOPEN: return do_reopen(s);
    case OP_DESTROY:
    case OP_DROP: return do_destroy(s, o->kind == OP_DROP);
    default: return do_write(s, o);
    }
}

static void print_op(const op *o) {
    static const char *const kinds[] = {"put",  "delete",  "put_if_absent", "batch",   "sync",
                                        "step", "prepare", "reopen",        "destroy", "drop"};
    printf("  %s", kinds[o->kind]);
    for (uint32_t i = 0; i < o->change.count; i++)
        printf(" %u=%u", o->change.item[i].key, o->change.item[i].value);
    printf("\n");
}

int subject_do(subject *s, const op *o) {
    if (the_sim.replaying && s->watched) print_op(o);
    the_sim.counts.operations++;
    int good = do_one(s, o);
    if (s->db && atomic_load(&s->db->writer.failed)) s->poisoned = 1;
    if (good && subject_moment) subject_moment(s);
    return good;
}
