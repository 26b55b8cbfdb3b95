/* What a log means after a crash, a cut, or damage. Cases B15 to B21, B26, B89. */
#include "unit/store.h"

#include "api/handle.h"
#include "engine/commit.h"
#include "engine/open.h"

#define LOG "s/" LOG_NAME

/* ---- A scripted store: a state after every frame -------------------------------------------------- */

#define FRAMES_MAX 64

typedef struct step {
    uint64_t end;     /* the log's length when the step was done */
    uint64_t records; /* and the records then */
    char a[16], b[16], x[16];
    int items; /* of the batch */
} step;

typedef struct script {
    uint8_t *bytes;
    size_t len;
    step steps[FRAMES_MAX];
    int count;
} script;

static int batch_items(ntee *db) {
    int found = 0;
    for (int i = 0; i < 50; i++) {
        char key[16];
        snprintf(key, sizeof key, "item%02d", i);
        found += ntee_has(db, key, strlen(key)) == NTEE_OK;
    }
    return found;
}

static step look(ntee *db) {
    step s = {.end = t_log_bytes(db), .records = t_records(db), .items = batch_items(db)};
    strcpy(s.a, t_get(db, "a"));
    strcpy(s.b, t_get(db, "b"));
    strcpy(s.x, t_get(db, "x"));
    return s;
}

static int same(const step *p, const step *q) {
    return p->records == q->records && p->items == q->items && !strcmp(p->a, q->a) && !strcmp(p->b, q->b) &&
           !strcmp(p->x, q->x);
}

static void put_batch(ntee *db) {
    ntee_batch *batch = ntee_batch_new();
    for (int i = 0; i < 50; i++) {
        char key[16];
        snprintf(key, sizeof key, "item%02d", i);
        assert_int_equal(ntee_batch_put(batch, key, strlen(key), "batch", 5, NULL), NTEE_OK);
    }
    assert_int_equal(ntee_batch_put(batch, "b", 1, "batch", 5, NULL), NTEE_OK);
    assert_int_equal(ntee_batch_delete(batch, "x", 1), NTEE_OK);
    assert_int_equal(ntee_write(db, batch), NTEE_OK);
    ntee_batch_free(batch);
}

/* Puts, an overwrite, deletes and a batch of 52; `bytes` are what a kill -9 would leave. */
static script make_script(uint32_t flags) {
    script s = {0};
    ntee *db = t_open(t_at("s"), flags);
    s.steps[s.count++] = look(db);
    s.steps[0].end = NT_LOG_START;
    assert_int_equal(t_put(db, "a", "1"), NTEE_OK);
    s.steps[s.count++] = look(db);
    assert_int_equal(t_put(db, "x", "here"), NTEE_OK);
    s.steps[s.count++] = look(db);
    assert_int_equal(t_put(db, "a", "overwritten"), NTEE_OK);
    s.steps[s.count++] = look(db);
    assert_int_equal(t_delete(db, "a"), NTEE_OK);
    s.steps[s.count++] = look(db);
    put_batch(db);
    s.steps[s.count++] = look(db);
    assert_int_equal(t_put(db, "x", "again"), NTEE_OK);
    s.steps[s.count++] = look(db);
    assert_int_equal(t_delete(db, "b"), NTEE_OK);
    s.steps[s.count++] = look(db);
    s.bytes = t_read(t_at(LOG), &s.len);
    t_close(db);
    assert_true(s.len >= s.steps[s.count - 1].end);
    s.len = s.steps[s.count - 1].end;
    return s;
}

/* What a log of the script's first `len` bytes must show. */
static const step *expected(const script *s, uint64_t len) {
    int last = 0;
    for (int i = 1; i < s->count; i++)
        if (s->steps[i].end <= len) last = i;
    return &s->steps[last];
}

static void plant(const void *bytes, size_t len) {
    t_remove(t_at("s"));
    assert_int_equal(mkdir(t_at("s"), 0700), 0);
    t_write(t_at(LOG), bytes, len);
}

/* Opens, compares, writes, reopens, compares. */
static void check_opens_as(const step *want) {
    ntee *db = t_open(t_at("s"), 0);
    step got = look(db);
    assert_true(same(&got, want));
    assert_int_equal(t_put(db, "new", "after"), NTEE_OK);
    t_close(db);
    db = t_open(t_at("s"), 0);
    assert_string_equal(t_get(db, "new"), "after");
    assert_int_equal(t_delete(db, "new"), NTEE_OK);
    got = look(db);
    assert_true(same(&got, want));
    t_close(db);
}

