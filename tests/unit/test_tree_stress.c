/* Readers beside a writer: by slots and by holds, each sees one whole version for as long as it looks. To be
 * run under ThreadSanitizer, too. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tree_support.h"

#define KEYS 3000u
#define READERS 3
#define SECONDS 3

/* A version says of itself how many keys it has and what all values have in common. Versions are never freed
 * here, so that only the tree's nodes are at stake. */
typedef struct version {
    uint64_t number;
    nt_root root;
    uint64_t stamp; /* the value of the key "stamp" */
    uint64_t count;
} version;

static nt_arena *arena;
static version *_Atomic newest;
static _Atomic int stop;
static _Atomic uint64_t reads, holds;

static size_t key_of(uint64_t i, uint8_t *out) {
    if (i % 50 == 0) { /* long ones, with chains */
        memset(out, 'q', 1500);
        nt_store64be(out + 1400, i);
        return 1400 + 8 + i % 90;
    }
    if (i % 3 == 0) return (size_t)sprintf((char *)out, "https://example.org/%" PRIu64 "/index.html", i);
    return (size_t)sprintf((char *)out, "%012" PRIu64, i * 7919u);
}

static void check_value(const version *v, uint64_t i) {
    uint8_t key[1600];
    size_t len = key_of(i, key);
    uint64_t value = nt_tree_find(arena, v->root, key, len);
    assert_true(value == NT_TREE_NONE || value % KEYS == i);
}

/* Every key in order, every value the one of its key's, as many as the version has. */
static void check_version(const version *v) {
    static _Thread_local uint8_t keys[2][1600];
    nt_walk walk;
    uint64_t value, count = 0;
    size_t last_len = 0;
    assert_int_equal(nt_tree_count(arena, v->root), v->count);
    nt_walk_first(&walk, arena, v->root);
    while ((value = nt_walk_next(&walk)) != NT_TREE_NONE) {
        uint8_t *key = keys[count & 1], *last = keys[~count & 1];
        size_t len = nt_walk_key_length(&walk, 1);
        assert_true(len < 1600);
        nt_walk_key(&walk, 1, key);
        if (count) assert_true(nt_compare(last, last_len, key, len) < 0);
        last_len = len;
        count++;
    }
    assert_int_equal(count, v->count);
    assert_true(nt_tree_find(arena, v->root, "stamp", 5) == v->stamp);
}

static uint64_t take_and_count(const version *v, int up) {
    static _Thread_local uint8_t page[8192];
    uint64_t count = 0;
    int more = 1;
    nt_walk walk;
    if (up) nt_walk_first(&walk, arena, v->root);
    else nt_walk_last(&walk, arena, v->root);
    while (more) {
        nt_key_sink sink = {page, page + sizeof page, 1000, 0, 0};
        more = nt_walk_take_keys(&walk, up, &sink);
        count += sink.count;
    }
    return count;
}

static void *read_by_slot(void *arg) {
    nt_random r = {(uint64_t)(uintptr_t)arg};
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        uint32_t slot = nt_arena_enter(arena);
        const version *v = atomic_load_explicit(&newest, memory_order_acquire);
        uint64_t what = nt_random_below(&r, 20);
        if (what == 0) check_version(v);
        else if (what == 1) assert_int_equal(take_and_count(v, r.state & 1), v->count);
        else for (int i = 0; i < 50; i++) check_value(v, nt_random_below(&r, KEYS));
        nt_arena_leave(arena, slot);
        atomic_fetch_add(&reads, 1);
    }
    return NULL;
}

