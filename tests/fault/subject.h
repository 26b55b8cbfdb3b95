/*
 * subject: a store on the fake file system, what was done to it, and what it has to show for that.
 *
 * Every value is unique: its first bytes are its number, and the rest follows from the number. So whatever
 * turns up later can be named, and a value nobody wrote is seen.
 */
#ifndef TESTS_FAULT_SUBJECT_H
#define TESTS_FAULT_SUBJECT_H

#include "fault/oracle.h"
#include "fault/sim.h"
#include "ntee.h"

#define SUBJECT_PATH "/data/store"
#define SUBJECT_LOG SUBJECT_PATH "/00000001.log"

typedef struct subject {
    fake_fs *fs;
    ntee *db;              /* NULL: closed */
    uint32_t flags;        /* of ntee_open */
    oracle oracle;
    rng random;
    uint32_t serial;       /* the last value's */
    uint32_t sizes;        /* how large values get: 0 small, 1 to a few pages, 2 beyond a window */
    uint32_t keys;         /* how many keys are in play */
    uint32_t depth;        /* generations of crashes that are still to come below this one */
    uint32_t recoveries;   /* levels of crashes while recovering that are still to come */
    const effort *effort;
    int call;              /* the call that is being made (fake_call), 0 between operations */
    int watched;           /* its calls are moments at which images are made */
    int tolerant;          /* calls may fail: faults are injected */
    int sync_fails;        /* the injected fault is a sync's */
    int forgetful;         /* what a failed sync did not write may vanish without a crash */
    int poisoned;          /* a sync failed: nothing is acknowledged any more */
    int settled;           /* the store is open, and was read since */
} subject;

typedef enum op_kind {
    OP_PUT,
    OP_DELETE,
    OP_PUT_IF_ABSENT,
    OP_BATCH,
    OP_SYNC,
    OP_STEP,       /* a tick of the background */
    OP_PREPARE,    /* the background's look at the log */
    OP_REOPEN,
    OP_DESTROY,    /* and make it anew */
    OP_DROP        /* the same through the open handle */
} op_kind;

typedef struct op {
    op_kind kind;
    change change;
} op;

/* Makes the keys' names. Once. */
void subject_setup(void);

/* A value's number from a serial and a class of size. */
uint32_t subject_value(subject *s, uint32_t size_class);
uint64_t subject_value_size(uint32_t number);

op subject_random_op(subject *s);

/* Opens the store. `wanted`: the states that it may hold then; one of them becomes the subject's. Returns
 * 1, or 0 where that failed (and was reported, unless calls may fail). */
int subject_open(subject *s, const states *wanted);
/* Does an operation and checks its answer. 0 where a failure was reported, or the store could not be opened
 * again. */
int subject_do(subject *s, const op *o);
/* Closes the store, if it is open. 0 where that failed and must not. */
int subject_close(subject *s);

/* Writes of the given kind, for scripts: to a key, with new values of a size. */
op subject_make_op(subject *s, op_kind kind, uint32_t key, uint32_t count, uint32_t size_class);

/* What get answers for a key: its status, and the value's number where that is NTEE_OK (0: none that was
 * ever made). */
ntee_status subject_get(ntee *db, uint32_t key, uint32_t *value);

/* Reads the whole store in all ways and compares them with each other. 0 with a reason in *why. */
int subject_read(ntee *db, state *found, const char **why);
/* Reads the store and compares it with the view. 0 where a failure was reported. */
int subject_check(subject *s, const char *when);

/* Called at the end of every operation: a crash right after the answer. */
extern void (*subject_moment)(subject *s);

#endif
