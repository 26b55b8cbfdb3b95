/* What is saved is what there was, whatever fails on the way. */
#include "hint_support.h"

static void assert_saved(const book *b, int which) {
    assert_true(b->saver.fd >= 0);
    assert_memory_equal(&b->saver.place, &b->states[which].place, sizeof b->saver.place);
    assert_int_equal(load_state(b), which);
}

/* Ends the saver and begins another one behind what is in the file. */
static void reopen(book *b) {
    nt_hint_loaded loaded;
    nt_keydir *into = nt_keydir_create();
    nt_hint_saver was = b->saver;
    nt_hint_close(&b->saver);
    assert_int_equal(load_into(into, b, &b->id, UINT64_MAX, &loaded), NTEE_OK);
    nt_keydir_rollback(into);
    nt_keydir_destroy(into);
    nt_hint_open(&b->saver, b->dir, HINT, &b->id, &loaded);
    assert_true(b->saver.fd >= 0 && b->saver.pieces == was.pieces && b->saver.bytes == was.bytes);
    assert_true(b->saver.snapshot_entries == was.snapshot_entries && b->saver.delta_entries == was.delta_entries);
    assert_memory_equal(&b->saver.place, &was.place, sizeof was.place);
}

static void what_is_saved_is_loaded(void **state) {
    (void)state;
    for (int shape = 0; shape < SHAPES; shape++) {
        nt_random r = nt_random_start(SHAPE_NAMES[shape]);
        int most = shape == SHAPE_HUGE ? 12 : 400;
        book *b = book_new();
        ntee_error err;
        for (int step = 0; step < 20; step++) {
            int n = (int)nt_random_below(&r, (unsigned)most);
            if (step % 9 == 0) {
                book_scribble(b, &r, shape, 600, step ? n : 4 * n, 0);
                assert_int_equal(book_snapshot(b, &err), NTEE_OK);
                assert_int_equal(b->saver.snapshot_entries, b->model.n);
                assert_int_equal(b->saver.pieces, 1);
            } else {
                uint64_t before = b->saver.delta_entries;
                assert_int_equal(nt_hint_delta_begin(&b->saver), 1);
                book_scribble(b, &r, shape, 600, n, 1);
                assert_int_equal(nt_hint_delta_end(&b->saver, &b->place, &err), NTEE_OK);
                assert_int_equal(b->saver.delta_entries, before + (unsigned)n);
                assert_int_equal(b->saver.pending, 0);
            }
            book_note(b);
            assert_memory_equal(&b->saver.place, &b->place, sizeof b->place);
            if (step % 4 == 1) reopen(b);
            if (step % 3 == 0 || step == 19) assert_saved(b, load_state(b));
        }
        assert_true(load_state(b) >= 18);
        book_free(b);
    }
}

static void keys_of_any_bytes_and_lengths_are_saved(void **state) {
    (void)state;
    static uint8_t key[UINT16_MAX];
    book *b = book_new();
    ntee_error err;
    for (int part = 0; part < 2; part++) {
        assert_int_equal(nt_keydir_begin(b->keydir), 1);
        if (part) assert_int_equal(nt_hint_delta_begin(&b->saver), 1);
        for (unsigned last = 0; last < 256; last += 5) { /* prefixes of each other, NULs, the longest */
            key[0] = (uint8_t)(part * 128);
            key[UINT16_MAX - 1] = (uint8_t)last;
            book_write(b, NT_OP_PUT, key, 1 + last, part);
            book_write(b, NT_OP_PUT, key, UINT16_MAX, part);
            book_write(b, NT_OP_PUT, key, UINT16_MAX - last, part);
        }
        book_turn_ends(b);
        if (part == 0) assert_int_equal(book_snapshot(b, &err), NTEE_OK);
        else assert_int_equal(nt_hint_delta_end(&b->saver, &b->place, &err), NTEE_OK);
        book_note(b);
        assert_saved(b, part);
    }
    assert_true(b->saver.bytes > 10u << 20);
    book_free(b);
}

