/*
 * oracle: what a store may hold after a crash, from what was sent to it, acknowledged by it, and durable in
 * it.
 *
 * A state says for each key which value it has. The oracle keeps
 *  - `view`: what the open handle has to show;
 *  - `current`: the states that the files may be in where nothing is lost (a process kill): one, and two or
 * more where a write failed, which may or may not be there;
 *  - `legal`: the states that a power loss may leave: every state since the last one known to be durable.
 * So a legal state is always a prefix of the writes that contains every durable one, with batches whole.
 */
#ifndef TESTS_FAULT_ORACLE_H
#define TESTS_FAULT_ORACLE_H

#include <stddef.h>
#include <stdint.h>

enum { KEYS = 24, ITEMS_MOST = 8 };

typedef struct state {
    uint64_t hash;         /* of the values */
    uint32_t value[KEYS];  /* 0: the key is not there; else the value's number */
} state;

typedef struct states {
    state *at;
    size_t count;
    size_t cap;
} states;

typedef struct change {
    uint32_t count;
    struct {
        uint32_t key;
        uint32_t value; /* 0: deleted */
    } item[ITEMS_MOST];
} change;

typedef struct oracle {
    state view;
    states current;
    states legal;
    states flight; /* `current` with the write that is under way */
} oracle;

void states_add(states *list, const state *s);
void states_clear(states *list);
int states_have(const states *list, const state *s);

/* Sets a state's hash. */
void state_finish(state *s);
void state_apply(state *s, const change *c);

/* The store holds exactly `s`, durably; NULL: nothing. */
void oracle_reset(oracle *o, const state *s);
void oracle_end(oracle *o);

/* A write is about to be made: from here on it may be there. */
void oracle_sent(oracle *o, const change *c);
/* It was acknowledged. */
void oracle_acked(oracle *o, const change *c);
/* It failed: the handle does not show it, a reopened store may. */
void oracle_failed(oracle *o);
/* Everything acknowledged so far is durable. */
void oracle_durable(oracle *o);
/* The whole store is about to go: nothing is a legal state too. */
void oracle_destroying(oracle *o);

/* A hash of what a process kill, or a power loss, may leave at this moment: to tell whether an image was
 * checked against it. */
uint64_t oracle_hash(const oracle *o, int power_loss);

#endif
