/* A tree is what a sorted array is, whatever is done to it, and loses no node. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tree_support.h"

/* ---- Random operations --------------------------------------------------------------------------- */

static void check_one(world *w, const uint8_t *key, size_t len) {
    int there;
    uint8_t *exact = model_copy_bytes(key, len);
    size_t rank = model_rank(&w->model, key, len, &there);
    assert_true(nt_tree_find(w->arena, w->root, exact, len) ==
                (there ? w->model.at[rank].value : NT_TREE_NONE));
    assert_int_equal(nt_tree_rank(w->arena, w->root, exact, len, 0), rank);
    assert_int_equal(nt_tree_rank(w->arena, w->root, exact, len, 1), rank + (size_t)there);
    size_t after = rank;
    while (after < w->model.n && w->model.at[after].len >= len &&
           memcmp(w->model.at[after].key, key, len) == 0) {
        after++;
    }
    assert_int_equal(nt_tree_rank_after_prefix(w->arena, w->root, exact, len), after);
    free(exact);
}

static void random_operations(int shape, int steps, uint64_t space, int every) {
    nt_random r = nt_random_start(SHAPE_NAMES[shape]);
    world w = world_new();
    int in_turn = 0;
    for (int i = 0; i < steps; i++) {
        if (!in_turn) begin(&w);
        in_turn = 1;
        size_t len = make_key(&r, shape, space, key_room);
        int shrinking = i / 500 % 2; /* growing and shrinking by turns */
        if (nt_random_below(&r, 10) < (shrinking ? 3u : 7u)) {
            put(&w, key_room, len, nt_random_next(&r) & NT_TREE_VALUE_MAX);
        } else if (shrinking && w.model.n && nt_random_below(&r, 3)) {
            const model_pair *p = &w.model.at[nt_random_below(&r, w.model.n)];
            memcpy(key_room, p->key, len = p->len);
            del(&w, key_room, len);
        } else {
            del(&w, key_room, len);
        }
        if (i % every == 0) check_all(&w);
        if (i % 10 == 0 && shape == SHAPE_HUGE) len /= 2;
        check_one(&w, key_room, len);
        if (nt_random_below(&r, 3) == 0) {
            commit(&w);
            in_turn = 0;
        }
    }
    if (in_turn) commit(&w);
    check_all(&w);
    world_free(&w);
}

static void random_operations_on_small_trees(void **state) {
    (void)state;
    for (int shape = 0; shape < SHAPES; shape++) {
        random_operations(shape, shape == SHAPE_HUGE ? 150 : 600, shape == SHAPE_HUGE ? 30 : 100, 1);
    }
}

static void random_operations_on_larger_trees(void **state) {
    (void)state;
    for (int shape = 0; shape < SHAPES; shape++) {
        random_operations(shape, shape == SHAPE_HUGE ? 400 : 6000, 3000, 500);
    }
}

/* ---- Orders -------------------------------------------------------------------------------------- */

static uint64_t place_in_order(int order, uint64_t i, uint64_t n) {
    if (order == 0) return i;
    if (order == 1) return n - 1 - i;
    if (order == 2) return i * 7919u % n; /* n is a power of two */
    return i & 1 ? n - 1 - i / 2 : i / 2;
}

static void put_and_delete_in_order(int in, int out, uint64_t n) {
    world w = world_new();
    for (uint64_t i = 0; i < n; i++) {
        begin(&w);
        int len = sprintf((char *)key_room, "api:%012" PRIu64, place_in_order(in, i, n));
        put(&w, key_room, (size_t)len, i);
        commit(&w);
        if (i % 512 == 0) check_all(&w);
    }
    uint64_t full = nt_tree_nodes(w.arena, w.root);
    if (in < 2) assert_true(full * NT_NODE_SIZE < n * 14); /* in order, nodes are full */
    for (uint64_t i = 0; i < n; i++) {
        begin(&w);
        int len = sprintf((char *)key_room, "api:%012" PRIu64, place_in_order(out, i, n));
        del(&w, key_room, (size_t)len);
        commit(&w);
        if (i % 512 == 0) check_all(&w);
        uint64_t nodes = nt_tree_nodes(w.arena, w.root), left = n - 1 - i;
        assert_true(nodes <= 3 + 4 * (left * 17 / NT_NODE_SIZE)); /* a quarter full at worst */
        if (left == 1) assert_int_equal(nodes, 1);
        if (left == 0) assert_true(w.root == 0);
    }
    check_all(&w);
    assert_int_equal(live_nodes(w.arena), 0);
    world_free(&w);
}

static void put_and_delete_in_all_orders(void **state) {
    (void)state;
    for (int in = 0; in < 4; in++) {
        for (int out = 0; out < 4; out++) put_and_delete_in_order(in, out, 2048);
    }
}

static void long_keys_with_everything_in_common(void **state) {
    (void)state;
    for (int out = 0; out < 4; out++) {
        world w = world_new();
        memset(key_room, 'x', NT_TREE_KEY_MAX);
        begin(&w);
        for (uint64_t i = 0; i < 64; i++) { /* they differ in length, or in one byte near the end */
            uint64_t k = place_in_order(2, i, 64);
            put(&w, key_room, 1000 + k, k);
            key_room[3000] = (uint8_t)k;
            put(&w, key_room, 3001, k);
            key_room[3000] = 'x';
            key_room[NT_TREE_KEY_MAX - 1] = (uint8_t)k;
            if (k % 8 == 0) put(&w, key_room, NT_TREE_KEY_MAX, k);
            key_room[NT_TREE_KEY_MAX - 1] = 'x';
        }
        commit(&w);
        check_all(&w);
        for (uint64_t n = w.model.n, i = 0; i < n; i++) {
            begin(&w);
            size_t at = (size_t)(place_in_order(out, i, 256) % w.model.n);
            size_t len = w.model.at[at].len;
            memcpy(key_room, w.model.at[at].key, len);
            del(&w, key_room, len);
            commit(&w);
            check_all(&w);
        }
        assert_int_equal(live_nodes(w.arena), 0);
        world_free(&w);
    }
}