static void there_can_be_nothing_to_save(void **state) {
    (void)state;
    book *b = book_new();
    ntee_error err;
    assert_int_equal(nt_hint_delta_begin(&b->saver), 0);
    nt_hint_delta_add(&b->saver, 0, NULL); /* is not looked at */
    assert_int_equal(nt_hint_delta_end(&b->saver, &b->place, &err), NTEE_OK);
    assert_int_equal(load_state(b), -1);
    assert_int_equal(book_snapshot(b, &err), NTEE_OK); /* of no keys */
    book_note(b);
    assert_saved(b, 0);
    uint64_t bytes = b->saver.bytes;
    assert_int_equal(nt_hint_delta_begin(&b->saver), 1);
    assert_int_equal(nt_hint_delta_end(&b->saver, &b->place, &err), NTEE_OK);
    assert_int_equal(b->saver.bytes, bytes); /* not further than before: not written */
    b->place.last = b->place.covered;
    b->place.covered += NT_FRAME_MARK_SIZE;
    b->place.number++;
    assert_int_equal(nt_hint_delta_begin(&b->saver), 1);
    assert_int_equal(nt_hint_delta_end(&b->saver, &b->place, &err), NTEE_OK);
    assert_int_equal(b->saver.bytes, bytes + NT_PIECE_HEAD_SIZE);
    book_note(b);
    assert_saved(b, 1);
    book_free(b);
}

static void a_delta_that_is_begun_again_is_forgotten(void **state) {
    (void)state;
    for (int again = 0; again < 3; again++) {
        book *b = book_small();
        nt_random r = nt_random_start("forgotten");
        ntee_error err;
        assert_int_equal(nt_hint_delta_begin(&b->saver), 1);
        book_scribble(b, &r, SHAPE_HEX, 1000, again ? 5 : 9000, 1); /* more than the buffer: some of it is written */
        assert_true(b->saver.pending > 0);
        assert_true(b->saver.buf.len <= NT_PIECE_HEAD_SIZE + (256u << 10));
        assert_int_equal(load_state(b), 2);
        if (again == 2) assert_int_equal(book_snapshot(b, &err), NTEE_OK);
        if (again == 2) book_note(b);
        assert_int_equal(nt_hint_delta_begin(&b->saver), 1);
        assert_int_equal(b->saver.pending, 0);
        if (again < 2) { /* these are not all, so only what is in the file can be looked at */
            nt_hint_close(&b->saver);
            assert_int_equal(load_state(b), 2);
        } else {
            book_scribble(b, &r, SHAPE_HEX, 1000, 3, 1);
            assert_int_equal(nt_hint_delta_end(&b->saver, &b->place, &err), NTEE_OK);
            book_note(b);
            assert_saved(b, 4);
        }
        book_free(b);
    }
}

static void what_follows_the_valid_pieces_is_cut_off(void **state) {
    fake_fs *fs = *state;
    book *b = book_small();
    uint64_t size;
    nt_random r = nt_random_start("behind");
    ntee_error err;
    uint8_t *bytes = fake_bytes(fs, HINT, &size), *longer = calloc(1, size + 5000);
    memcpy(longer, bytes, size);
    nt_random_fill(&r, longer + size, 4000);
    fake_plant(fs, HINT, longer, size + 5000);
    free(longer);
    reopen(b);
    fake_bytes(fs, HINT, &size);
    assert_int_equal(size, b->saver.bytes);
    assert_int_equal(nt_hint_delta_begin(&b->saver), 1);
    book_scribble(b, &r, SHAPE_HEX, 1000, 20, 1);
    assert_int_equal(nt_hint_delta_end(&b->saver, &b->place, &err), NTEE_OK);
    book_note(b);
    assert_saved(b, 3);
    book_free(b);
}

