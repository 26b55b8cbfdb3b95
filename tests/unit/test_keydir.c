/* Versions of what exists: staged, published, held, rolled back. Invariants K1 to K3. */
#include "unit/store.h"

#include "keydir/keydir.h"

static nt_keydir *keydir;

static int setup(void **state) {
    if (t_setup(state)) return -1;
    t_use_table();
    keydir = nt_keydir_create();
    return keydir ? 0 : -1;
}

static int teardown(void **state) {
    nt_keydir_destroy(keydir);
    return t_teardown(state);
}

/* One op in a turn; the key's old entry. */
static uint64_t apply(uint8_t kind, const char *key, uint64_t position) {
    nt_op op = {.kind = kind, .key = (const uint8_t *)key, .key_len = (uint16_t)strlen(key)};
    uint64_t old = 1;
    assert_int_equal(nt_keydir_apply(keydir, &op, position, NULL, &old), 1);
    return old;
}

static uint64_t find_in(const nt_version *version, const char *key) {
    return nt_tree_find(nt_keydir_arena(keydir), version->roots[NT_ROOT_KEYS], key, strlen(key));
}

/* What readers see. */
static uint64_t published(const char *key) {
    nt_view view = nt_keydir_enter(keydir);
    uint64_t entry = find_in(view.version, key);
    nt_keydir_leave(keydir, view);
    return entry;
}

static uint64_t staged(const char *key) { return nt_keydir_staged_entry(keydir, key, strlen(key)); }

static void a_new_keydir_is_empty_and_published(void **state) {
    (void)state;
    nt_view view = nt_keydir_enter(keydir);
    assert_non_null(view.version);
    assert_int_equal(view.version->node.birth, 1);
    assert_int_equal(view.version->sequence, 0);
    assert_int_equal(view.version->log_end, 0);
    assert_int_equal(nt_tree_count(nt_keydir_arena(keydir), view.version->roots[NT_ROOT_KEYS]), 0);
    assert_ptr_equal(view.version, nt_keydir_staged(keydir));
    nt_keydir_leave(keydir, view);
}

static void readers_see_what_is_published_and_the_turn_what_is_staged(void **state) {
    (void)state;
    assert_true(nt_keydir_begin(keydir));
    assert_int_equal(apply(NT_OP_PUT, "a", 128), NT_ENTRY_NONE);
    assert_int_equal(published("a"), NT_ENTRY_NONE);
    const nt_version *first = nt_keydir_seal(keydir, 7, 256);
    assert_int_equal(first->sequence, 7);
    assert_int_equal(first->log_end, 256);
    assert_ptr_equal(nt_keydir_staged(keydir), first);
    assert_int_equal(staged("a"), 128);
    assert_int_equal(published("a"), NT_ENTRY_NONE);
    assert_true(nt_keydir_begin(keydir));
    assert_int_equal(apply(NT_OP_PUT, "a", 256), 128);
    assert_int_equal(apply(NT_OP_PUT, "b", 264), NT_ENTRY_NONE);
    const nt_version *second = nt_keydir_seal(keydir, 9, 512);
    assert_true(second->node.birth > first->node.birth);
    assert_int_equal(published("a"), NT_ENTRY_NONE);
    nt_keydir_publish(keydir, first);
    assert_int_equal(published("a"), 128);
    assert_int_equal(published("b"), NT_ENTRY_NONE);
    nt_keydir_publish(keydir, second);
    assert_int_equal(published("a"), 256);
    assert_int_equal(published("b"), 264);
}

static void every_kind_of_op_has_its_effect(void **state) {
    (void)state;
    assert_true(nt_keydir_begin(keydir));
    assert_int_equal(apply(NT_OP_DELETE, "a", 8), NT_ENTRY_NONE);
    assert_int_equal(apply(NT_OP_PUT, "a", 16), NT_ENTRY_NONE);
    assert_int_equal(apply(NT_OP_DELETE, "a", 24), 16);
    assert_int_equal(apply(NT_OP_PUT, "a", 32), NT_ENTRY_NONE);
    assert_int_equal(apply(NT_OP_EVICT, "a", 40), 32);
    assert_int_equal(apply(NT_OP_DAMAGED, "a", 48), NT_ENTRY_NONE);
    assert_int_equal(apply(NT_OP_PUT, "b", 56), NT_ENTRY_NONE);
    nt_keydir_publish(keydir, nt_keydir_seal(keydir, 1, 64));
    assert_int_equal(published("a"), 48 | NT_ENTRY_DAMAGED);
    assert_int_equal(nt_entry_position(published("a")), 48);
    assert_true(nt_keydir_begin(keydir));
    assert_int_equal(apply(NT_OP_PUT, "a", 64), 48 | NT_ENTRY_DAMAGED);
    nt_keydir_publish(keydir, nt_keydir_seal(keydir, 2, 72));
    assert_int_equal(published("a"), 64);
}

static void a_rolled_back_turn_leaves_no_trace(void **state) {
    (void)state;
    nt_arena_usage before, after;
    assert_true(nt_keydir_begin(keydir));
    apply(NT_OP_PUT, "a", 8);
    nt_keydir_publish(keydir, nt_keydir_seal(keydir, 1, 16));
    const nt_version *newest = nt_keydir_staged(keydir);
    nt_arena_measure(nt_keydir_arena(keydir), &before);
    for (int i = 0; i < 100; i++) {
        assert_true(nt_keydir_begin(keydir));
        apply(NT_OP_DELETE, "a", 16);
        apply(NT_OP_PUT, "b", 24);
        nt_keydir_rollback(keydir);
        assert_ptr_equal(nt_keydir_staged(keydir), newest);
        assert_int_equal(staged("a"), 8);
        assert_int_equal(published("b"), NT_ENTRY_NONE);
    }
    nt_arena_measure(nt_keydir_arena(keydir), &after);
    assert_int_equal(after.live, before.live);
    assert_int_equal(after.waiting, before.waiting);
}

