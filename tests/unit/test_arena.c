/* A node is there for as long as a version that reaches it can be read, and comes back afterwards. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tree_support.h"

static nt_arena_usage measure(nt_arena *arena) {
    nt_arena_usage usage;
    nt_arena_measure(arena, &usage);
    return usage;
}

static uint64_t born(const nt_arena *arena, uint32_t id) {
    return ((const nt_node *)nt_arena_node(arena, id))->birth;
}

static void publish_turn(nt_arena *arena) {
    uint64_t turn = nt_arena_turn(arena);
    nt_arena_seal(arena);
    nt_arena_publish(arena, turn);
}

/* A turn that retires `id` (0: nothing) and makes a node. */
static uint32_t replace(nt_arena *arena, uint32_t id) {
    nt_arena_begin(arena);
    uint32_t fresh = nt_arena_new(arena);
    assert_true(fresh != 0);
    if (id) nt_arena_retire(arena, id);
    return fresh;
}

static void turns_count_up_and_nodes_know_theirs(void **state) {
    (void)state;
    nt_arena *arena = nt_arena_create();
    for (uint64_t i = 1; i < 10; i++) {
        assert_int_equal(nt_arena_begin(arena), i);
        assert_int_equal(nt_arena_turn(arena), i);
        uint32_t id = nt_arena_new(arena);
        assert_int_equal(born(arena, id), i);
        publish_turn(arena);
    }
    assert_int_equal(nt_arena_begin(arena), 10);
    nt_arena_rollback(arena);
    assert_int_equal(nt_arena_begin(arena), 10);
    nt_arena_rollback(arena);
    assert_int_equal(measure(arena).live, 9);
    nt_arena_destroy(arena);
    assert_int_equal(memory_blocks, 0);
}

static void nodes_are_aligned_apart_and_all_usable(void **state) {
    (void)state;
    enum { COUNT = 20000 };
    nt_arena *arena = nt_arena_create();
    uint32_t *ids = malloc(COUNT * sizeof *ids);
    nt_arena_begin(arena);
    for (uint32_t i = 0; i < COUNT; i++) {
        ids[i] = nt_arena_new(arena);
        assert_true(ids[i] != 0);
        assert_int_equal((uintptr_t)nt_arena_node(arena, ids[i]) % 64, 0);
        memset((nt_node *)nt_arena_node(arena, ids[i]) + 1, (int)i, NT_NODE_SIZE - sizeof(nt_node));
    }
    for (uint32_t i = 0; i < COUNT; i++) {
        const uint8_t *node = nt_arena_node(arena, ids[i]);
        assert_int_equal(node[sizeof(nt_node)], (uint8_t)i);
        assert_int_equal(node[NT_NODE_SIZE - 1], (uint8_t)i);
        assert_int_equal(nt_arena_is_used(arena, ids[i]), 1);
    }
    assert_int_equal(nt_arena_is_used(arena, 0), 0);
    assert_int_equal(nt_arena_is_used(arena, UINT32_MAX), 0);
    nt_arena_rollback(arena);
    assert_int_equal(nt_arena_is_used(arena, ids[7]), 0);
    assert_int_equal(measure(arena).free, COUNT);
    free(ids);
    nt_arena_destroy(arena);
}

static void a_node_given_back_in_its_turn_is_used_again_at_once(void **state) {
    (void)state;
    nt_arena *arena = nt_arena_create();
    nt_arena_begin(arena);
    uint32_t a = nt_arena_new(arena), b = nt_arena_new(arena);
    nt_arena_retire(arena, a);
    assert_int_equal(measure(arena).live, 1);
    assert_int_equal(nt_arena_new(arena), a);
    nt_arena_retire(arena, b);
    nt_arena_retire(arena, a);
    assert_int_equal(measure(arena).free, 2);
    nt_arena_rollback(arena);
    assert_int_equal(measure(arena).free, 2);
    assert_int_equal(measure(arena).live, 0);
    nt_arena_destroy(arena);
}