static void a_log_cut_at_any_byte_shows_exactly_the_whole_frames(void **state) {
    (void)state;
    script s = make_script(0);
    t_use_table();
    int fds = t_fds();
    for (size_t len = NT_LOG_START; len <= s.len; len++) {
        plant(s.bytes, len);
        ntee *db = t_open(t_at("s"), 0);
        step got = look(db);
        if (!same(&got, expected(&s, len))) print_error("cut at %zu\n", len);
        assert_true(same(&got, expected(&s, len)));
        if (len % 40 == 1 || len % 40 == 0) {
            assert_int_equal(t_put(db, "new", "after"), NTEE_OK);
            t_close(db);
            db = t_open(t_at("s"), 0);
            assert_string_equal(t_get(db, "new"), "after");
            assert_int_equal(t_delete(db, "new"), NTEE_OK);
            got = look(db);
            assert_true(same(&got, expected(&s, len)));
        }
        t_close(db);
    }
    assert_int_equal(t_fds(), fds);
    free(s.bytes);
}

static void a_log_shorter_than_its_header_is_corrupt(void **state) {
    (void)state;
    script s = make_script(0);
    for (size_t len = 0; len < NT_LOG_START; len += len > 140 && len < 4000 ? 61 : 1) {
        ntee *db;
        plant(s.bytes, len);
        assert_int_equal(t_try_open(t_at("s"), 0, &db), NTEE_CORRUPT);
        assert_int_equal(t_try_open(t_at("s"), NTEE_READ_ONLY, &db), NTEE_CORRUPT);
        assert_int_equal(t_size_of(t_at(LOG)), len);
    }
    free(s.bytes);
}

static void junk_behind_the_last_frame_is_cut_off(void **state) {
    (void)state;
    script s = make_script(0);
    const step *all = &s.steps[s.count - 1];
    static const uint8_t fills[] = {0x41, 0x00, 0xFF, 0x01};
    for (size_t f = 0; f < sizeof fills; f++) {
        for (size_t n = 1; n <= 64; n += n < 20 ? 1 : 11) {
            uint8_t *bytes = malloc(s.len + 64);
            memcpy(bytes, s.bytes, s.len);
            memset(bytes + s.len, fills[f], n);
            plant(bytes, s.len + n);
            check_opens_as(all);
            free(bytes);
        }
    }
    static const size_t zeros[] = {17, 4096, 1u << 20};
    for (size_t i = 0; i < 3; i++) {
        uint8_t *bytes = calloc(1, s.len + zeros[i]);
        memcpy(bytes, s.bytes, s.len);
        plant(bytes, s.len + zeros[i]);
        check_opens_as(all);
        free(bytes);
    }
    free(s.bytes);
}

/* A valid head whose body is not there, and heads that were once good elsewhere. */
static void misplaced_frames_never_chain(void **state) {
    (void)state;
    script s = make_script(0);
    const step *all = &s.steps[s.count - 1];
    for (int i = 1; i < s.count; i++) {
        size_t from = s.steps[i - 1].end, len = s.steps[i].end - from;
        uint8_t *bytes = malloc(s.len + len);
        memcpy(bytes, s.bytes, s.len);
        memcpy(bytes + s.len, s.bytes + from, len);
        plant(bytes, s.len + len);
        check_opens_as(all);
        plant(bytes, s.len + NT_FRAME_HEAD_SIZE);
        check_opens_as(all);
        free(bytes);
    }
    free(s.bytes);
}

/* ---- Stale frames: B18 ---------------------------------------------------------------------------- */

static void frames_behind_a_torn_one_never_come_back(void **state) {
    (void)state;
    static const char *const keys[] = {"r1", "r2", "r3"};
    uint64_t ends[4];
    ntee *db = t_open(t_at("s"), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(t_put(db, keys[i], "same size value"), NTEE_OK);
        ends[i] = t_log_bytes(db);
    }
    size_t len;
    uint8_t *bytes = t_read(t_at(LOG), &len);
    t_close(db);
    memset(bytes + ends[1] - 24, 0, 24);
    plant(bytes, ends[2]);
    free(bytes);
    db = t_open(t_at("s"), 0);
    assert_string_equal(t_get(db, "r1"), "same size value");
    assert_string_equal(t_get(db, "r2"), "(missing)");
    assert_string_equal(t_get(db, "r3"), "(missing)");
    assert_int_equal(t_put(db, "r2", "same size other"), NTEE_OK);
    t_copy(t_at("s"), t_at("t"));
    t_close(db);
    for (int round = 0; round < 2; round++) {
        db = t_open(t_at(round ? "t" : "s"), 0);
        assert_string_equal(t_get(db, "r2"), "same size other");
        assert_string_equal(t_get(db, "r3"), "(missing)");
        assert_int_equal(t_put(db, "r3", "new"), NTEE_OK);
        t_close(db);
        db = t_open(t_at(round ? "t" : "s"), 0);
        assert_string_equal(t_get(db, "r3"), "new");
        t_close(db);
    }
}

