/* One node does what a sorted array does, in any state, and both ways of searching agree. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "store/node.h"
#include "tree_support.h"

static nt_arena *arena;

static void heads_are_counted_alike_by_both_searches(void **state) {
    (void)state;
    nt_random r = nt_random_start("heads");
    int32_t heads[128 + 64];
    for (int round = 0; round < 20000; round++) {
        int n = (int)nt_random_below(&r, 129), narrow = nt_random_below(&r, 2) == 0;
        int64_t at = narrow ? 0 : INT32_MIN;
        memset(heads, 0x55, sizeof heads);
        for (int i = 0; i < n; i++) {
            if (at > INT32_MAX) at = INT32_MAX;
            heads[i] = (int32_t)at;
            at += (int64_t)nt_random_below(&r, narrow ? 3 : (1u << 26));
        }
        int32_t head = narrow ? (int32_t)nt_random_below(&r, 140) : (int32_t)nt_random_next(&r);
        if (round % 50 == 0) head = INT32_MIN;
        if (round % 50 == 1) head = INT32_MAX;
        int want = 0;
        while (want < n && heads[want] < head) want++;
        assert_int_equal(nt_node_less_portable(heads, n, head), want);
        assert_int_equal(nt_node_less(heads, n, head), want);
    }
}

static nt_entry entry_of(const model_pair *p) {
    nt_entry e = {.at = p->key, .len = (uint32_t)p->len, .value = p->value};
    if (p->len > NT_NODE_INLINE) {
        e.more = nt_chain_new(arena, p->key + NT_NODE_INLINE, p->len - NT_NODE_INLINE);
        assert_true(e.more != 0);
    }
    return e;
}

static void assert_node_is(const nt_tnode *node, int inner, const model *m) {
    nt_entry e;
    uint8_t room[NT_NODE_INLINE + 8];
    const char *wrong = nt_node_check(node, inner);
    if (wrong) fail_msg("%s", wrong);
    assert_int_equal(nt_node_count(node), m->n);
    for (int i = 0; i < (int)m->n; i++) {
        const model_pair *p = &m->at[i];
        nt_node_entry(node, inner, i, &e, room);
        assert_int_equal(e.len, p->len);
        size_t inl = nt_min(p->len, NT_NODE_INLINE);
        if (inl) assert_memory_equal(e.at, p->key, inl);
        assert_true(e.value == p->value);
        if (p->len <= NT_NODE_INLINE) continue;
        nt_chain_read(arena, e.more, key_room, p->len - NT_NODE_INLINE);
        assert_memory_equal(key_room, p->key + NT_NODE_INLINE, p->len - NT_NODE_INLINE);
    }
}

static void assert_search(const nt_tnode *node, int inner, const model *m, const uint8_t *key, size_t len) {
    nt_probe probe;
    int there, equal, at;
    size_t rank = model_rank(m, key, len, &there);
    nt_probe_set(&probe, key, len);
    if (inner) {
        uint32_t child = nt_inner_search(arena, node, &probe, &at);
        assert_int_equal(at, rank + (size_t)there);
        assert_int_equal(child, nt_inner_child(node, at));
    } else {
        assert_int_equal(nt_leaf_search(arena, node, &probe, &equal), rank);
        assert_int_equal(equal, there);
        assert_true(nt_leaf_find(arena, node, &probe) == (there ? m->at[rank].value : UINT64_MAX));
    }
    size_t after = rank;
    while (after < m->n && m->at[after].len >= len && memcmp(m->at[after].key, key, len) == 0) after++;
    if (inner) return;
    at = nt_probe_set_after(&probe, key, len) ? nt_leaf_search(arena, node, &probe, &equal) : (int)m->n;
    assert_int_equal(at, after);
}

/* Puts an entry in by whatever means. 0 where it does not fit at all. */
static int put_in(nt_tnode *node, int inner, model *m, const uint8_t *key, size_t len, uint64_t value) {
    nt_bench *bench = nt_arena_scratch(arena);
    int there;
    size_t i = model_rank(m, key, len, &there);
    if (there) return 1;
    model_put(m, key, len, value);
    nt_entry e = entry_of(&m->at[i]);
    int used = nt_node_used(node, inner);
    if (nt_node_insert(node, inner, (int)i, &e)) {
        assert_true(nt_node_used(node, inner) > used);
        return 1;
    }
    uint8_t *bytes = bench->bytes;
    uint64_t first = inner ? nt_child_pack(nt_inner_child(node, 0), nt_inner_count(node, 0)) : 0;
    int n = nt_node_decode(node, inner, bench->entries, &bytes);
    memmove(bench->entries + i + 1, bench->entries + i, (size_t)(n - (int)i) * sizeof(nt_entry));
    bench->entries[i] = e;
    if (nt_node_size(bench->entries, n + 1, inner) > (int)NT_NODE_SIZE) {
        int cut = nt_node_cut(bench->entries, n + 1, inner, (int)(value % 3) - 1);
        assert_true(cut >= 1 && cut < n + 1 - inner);
        int rest = n + 1 - cut - inner, most = (int)NT_NODE_SIZE;
        assert_true(nt_node_size(bench->entries, cut, inner) <= most);
        assert_true(nt_node_size(bench->entries + cut + inner, rest, inner) <= most);
        model_delete(m, key, len);
        return 0;
    }
    nt_node_build(node, bench->entries, n + 1, inner, first);
    assert_int_equal(nt_node_used(node, inner), nt_node_size(bench->entries, n + 1, inner));
    return 1;
}

