/* Versions of a tree: turns undone, turns that ran out of memory, versions held while the writer goes on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tree_support.h"

/* ---- Undoing -------------------------------------------------------------------------------------- */

static void change_at_random(world *w, nt_random *r, int shape, uint64_t space, int changes) {
    for (int i = 0; i < changes; i++) {
        size_t len = make_key(r, shape, space, key_room);
        if (nt_random_below(r, 2)) put(w, key_room, len, nt_random_below(r, 1000));
        else del(w, key_room, len);
    }
}

static void rollback_leaves_what_was_there(void **state) {
    (void)state;
    nt_random r = nt_random_start("rollback");
    for (int shape = 0; shape < SHAPES; shape++) {
        world w = world_new();
        for (int i = 0; i < (shape == SHAPE_HUGE ? 40 : 300); i++) {
            begin(&w);
            int undo = nt_random_below(&r, 2) == 0;
            model before = undo ? model_clone(&w.model) : (model){0};
            nt_root root = w.root;
            nt_arena_usage was, is;
            nt_arena_measure(w.arena, &was);
            change_at_random(&w, &r, shape, 300, (int)nt_random_below(&r, shape == SHAPE_HUGE ? 4 : 40));
            if (undo) {
                nt_arena_rollback(w.arena);
                model_free(&w.model);
                w.model = before;
                w.root = root;
                nt_arena_measure(w.arena, &is);
                assert_int_equal(is.live, was.live);
                assert_int_equal(is.waiting, was.waiting);
            } else {
                commit(&w);
            }
            if (i % 10 == 0 || undo) check_all(&w);
        }
        world_free(&w);
    }
}

static void failed_turns_leave_what_was_staged_before_them(void **state) {
    (void)state;
    nt_random r = nt_random_start("staged");
    for (int shape = 0; shape < SHAPES; shape++) {
        world w = world_new();
        for (int round = 0; round < 40; round++) {
            for (int staged = (int)nt_random_below(&r, 6); staged > 0; staged--) {
                begin(&w);
                change_at_random(&w, &r, shape, 300, (int)nt_random_below(&r, shape == SHAPE_HUGE ? 3 : 30));
                nt_arena_seal(w.arena);
                if (nt_random_below(&r, 4)) continue;
                nt_root root = w.root;
                model same = model_clone(&w.model);
                nt_arena_begin(w.arena);
                change_at_random(&w, &r, shape, 300, 3);
                nt_arena_rollback(w.arena);
                model_free(&w.model);
                w.model = same;
                w.root = root;
                check_all(&w);
            }
            if (w.turn && nt_random_below(&r, 2)) nt_arena_publish(w.arena, w.turn);
        }
        check_all(&w);
        world_free(&w);
    }
}

/* ---- Running out of memory ------------------------------------------------------------------------ */

/* Leaves the arena with exactly `spare` nodes that it can give out, and no more memory. */
static void leave_nodes(nt_arena *arena, uint64_t spare, uint32_t *burnt) {
    uint64_t n = 0;
    memory_left = 0;
    memory_sticky = 1;
    nt_arena_begin(arena);
    for (uint32_t id; (id = nt_arena_new(arena)) != 0; n++) *burnt = id;
    nt_arena_seal(arena);
    assert_true(n >= spare);
    /* The nodes burnt stay live and unreachable; give `spare` of them back. */
    nt_arena_begin(arena);
    for (uint64_t i = 0; i < spare; i++) nt_arena_retire(arena, *burnt - (uint32_t)i);
    nt_arena_seal(arena);
    settle(arena, nt_arena_turn(arena));
}

/* A put and a delete that split, merge and carry long keys, with `spare` nodes to be had. 1: both went. */
static int try_with_nodes(int shape, uint64_t seed, uint64_t spare, int deleting) {
    nt_random r = {seed};
    world w = world_new();
    begin(&w);
    for (int i = 0; i < (shape == SHAPE_HUGE ? 12 : 250); i++) {
        size_t len = make_key(&r, shape, 5000, key_room);
        put(&w, key_room, len, (uint64_t)i);
    }
    commit(&w);
    uint32_t burnt = 0;
    leave_nodes(w.arena, spare, &burnt);
    uint64_t others = live_nodes(w.arena) - nt_tree_nodes(w.arena, w.root);
    nt_root root = w.root;
    begin(&w);
    int ok = 1;
    for (int i = 0; ok && i < (shape == SHAPE_HUGE ? 3 : 30); i++) {
        uint64_t old;
        const model_pair *p = &w.model.at[nt_random_below(&r, w.model.n)];
        size_t len = make_key(&r, shape, 5000, key_room);
        ok = deleting ? nt_tree_delete(w.arena, &root, p->key, p->len, &old)
                      : nt_tree_put(w.arena, &root, key_room, len, 7, &old);
    }
    nt_arena_rollback(w.arena);
    assert_same(w.arena, w.root, &w.model);
    assert_int_equal(live_nodes(w.arena), nt_tree_nodes(w.arena, w.root) + others);
    memory_left = INT64_MAX; /* with memory again, all goes well */
    begin(&w);
    change_at_random(&w, &r, shape, 5000, shape == SHAPE_HUGE ? 4 : 100);
    commit(&w);
    assert_same(w.arena, w.root, &w.model);
    assert_int_equal(live_nodes(w.arena), nt_tree_nodes(w.arena, w.root) + others);
    world_free(&w);
    return ok;
}