static void long_terms_go_through_the_buffer_in_parts(void **state) {
    fake_fs *fs = *state;
    book *b = book_small();
    enum { TERMS = 700003 };
    uint8_t *terms = malloc(TERMS), *record = malloc(TERMS + 100);
    uint64_t size, position, at = b->saver.bytes;
    nt_random r = nt_random_start("terms");
    nt_op got, op = {.kind = NT_OP_PUT, .key = (const uint8_t *)"key", .key_len = 3, .terms = terms, .terms_len = TERMS,
                     .value = terms};
    nt_piece piece;
    ntee_error err;
    nt_random_fill(&r, terms, TERMS);
    nt_record_encode(record, &op, b->id.seed);
    nt_record_number(record, 9);
    b->place.covered += 8 + nt_record_size(&op);
    assert_int_equal(nt_hint_delta_begin(&b->saver), 1);
    nt_hint_delta_add(&b->saver, b->id.base + 4096, record);
    nt_hint_delta_add(&b->saver, b->id.base + 8192, record);
    assert_int_equal(nt_hint_delta_end(&b->saver, &b->place, &err), NTEE_OK);
    const uint8_t *bytes = fake_bytes(fs, HINT, &size);
    assert_int_equal(nt_piece_decode(bytes + at, size - at, b->id.seed, &piece), 1);
    at += NT_PIECE_HEAD_SIZE;
    assert_true(piece.digest == nt_hash64(bytes + at, piece.body, b->id.seed) && at + piece.body == size);
    for (uint64_t i = 1; i <= 2; i++) {
        uint64_t used = nt_piece_record_decode(bytes + at, size - at, &position, &got);
        assert_true(used > 0 && position == b->id.base + 4096 * i);
        assert_true(nt_record_key_ok(bytes + at + 8, &got, b->id.seed));
        at += used;
    }
    assert_int_equal(at, size);
    assert_int_equal(load_state(b), 2); /* terms are for later versions to apply */
    free(terms);
    free(record);
    book_free(b);
}

static void a_snapshot_in_the_making_is_replaced(void **state) {
    fake_fs *fs = *state;
    book *b = book_small();
    ntee_error err;
    fake_plant(fs, HINT ".tmp", "left by a crash", 15);
    assert_int_equal(book_snapshot(b, &err), NTEE_OK);
    assert_false(fake_exists(fs, HINT ".tmp"));
    assert_saved(b, 2);
    book_free(b);
}

/* ---- Failures ---- */

/* Saves a few times, perhaps with some call failing: a snapshot that fails leaves all as it was, a delta leaves
 * nothing. Returns how many failed. */
static int save_some(book *b, nt_random *r, int nth_is_memory) {
    static const int SNAPSHOTS[] = {1, 0, 0, 1, 0, 0};
    int failures = 0;
    ntee_error err = {0};
    for (int step = 0; step < 6; step++) {
        int had = b->saver.fd >= 0, snapshot = SNAPSHOTS[step] || b->saver.place.covered != b->place.covered;
        nt_hint_place was = b->saver.place;
        if (!snapshot) snapshot = !nt_hint_delta_begin(&b->saver);
        book_scribble(b, r, SHAPE_URL, 2000, step == 2 ? 9000 : 300, !snapshot);
        book_note(b);
        ntee_status status = snapshot ? book_snapshot(b, &err) : nt_hint_delta_end(&b->saver, &b->place, &err);
        if (status != NTEE_OK) {
            failures++;
            assert_int_equal(err.status, status);
            assert_int_equal(status, nth_is_memory ? NTEE_NOMEM : NTEE_IO);
            if (snapshot) assert_true((b->saver.fd >= 0) == had && was.covered == b->saver.place.covered);
            else assert_true(b->saver.fd < 0 && b->saver.pieces == 0 && b->saver.place.covered == 0);
        } else {
            assert_memory_equal(&b->saver.place, &b->place, sizeof b->place);
        }
    }
    return failures;
}

