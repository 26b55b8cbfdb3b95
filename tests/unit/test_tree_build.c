/* A tree that is built in one go is a tree like any other, and wants keys in order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tree_support.h"

#include "store/tree_build.h"
#include "store/tree_path.h"

/* Keys for the model, in its order. */
static model make_model(nt_random *r, int shape, uint64_t space, size_t n) {
    model m = {0};
    for (size_t i = 0; i < n; i++) {
        size_t len = make_key(r, shape, space, key_room);
        model_put(&m, key_room, len, nt_random_next(r) & NT_TREE_VALUE_MAX);
    }
    return m;
}

/* Builds the model's tree in the turn; 1, or 0 where memory was short. The key goes by way of a place that the next
 * one reuses, as it does in a reader's buffer. */
static int build_model(nt_arena *arena, const model *m, nt_root *root) {
    nt_build build;
    nt_build_begin(&build, arena);
    for (size_t i = 0; i < m->n; i++) {
        uint8_t *exact = model_copy_bytes(m->at[i].key, m->at[i].len);
        int done = nt_build_add(&build, exact, m->at[i].len, m->at[i].value);
        free(exact);
        if (!done) {
            assert_int_equal(build.fault, NT_BUILD_MEMORY);
            return 0;
        }
    }
    assert_int_equal(build.count, m->n);
    if (nt_build_end(&build, root)) return 1;
    assert_int_equal(build.fault, NT_BUILD_MEMORY);
    return 0;
}

static world build_world(nt_random *r, int shape, uint64_t space, size_t n) {
    world w = world_new();
    w.model = make_model(r, shape, space, n);
    begin(&w);
    assert_int_equal(build_model(w.arena, &w.model, &w.root), 1);
    check_all(&w);
    return w;
}

/* Puts and deletes, near each other and anywhere, until the tree is empty in the end. */
static void change(world *w, nt_random *r, int shape, uint64_t space, int steps, int every) {
    for (int i = 0; i < steps; i++) {
        size_t len = make_key(r, shape, space, key_room);
        if (w->model.n && nt_random_below(r, 10) < 6) {
            const model_pair *p = &w->model.at[i % 3 ? nt_random_below(r, w->model.n) : w->model.n - 1];
            memcpy(key_room, p->key, len = p->len);
            del(w, key_room, len);
        } else {
            put(w, key_room, len, nt_random_next(r) & NT_TREE_VALUE_MAX);
        }
        if (i % every == 0) check_all(w);
        if (nt_random_below(r, 20) == 0) {
            commit(w);
            begin(w);
        }
    }
    while (w->model.n > 0 && w->model.n < 3000) {
        size_t i = nt_random_below(r, w->model.n), len = w->model.at[i].len;
        memcpy(key_room, w->model.at[i].key, len);
        del(w, key_room, len);
        if (w->model.n % (unsigned)every == 0) check_all(w);
    }
}

static void any_keys_make_a_tree_that_goes_on_as_others_do(void **state) {
    (void)state;
    static const size_t MOST[SHAPES] = {20000, 6000, 5000, 6000, 2000, 800, 60, 2000};
    for (int shape = 0; shape < SHAPES; shape++) {
        nt_random r = nt_random_start(SHAPE_NAMES[shape]);
        for (int round = 0; round < 12; round++) {
            size_t n = 1 + nt_random_below(&r, round % 3 ? MOST[shape] / 20 : MOST[shape]);
            uint64_t space = n * (1 + nt_random_below(&r, 3));
            world w = build_world(&r, shape, space, n);
            int every = 1 + (int)(w.model.n / 4);
            change(&w, &r, shape, space, round % 3 ? 300 : (int)MOST[shape] / 4, every);
            commit(&w);
            world_free(&w);
        }
    }
}