static void largest_entries_that_a_node_must_take(void **state) {
    (void)state;
    nt_random r = nt_random_start("largest entries");
    for (int round = 0; round < 20; round++) {
        world w = world_new();
        begin(&w);
        for (int i = 0; i < 200; i++) { /* no prefix, all long: 256 bytes an entry; and small ones between */
            size_t len = nt_random_below(&r, 3) ? 241 + nt_random_below(&r, 10) : nt_random_below(&r, 12);
            nt_random_fill(&r, key_room, len);
            put(&w, key_room, len, (uint64_t)i);
            if (round < 3) check_all(&w);
        }
        check_all(&w);
        while (w.model.n) {
            size_t i = nt_random_below(&r, w.model.n), len = w.model.at[i].len;
            memcpy(key_room, w.model.at[i].key, len);
            del(&w, key_room, len);
            if (round < 3) check_all(&w);
        }
        commit(&w);
        assert_true(w.root == 0);
        assert_no_leak(&w);
        world_free(&w);
    }
}

/* ---- Several trees, clearing ---------------------------------------------------------------------- */

static void several_trees_share_an_arena(void **state) {
    (void)state;
    nt_random r = nt_random_start("several trees");
    nt_arena *arena = nt_arena_create();
    world w[5];
    for (int i = 0; i < 5; i++) w[i] = (world){.arena = arena};
    for (int i = 0; i < 4000; i++) {
        uint64_t turn = nt_arena_begin(arena);
        for (int j = 0; j < 5; j++) {
            size_t len = make_key(&r, j, 2000, key_room);
            if (nt_random_below(&r, 4)) put(&w[j], key_room, len, (uint64_t)i);
            else del(&w[j], key_room, len);
        }
        nt_arena_seal(arena);
        nt_arena_publish(arena, turn);
    }
    uint64_t nodes = 0;
    for (int j = 0; j < 5; j++) {
        assert_same(arena, w[j].root, &w[j].model);
        nodes += nt_tree_nodes(arena, w[j].root);
    }
    assert_int_equal(live_nodes(arena), nodes);
    uint64_t turn = nt_arena_begin(arena);
    for (int j = 1; j < 5; j++) {
        nt_root root = w[j].root;
        assert_int_equal(nt_tree_clear(arena, &root), 1);
        assert_true(root == 0);
        model_free(&w[j].model);
    }
    nt_arena_seal(arena);
    nt_arena_publish(arena, turn);
    assert_same(arena, w[0].root, &w[0].model);
    assert_no_leak(&w[0]);
    world_free(&w[0]);
}

static void clearing_returns_every_node(void **state) {
    (void)state;
    nt_random r = nt_random_start("clear");
    for (int shape = 0; shape < SHAPES; shape++) {
        world w = world_new();
        begin(&w);
        for (int i = 0; i < (shape == SHAPE_HUGE ? 50 : 1000); i++) {
            size_t len = make_key(&r, shape, 100000, key_room);
            put(&w, key_room, len, 1);
            if (i % 100 == 50) {
                commit(&w);
                begin(&w);
            }
        }
        assert_int_equal(nt_tree_clear(w.arena, &w.root), 1);
        assert_true(w.root == 0);
        commit(&w);
        settle(w.arena, w.turn);
        nt_arena_usage usage;
        nt_arena_measure(w.arena, &usage);
        assert_int_equal(usage.live, 0);
        assert_int_equal(usage.waiting, 0);
        world_free(&w);
    }
}

static void the_value_range_is_48_bits(void **state) {
    (void)state;
    world w = world_new();
    begin(&w);
    put(&w, (const uint8_t *)"a", 1, 0);
    put(&w, (const uint8_t *)"b", 1, NT_TREE_VALUE_MAX);
    put(&w, (const uint8_t *)"", 0, NT_TREE_VALUE_MAX - 1);
    put(&w, (const uint8_t *)"\0", 1, 1ull << 47);
    commit(&w);
    check_all(&w);
    assert_true(nt_tree_find(w.arena, w.root, NULL, 0) == NT_TREE_VALUE_MAX - 1);
    assert_true(nt_tree_find(w.arena, 0, "a", 1) == NT_TREE_NONE);
    assert_int_equal(nt_tree_rank(w.arena, 0, "a", 1, 1), 0);
    assert_int_equal(nt_tree_rank_after_prefix(w.arena, w.root, NULL, 0), 4);
    world_free(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_value_range_is_48_bits),
        cmocka_unit_test(random_operations_on_small_trees),
        cmocka_unit_test(random_operations_on_larger_trees),
        cmocka_unit_test(put_and_delete_in_all_orders),
        cmocka_unit_test(long_keys_with_everything_in_common),
        cmocka_unit_test(largest_entries_that_a_node_must_take),
        cmocka_unit_test(several_trees_share_an_arena),
        cmocka_unit_test(clearing_returns_every_node),
    };
    return cmocka_run_group_tests(tests, memory_set_up, NULL);
}