static void every_node_that_cannot_be_had_is_survived(void **state) {
    (void)state;
    nt_random r = nt_random_start("out of nodes");
    for (int deleting = 0; deleting < 2; deleting++) {
        for (int shape = 0; shape < SHAPES; shape++) {
            uint64_t seed = nt_random_next(&r), step = shape == SHAPE_HUGE ? 23 : shape == SHAPE_LONG ? 5 : 1;
            uint64_t spare = 0;
            while (!try_with_nodes(shape, seed, spare, deleting)) spare += step;
            assert_true(spare > 0);
        }
    }
}

static int scripted_work(void) {
    nt_random r = {12345};
    nt_arena *arena = nt_arena_create();
    if (!arena) return 0;
    nt_root root = 0;
    model m = {0};
    int ok = 1, held = 0;
    for (int i = 0; ok && i < 700; i++) {
        uint64_t old, turn = nt_arena_begin(arena);
        nt_root was = root;
        size_t len = make_key(&r, i % 20 ? SHAPE_URL : SHAPE_LONG, 100000, key_room);
        ok = nt_tree_put(arena, &root, key_room, len, (uint64_t)i, &old);
        if (!ok) {
            nt_arena_rollback(arena);
            root = was;
            break;
        }
        model_put(&m, key_room, len, (uint64_t)i);
        nt_arena_seal(arena);
        nt_arena_publish(arena, turn);
        if (i % 100 != 7) continue;
        uint32_t slot = nt_arena_enter(arena);
        if (nt_arena_hold(arena, turn)) held++;
        else ok = 0;
        nt_arena_leave(arena, slot);
    }
    assert_same(arena, root, &m);
    (void)held;
    nt_arena_destroy(arena);
    model_free(&m);
    return ok;
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    for (int sticky = 0; sticky < 2; sticky++) {
        int64_t n = 0;
        for (int ok = 0; !ok; n++) {
            memory_left = n;
            memory_sticky = sticky;
            ok = scripted_work();
            memory_left = INT64_MAX;
            assert_int_equal(memory_blocks, 0);
        }
        assert_true(n > 8);
    }
}

/* ---- Versions held ---------------------------------------------------------------------------------- */

typedef struct held_version {
    uint64_t number;
    nt_root root;
    model model;
} held_version;

static void hold_newest(world *w, held_version *h) {
    uint32_t slot = nt_arena_enter(w->arena);
    assert_int_equal(nt_arena_hold(w->arena, w->turn), 1);
    nt_arena_leave(w->arena, slot);
    *h = (held_version){w->turn, w->root, model_clone(&w->model)};
}

static void drop_version(world *w, held_version *h) {
    assert_same(w->arena, h->root, &h->model);
    nt_arena_drop(w->arena, h->number);
    model_free(&h->model);
    h->number = 0;
}

static void held_versions_stay_as_they_were(void **state) {
    (void)state;
    nt_random r = nt_random_start("held versions");
    for (int shape = 0; shape < SHAPES; shape++) {
        world w = world_new();
        held_version held[8] = {0};
        int rounds = shape == SHAPE_HUGE ? 200 : 4000;
        for (int i = 0; i < rounds; i++) {
            begin(&w);
            change_at_random(&w, &r, shape, 2000, 1 + (int)nt_random_below(&r, 3));
            if (nt_random_below(&r, 10) == 0) { /* holds and drops come beside turns, too */
                held_version *h = &held[nt_random_below(&r, 8)];
                if (h->number) drop_version(&w, h);
            }
            commit(&w);
            if (nt_random_below(&r, (uint64_t)rounds / 50) != 0) continue;
            held_version *h = &held[nt_random_below(&r, 8)];
            if (h->number) drop_version(&w, h);
            else hold_newest(&w, h);
        }
        nt_arena_usage usage;
        for (int i = 0; i < 8; i++) {
            if (held[i].number) drop_version(&w, &held[i]);
        }
        settle(w.arena, w.turn);
        check_all(&w);
        nt_arena_measure(w.arena, &usage);
        assert_int_equal(usage.waiting, 0);
        assert_int_equal(usage.holds, 0);
        world_free(&w);
    }
}

static void a_held_version_keeps_only_its_own_nodes(void **state) {
    (void)state;
    world w = world_new();
    nt_random r = nt_random_start("hold size");
    held_version h;
    begin(&w);
    change_at_random(&w, &r, SHAPE_NUMBER, 20000, 20000);
    commit(&w);
    hold_newest(&w, &h);
    uint64_t nodes = nt_tree_nodes(w.arena, w.root);
    for (int i = 0; i < 20000; i++) {
        begin(&w);
        change_at_random(&w, &r, SHAPE_NUMBER, 20000, 1);
        commit(&w);
    }
    nt_arena_usage usage;
    nt_arena_measure(w.arena, &usage);
    assert_true(usage.waiting <= nodes + 200);
    drop_version(&w, &h);
    settle(w.arena, w.turn);
    nt_arena_measure(w.arena, &usage);
    assert_int_equal(usage.waiting, 0);
    assert_no_leak(&w);
    world_free(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rollback_leaves_what_was_there),
        cmocka_unit_test(failed_turns_leave_what_was_staged_before_them),
        cmocka_unit_test(every_node_that_cannot_be_had_is_survived),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(held_versions_stay_as_they_were),
        cmocka_unit_test(a_held_version_keeps_only_its_own_nodes),
    };
    return cmocka_run_group_tests(tests, memory_set_up, NULL);
}