static void fill_and_empty(nt_random *r, int shape, int inner, int steps) {
    model m = {0};
    nt_arena_begin(arena);
    nt_tnode *node = nt_node_at(arena, nt_arena_new(arena));
    nt_tnode *copy = nt_node_at(arena, nt_arena_new(arena));
    nt_node_build(node, NULL, 0, inner, 1);
    for (int i = 0; i < steps; i++) {
        size_t len = make_key(r, shape, 5000, key_room);
        uint64_t value = nt_random_next(r) & (inner ? UINT64_MAX : NT_TREE_VALUE_MAX);
        uint8_t *key = model_copy_bytes(key_room, len);
        int full = !put_in(node, inner, &m, key, len, value);
        assert_search(node, inner, &m, key, len);
        free(key);
        for (int away = full ? 1 + (int)nt_random_below(r, m.n) : 0; away > 0; away--) {
            size_t at = nt_random_below(r, m.n);
            int left = inner && nt_random_below(r, 2);
            if (left && at > 0) m.at[at - 1].value = m.at[at].value; /* its right child becomes that one's */
            nt_node_remove(node, inner, (int)at, left);
            len = m.at[at].len;
            memcpy(key_room, m.at[at].key, len);
            model_delete(&m, key_room, len);
            assert_node_is(node, inner, &m);
        }
        assert_node_is(node, inner, &m);
        memset((nt_node *)(void *)copy + 1, 0xEE, NT_NODE_SIZE - sizeof(nt_node));
        nt_node_copy(copy, node, inner);
        assert_node_is(copy, inner, &m);
    }
    model_free(&m);
    nt_arena_rollback(arena);
}

static void a_node_is_a_sorted_array(void **state) {
    (void)state;
    nt_random r = nt_random_start("nodes");
    arena = nt_arena_create();
    for (int shape = 0; shape < SHAPES; shape++) {
        for (int inner = 0; inner < 2; inner++) {
            fill_and_empty(&r, shape, inner, shape == SHAPE_HUGE ? 60 : 500);
        }
    }
    nt_arena_destroy(arena);
    assert_int_equal(memory_blocks, 0);
}

static void a_leaf_holds_three_of_the_largest_keys(void **state) {
    (void)state;
    for (int inner = 0; inner < 2; inner++) {
        nt_entry e[3];
        uint8_t keys[3][NT_NODE_INLINE];
        for (int i = 0; i < 3; i++) {
            memset(keys[i], 'a' + i, NT_NODE_INLINE);
            e[i] = (nt_entry){keys[i], NT_TREE_KEY_MAX, 77, 5};
        }
        assert_true(nt_node_size(e, 3, inner) <= (int)NT_NODE_SIZE);
    }
}

static void separators_are_shortest_and_separate(void **state) {
    (void)state;
    nt_random r = nt_random_start("separators");
    arena = nt_arena_create();
    for (int round = 0; round < 3000; round++) {
        nt_arena_begin(arena);
        model m = {0};
        int shape = round % 20 == 19 ? SHAPE_HUGE : round % 6;
        while (m.n < 2) {
            size_t len = make_key(&r, shape, 3000, key_room);
            model_put(&m, key_room, len, 0);
        }
        uint8_t room[NT_NODE_INLINE];
        nt_entry a = entry_of(&m.at[0]), b = entry_of(&m.at[1]), s;
        assert_int_equal(nt_entry_separate(arena, &a, &b, &s, room), 1);
        assert_true(nt_entry_compare(arena, &a, &s) < 0);
        assert_true(nt_entry_compare(arena, &s, &b) <= 0);
        assert_true(nt_entry_compare(arena, &b, &a) > 0);
        size_t common = 0;
        while (common < m.at[0].len && m.at[0].key[common] == m.at[1].key[common]) common++;
        assert_int_equal(s.len, common + 1);
        uint32_t links = 0;
        for (uint32_t id = s.more; id; id = nt_chain_next(arena, id)) links++;
        assert_int_equal(links, nt_chain_nodes(s.len));
        model_free(&m);
        nt_arena_rollback(arena);
    }
    nt_arena_destroy(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads_are_counted_alike_by_both_searches),
        cmocka_unit_test(a_node_is_a_sorted_array),
        cmocka_unit_test(a_leaf_holds_three_of_the_largest_keys),
        cmocka_unit_test(separators_are_shortest_and_separate),
    };
    return cmocka_run_group_tests(tests, memory_set_up, NULL);
}
