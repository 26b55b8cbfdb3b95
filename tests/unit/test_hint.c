/* A hint loads as what it was saved of, up to the last piece that is sound, or as nothing: never as something else. */
#include "hint_support.h"

static uint8_t *copy_hint(fake_fs *fs, uint64_t *size) {
    uint8_t *bytes = fake_bytes(fs, HINT, size);
    assert_non_null(bytes);
    return memcpy(malloc(*size), bytes, *size);
}

/* Where the pieces of a hint end. */
static int piece_ends(const uint8_t *bytes, uint64_t size, const book *b, uint64_t *ends) {
    uint64_t at = 0;
    int n = 0;
    nt_piece piece;
    while (at < size && nt_piece_decode(bytes + at, NT_PIECE_HEAD_SIZE, b->id.seed, &piece)) {
        at += NT_PIECE_HEAD_SIZE + piece.body;
        ends[n++] = at;
    }
    return n;
}

static void names_are_those_of_the_logs(void **state) {
    (void)state;
    char name[NT_HINT_NAME_SIZE];
    nt_hint_name(name, 1);
    assert_string_equal(name, "00000001.hint");
    nt_hint_name(name, UINT64_MAX);
    assert_string_equal(name, "ffffffffffffffff.hint");
    assert_true(strlen(name) + 4 < NT_HINT_NAME_SIZE);
}

static void what_is_not_a_hint_is_nothing(void **state) {
    fake_fs *fs = *state;
    book *b = book_new();
    uint8_t noise[1000];
    nt_random r = nt_random_start("noise");
    assert_int_equal(load_state(b), -1);
    fake_plant(fs, HINT, "", 0);
    assert_int_equal(load_state(b), -1);
    nt_random_fill(&r, noise, sizeof noise);
    fake_plant(fs, HINT, noise, sizeof noise);
    assert_int_equal(load_state(b), -1);
    assert_int_equal(NT_OS->unlink_at(b->dir, HINT), 0);
    assert_int_equal(NT_OS->make_dir("/" HINT), 0);
    assert_int_equal(load_state(b), -1);
    book_free(b);
}