static void a_held_version_stays_as_it_is(void **state) {
    (void)state;
    enum { VERSIONS = 40, KEYS = 200 };
    const nt_version *held[VERSIONS];
    char key[16];
    for (uint64_t v = 0; v < VERSIONS; v++) {
        assert_true(nt_keydir_begin(keydir));
        for (int k = 0; k < KEYS; k++) {
            snprintf(key, sizeof key, "key%d", k);
            apply(NT_OP_PUT, key, (v * KEYS + (uint64_t)k) * 8);
        }
        nt_keydir_publish(keydir, nt_keydir_seal(keydir, v, (v + 1) * KEYS * 8));
        nt_view view = nt_keydir_enter(keydir);
        assert_true(nt_keydir_hold(keydir, view));
        held[v] = view.version;
        nt_keydir_leave(keydir, view);
    }
    for (uint64_t n = 0; n < VERSIONS; n++) {
        uint64_t v = n * 7 % VERSIONS;
        assert_int_equal(held[v]->sequence, v);
        assert_int_equal(held[v]->log_end, (v + 1) * KEYS * 8);
        for (int k = 0; k < KEYS; k++) {
            snprintf(key, sizeof key, "key%d", k);
            assert_int_equal(find_in(held[v], key), (v * KEYS + (uint64_t)k) * 8);
        }
        nt_keydir_drop(keydir, held[v]);
        assert_true(nt_keydir_begin(keydir));
        apply(NT_OP_PUT, "key1", 8);
        nt_keydir_publish(keydir, nt_keydir_seal(keydir, 99, 8));
    }
    nt_arena_usage usage;
    nt_arena_measure(nt_keydir_arena(keydir), &usage);
    assert_int_equal(usage.holds, 0);
}

static void versions_that_nobody_reads_are_freed(void **state) {
    (void)state;
    nt_arena_usage usage;
    for (uint64_t i = 0; i < 20000; i++) {
        assert_true(nt_keydir_begin(keydir));
        apply(NT_OP_PUT, i % 3 ? "a" : "b", i * 8);
        nt_keydir_publish(keydir, nt_keydir_seal(keydir, i, i * 8 + 8));
    }
    nt_arena_measure(nt_keydir_arena(keydir), &usage);
    assert_int_equal(usage.live, 2);
    assert_true(usage.waiting + usage.free < 4000);
}

static void short_memory_gives_no_turn_or_no_op(void **state) {
    (void)state;
    nt_keydir_destroy(keydir);
    keydir = NULL;
    long memory = atomic_load(&t_memory);
    for (long nth = 1;; nth++) {
        t_fail(T_ALLOC, nth, ENOMEM, 0);
        keydir = nt_keydir_create();
        t_heal();
        if (keydir) break;
        assert_int_equal(atomic_load(&t_memory), memory);
    }
    nt_keydir_destroy(keydir);
    assert_int_equal(atomic_load(&t_memory), memory);
    keydir = nt_keydir_create();
    char key[64];
    uint64_t done = 0, refused = 0, old;
    t_fail(T_ALLOC, 1, ENOMEM, 1); /* the first chunk is there; it has 2,015 nodes */
    for (int i = 0; i < 40000 && refused < 10; i++) {
        memset(key, 'k', sizeof key);
        snprintf(key, sizeof key, "%08d", i * 7919 % 40000);
        nt_op op = {.kind = NT_OP_PUT, .key = (const uint8_t *)key, .key_len = sizeof key};
        if (!nt_keydir_begin(keydir)) {
            refused++;
            continue;
        }
        if (nt_keydir_apply(keydir, &op, (uint64_t)i * 8, NULL, &old)) {
            nt_keydir_publish(keydir, nt_keydir_seal(keydir, 1, (uint64_t)i * 8 + 8));
            done++;
        } else {
            nt_keydir_rollback(keydir);
            refused++;
        }
    }
    t_heal();
    assert_int_equal(refused, 10);
    nt_view view = nt_keydir_enter(keydir);
    assert_int_equal(nt_tree_count(nt_keydir_arena(keydir), view.version->roots[NT_ROOT_KEYS]), done);
    assert_null(nt_tree_check(nt_keydir_arena(keydir), view.version->roots[NT_ROOT_KEYS]));
    t_fail(T_ALLOC, 1, ENOMEM, 0);
    assert_false(nt_keydir_hold(keydir, view));
    nt_keydir_leave(keydir, view);
    assert_true(nt_keydir_begin(keydir));
    apply(NT_OP_PUT, "works again", 8);
    nt_keydir_publish(keydir, nt_keydir_seal(keydir, 2, 16));
    assert_int_equal(published("works again"), 8);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_new_keydir_is_empty_and_published),
        TEST(readers_see_what_is_published_and_the_turn_what_is_staged),
        TEST(every_kind_of_op_has_its_effect),
        TEST(a_rolled_back_turn_leaves_no_trace),
        TEST(a_held_version_stays_as_it_is),
        TEST(versions_that_nobody_reads_are_freed),
        TEST(short_memory_gives_no_turn_or_no_op),
    };
    return T_RUN(tests);
}