/* ---- Damage --------------------------------------------------------------------------------------- */

/* Opens a store with one flipped bit: every answer is right, or an error. Returns whether the flip was noticed. */
static int check_flipped(const char *path, const step *want, int closed) {
    ntee *db;
    ntee_status status = t_try_open(path, 0, &db);
    if (status == NTEE_VERSION || status == NTEE_CORRUPT) return 1;
    assert_int_equal(status, NTEE_OK);
    step got = {.records = t_records(db), .items = batch_items(db)};
    int corrupt = 0, lost = db->db.recovery.damage.len != 0; /* a record in damage may be gone */
    const char *keys[] = {"a", "b", "x", "k"};
    const char *wants[] = {want->a, want->b, want->x, "kept"};
    for (int i = 0; i < 4; i++) {
        const char *value = t_get(db, keys[i]);
        if (!strcmp(value, "(corrupt)") || (lost && !strcmp(value, "(missing)"))) corrupt = 1;
        else if (closed) assert_string_equal(value, wants[i]);
    }
    for (int i = 0; i < 50; i++) {
        char key[16];
        snprintf(key, sizeof key, "item%02d", i);
        const char *value = t_get(db, key);
        if (!strcmp(value, "(corrupt)") || (lost && !strcmp(value, "(missing)"))) corrupt = 1;
        else if (closed) assert_string_equal(value, want->items ? "batch" : "(missing)");
    }
    if (closed && !corrupt) assert_int_equal(got.records, want->records);
    t_close(db);
    return corrupt || lost;
}

/* The last frame, the clean mark, is above the durable mark: losing it loses nothing. */
static void every_flipped_bit_of_a_closed_store_is_noticed_or_harmless(void **state) {
    (void)state;
    script s = make_script(0);
    ntee *db = t_open(t_at("s"), 0);
    assert_int_equal(t_put(db, "k", "kept"), NTEE_OK);
    step want = look(db);
    t_close(db);
    size_t len, harmless = 0;
    uint8_t *bytes = t_read(t_at(LOG), &len);
    assert_int_equal(mkdir(t_at("f"), 0700), 0);
    size_t step_len = getenv("NT_LONG") ? 1 : 5;
    for (size_t bit = 0; bit < len * 8; bit += step_len) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        t_write(t_at("f/" LOG_NAME), bytes, len);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        harmless += !check_flipped(t_at("f"), &want, 1);
    }
    /* What is between the headers, what was overwritten, and the last mark: nobody reads the former two. */
    print_message("%zu of %zu bits harmless\n", harmless, len * 8);
    assert_true(harmless * step_len < (NT_LOG_COPY - NT_LOG_HEADER_SIZE + 40 + 2 * 56) * 8);
    for (size_t at = 0; at + 64 <= len; at += 8) { /* and every 64 bytes that are lost altogether */
        uint8_t saved[64];
        memcpy(saved, bytes + at, 64);
        memset(bytes + at, at % 16 ? 0 : 0xFF, 64);
        t_write(t_at("f/" LOG_NAME), bytes, len);
        memcpy(bytes + at, saved, 64);
        check_flipped(t_at("f"), &want, at + 64 <= len - 40);
    }
    free(bytes);
    free(s.bytes);
}

static void damage_below_the_durable_mark_is_located_and_the_file_left_alone(void **state) {
    (void)state;
    script s = make_script(NTEE_SYNC_EVERY_WRITE);
    size_t len;
    uint8_t *bytes = t_read(t_at(LOG), &len);
    for (int i = 1; i < s.count; i++) {
        size_t at = s.steps[i - 1].end + 17; /* the frame number of step i */
        if (i == 1) at += 2 * NT_FRAME_OPEN_SIZE;
        bytes[at] ^= 1;
        plant(bytes, len);
        ntee *db = t_open(t_at("s"), 0);
        const nt_buf *damage = &db->db.recovery.damage;
        assert_int_equal(damage->len, sizeof(nt_damage));
        assert_int_equal(((const nt_damage *)(const void *)damage->data)->offset, at - 17);
        t_close(db);
        size_t after;
        uint8_t *now = t_read(t_at(LOG), &after);
        assert_int_equal(after, len);
        assert_memory_equal(now, bytes, len);
        bytes[at] ^= 1;
        free(now);
    }
    free(bytes);
    free(s.bytes);
}

