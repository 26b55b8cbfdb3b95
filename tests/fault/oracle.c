#include "fault/oracle.h"

#include <stdlib.h>
#include <string.h>

#include "model/random.h"

void states_add(states *list, const state *s) {
    if (states_have(list, s)) return;
    if (list->count == list->cap) {
        list->cap = list->cap * 2 + 8;
        list->at = realloc(list->at, list->cap * sizeof *list->at);
        if (list->at == NULL) abort();
    }
    list->at[list->count++] = *s;
}

void states_clear(states *list) { list->count = 0; }

static void states_free(states *list) {
    free(list->at);
    *list = (states){NULL, 0, 0};
}

static void states_set(states *list, const states *from) {
    states_clear(list);
    for (size_t i = 0; i < from->count; i++) states_add(list, &from->at[i]);
}

int states_have(const states *list, const state *s) {
    for (size_t i = list->count; i-- > 0;) {
        const state *other = &list->at[i];
        if (other->hash == s->hash && memcmp(other->value, s->value, sizeof s->value) == 0) return 1;
    }
    return 0;
}

void state_finish(state *s) {
    uint64_t hash = 1;
    for (int i = 0; i < KEYS; i++) hash = mix(hash, s->value[i]);
    s->hash = hash;
}

void state_apply(state *s, const change *c) {
    for (uint32_t i = 0; i < c->count; i++) s->value[c->item[i].key] = c->item[i].value;
    state_finish(s);
}

void oracle_reset(oracle *o, const state *s) {
    state empty;
    memset(&empty, 0, sizeof empty);
    state_finish(&empty);
    o->view = s ? *s : empty;
    states_clear(&o->current);
    states_clear(&o->legal);
    states_clear(&o->flight);
    states_add(&o->current, &o->view);
    states_add(&o->legal, &o->view);
}

void oracle_end(oracle *o) {
    states_free(&o->current);
    states_free(&o->legal);
    states_free(&o->flight);
}

void oracle_sent(oracle *o, const change *c) {
    states_clear(&o->flight);
    for (size_t i = 0; i < o->current.count; i++) {
        state s = o->current.at[i];
        state_apply(&s, c);
        states_add(&o->flight, &s);
        states_add(&o->legal, &s);
    }
}

void oracle_acked(oracle *o, const change *c) {
    state_apply(&o->view, c);
    states_set(&o->current, &o->flight);
    states_clear(&o->flight);
}

void oracle_failed(oracle *o) {
    for (size_t i = 0; i < o->flight.count; i++) states_add(&o->current, &o->flight.at[i]);
    states_clear(&o->flight);
}

void oracle_durable(oracle *o) { states_set(&o->legal, &o->current); }

void oracle_destroying(oracle *o) {
    state empty;
    memset(&empty, 0, sizeof empty);
    state_finish(&empty);
    states_add(&o->legal, &empty);
    states_clear(&o->flight);
    states_add(&o->flight, &empty);
}

static uint64_t hash_of(uint64_t hash, const states *list) {
    for (size_t i = 0; i < list->count; i++) hash += mix(list->at[i].hash, 5);
    return hash;
}

uint64_t oracle_hash(const oracle *o, int power_loss) {
    if (power_loss) return hash_of(11, &o->legal);
    return hash_of(hash_of(13, &o->current), &o->flight);
}
