/* hint_support: a log that exists in its records' positions only, its keydir with a model, and hints of it. */
#ifndef NT_TESTS_HINT_SUPPORT_H
#define NT_TESTS_HINT_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tree_support.h"

#include "base/hash.h"
#include "fake/fake_os.h"
#include "format/record.h"
#include "keydir/hint.h"

#define HINT "00000001.hint"
#define STATES 64

/* What there was at a place of the log. */
typedef struct hint_state {
    nt_hint_place place;
    model model;
} hint_state;

/* A store as far as hints see it. */
typedef struct book {
    int dir;
    nt_hint_id id;
    nt_keydir *keydir;
    model model;
    nt_hint_place place;
    nt_hint_saver saver;
    hint_state states[STATES]; /* wherever a piece may have ended, in order */
    int count;
} book;

static inline book *book_new(void) {
    book *b = malloc(sizeof *b);
    memset(b, 0, sizeof *b);
    assert_int_equal(NT_OS->open_dir("/", &b->dir), 0);
    b->id = (nt_hint_id){.generation = 1, .base = 1u << 20, .seed = 0x5EED};
    memset(b->id.store_id, 'i', sizeof b->id.store_id);
    b->keydir = nt_keydir_create();
    assert_non_null(b->keydir);
    b->place = (nt_hint_place){.covered = NT_LOG_START, .salt = 0x5A17};
    nt_hint_open(&b->saver, b->dir, HINT, &b->id, NULL);
    return b;
}

static inline void book_free(book *b) {
    nt_hint_close(&b->saver);
    nt_keydir_destroy(b->keydir);
    NT_OS->close(b->dir);
    for (int i = 0; i < b->count; i++) model_free(&b->states[i].model);
    model_free(&b->model);
    free(b);
}

/* Notes the state there is as one that a hint may have. */
static inline void book_note(book *b) {
    assert_true(b->count < STATES);
    b->states[b->count++] = (hint_state){b->place, model_clone(&b->model)};
}

/* One record: as a frame of its own. `delta`: it is added to the saver's delta. */
static inline void book_write(book *b, int kind, const uint8_t *key, size_t len, int delta) {
    static uint8_t record[NT_RECORD_HEAD_SIZE + UINT16_MAX + 64], value[32];
    uint64_t old, position = b->id.base + b->place.covered + NT_FRAME_HEAD_SIZE;
    nt_op op = {.kind = (uint8_t)kind, .key = key, .key_len = (uint16_t)len, .sequence = b->place.sequence + 1};
    op.value = value;
    if (kind == NT_OP_PUT) op.value_len = (uint32_t)(position / 8 % sizeof value);
    nt_record_encode(record, &op, b->id.seed);
    nt_record_number(record, op.sequence);
    assert_int_equal(nt_keydir_apply(b->keydir, &op, position, NULL, &old), 1);
    if (kind == NT_OP_PUT) model_put(&b->model, key, len, position);
    else if (kind == NT_OP_DAMAGED) model_put(&b->model, key, len, position | NT_ENTRY_DAMAGED);
    else model_delete(&b->model, key, len);
    if (delta) nt_hint_delta_add(&b->saver, position, record);
    b->place.durable = b->place.number ? b->place.last : NT_LOG_START;
    b->place.last = b->place.covered;
    b->place.covered += NT_FRAME_HEAD_SIZE + nt_record_size(&op);
    b->place.number++;
    b->place.check = b->place.number * 0x9E3779B97F4A7C15u;
    b->place.sequence = op.sequence;
}

static inline void book_turn_ends(book *b) {
    nt_keydir_publish(b->keydir, nt_keydir_seal(b->keydir, b->place.sequence, b->place.covered));
}

/* `n` random records in one turn. */
static inline void book_scribble(book *b, nt_random *r, int shape, uint64_t space, int n, int delta) {
    static const int KINDS[] = {NT_OP_PUT, NT_OP_PUT, NT_OP_PUT, NT_OP_PUT, NT_OP_DELETE, NT_OP_EVICT, NT_OP_DAMAGED};
    assert_int_equal(nt_keydir_begin(b->keydir), 1);
    for (int i = 0; i < n; i++) {
        int kind = KINDS[nt_random_below(r, 7)];
        size_t len = make_key(r, shape, space, key_room);
        if (kind != NT_OP_PUT && b->model.n && nt_random_below(r, 2)) {
            const model_pair *p = &b->model.at[nt_random_below(r, b->model.n)];
            memcpy(key_room, p->key, len = p->len);
        }
        if (len == 0) key_room[len++] = 0;
        if (len > UINT16_MAX) len = UINT16_MAX;
        book_write(b, kind, key_room, len, delta);
    }
    book_turn_ends(b);
}