/* Every number of keys around those where a leaf or an inner node is full. */
static void every_number_of_keys_works(void **state) {
    (void)state;
    static const struct {
        int len;
        size_t to, step;
    } kinds[] = {{4, 420, 1}, {16, 300, 1}, {4, 12000, 97}, {200, 700, 1}, {238, 300, 1}, {300, 100, 1}};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        world w = world_new();
        uint8_t key[300];
        for (size_t n = 0; n <= kinds[k].to; n++) {
            if (n % kinds[k].step == 0) {
                begin(&w);
                assert_int_equal(build_model(w.arena, &w.model, &w.root), 1);
                check_all(&w);
                nt_tree_clear(w.arena, &w.root);
                assert_int_equal(live_nodes(w.arena), 0);
                commit(&w);
            }
            memset(key, 'k', sizeof key);
            nt_store32be(key + (k % 2 ? kinds[k].len - 4 : 0), (uint32_t)n * 2654435u);
            model_put(&w.model, key, (size_t)kinds[k].len, n);
        }
        world_free(&w);
    }
}

static void nothing_makes_the_empty_tree(void **state) {
    (void)state;
    world w = world_new();
    nt_build build;
    begin(&w);
    w.root = 77;
    nt_build_begin(&build, w.arena);
    assert_int_equal(nt_build_end(&build, &w.root), 1);
    assert_true(w.root == 0);
    check_all(&w);
    commit(&w);
    world_free(&w);
}

/* At each level the first node is as full as it is to be, and the last one not too empty. */
static void check_fill(const world *w) {
    uint32_t first = nt_root_id(w->root), last = first;
    for (int height = nt_root_height(w->root); height > 0; height--) {
        const nt_tnode *left = nt_node_at(w->arena, first), *right = nt_node_at(w->arena, last);
        int n = nt_node_count(right), inner = height > 1, several = nt_node_count(left) > 1;
        assert_true(n > 0);
        first = nt_inner_child(left, 0);
        last = nt_inner_child(right, n);
        int used = nt_node_used(nt_node_at(w->arena, first), inner);
        if (several) assert_in_range(used, NT_NODE_SIZE * 7 / 8, NT_NODE_SIZE * 31 / 32);
        assert_true(nt_node_used(nt_node_at(w->arena, last), inner) >= NT_TREE_LOW);
    }
}

static void nodes_are_full_and_the_last_ones_not_nearly_empty(void **state) {
    (void)state;
    nt_random r = nt_random_start("fill");
    for (size_t n = 300; n < 9000; n += 1 + n / 7) {
        world w = build_world(&r, SHAPE_HEX, UINT64_MAX, n);
        check_fill(&w);
        commit(&w);
        world_free(&w);
    }
    for (int zeros = 1; zeros < 8; zeros++) { /* keys shorter than prefix and head */
        world w = world_new();
        for (uint32_t i = 0; i < 5000; i++) {
            uint8_t key[12] = {0};
            nt_store32be(key + 8 - zeros % 3, i * (zeros > 3 ? 1 : 7));
            model_put(&w.model, key, 12u - (unsigned)(zeros % 3), i);
            if (zeros > 5 && zeros % 3) model_put(&w.model, key, 13u - (unsigned)(zeros % 3), i);
        }
        begin(&w);
        assert_int_equal(build_model(w.arena, &w.model, &w.root), 1);
        check_fill(&w);
        commit(&w);
        world_free(&w);
    }
}