static void a_flipped_value_is_an_error_of_its_key_until_written_anew(void **state) {
    (void)state;
    ntee *db = t_open(t_at("s"), 0);
    for (int i = 0; i < 100; i++) {
        char key[16], value[32];
        snprintf(key, sizeof key, "key%03d", i);
        snprintf(value, sizeof value, "value number %03d", i);
        assert_int_equal(t_put(db, key, value), NTEE_OK);
    }
    t_close(db);
    size_t len;
    uint8_t *bytes = t_read(t_at(LOG), &len);
    uint8_t *found = memmem(bytes, len, "value number 050", 16);
    assert_non_null(found);
    found[7] ^= 4;
    plant(bytes, len);
    free(bytes);
    db = t_open(t_at("s"), 0);
    assert_int_equal(t_records(db), 100);
    assert_string_equal(t_get(db, "key049"), "value number 049");
    assert_string_equal(t_get(db, "key050"), "(corrupt)");
    assert_non_null(strstr(ntee_last_error()->message, "key050"));
    assert_null(strstr(ntee_last_error()->message, "value"));
    assert_true(ntee_last_error()->offset > 0);
    assert_string_equal(t_get(db, "key051"), "value number 051");
    assert_int_equal(ntee_has(db, "key050", 6), NTEE_OK);
    assert_int_equal(t_put(db, "key050", "new"), NTEE_OK);
    assert_string_equal(t_get(db, "key050"), "new");
    t_close(db);
    db = t_open(t_at("s"), 0);
    assert_string_equal(t_get(db, "key050"), "new");
    assert_int_equal(t_records(db), 100);
    t_close(db);
}

/* ---- Crashes -------------------------------------------------------------------------------------- */

static void a_copy_of_an_open_store_opens_with_everything_acknowledged(void **state) {
    (void)state;
    for (int tier = 0; tier < 2; tier++) {
        ntee *db = t_open(t_at("s"), tier ? NTEE_SYNC_EVERY_WRITE : 0);
        for (int i = 0; i < 40; i++) {
            assert_int_equal(ntee_put(db, &i, sizeof i, &i, sizeof i, NULL), NTEE_OK);
            if (i % 8) continue;
            t_copy(t_at("s"), t_at("t"));
            ntee *copy = t_open(t_at("t"), 0);
            assert_int_equal(t_records(copy), (uint64_t)i + 1);
            assert_int_equal(ntee_put(copy, "more", 4, "", 0, NULL), NTEE_OK);
            t_close(copy);
            copy = t_open(t_at("t"), NTEE_READ_ONLY);
            assert_int_equal(t_records(copy), (uint64_t)i + 2);
            t_close(copy);
        }
        t_close(db);
        t_remove(t_at("s"));
    }
}

static void crashes_and_reopenings_in_a_row_lose_nothing(void **state) {
    (void)state;
    for (int i = 0; i < 12; i++) {
        ntee *db = t_open(t_at("s"), i % 3 == 2 ? NTEE_SYNC_EVERY_WRITE : 0);
        assert_int_equal(t_records(db), (uint64_t)i * 3);
        for (int j = 0; j < 3; j++) {
            int key = i * 3 + j;
            assert_int_equal(ntee_put(db, &key, sizeof key, "", 0, NULL), NTEE_OK);
        }
        t_copy(t_at("s"), t_at("t"));
        t_close(db);
        if (i % 2) continue; /* else go on with the crashed one */
        t_remove(t_at("s"));
        assert_int_equal(rename(t_at("t"), t_at("s")), 0);
    }
}

static void a_read_only_opener_cuts_a_torn_tail_in_memory_only(void **state) {
    (void)state;
    script s = make_script(0);
    for (int i = 1; i < s.count; i++) {
        size_t len = s.steps[i].end - 5;
        plant(s.bytes, len);
        t_write(t_at("s/LOCK"), "1\n", 2);
        uint64_t before = t_fingerprint(t_at("s"));
        ntee *db = t_open(t_at("s"), NTEE_READ_ONLY);
        step got = look(db);
        assert_true(same(&got, &s.steps[i - 1]));
        t_close(db);
        assert_int_equal(t_fingerprint(t_at("s")), before);
    }
    free(s.bytes);
}