static void a_retired_node_waits_for_its_publication(void **state) {
    (void)state;
    nt_arena *arena = nt_arena_create();
    uint32_t a = replace(arena, 0);
    publish_turn(arena);
    uint32_t b = replace(arena, a); /* turn 2, staged */
    nt_arena_seal(arena);
    nt_arena_publish(arena, 1);
    nt_arena_publish(arena, 1);
    assert_int_equal(measure(arena).waiting, 1); /* version 1 is what readers see */
    assert_int_equal(nt_arena_is_used(arena, a), 1);
    nt_arena_publish(arena, 2);
    nt_arena_publish(arena, 2);
    assert_int_equal(measure(arena).waiting, 0);
    assert_int_equal(nt_arena_is_used(arena, a), 0);
    assert_int_equal(nt_arena_is_used(arena, b), 1);
    nt_arena_destroy(arena);
}

static void a_reader_keeps_what_it_may_see(void **state) {
    (void)state;
    nt_arena *arena = nt_arena_create();
    uint32_t a = replace(arena, 0);
    publish_turn(arena);
    uint32_t slot = nt_arena_enter(arena);
    uint32_t b = replace(arena, a);
    publish_turn(arena);
    uint32_t second = nt_arena_enter(arena);
    replace(arena, b);
    publish_turn(arena);
    nt_arena_publish(arena, 3);
    assert_int_equal(measure(arena).waiting, 2);
    nt_arena_leave(arena, slot);
    nt_arena_publish(arena, 3);
    assert_int_equal(measure(arena).waiting, 1);
    assert_int_equal(nt_arena_is_used(arena, a), 0);
    assert_int_equal(nt_arena_is_used(arena, b), 1);
    nt_arena_leave(arena, second);
    nt_arena_publish(arena, 3);
    assert_int_equal(measure(arena).waiting, 0);
    nt_arena_destroy(arena);
}

static void waiting_nodes_come_back_by_themselves(void **state) {
    (void)state;
    nt_arena *arena = nt_arena_create();
    uint32_t id = 0;
    for (int i = 0; i < 5000; i++) {
        id = replace(arena, id);
        publish_turn(arena);
    }
    nt_arena_usage usage = measure(arena);
    assert_int_equal(usage.live, 1);
    assert_true(usage.waiting < 200);
    assert_true(usage.waiting + usage.free < 400);
    /* One reader that stays long holds all, and when it has gone all is free before long. */
    uint32_t slot = nt_arena_enter(arena);
    for (int i = 0; i < 50000; i++) {
        id = replace(arena, id);
        publish_turn(arena);
    }
    assert_true(measure(arena).waiting >= 50000);
    nt_arena_leave(arena, slot);
    for (int i = 0; i < 300; i++) {
        id = replace(arena, id);
        publish_turn(arena);
    }
    assert_true(measure(arena).waiting < 200);
    nt_arena_destroy(arena);
}

static void large_turns_do_not_pile_up(void **state) {
    (void)state;
    enum { NODES = 3000 };
    nt_arena *arena = nt_arena_create();
    uint32_t *ids = malloc(NODES * sizeof *ids);
    for (int round = 0; round < 30; round++) {
        nt_arena_begin(arena);
        for (int i = 0; i < NODES; i++) {
            if (round) nt_arena_retire(arena, ids[i]);
            ids[i] = nt_arena_new(arena);
        }
        publish_turn(arena);
    }
    nt_arena_usage usage = measure(arena);
    assert_int_equal(usage.live, NODES);
    assert_true(usage.waiting + usage.free <= 2 * NODES);
    free(ids);
    nt_arena_destroy(arena);
}

static void rollback_takes_back_births_and_retirements(void **state) {
    (void)state;
    nt_arena *arena = nt_arena_create();
    uint32_t a = replace(arena, 0), b = nt_arena_new(arena);
    publish_turn(arena);
    nt_arena_usage was = measure(arena);
    nt_arena_begin(arena);
    for (int i = 0; i < 3000; i++) nt_arena_new(arena);
    nt_arena_retire(arena, a);
    nt_arena_retire(arena, b);
    nt_arena_rollback(arena);
    nt_arena_usage is = measure(arena);
    assert_int_equal(is.live, was.live);
    assert_int_equal(is.waiting, was.waiting);
    assert_int_equal(nt_arena_is_used(arena, a), 1);
    nt_arena_begin(arena); /* and they can be retired after all */
    nt_arena_retire(arena, a);
    nt_arena_retire(arena, b);
    publish_turn(arena);
    settle(arena, nt_arena_turn(arena));
    assert_int_equal(measure(arena).live, 0);
    assert_int_equal(measure(arena).waiting, 0);
    nt_arena_destroy(arena);
}