static void what_does_not_ascend_is_refused(void **state) {
    (void)state;
    static uint8_t a[NT_TREE_KEY_MAX + 1], b[NT_TREE_KEY_MAX + 1];
    static const struct {
        size_t a_len, b_len;
        int at, a_byte, b_byte; /* where they differ */
        int fine;
    } cases[] = {
        {1, 1, 0, 0, 0, 0},       {0, 0, 0, 0, 0, 0},         {0, 1, 0, 0, 0, 1},     {1, 0, 0, 0, 0, 0},
        {2, 1, 1, 0, 0, 0},       {1, 2, 1, 0, 0, 1},         {9, 9, 8, 1, 0, 0},     {9, 9, 8, 0, 0xFF, 1},
        {9, 20, 3, 5, 4, 0},      {20, 9, 3, 4, 5, 1},        {240, 241, 0, 0, 0, 1}, {241, 240, 0, 0, 0, 0},
        {241, 241, 240, 1, 1, 0}, {241, 241, 240, 1, 2, 1},   {241, 241, 240, 2, 1, 0},
        {5000, 5000, 4999, 0, 0, 0}, {5000, 5000, 4999, 1, 0, 0}, {5000, 5000, 4999, 0, 1, 1},
        {5000, 4999, 0, 0, 0, 0}, {4999, 5000, 0, 0, 0, 1},   {5000, 300, 250, 1, 2, 1}, {300, 5000, 250, 2, 1, 0},
        {1, NT_TREE_KEY_MAX, 0, 0, 0, 1}, {1, NT_TREE_KEY_MAX + 1, 0, 0, 1, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        world w = world_new();
        nt_build build;
        nt_root root;
        begin(&w);
        nt_build_begin(&build, w.arena);
        memset(a, 0, sizeof a);
        memset(b, 0, sizeof b);
        a[cases[i].at] = (uint8_t)cases[i].a_byte;
        b[cases[i].at] = (uint8_t)cases[i].b_byte;
        assert_int_equal(nt_build_add(&build, a, cases[i].a_len, 1), 1);
        int got = nt_build_add(&build, b, cases[i].b_len, 2);
        if (got != cases[i].fine) fail_msg("case %zu", i);
        if (got) {
            assert_int_equal(build.fault, NT_BUILD_FINE);
            assert_int_equal(nt_build_end(&build, &root), 1);
            assert_sound(w.arena, root);
            nt_arena_seal(w.arena);
        } else {
            assert_int_equal(build.fault, NT_BUILD_ORDER);
            nt_arena_rollback(w.arena);
            assert_int_equal(live_nodes(w.arena), 0);
        }
        world_free(&w);
    }
}

/* Where order breaks in the middle, at a leaf's first key too. */
static void order_is_seen_at_every_place(void **state) {
    (void)state;
    for (uint32_t bad = 1; bad < 300; bad++) {
        world w = world_new();
        nt_build build;
        begin(&w);
        nt_build_begin(&build, w.arena);
        for (uint32_t i = 0; i <= bad; i++) {
            uint8_t key[12] = {0};
            nt_store32be(key + 8, i == bad ? i - 1 : i);
            assert_int_equal(nt_build_add(&build, key, sizeof key, i), i < bad);
        }
        assert_int_equal(build.fault, NT_BUILD_ORDER);
        nt_arena_rollback(w.arena);
        assert_int_equal(live_nodes(w.arena), 0);
        world_free(&w);
    }
}

/* Memory comes in chunks of nodes, so most of the failures are at the beginning of each. */
static void without_memory_it_says_so_and_rolls_back(void **state) {
    (void)state;
    nt_random r = nt_random_start("memory");
    for (int shape = SHAPE_LONG; shape <= SHAPE_HUGE; shape++) {
        model m = make_model(&r, shape, UINT64_MAX, shape == SHAPE_LONG ? 3000 : 120);
        int64_t fails = 0;
        for (int64_t nth = 0;; nth++) {
            world w = world_new();
            begin(&w);
            memory_left = nth;
            int done = build_model(w.arena, &m, &w.root);
            memory_left = INT64_MAX;
            if (done) {
                assert_same(w.arena, w.root, &m);
                nt_arena_seal(w.arena);
            } else {
                nt_arena_rollback(w.arena);
                assert_int_equal(live_nodes(w.arena), 0);
                fails++;
            }
            world_free(&w);
            if (done) break;
        }
        assert_true(fails > 0);
        model_free(&m);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_keys_make_a_tree_that_goes_on_as_others_do),
        cmocka_unit_test(every_number_of_keys_works),
        cmocka_unit_test(nothing_makes_the_empty_tree),
        cmocka_unit_test(nodes_are_full_and_the_last_ones_not_nearly_empty),
        cmocka_unit_test(what_does_not_ascend_is_refused),
        cmocka_unit_test(order_is_seen_at_every_place),
        cmocka_unit_test(without_memory_it_says_so_and_rolls_back),
    };
    return cmocka_run_group_tests(tests, memory_set_up, NULL);
}