/* ---- Time and failures ---------------------------------------------------------------------------- */

/* Words that look like sizes must not make the search read the rest of the file again and again. */
static void a_long_torn_end_is_searched_in_linear_time(void **state) {
    (void)state;
    script s = make_script(0);
    size_t junk = 24u << 20, len = s.len + junk;
    uint8_t *bytes = malloc(len);
    memcpy(bytes, s.bytes, s.len);
    for (size_t at = s.len; at + 8 <= len; at += 8) nt_store64(bytes + at, 0x0000000100000000u | 0x180000u);
    plant(bytes, len);
    free(bytes);
    int64_t begin = t_now();
    ntee *db = t_open(t_at("s"), 0);
    int64_t took = t_now() - begin;
    print_message("24 MiB searched in %" PRId64 " ms\n", took);
    step got = look(db);
    assert_true(same(&got, &s.steps[s.count - 1]));
    t_close(db);
    assert_true(took < 20000);
    free(s.bytes);
}

static void failing_calls_of_an_opening_leave_nothing_behind(void **state) {
    (void)state;
    script s = make_script(0);
    t_use_table();
    t_errno = EIO;
    for (int kind = 0; kind < T_KINDS; kind++) {
        for (long nth = 1;; nth++) {
            ntee *db;
            plant(s.bytes, s.len - 3);
            long memory = atomic_load(&t_memory);
            int fds = t_fds();
            t_fail(kind, nth, kind == T_ALLOC ? ENOMEM : EIO, 0);
            ntee_status status = t_try_open(t_at("s"), 0, &db);
            int fired = atomic_load(&t_fail_at[kind]) <= 0 || kind == T_THREAD;
            t_heal();
            if (status == NTEE_OK) t_close(db);
            else {
                assert_null(db);
                assert_int_equal(status, kind == T_ALLOC ? NTEE_NOMEM : NTEE_IO);
                if (kind != T_ALLOC) assert_int_equal(ntee_last_error()->os_errno, EIO);
            }
            assert_int_equal(atomic_load(&t_memory), memory);
            assert_int_equal(t_fds(), fds);
            check_opens_as(&s.steps[s.count - 2]);
            if (!fired || kind == T_THREAD) break;
        }
    }
    free(s.bytes);
}

static void short_memory_for_the_index_fails_an_opening_cleanly(void **state) {
    (void)state;
    ntee *db = t_open(t_at("s"), 0);
    ntee_batch *batch = ntee_batch_new();
    for (int i = 0; i < 60000; i++) ntee_batch_put(batch, &i, sizeof i, t_root, 8, NULL);
    assert_int_equal(ntee_write(db, batch), NTEE_OK);
    ntee_batch_free(batch);
    t_close(db);
    t_use_table();
    long memory = atomic_load(&t_memory), nth = 1;
    for (;; nth++) {
        t_fail(T_ALLOC, nth, ENOMEM, 0);
        ntee_status status = t_try_open(t_at("s"), 0, &db);
        t_heal();
        if (status == NTEE_OK) break;
        assert_int_equal(status, NTEE_NOMEM);
        assert_int_equal(atomic_load(&t_memory), memory);
    }
    assert_true(nth > 3);
    assert_int_equal(t_records(db), 60000);
    t_close(db);
}

/* ---- What later versions may write ---------------------------------------------------------------- */

/* Appends a frame of one record, or of a body as it is, to the store in "s", and closes it. */
static void append_frame(uint8_t kind, const nt_op *op) {
    nt_db db;
    ntee_error err;
    nt_open_options how = {0};
    _Alignas(8) uint8_t image[512] = {0};
    nt_frame frame = {.kind = kind};
    uint64_t size = NT_FRAME_HEAD_SIZE + (op ? nt_record_size(op) : 16);
    assert_int_equal(nt_db_open(&db, t_at("s"), &how, &err), NTEE_OK);
    assert_int_equal(nt_commit_announce(&db, &err), NTEE_OK);
    if (op) {
        nt_record_encode(image + NT_FRAME_HEAD_SIZE, op, db.source.seed);
        nt_record_number(image + NT_FRAME_HEAD_SIZE, db.sequence + 1);
    }
    frame.number = db.number + 1;
    frame.durable = nt_log_synced(db.log);
    nt_frame_seal(image, size, &frame, db.source.seed, db.salt, nt_log_tail(db.log));
    assert_int_equal(nt_log_append(db.log, image, size, &err), NTEE_OK);
    db.number = frame.number;
    db.check = frame.check;
    assert_int_equal(nt_db_close(&db, 0, NULL, &err), NTEE_OK);
}