static void *read_by_hold(void *arg) {
    nt_random r = {(uint64_t)(uintptr_t)arg};
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        const version *held[3];
        int n = 1 + (int)nt_random_below(&r, 3);
        for (int i = 0; i < n; i++) {
            uint32_t slot = nt_arena_enter(arena);
            held[i] = atomic_load_explicit(&newest, memory_order_acquire);
            assert_int_equal(nt_arena_hold(arena, held[i]->number), 1);
            nt_arena_leave(arena, slot);
            check_version(held[i]);
        }
        for (int round = 0; round < 3; round++) {
            const version *v = held[nt_random_below(&r, (uint64_t)n)];
            check_version(v);
            assert_int_equal(take_and_count(v, round & 1), v->count);
        }
        for (int i = 0; i < n; i++) nt_arena_drop(arena, held[i]->number);
        atomic_fetch_add(&holds, (uint64_t)n);
    }
    return NULL;
}

static void change(nt_random *r, nt_root *root, uint64_t *count) {
    uint8_t key[1600];
    uint64_t old, i = nt_random_below(r, KEYS), value = i + KEYS * nt_random_below(r, 1000000);
    size_t len = key_of(i, key);
    if (nt_random_below(r, 2)) {
        assert_int_equal(nt_tree_put(arena, root, key, len, value, &old), 1);
        *count += old == NT_TREE_NONE;
    } else {
        assert_int_equal(nt_tree_delete(arena, root, key, len, &old), 1);
        *count -= old != NT_TREE_NONE;
    }
}

/* One turn; 0: there is no room for another version. */
static int write_turn(nt_random *r, version *versions, uint64_t *used, uint64_t most) {
    version v = versions[*used];
    uint64_t old;
    if (*used + 1 == most) return 0;
    v.number = nt_arena_begin(arena);
    for (uint64_t i = nt_random_below(r, 6); i > 0; i--) change(r, &v.root, &v.count);
    v.stamp = v.number;
    assert_int_equal(nt_tree_put(arena, &v.root, "stamp", 5, v.stamp, &old), 1);
    v.count += old == NT_TREE_NONE;
    if (nt_random_below(r, 16) == 0) {
        nt_arena_rollback(arena);
        return 1;
    }
    nt_arena_seal(arena);
    versions[++*used] = v;
    atomic_store_explicit(&newest, &versions[*used], memory_order_release);
    nt_arena_publish(arena, v.number);
    return 1;
}

static void readers_see_whole_versions_beside_a_writer(void **state) {
    (void)state;
    enum { MOST = 1000000 };
    nt_random r = nt_random_start("stress");
    pthread_t threads[2 * READERS];
    version *versions = calloc(MOST, sizeof *versions);
    uint64_t used = 0;
    arena = nt_arena_create();
    write_turn(&r, versions, &used, MOST);
    while (used == 0) write_turn(&r, versions, &used, MOST);
    for (uintptr_t i = 0; i < 2 * READERS; i++) {
        void *(*run)(void *) = i < READERS ? read_by_slot : read_by_hold;
        assert_int_equal(pthread_create(&threads[i], NULL, run, (void *)(i + 1)), 0);
    }
    time_t end = time(NULL) + SECONDS;
    while (time(NULL) < end && write_turn(&r, versions, &used, MOST)) {}
    stop = 1;
    for (int i = 0; i < 2 * READERS; i++) pthread_join(threads[i], NULL);
    version *last = &versions[used];
    settle(arena, last->number);
    nt_arena_usage usage;
    nt_arena_measure(arena, &usage);
    printf("%" PRIu64 " versions, %" PRIu64 " reads, %" PRIu64 " holds, %" PRIu64 " KiB\n", used, reads,
           holds, usage.bytes / 1024);
    assert_int_equal(usage.holds, 0);
    assert_int_equal(usage.waiting, 0);
    assert_int_equal(usage.live, nt_tree_nodes(arena, last->root));
    assert_sound(arena, last->root);
    check_version(last);
    nt_arena_destroy(arena);
    free(versions);
    assert_int_equal(memory_blocks, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readers_see_whole_versions_beside_a_writer),
    };
    return cmocka_run_group_tests(tests, memory_set_up, NULL);
}