static void undone_turns_leave_no_node_twice(void **state) {
    (void)state;
    enum { COUNT = 50 };
    nt_random r = nt_random_start("undone turns");
    nt_arena *arena = nt_arena_create();
    for (int round = 0; round < 300; round++) {
        uint32_t ids[COUNT];
        nt_arena_begin(arena);
        for (int i = 0; i < COUNT; i++) {
            assert_true((ids[i] = nt_arena_new(arena)) != 0);
            for (int j = 0; j < i; j++) assert_int_not_equal(ids[i], ids[j]);
        }
        for (uint64_t back = nt_random_below(&r, COUNT); back > 0; back--) nt_arena_retire(arena, ids[back]);
        for (uint64_t more = nt_random_below(&r, COUNT); more > 0; more--) nt_arena_new(arena);
        if (nt_random_below(&r, 2) == 0) {
            publish_turn(arena);
            nt_arena_begin(arena);
            for (uint32_t id = 1; id < 40000; id++) { /* and all of them away again */
                if (nt_arena_is_used(arena, id)) nt_arena_retire(arena, id);
            }
            publish_turn(arena);
            settle(arena, nt_arena_turn(arena));
        } else {
            nt_arena_rollback(arena);
        }
        assert_int_equal(measure(arena).live, 0);
        assert_int_equal(measure(arena).waiting, 0);
        assert_true(measure(arena).free <= 2 * COUNT);
    }
    nt_arena_destroy(arena);
}

static int hold_now(nt_arena *arena, uint64_t number) {
    uint32_t slot = nt_arena_enter(arena);
    int ok = nt_arena_hold(arena, number);
    nt_arena_leave(arena, slot);
    return ok;
}

static void a_hold_keeps_what_its_version_reaches_and_nothing_else(void **state) {
    (void)state;
    nt_arena *arena = nt_arena_create();
    uint32_t a = replace(arena, 0);
    publish_turn(arena);
    assert_int_equal(hold_now(arena, 1), 1);
    uint32_t id = a;
    for (int i = 0; i < 1000; i++) {
        id = replace(arena, id);
        publish_turn(arena);
    }
    settle(arena, nt_arena_turn(arena));
    assert_int_equal(measure(arena).waiting, 1);
    assert_int_equal(nt_arena_is_used(arena, a), 1);
    assert_int_equal(measure(arena).holds, 1);
    nt_arena_drop(arena, 1);
    settle(arena, nt_arena_turn(arena));
    assert_int_equal(measure(arena).waiting, 0);
    assert_int_equal(nt_arena_is_used(arena, a), 0);
    assert_int_equal(measure(arena).holds, 0);
    nt_arena_destroy(arena);
}

static void a_node_goes_from_hold_to_hold(void **state) {
    (void)state;
    nt_arena *arena = nt_arena_create();
    uint32_t a = replace(arena, 0); /* 1 */
    publish_turn(arena);
    assert_int_equal(hold_now(arena, 1), 1);
    uint32_t other = replace(arena, 0); /* 2 */
    publish_turn(arena);
    assert_int_equal(hold_now(arena, 2), 1);
    assert_int_equal(hold_now(arena, 2), 1); /* twice */
    nt_arena_begin(arena);                   /* 3 */
    nt_arena_retire(arena, a);
    nt_arena_retire(arena, other);
    publish_turn(arena);
    settle(arena, 3);
    assert_int_equal(measure(arena).waiting, 2);
    nt_arena_drop(arena, 2);
    settle(arena, 3);
    assert_int_equal(measure(arena).waiting, 2);
    nt_arena_drop(arena, 2);
    settle(arena, 3);
    assert_int_equal(measure(arena).waiting, 1); /* version 1 still has the first one */
    assert_int_equal(nt_arena_is_used(arena, a), 1);
    assert_int_equal(nt_arena_is_used(arena, other), 0);
    nt_arena_drop(arena, 1);
    settle(arena, 3);
    assert_int_equal(measure(arena).waiting, 0);
    nt_arena_destroy(arena);
}

/* A3 against a plain model: every node with its birth and retirement, every version held. */
enum { MODEL_NODES = 400, MODEL_HOLDS = 20 };

