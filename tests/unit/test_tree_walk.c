/* A walk meets every key once, in order, both ways, from any place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tree_support.h"

static world grow(nt_random *r, int shape, int keys, uint64_t space) {
    world w = world_new();
    begin(&w);
    for (int i = 0; i < keys; i++) {
        size_t len = make_key(r, shape, space, key_room);
        put(&w, key_room, len, nt_random_next(r) & NT_TREE_VALUE_MAX);
    }
    for (int i = 0; i < keys / 4 && w.model.n; i++) { /* holes, and nodes that were joined */
        const model_pair *p = &w.model.at[nt_random_below(r, w.model.n)];
        size_t len = p->len;
        memcpy(key_room, p->key, len);
        del(&w, key_room, len);
    }
    commit(&w);
    assert_sound(w.arena, w.root);
    return w;
}

static size_t expected_place(const model *m, const uint8_t *key, size_t len, int place) {
    int there;
    size_t i = model_rank(m, key, len, &there);
    if (place == NT_WALK_AFTER) return i + (size_t)there;
    if (place == NT_WALK_BEFORE) return i;
    while (i < m->n && m->at[i].len >= len && memcmp(m->at[i].key, key, len) == 0) i++;
    return i;
}

static void assert_steps(nt_walk walk, const model *m, size_t i, int steps) {
    nt_walk down = walk;
    size_t up_i = i;
    for (int k = 0; k < steps; k++, up_i++) {
        uint64_t value = nt_walk_next(&walk);
        if (up_i >= m->n) {
            assert_true(value == NT_TREE_NONE);
            break;
        }
        assert_true(value == m->at[up_i].value);
        assert_int_equal(nt_walk_key_length(&walk, 1), m->at[up_i].len);
    }
    for (int k = 0; k < steps; k++, i--) {
        uint64_t value = nt_walk_prev(&down);
        if (i == 0) {
            assert_true(value == NT_TREE_NONE);
            break;
        }
        assert_true(value == m->at[i - 1].value);
        nt_walk_key(&down, 0, key_room);
        if (m->at[i - 1].len) assert_memory_equal(key_room, m->at[i - 1].key, m->at[i - 1].len);
    }
}

static void walks_begin_at_every_place(void **state) {
    (void)state;
    nt_random r = nt_random_start("places");
    for (int shape = 0; shape < SHAPES; shape++) {
        world w = grow(&r, shape, shape == SHAPE_HUGE ? 40 : 1500, 3000);
        nt_walk walk;
        for (size_t i = 0; i < 2 * w.model.n; i++) {
            size_t len;
            if (i < w.model.n) memcpy(key_room, w.model.at[i].key, len = w.model.at[i].len);
            else len = make_key(&r, shape, 3000, key_room);
            if (i % 3 == 2) len = nt_random_below(&r, len + 1); /* and beginnings of keys */
            if (len > 0 && i % 11 == 0) key_room[len - 1] = 0xFF;
            uint8_t *exact = model_copy_bytes(key_room, len);
            for (int place = NT_WALK_BEFORE; place <= NT_WALK_AFTER_PREFIX; place++) {
                nt_walk_seek(&walk, w.arena, w.root, exact, len, place);
                assert_steps(walk, &w.model, expected_place(&w.model, exact, len, place), 3);
            }
            free(exact);
        }
        nt_walk_first(&walk, w.arena, w.root);
        assert_steps(walk, &w.model, 0, (int)w.model.n + 2);
        nt_walk_last(&walk, w.arena, w.root);
        assert_steps(walk, &w.model, w.model.n, (int)w.model.n + 2);
        world_free(&w);
    }
}

static void a_walk_turns_round_anywhere(void **state) {
    (void)state;
    nt_random r = nt_random_start("turning");
    world w = grow(&r, SHAPE_MIXED, 3000, 5000);
    nt_walk walk;
    size_t i = 0;
    nt_walk_first(&walk, w.arena, w.root);
    for (int round = 0; round < 300; round++) {
        int up = nt_random_below(&r, 2) == 0;
        for (uint64_t k = nt_random_below(&r, 400); k > 0; k--) {
            uint64_t value = up ? nt_walk_next(&walk) : nt_walk_prev(&walk);
            if (up ? i == w.model.n : i == 0) {
                assert_true(value == NT_TREE_NONE);
                break;
            }
            if (!up) i--;
            assert_true(value == w.model.at[i].value);
            if (up) i++;
        }
    }
    world_free(&w);
}

static void an_empty_tree_has_nothing_to_walk(void **state) {
    (void)state;
    nt_arena *arena = nt_arena_create();
    nt_walk walk;
    uint64_t value;
    nt_key_sink sink = {key_room, key_room + 100, 10, 0, 0};
    for (int i = 0; i < 5; i++) {
        if (i == 0) nt_walk_first(&walk, arena, 0);
        if (i == 1) nt_walk_last(&walk, arena, 0);
        if (i >= 2) nt_walk_seek(&walk, arena, 0, "a", 1, i - 2);
        assert_true(nt_walk_next(&walk) == NT_TREE_NONE);
        assert_true(nt_walk_prev(&walk) == NT_TREE_NONE);
        assert_int_equal(nt_walk_take_keys(&walk, i & 1, &sink), 0);
        assert_int_equal(nt_walk_take_values(&walk, i & 1, &value, 1), 0);
    }
    nt_arena_destroy(arena);
}