static void every_flipped_bit_is_found(void **state) {
    fake_fs *fs = *state;
    book *b = book_small();
    uint64_t size, ends[8];
    uint8_t *bytes = copy_hint(fs, &size);
    nt_keydir *into = nt_keydir_create();
    nt_hint_loaded loaded;
    assert_int_equal(piece_ends(bytes, size, b, ends), 3);
    assert_int_equal(load_state(b), 2);
    for (uint64_t bit = 0; bit < size * 8; bit++) {
        int piece = bit / 8 < ends[0] ? 0 : bit / 8 < ends[1] ? 1 : 2;
        fake_bytes(fs, HINT, &size)[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_int_equal(load_into(into, b, &b->id, UINT64_MAX, &loaded), NTEE_OK);
        assert_int_equal(loaded.pieces, piece);
        assert_int_equal(check_loaded(into, b, &loaded), piece - 1);
        fake_bytes(fs, HINT, &size)[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    nt_keydir_destroy(into);
    free(bytes);
    book_free(b);
}

static void cut_anywhere_its_whole_pieces_count(void **state) {
    fake_fs *fs = *state;
    book *b = book_small();
    uint64_t size, ends[8];
    uint8_t *bytes = copy_hint(fs, &size);
    nt_keydir *into = nt_keydir_create();
    nt_hint_loaded loaded;
    piece_ends(bytes, size, b, ends);
    for (uint64_t len = 0; len <= size + 300; len++) { /* and with zeros behind it */
        uint8_t *part = calloc(1, len ? len : 1);
        memcpy(part, bytes, len < size ? len : size);
        int pieces = len < ends[0] ? 0 : len < ends[1] ? 1 : len < ends[2] ? 2 : 3;
        fake_plant(fs, HINT, part, len);
        assert_int_equal(load_into(into, b, &b->id, UINT64_MAX, &loaded), NTEE_OK);
        assert_int_equal(loaded.pieces, pieces);
        assert_true(pieces == 0 || loaded.bytes == ends[pieces - 1]);
        assert_true(pieces == 0 || loaded.snapshot_entries == 3);
        assert_true(pieces == 0 || loaded.delta_entries == 2u * (unsigned)(pieces - 1));
        assert_int_equal(check_loaded(into, b, &loaded), pieces - 1);
        free(part);
    }
    nt_keydir_destroy(into);
    free(bytes);
    book_free(b);
}

static void another_log_s_hint_is_nothing(void **state) {
    (void)state;
    book *b = book_small();
    nt_keydir *into = nt_keydir_create();
    nt_hint_loaded loaded;
    for (int change = 0; change < 6; change++) {
        nt_hint_id id = b->id;
        if (change == 1) id.store_id[15] ^= 1;
        if (change == 2) id.generation++;
        if (change == 3) id.seed++;
        if (change == 4) id.base += 8 * b->place.covered;
        if (change == 5) id.base = 0;
        assert_int_equal(load_into(into, b, &id, UINT64_MAX, &loaded), NTEE_OK);
        assert_int_equal(loaded.pieces, change ? 0 : 3);
        nt_keydir_rollback(into);
    }
    for (int i = 0; i < 3; i++) { /* a log that is shorter than what it speaks of */
        for (int less = 0; less < 2; less++) {
            uint64_t log_size = b->states[i].place.covered - (unsigned)less;
            assert_int_equal(load_into(into, b, &b->id, log_size, &loaded), NTEE_OK);
            assert_int_equal(check_loaded(into, b, &loaded), i - less);
        }
    }
    nt_keydir_destroy(into);
    book_free(b);
}

/* ---- Forged hints: all of their checks hold ---- */

typedef struct forger {
    fake_fs *fs;
    book *b;
    uint8_t bytes[4096];
    size_t at, body; /* the piece in the making begins at `at` */
    nt_piece piece;
} forger;

#define FRONT (NT_LOG_START - 128u) /* offsets below are as if the log began at 128 */

/* Begins a piece that covers the log up to `covered`. */
static void forge(forger *f, int kind, uint64_t covered) {
    uint64_t previous = kind == NT_PIECE_SNAPSHOT ? 0 : f->piece.check;
    f->piece = (nt_piece){.kind = (uint8_t)kind, .generation = 1, .previous = previous};
    memcpy(f->piece.store_id, f->b->id.store_id, 16);
    covered += FRONT;
    f->piece.place = (nt_piece_place){covered, covered / 8, 1, NT_LOG_START, NT_LOG_START, 1, covered};
    f->body = 0;
    if (kind != NT_PIECE_SNAPSHOT) return;
    nt_piece_section_encode(f->bytes + f->at + NT_PIECE_HEAD_SIZE, NT_ROOT_KEYS, 0);
    f->body = NT_PIECE_SECTION_SIZE;
}

static uint8_t *body_of(forger *f) { return f->bytes + f->at + NT_PIECE_HEAD_SIZE; }

static void forge_entry(forger *f, uint64_t value, const char *key, size_t len) {
    nt_piece_entry_encode(body_of(f) + f->body, value, (uint16_t)len);
    memcpy(body_of(f) + f->body + NT_PIECE_ENTRY_SIZE, key, len);
    f->body += NT_PIECE_ENTRY_SIZE + len;
    f->piece.entries++;
    nt_store64(body_of(f) + 8, f->piece.entries);
}

static void forge_record(forger *f, uint64_t position, nt_op op) {
    uint8_t record[256];
    op.key = (const uint8_t *)"forged";
    op.key_len = 6;
    op.terms = op.key;
    op.value = op.key;
    nt_record_encode(record, &op, f->b->id.seed);
    nt_record_number(record, 1);
    nt_piece_record_encode(body_of(f) + f->body, position, record);
    f->body += nt_piece_record_size(record);
    f->piece.entries++;
}

static void forged(forger *f, size_t padding) {
    memset(body_of(f) + f->body, 0, padding);
    f->piece.body = f->body + padding;
    f->piece.digest = nt_hash64(body_of(f), f->piece.body, f->b->id.seed);
    nt_piece_encode(f->bytes + f->at, &f->piece, f->b->id.seed);
    f->at += NT_PIECE_HEAD_SIZE + f->piece.body;
}

static uint64_t pad(const forger *f) { return nt_align8(f->body) - f->body; }

/* How many pieces count. What is loaded is sound in any case. */
static uint64_t pieces_of(forger *f) {
    nt_keydir *into = nt_keydir_create();
    nt_hint_loaded loaded;
    fake_plant(f->fs, HINT, f->bytes, f->at);
    assert_int_equal(load_into(into, f->b, &f->b->id, FRONT + 100000, &loaded), NTEE_OK);
    if (loaded.pieces > 0) assert_sound(nt_keydir_arena(into), *nt_keydir_root(into, NT_ROOT_KEYS));
    nt_keydir_rollback(into);
    nt_keydir_destroy(into);
    f->at = 0;
    return loaded.pieces;
}

static void forged_snapshots_are_refused(void **state) {
    forger f = {.fs = *state, .b = book_new()};
    const uint64_t base = f.b->id.base + FRONT;
    static const struct {
        uint64_t value; /* from the base on */
        const char *key;
        size_t len;
        int fine;
    } second[] = {
        {136, "c", 1, 1},     {136, "b", 1, 0},      {136, "a", 1, 0},     {136, "b\0", 2, 1},   {136, "", 0, 0},
        {137, "c", 1, 0},     {138, "c", 1, 0},      {140, "c", 1, 1},     {143, "c", 1, 0},     {128, "c", 1, 1},
        {120, "c", 1, 0},     {124, "c", 1, 0},      {992, "c", 1, 1},     {996, "c", 1, 1},     {1000, "c", 1, 0},
        {UINT64_MAX - 7, "c", 1, 0}, {1ull << 48, "c", 1, 0}, {1ull << 63, "c", 1, 0},
    };
    for (size_t i = 0; i < sizeof second / sizeof *second; i++) {
        forge(&f, NT_PIECE_SNAPSHOT, 1000);
        forge_entry(&f, base + 128, "b", 1);
        forge_entry(&f, base + second[i].value, second[i].key, second[i].len);
        forged(&f, pad(&f));
        if (pieces_of(&f) != (uint64_t)second[i].fine) fail_msg("second %zu", i);
    }
    for (int change = 0; change < 10; change++) {
        forge(&f, change == 9 ? NT_PIECE_DELTA : NT_PIECE_SNAPSHOT, 1000);
        forge_entry(&f, base + 128, "b", 1);
        if (change == 1) nt_store32(body_of(&f), 1); /* a root that nobody knows */
        if (change == 2) nt_store32(body_of(&f) + 4, 1);
        if (change == 3) nt_store64(body_of(&f) + 8, 2);
        if (change == 4) f.piece.entries = 2;
        if (change == 5) f.piece.entries = 0;
        if (change == 6) nt_store64(body_of(&f) + 8, f.piece.entries = 2);
        if (change == 7) nt_store64(body_of(&f) + 8, f.piece.entries = 0);
        if (change == 8) body_of(&f)[f.body++] = 1; /* in the padding */
        forged(&f, pad(&f));
        if (pieces_of(&f) != (change == 0)) fail_msg("change %d", change);
    }
    for (size_t more = 0; more <= 16; more += 8) {
        forge(&f, NT_PIECE_SNAPSHOT, 1000);
        forge_entry(&f, base + 128, "b", 1);
        forged(&f, pad(&f) + more);
        assert_int_equal(pieces_of(&f), more == 0);
    }
    forge(&f, NT_PIECE_SNAPSHOT, 1000); /* not even a section */
    f.body = 0;
    forged(&f, 8);
    assert_int_equal(pieces_of(&f), 0);
    forge(&f, NT_PIECE_SNAPSHOT, 100008); /* more than the log has */
    forged(&f, 0);
    assert_int_equal(pieces_of(&f), 0);
    book_free(f.b);
}

static void forged_deltas_end_the_hint(void **state) {
    forger f = {.fs = *state, .b = book_new()};
    const uint64_t base = f.b->id.base + FRONT;
    static const struct {
        uint64_t first, second; /* positions, from the base on */
        int fine;
    } places[] = {{1040, 1096, 1}, {1000, 1992, 1}, {1040, 1040, 0}, {1096, 1040, 0}, {992, 1040, 0}, {1040, 2000, 0},
                  {1041, 1096, 0}, {1044, 1096, 0}, {1040, 1ull << 48, 0}, {1040, UINT64_MAX - 7, 0}, {0, 1040, 0},
                  {0 - (1ull << 20) - 8, 1040, 0}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        forge(&f, NT_PIECE_SNAPSHOT, 1000);
        forged(&f, 0);
        forge(&f, NT_PIECE_DELTA, 2000);
        forge_record(&f, base + places[i].first, (nt_op){.kind = NT_OP_PUT});
        forge_record(&f, base + places[i].second, (nt_op){.kind = NT_OP_DELETE});
        forged(&f, 0);
        if (pieces_of(&f) != 1 + (uint64_t)places[i].fine) fail_msg("places %zu", i);
    }
    static const struct {
        nt_op op;
        int fine;
    } ops[] = {{{.kind = NT_OP_PUT, .value_len = 6}, 1}, {{.kind = NT_OP_DELETE}, 1}, {{.kind = NT_OP_EVICT}, 1},
               {{.kind = NT_OP_DAMAGED}, 1}, {{.kind = NT_OP_COUNTER}, 0}, {{.kind = NT_OP_PERSIST}, 0},
               {{.kind = NT_OP_EXPIRE, .expires = 1}, 0}, {{.kind = NT_OP_PUT, .expires = 1}, 0},
               {{.kind = NT_OP_PUT, .in_blob = 1}, 0}, {{.kind = NT_OP_PUT, .terms_len = 5}, 0}};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        forge(&f, NT_PIECE_SNAPSHOT, 1000);
        forged(&f, 0);
        forge(&f, NT_PIECE_DELTA, 2000);
        forge_record(&f, base + 1040, ops[i].op);
        forged(&f, 0);
        if (pieces_of(&f) != 1 + (uint64_t)ops[i].fine) fail_msg("op %zu", i);
    }
    for (int change = 0; change < 14; change++) {
        forge(&f, NT_PIECE_SNAPSHOT, 1000);
        forged(&f, 0);
        forge(&f, change == 1 ? NT_PIECE_SNAPSHOT : NT_PIECE_DELTA, 2000);
        if (change != 1) forge_record(&f, base + 1040, (nt_op){.kind = NT_OP_PUT});
        if (change == 2) f.piece.entries = 0;
        if (change == 3) f.piece.entries = 2;
        if (change == 4) f.piece.previous ^= 1;
        if (change == 5) f.piece.place.number = 1;
        if (change == 6) f.piece.place.sequence = 1;
        if (change == 7) f.piece.place.covered = FRONT + 992;
        if (change == 8) f.piece.generation = 2;
        if (change == 9) f.piece.store_id[0] ^= 1;
        if (change == 10) f.piece.place.covered = FRONT + 100008;
        if (change == 11) body_of(&f)[8 + 16] = 9; /* a kind that nobody knows */
        if (change == 12) nt_store16(body_of(&f) + 8 + 18, 3); /* the rest is no padding */
        forged(&f, change == 13 ? 8 : 0);
        if (pieces_of(&f) != 1u + (change == 0)) fail_msg("change %d", change);
    }
    book_free(f.b);
}

static void a_hint_does_not_begin_with_a_delta(void **state) {
    forger f = {.fs = *state, .b = book_new()};
    for (int delta = 0; delta < 2; delta++) {
        forge(&f, delta ? NT_PIECE_DELTA : NT_PIECE_SNAPSHOT, 1000);
        f.piece.previous = 0;
        if (delta) forge_record(&f, f.b->id.base + FRONT + 200, (nt_op){.kind = NT_OP_PUT});
        forged(&f, 0);
        assert_int_equal(pieces_of(&f), !delta);
    }
    book_free(f.b);
}

/* Of a log that has a base so high that it cannot get as long as it claims to be. */
static void positions_have_48_bits(void **state) {
    forger f = {.fs = *state, .b = book_new()};
    const uint64_t limit = 1ull << 48;
    f.b->id.base = limit - 1024 - FRONT;
    for (int over = 0; over < 3; over++) {
        forge(&f, NT_PIECE_SNAPSHOT, 2000);
        forge_entry(&f, over == 1 ? limit : limit - 8, "b", 1);
        forged(&f, pad(&f));
        if (over == 2) {
            forge(&f, NT_PIECE_DELTA, 4000);
            forge_record(&f, limit + 1000, (nt_op){.kind = NT_OP_PUT});
            forged(&f, 0);
        }
        assert_int_equal(pieces_of(&f), over != 1);
    }
    book_free(f.b);
}

/* Lengths that nothing stands behind: no memory is taken for them. */
static void claims_cost_no_memory(void **state) {
    forger f = {.fs = *state, .b = book_new()};
    for (int change = 0; change < 5; change++) {
        forge(&f, NT_PIECE_SNAPSHOT, 1000);
        forged(&f, 0);
        forge(&f, NT_PIECE_DELTA, 2000);
        forge_record(&f, f.b->id.base + FRONT + 1040, (nt_op){.kind = NT_OP_PUT, .terms_len = 5});
        if (change == 1) nt_store32(body_of(&f) + 8 + 24, UINT32_MAX);
        if (change == 2) nt_store16(body_of(&f) + 8 + 18, UINT16_MAX);
        if (change == 3) nt_store32(body_of(&f) + 8 + 20, UINT32_MAX); /* the value's, which is not here */
        forged(&f, 0);
        if (change == 4) { /* a body that the file does not have */
            f.at -= NT_PIECE_HEAD_SIZE + f.piece.body;
            f.piece.body = UINT64_MAX - 7;
            nt_piece_encode(f.bytes + f.at, &f.piece, f.b->id.seed);
            f.at += NT_PIECE_HEAD_SIZE + 8;
        }
        nt_keydir *into = nt_keydir_create();
        nt_hint_loaded loaded;
        fake_plant(f.fs, HINT, f.bytes, f.at);
        uint64_t before = fake_count(f.fs, FAKE_ALLOC);
        assert_int_equal(load_into(into, f.b, &f.b->id, FRONT + 100000, &loaded), NTEE_OK);
        assert_int_equal(loaded.pieces, 1);
        assert_int_equal(fake_count(f.fs, FAKE_ALLOC) - before, 1); /* the buffer, for the whole of this file */
        nt_keydir_rollback(into);
        nt_keydir_destroy(into);
        f.at = 0;
    }
    book_free(f.b);
}

/* ---- Failures ---- */

/* The hint has more nodes than memory is there for at first. */
static void check_memory(fake_fs *fs, nt_random *r, int keys, int records) {
    book *b = book_new();
    nt_hint_loaded loaded;
    ntee_error err;
    book_scribble(b, r, SHAPE_LONG, UINT64_MAX, keys, 0);
    assert_int_equal(book_snapshot(b, &err), NTEE_OK);
    book_note(b);
    assert_int_equal(nt_hint_delta_begin(&b->saver), 1);
    book_scribble(b, r, SHAPE_LONG, UINT64_MAX, records, 1);
    assert_int_equal(nt_hint_delta_end(&b->saver, &b->place, &err), NTEE_OK);
    book_note(b);
    int failed = 0;
    for (uint64_t nth = 1;; nth++) {
        nt_keydir *into = nt_keydir_create();
        uint64_t fired = fake_fired(fs);
        fake_fail(fs, (fake_fault){.call = FAKE_ALLOC, .nth = nth, .error = 12, .sticky = nth % 2 == 0});
        ntee_status status = load_into(into, b, &b->id, UINT64_MAX, &loaded);
        fake_heal(fs);
        fired = fake_fired(fs) - fired;
        assert_int_equal(status, fired ? NTEE_NOMEM : NTEE_OK);
        if (fired == 0) assert_int_equal(check_loaded(into, b, &loaded), 1);
        nt_keydir_destroy(into);
        if (fired == 0) break;
        failed++;
    }
    assert_true(failed > 1);
    book_free(b);
}

static void without_memory_loading_says_so(void **state) {
    nt_random r = nt_random_start("memory");
    check_memory(*state, &r, 4000, 100);
    check_memory(*state, &r, 100, 4000);
}

static void what_cannot_be_read_does_not_count(void **state) {
    fake_fs *fs = *state;
    nt_random r = nt_random_start("reads");
    book *b = book_new();
    nt_hint_loaded loaded;
    ntee_error err;
    book_scribble(b, &r, SHAPE_URL, 100000, 12000, 0);
    assert_int_equal(book_snapshot(b, &err), NTEE_OK);
    book_note(b);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(nt_hint_delta_begin(&b->saver), 1);
        book_scribble(b, &r, SHAPE_URL, 100000, 6000, 1); /* more than the buffer: read twice */
        assert_int_equal(nt_hint_delta_end(&b->saver, &b->place, &err), NTEE_OK);
        book_note(b);
    }
    int seen[4] = {0}, nothing = 0;
    nt_keydir *into = nt_keydir_create();
    for (uint64_t nth = 1;; nth++) {
        uint64_t fired = fake_fired(fs);
        fake_fail(fs, (fake_fault){.call = FAKE_ANY, .nth = nth, .error = 5, .sticky = nth % 2 == 0});
        assert_int_equal(load_into(into, b, &b->id, UINT64_MAX, &loaded), NTEE_OK);
        fake_heal(fs);
        int which = check_loaded(into, b, &loaded);
        if (which < 0) nothing++;
        else seen[which]++;
        if (fake_fired(fs) == fired) {
            assert_int_equal(which, 3);
            break;
        }
    }
    assert_true(nothing > 4 && seen[0] && seen[1] && seen[2]);
    for (uint64_t nth = 1; nth < 8; nth++) { /* half of what was asked for, and signals, change nothing */
        fake_fail(fs, (fake_fault){.call = FAKE_READ, .nth = nth, .error = nth % 2 ? 0 : 4});
        assert_int_equal(load_into(into, b, &b->id, UINT64_MAX, &loaded), NTEE_OK);
        fake_heal(fs);
        assert_int_equal(check_loaded(into, b, &loaded), 3);
    }
    nt_keydir_destroy(into);
    book_free(b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_those_of_the_logs),
        ON_FAKE(what_is_not_a_hint_is_nothing),
        ON_FAKE(every_flipped_bit_is_found),
        ON_FAKE(cut_anywhere_its_whole_pieces_count),
        ON_FAKE(another_log_s_hint_is_nothing),
        ON_FAKE(forged_snapshots_are_refused),
        ON_FAKE(forged_deltas_end_the_hint),
        ON_FAKE(a_hint_does_not_begin_with_a_delta),
        ON_FAKE(positions_have_48_bits),
        ON_FAKE(claims_cost_no_memory),
        ON_FAKE(without_memory_loading_says_so),
        ON_FAKE(what_cannot_be_read_does_not_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