typedef struct known {
    uint32_t id;
    uint64_t birth, retired;
} known;

static void exactly_the_protected_nodes_are_kept(void **state) {
    (void)state;
    nt_random r = nt_random_start("protected nodes");
    nt_arena *arena = nt_arena_create();
    known nodes[MODEL_NODES] = {{0}}; /* live or retired */
    uint64_t holds[MODEL_HOLDS] = {0};
    for (int round = 0; round < 3000; round++) {
        uint64_t turn = nt_arena_begin(arena);
        for (int i = 0; i < 6; i++) {
            known *k = &nodes[nt_random_below(&r, MODEL_NODES)];
            if (k->id == 0) {
                *k = (known){nt_arena_new(arena), turn, 0};
            } else if (k->retired == 0 && nt_random_below(&r, 2)) {
                nt_arena_retire(arena, k->id);
                k->retired = turn;
                if (k->birth == turn) k->id = 0;
            }
        }
        publish_turn(arena);
        uint64_t *h = &holds[nt_random_below(&r, MODEL_HOLDS)];
        if (*h) {
            nt_arena_drop(arena, *h);
            *h = 0;
        } else if (nt_random_below(&r, 3) == 0) {
            assert_int_equal(hold_now(arena, turn), 1);
            *h = turn;
        }
        settle(arena, turn);
        uint64_t live = 0, kept = 0;
        for (int i = 0; i < MODEL_NODES; i++) {
            known *k = &nodes[i];
            int protected = k->id && k->retired == 0;
            live += (uint64_t)protected;
            for (int j = 0; j < MODEL_HOLDS && k->id && k->retired && !protected; j++) {
                protected = holds[j] >= k->birth && holds[j] < k->retired && holds[j] != 0;
                kept += (uint64_t)protected;
            }
            if (k->id && !protected) k->id = 0; /* must have been freed, see the counts below */
            if (k->id) {
                assert_int_equal(nt_arena_is_used(arena, k->id), 1);
                assert_int_equal(born(arena, k->id), k->birth);
            }
        }
        assert_int_equal(measure(arena).live, live);
        assert_int_equal(measure(arena).waiting, kept);
    }
    nt_arena_destroy(arena);
    assert_int_equal(memory_blocks, 0);
}

static void creating_and_holding_survive_a_lack_of_memory(void **state) {
    (void)state;
    for (int64_t n = 0; n < 6; n++) {
        memory_left = n;
        nt_arena *arena = nt_arena_create();
        memory_left = INT64_MAX;
        if (!arena) assert_int_equal(memory_blocks, 0);
        nt_arena_destroy(arena);
        assert_int_equal(memory_blocks, 0);
    }
    nt_arena *arena = nt_arena_create();
    replace(arena, 0);
    publish_turn(arena);
    memory_left = 0;
    assert_int_equal(hold_now(arena, 1), 0);
    memory_left = INT64_MAX;
    assert_int_equal(measure(arena).holds, 0);
    assert_int_equal(hold_now(arena, 1), 1);
    nt_arena_destroy(arena); /* holds that were never dropped go with it */
    assert_int_equal(memory_blocks, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(turns_count_up_and_nodes_know_theirs),
        cmocka_unit_test(nodes_are_aligned_apart_and_all_usable),
        cmocka_unit_test(a_node_given_back_in_its_turn_is_used_again_at_once),
        cmocka_unit_test(a_retired_node_waits_for_its_publication),
        cmocka_unit_test(a_reader_keeps_what_it_may_see),
        cmocka_unit_test(waiting_nodes_come_back_by_themselves),
        cmocka_unit_test(large_turns_do_not_pile_up),
        cmocka_unit_test(rollback_takes_back_births_and_retirements),
        cmocka_unit_test(undone_turns_leave_no_node_twice),
        cmocka_unit_test(a_hold_keeps_what_its_version_reaches_and_nothing_else),
        cmocka_unit_test(a_node_goes_from_hold_to_hold),
        cmocka_unit_test(exactly_the_protected_nodes_are_kept),
        cmocka_unit_test(creating_and_holding_survive_a_lack_of_memory),
    };
    return cmocka_run_group_tests(tests, memory_set_up, NULL);
}