static inline ntee_status book_snapshot(book *b, ntee_error *err) {
    return nt_hint_snapshot(&b->saver, b->keydir, nt_keydir_staged(b->keydir), &b->place, err);
}

/* A hint of some keys and two deltas, with the states noted that its pieces have. */
static inline book *book_small(void) {
    static const char *const WORDS[] = {"a", "ab", "b", "abc", "", "ac", "b"};
    book *b = book_new();
    ntee_error err;
    int kinds[] = {NT_OP_PUT, NT_OP_PUT, NT_OP_DAMAGED, NT_OP_PUT, NT_OP_PUT, NT_OP_DELETE, NT_OP_PUT};
    assert_int_equal(nt_keydir_begin(b->keydir), 1);
    for (int i = 0; i < 3; i++) book_write(b, kinds[i], (const uint8_t *)WORDS[i], strlen(WORDS[i]), 0);
    book_turn_ends(b);
    assert_int_equal(book_snapshot(b, &err), NTEE_OK);
    book_note(b);
    for (int delta = 0; delta < 2; delta++) {
        assert_int_equal(nt_keydir_begin(b->keydir), 1);
        assert_int_equal(nt_hint_delta_begin(&b->saver), 1);
        for (int i = 3 + 2 * delta; i < 5 + 2 * delta; i++) {
            book_write(b, kinds[i], (const uint8_t *)WORDS[i], strlen(WORDS[i]) + (i == 4), 1);
        }
        book_turn_ends(b);
        assert_int_equal(nt_hint_delta_end(&b->saver, &b->place, &err), NTEE_OK);
        book_note(b);
    }
    return b;
}

/* ---- Loading ---- */

/* Loads into a turn of `into`, which stays open where that is NTEE_OK. */
static inline ntee_status load_into(nt_keydir *into, const book *b, const nt_hint_id *id, uint64_t log_size,
                                    nt_hint_loaded *loaded) {
    ntee_error err = {0};
    if (!nt_keydir_begin(into)) return NTEE_NOMEM;
    ntee_status status = nt_hint_load(b->dir, HINT, id, log_size, into, loaded, &err);
    assert_int_equal(err.status, status);
    if (status != NTEE_OK) nt_keydir_rollback(into);
    return status;
}

/* Whether what was loaded is one of the states, and the place that goes with it; rolls it back. Returns which,
 * or -1: there was nothing. */
static inline int check_loaded(nt_keydir *into, const book *b, const nt_hint_loaded *loaded) {
    int which = -1;
    if (loaded->pieces > 0) {
        for (int i = 0; i < b->count && which < 0; i++) {
            if (b->states[i].place.covered == loaded->place.covered) which = i;
        }
        assert_true(which >= 0);
        assert_memory_equal(&loaded->place, &b->states[which].place, sizeof loaded->place);
        assert_same(nt_keydir_arena(into), *nt_keydir_root(into, NT_ROOT_KEYS), &b->states[which].model);
    } else if (!loaded->touched) {
        assert_true(*nt_keydir_root(into, NT_ROOT_KEYS) == 0);
    }
    nt_keydir_rollback(into);
    return which;
}

/* Loads what there is, by itself: which state it is, or -1. */
static inline int load_state(const book *b) {
    nt_hint_loaded loaded;
    nt_keydir *into = nt_keydir_create();
    assert_non_null(into);
    assert_int_equal(load_into(into, b, &b->id, UINT64_MAX, &loaded), NTEE_OK);
    int which = check_loaded(into, b, &loaded);
    nt_keydir_destroy(into);
    return which;
}

static inline int fake_set_up(void **state) {
    fake_fs *fs = fake_new(1);
    fake_use(fs);
    *state = fs;
    return 0;
}

static inline int fake_tear_down(void **state) {
    size_t leaks = fake_leaks(*state, 1);
    fake_use(NULL);
    fake_abandon(*state);
    return leaks == 0 ? 0 : -1;
}

#define ON_FAKE(test) cmocka_unit_test_setup_teardown(test, fake_set_up, fake_tear_down)

#endif