static void any_call_may_fail(void **state) {
    (void)state;
    nt_random r = nt_random_start("calls");
    for (int memory = 0; memory < 2; memory++) {
        int all = 0;
        for (uint64_t nth = 1;; nth++) {
            fake_fs *outer = fake_current(), *fs = fake_new(nth);
            fake_use(fs);
            book *b = book_new();
            uint64_t seed = r.state;
            fake_fail(fs, (fake_fault){.call = memory ? FAKE_ALLOC : FAKE_ANY, .nth = nth, .error = memory ? 12 : 5,
                                       .sticky = !memory && nth % 3 == 0});
            nt_random same = {seed};
            all += save_some(b, &same, memory);
            int fired = fake_fired(fs) > 0;
            fake_heal(fs);
            int which = load_state(b);
            if (b->saver.fd >= 0) assert_saved(b, which);
            if (!fired) assert_int_equal(which, 5);
            book_free(b);
            fake_use(outer);
            fake_free(fs);
            if (!fired) break;
        }
        assert_true(all > (memory ? 3 : 10));
    }
}

static void a_full_disk_is_said(void **state) {
    fake_fs *fs = *state;
    book *b = book_small();
    ntee_error err;
    fake_fail(fs, (fake_fault){.call = FAKE_WRITE, .nth = 1, .error = 28});
    assert_int_equal(book_snapshot(b, &err), NTEE_FULL);
    assert_non_null(strstr(err.message, HINT ".tmp"));
    assert_false(fake_exists(fs, HINT ".tmp"));
    assert_saved(b, 2);
    nt_random r = nt_random_start("full");
    assert_int_equal(nt_hint_delta_begin(&b->saver), 1);
    book_scribble(b, &r, SHAPE_HEX, 1000, 5, 1);
    fake_fail(fs, (fake_fault){.call = FAKE_WRITE, .nth = 1, .error = 28});
    assert_int_equal(nt_hint_delta_end(&b->saver, &b->place, &err), NTEE_FULL);
    assert_false(fake_exists(fs, HINT));
    assert_int_equal(nt_hint_delta_begin(&b->saver), 0);
    book_free(b);
}

/* Nothing is synced: after a power loss there is what some save left, or nothing. */
static void after_a_power_loss_it_is_one_of_the_states(void **state) {
    fake_fs *fs = *state;
    nt_random r = nt_random_start("power");
    int seen[8] = {0};
    book *b = book_new();
    assert_int_equal(save_some(b, &r, 0), 0);
    int dir = b->dir;
    for (unsigned i = 0; i < 400; i++) {
        fake_crash_plan plan = {i % 2 ? FAKE_RANDOM : FAKE_PAGES, r.state + i, 0};
        fake_fs *image = fake_crash(fs, &plan);
        fake_use(image);
        assert_int_equal(NT_OS->open_dir("/", &b->dir), 0);
        seen[load_state(b) + 1]++;
        NT_OS->close(b->dir);
        fake_use(fs);
        fake_free(image);
    }
    b->dir = dir;
    assert_true(seen[0] > 0 && seen[6] > 0);
    book_free(b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_FAKE(what_is_saved_is_loaded),
        ON_FAKE(keys_of_any_bytes_and_lengths_are_saved),
        ON_FAKE(there_can_be_nothing_to_save),
        ON_FAKE(a_delta_that_is_begun_again_is_forgotten),
        ON_FAKE(what_follows_the_valid_pieces_is_cut_off),
        ON_FAKE(long_terms_go_through_the_buffer_in_parts),
        ON_FAKE(a_snapshot_in_the_making_is_replaced),
        ON_FAKE(any_call_may_fail),
        ON_FAKE(a_full_disk_is_said),
        ON_FAKE(after_a_power_loss_it_is_one_of_the_states),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