static void records_of_later_versions_are_refused_not_misread(void **state) {
    (void)state;
    nt_op put = {.kind = NT_OP_PUT, .key = (const uint8_t *)"k", .key_len = 1, .value = (const uint8_t *)"v",
                 .value_len = 1, .expires = 1, .deadline = 1};
    nt_op blob = {.kind = NT_OP_PUT, .key = put.key, .key_len = 1, .value_len = 9, .in_blob = 1};
    nt_op terms = {.kind = NT_OP_PUT, .key = put.key, .key_len = 1, .value = put.value, .value_len = 1,
                   .terms = (const uint8_t *)"abcd", .terms_len = 4};
    nt_op counter = {.kind = NT_OP_COUNTER, .key = put.key, .key_len = 1};
    nt_op expire = {.kind = NT_OP_EXPIRE, .key = put.key, .key_len = 1, .expires = 1};
    nt_op persist = {.kind = NT_OP_PERSIST, .key = put.key, .key_len = 1};
    const nt_op *ops[] = {&put, &blob, &terms, &counter, &expire, &persist, NULL};
    for (int i = 0; i < 7; i++) {
        ntee *db;
        t_remove(t_at("s"));
        append_frame(ops[i] ? NT_FRAME_DATA : NT_FRAME_SCHEMA, ops[i]);
        uint64_t before = t_size_of(t_at(LOG));
        assert_int_equal(t_try_open(t_at("s"), 0, &db), NTEE_VERSION);
        assert_int_equal(t_try_open(t_at("s"), NTEE_READ_ONLY, &db), NTEE_VERSION);
        assert_int_equal(t_size_of(t_at(LOG)), before);
    }
}

static void a_record_known_to_be_lost_is_an_error_until_written_anew(void **state) {
    (void)state;
    nt_op lost = {.kind = NT_OP_DAMAGED, .key = (const uint8_t *)"k", .key_len = 1};
    nt_op evict = {.kind = NT_OP_EVICT, .key = (const uint8_t *)"j", .key_len = 1};
    ntee *db = t_open(t_at("s"), 0);
    assert_int_equal(t_put(db, "j", "v"), NTEE_OK);
    t_close(db);
    append_frame(NT_FRAME_DATA, &lost);
    append_frame(NT_FRAME_DATA, &evict);
    db = t_open(t_at("s"), 0);
    assert_int_equal(t_records(db), 1);
    assert_string_equal(t_get(db, "j"), "(missing)");
    assert_string_equal(t_get(db, "k"), "(corrupt)");
    assert_non_null(strstr(ntee_last_error()->message, "key k"));
    assert_int_equal(t_put(db, "k", "new"), NTEE_OK);
    assert_string_equal(t_get(db, "k"), "new");
    t_close(db);
    db = t_open(t_at("s"), 0);
    assert_string_equal(t_get(db, "k"), "new");
    t_close(db);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T_TEST(a_log_cut_at_any_byte_shows_exactly_the_whole_frames),
        T_TEST(a_log_shorter_than_its_header_is_corrupt),
        T_TEST(junk_behind_the_last_frame_is_cut_off),
        T_TEST(misplaced_frames_never_chain),
        T_TEST(frames_behind_a_torn_one_never_come_back),
        T_TEST(every_flipped_bit_of_a_closed_store_is_noticed_or_harmless),
        T_TEST(damage_below_the_durable_mark_is_located_and_the_file_left_alone),
        T_TEST(a_flipped_value_is_an_error_of_its_key_until_written_anew),
        T_TEST(a_copy_of_an_open_store_opens_with_everything_acknowledged),
        T_TEST(crashes_and_reopenings_in_a_row_lose_nothing),
        T_TEST(a_read_only_opener_cuts_a_torn_tail_in_memory_only),
        T_TEST(a_long_torn_end_is_searched_in_linear_time),
        T_TEST(failing_calls_of_an_opening_leave_nothing_behind),
        T_TEST(short_memory_for_the_index_fails_an_opening_cleanly),
        T_TEST(records_of_later_versions_are_refused_not_misread),
        T_TEST(a_record_known_to_be_lost_is_an_error_until_written_anew),
    };
    return T_RUN_BOTH(tests);
}
