/* Guesses: what readers have found is found again, and nothing goes wrong where it is not. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/os.h"
#include "store/guess.h"
#include "support.h"

/* Looks a key up whose record is at `offset`; whether the guess was right. */
static int look(nt_guess *guess, uint64_t key, uint64_t offset) {
    nt_guess_place place;
    nt_guess_begin(guess, &key, sizeof key, &place);
    if (!place.bucket) return 0;
    nt_guess_offset(&place);
    return nt_guess_end(&place, offset);
}

static uint64_t offset_of(uint64_t key) { return 4224 + key * 200; }

/* Reads `count` keys in a row; how many were guessed. */
static uint64_t read_all(nt_guess *guess, uint64_t count) {
    uint64_t right = 0;
    for (uint64_t key = 0; key < count; key++) right += (uint64_t)look(guess, key, offset_of(key));
    return right;
}

static void few_keys_have_no_table(void **state) {
    (void)state;
    nt_guess guess = {0};
    nt_guess_fit(&guess, 0, 4224);
    nt_guess_fit(&guess, 32767, 1 << 22);
    assert_int_equal(read_all(&guess, 10), 0);
    assert_int_equal(atomic_load(&guess.shape), 0);
    nt_guess_free(&guess);
}

static void what_was_read_is_guessed_from_then_on(void **state) {
    (void)state;
    nt_guess guess = {0};
    for (uint64_t count = 32768; count <= 1 << 20; count *= 2) {
        nt_guess_fit(&guess, count, offset_of(count));
        read_all(&guess, count);
        uint64_t right = read_all(&guess, count);
        print_message("%llu keys: %.1f %% are guessed\n", (unsigned long long)count,
                      100.0 * (double)right / (double)count);
        assert_true(right * 100 > count * 70); /* as many words as keys: the worst case */
    }
    nt_guess_fit(&guess, 1 << 20, 1); /* never smaller */
    assert_true(read_all(&guess, 1 << 20) > 700000);
    nt_guess_free(&guess);
}

static void a_record_that_moved_is_learned_at_once(void **state) {
    (void)state;
    nt_guess guess = {0};
    nt_guess_fit(&guess, 100000, 1 << 26);
    assert_false(look(&guess, 7, 6400));
    assert_true(look(&guess, 7, 6400));
    assert_true(look(&guess, 7, 6400 + 63)); /* the same line */
    assert_false(look(&guess, 7, 64000));
    assert_true(look(&guess, 7, 64000));
    assert_false(look(&guess, 7, 6400));
    nt_guess_free(&guess);
}

/* Positions of any size: guesses of what has outgrown the words are wrong, never out of the table. */
static void large_logs_take_more_bits(void **state) {
    (void)state;
    nt_guess guess = {0};
    nt_random r = nt_random_start("large logs");
    for (int shift = 20; shift < 48; shift++) {
        uint64_t limit = UINT64_C(1) << shift;
        nt_guess_fit(&guess, 40000, limit);
        uint64_t right = 0;
        for (int i = 0; i < 1000; i++) {
            uint64_t key = nt_random_next(&r), offset = nt_random_below(&r, limit) & ~UINT64_C(7);
            look(&guess, key, offset);
            nt_guess_place place;
            nt_guess_begin(&guess, &key, sizeof key, &place);
            uint64_t guessed = nt_guess_offset(&place);
            assert_true(guessed >> NT_GUESS_LINE_SHIFT <= UINT32_MAX);
            right += guessed == (offset & ~UINT64_C(63));
        }
        if (shift <= 36) assert_true(right > 900);
    }
    nt_guess_free(&guess);
}

static int short_of_memory;

static void *pages(size_t len) { return short_of_memory ? NULL : nt_os_posix.alloc_pages(len); }

static void short_memory_leaves_the_table_as_it_is(void **state) {
    (void)state;
    nt_guess guess = {0};
    nt_os table = nt_os_posix;
    table.alloc_pages = pages;
    nt_os_now = &table;
    short_of_memory = 1;
    nt_guess_fit(&guess, 1 << 20, 1 << 28);
    assert_int_equal(read_all(&guess, 10), 0);
    short_of_memory = 0;
    nt_guess_fit(&guess, 40000, 1 << 28);
    read_all(&guess, 1000);
    short_of_memory = 1;
    nt_guess_fit(&guess, 1 << 20, 1 << 28);
    assert_true(read_all(&guess, 1000) > 900);
    short_of_memory = 0;
    nt_guess_fit(&guess, 1 << 20, 1 << 28);
    read_all(&guess, 1000);
    assert_true(read_all(&guess, 1000) > 900);
    nt_guess_free(&guess);
    nt_os_now = &nt_os_posix;
}

static nt_guess shared;
static atomic_int stop;

static void *read_on(void *arg) {
    (void)arg;
    while (!atomic_load(&stop)) read_all(&shared, 20000);
    return NULL;
}

static void readers_go_on_while_the_table_grows(void **state) {
    (void)state;
    pthread_t threads[3];
    memset(&shared, 0, sizeof shared);
    atomic_store(&stop, 0);
    for (int i = 0; i < 3; i++) assert_int_equal(pthread_create(&threads[i], NULL, read_on, NULL), 0);
    for (uint64_t keys = 16384; keys <= 1 << 20; keys *= 2) {
        nt_guess_fit(&shared, keys, keys << 9);
        read_all(&shared, 20000);
    }
    atomic_store(&stop, 1);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    read_all(&shared, 20000);
    assert_true(read_all(&shared, 20000) > 19000);
    nt_guess_free(&shared);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_keys_have_no_table),
        cmocka_unit_test(what_was_read_is_guessed_from_then_on),
        cmocka_unit_test(a_record_that_moved_is_learned_at_once),
        cmocka_unit_test(large_logs_take_more_bits),
        cmocka_unit_test(short_memory_leaves_the_table_as_it_is),
        cmocka_unit_test(readers_go_on_while_the_table_grows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