/* Takes the whole tree in pages of random room and budget, each in memory of exactly that size. */
static void take_all_keys(nt_random *r, const world *w, int up, size_t largest) {
    nt_walk walk;
    size_t taken = 0;
    int more = w->model.n > 0, stuck = 0;
    if (up) nt_walk_first(&walk, w->arena, w->root);
    else nt_walk_last(&walk, w->arena, w->root);
    while (more) {
        size_t room = nt_random_below(r, largest) + (stuck ? NT_TREE_KEY_MAX + 2 : 0);
        uint64_t budget = nt_random_below(r, 10) ? 1 + nt_random_below(r, 300) : UINT64_MAX;
        uint8_t *page = malloc(room ? room : 1);
        nt_key_sink sink = {page, page + room, budget, 0, 0};
        more = nt_walk_take_keys(&walk, up, &sink);
        const uint8_t *at = page, *len_at = page + room;
        uint8_t seen = 0;
        for (uint64_t i = 0; i < sink.count; i++, taken++) {
            const model_pair *p = &w->model.at[up ? taken : w->model.n - 1 - taken];
            len_at -= 2;
            assert_int_equal(nt_load16(len_at), (uint16_t)p->len);
            if (p->len) assert_memory_equal(at, p->key, p->len);
            at += p->len;
            for (size_t k = 0; k < p->len; k++) seen |= p->key[k];
        }
        assert_int_equal(seen, sink.seen);
        assert_ptr_equal(at, sink.bytes);
        assert_ptr_equal(len_at, sink.lens);
        assert_int_equal(more, taken < w->model.n);
        if (more && sink.count < budget) { /* it stopped since the next one does not fit, and only then */
            const model_pair *p = &w->model.at[up ? taken : w->model.n - 1 - taken];
            assert_true(sink.bytes + p->len + 2 > sink.lens);
        }
        stuck = sink.count == 0;
        free(page);
    }
    assert_int_equal(taken, w->model.n);
}

static void take_all_values(nt_random *r, const world *w, int up) {
    nt_walk walk;
    size_t taken = 0, got, max;
    uint64_t values[300];
    if (up) nt_walk_first(&walk, w->arena, w->root);
    else nt_walk_last(&walk, w->arena, w->root);
    do {
        max = nt_random_below(r, 301);
        got = nt_walk_take_values(&walk, up, values, max);
        for (size_t i = 0; i < got; i++, taken++) {
            assert_true(values[i] == w->model.at[up ? taken : w->model.n - 1 - taken].value);
        }
    } while (got == max);
    assert_int_equal(taken, w->model.n);
}

static void taking_in_bulk_gives_every_key_and_value(void **state) {
    (void)state;
    nt_random r = nt_random_start("taking");
    for (int shape = 0; shape < SHAPES; shape++) {
        for (int round = 0; round < 6; round++) {
            world w = grow(&r, shape, round == 0 ? 1 : shape == SHAPE_HUGE ? 30 : 2000, 4000);
            for (int up = 0; up < 2; up++) {
                take_all_keys(&r, &w, up, round < 3 ? 200 : shape >= SHAPE_HUGE ? 200000 : 5000);
                take_all_values(&r, &w, up);
            }
            world_free(&w);
        }
    }
}

static void seen_tells_ascii_from_other_keys(void **state) {
    (void)state;
    for (int place = 0; place < 60; place++) { /* one high byte, in prefix, head or suffix */
        nt_arena *arena = nt_arena_create();
        nt_root root = 0;
        uint64_t old, turn = nt_arena_begin(arena);
        uint8_t key[30], page[4000];
        for (int i = 0; i < 40; i++) {
            memset(key, 'k', sizeof key);
            key[20] = (uint8_t)('A' + i);
            if (place < 30) key[place] |= 0x80;
            assert_int_equal(nt_tree_put(arena, &root, key, place % 2 ? 30 : 30 - (size_t)i % 5, 1, &old), 1);
        }
        nt_arena_seal(arena);
        nt_arena_publish(arena, turn);
        nt_walk walk;
        nt_key_sink sink = {page, page + sizeof page, 100, 0, 0};
        nt_walk_first(&walk, arena, root);
        assert_int_equal(nt_walk_take_keys(&walk, 1, &sink), 0);
        assert_int_equal(sink.seen >= 0x80, place < 30 && !(place % 2 == 0 && place > 30));
        nt_arena_destroy(arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(walks_begin_at_every_place),
        cmocka_unit_test(a_walk_turns_round_anywhere),
        cmocka_unit_test(an_empty_tree_has_nothing_to_walk),
        cmocka_unit_test(taking_in_bulk_gives_every_key_and_value),
        cmocka_unit_test(seen_tells_ascii_from_other_keys),
    };
    return cmocka_run_group_tests(tests, memory_set_up, NULL);
}
