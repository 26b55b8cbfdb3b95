/* The shapes of a handle: numbers, many threads at once, texts taken in pieces, and the operations over them. */
#include "unit/store.h"

#include <pthread.h>

#include "api/shapes.h"
#include "format/json.h"
#include "unit/golden.h"

static nt_shapes shapes;
static ntee_error error;
static _Alignas(8) uint8_t out[1 << 17];

static size_t frame(uint8_t *at, const char *names) {
    size_t len = 0;
    for (const char *name = names, *end; *name; name = *end ? end + 1 : end) {
        end = strchr(name, ' ') ? strchr(name, ' ') : name + strlen(name);
        nt_store16(at + len, (uint16_t)(end - name));
        memcpy(at + len + 2, name, (size_t)(end - name));
        len += 2 + (size_t)(end - name);
    }
    return len;
}

/* Adds the shape with these names, with a space between any two. */
static uint32_t add(const char *names) {
    uint8_t framed[256];
    uint32_t number = 99;
    size_t len = frame(framed, names);
    assert_int_equal(nt_shapes_add(&shapes, framed, len, &number, &error), NTEE_OK);
    return number;
}

static void reset(void) {
    nt_shapes_free(&shapes);
    memset(&shapes, 0, sizeof shapes);
}

static void equal_shapes_have_one_number_and_the_list_ends(void **state) {
    (void)state;
    assert_int_equal(add("a"), 1);
    assert_int_equal(add("b a"), 2);
    assert_int_equal(add("a"), 1);
    assert_int_equal(add("a b"), 3);
    for (uint32_t i = 3; i < 20; i++) {
        char name[8];
        sprintf(name, "n%u", i);
        assert_int_equal(add(name), i < NT_SHAPES ? i + 1 : 0);
    }
    assert_int_equal(add("b a"), 2);
    uint32_t number;
    assert_int_equal(nt_shapes_add(&shapes, "", 0, &number, &error), NTEE_INVALID);
    reset();
}

static void the_one_that_fits_is_found_whichever_was_last(void **state) {
    (void)state;
    static const char *const texts[] = {"{\"a\":1}", "{\"a\":1,\"b\":2}", "{\"b\":1}", "{\"c\":1}"};
    uint64_t fields[NT_SHAPE_NAMES];
    size_t len;
    assert_int_equal(nt_shapes_match(&shapes, (const uint8_t *)texts[0], 7, 0, fields, &len), 0);
    add("a");
    add("a b");
    add("b");
    nt_random r = nt_random_start("which");
    for (int i = 0; i < 2000; i++) {
        uint32_t which = (uint32_t)nt_random_below(&r, 4);
        const uint8_t *text = (const uint8_t *)texts[which];
        uint32_t number = nt_shapes_match(&shapes, text, strlen(texts[which]), 0, fields, &len);
        assert_int_equal(number, which == 3 ? 0 : which + 1);
        if (number) assert_int_equal(len, strlen(texts[which]));
    }
    reset();
}

/* ---- Texts in pieces ------------------------------------------------------------------------------ */

/* Takes all texts, piece by piece, from memory of exactly their size, and checks each against `numbers`. */
static void take_all(const char *texts, size_t len, size_t cap, const uint32_t *numbers, const char *const *each) {
    uint8_t *exact = malloc(len ? len : 1), *place = malloc(cap);
    size_t at = 0, text = 0;
    memcpy(exact, texts, len);
    while (at < len) {
        nt_shapes_done done;
        assert_int_equal(nt_shapes_take(&shapes, exact + at, len - at, place, cap, &done, &error), NTEE_OK);
        assert_true(done.texts > 0 && done.written <= cap);
        size_t head = 0, from = at;
        for (uint64_t i = 0; i < done.texts; i++, text++) {
            uint32_t number = nt_load32(place + head), text_len = nt_load32(place + head + 4);
            assert_int_equal(number, numbers[text]);
            assert_int_equal(text_len, strlen(each[text]));
            assert_memory_equal(exact + from, each[text], text_len);
            uint64_t count = number ? nt_shape_count(shapes.list[number - 1]) : 0;
            for (uint64_t f = 0; f < count; f++) {
                uint64_t field = nt_load64(place + head + 8 + 8 * f);
                uint32_t high = (uint32_t)(field >> 32);
                if (high < NT_FIELD_STRING || high >= NT_FIELD_CONSTANT) continue;
                uint32_t first = (uint32_t)field; /* strings lie in this piece, between quotes */
                assert_true(at + first > from && first + (high & 0xFFFF) < from - at + text_len);
                assert_true(exact[at + first - 1] == '"' && exact[at + first + (high & 0xFFFF)] == '"');
            }
            head += 8 + 8 * count;
            from += text_len + 1;
        }
        assert_int_equal(head, done.written);
        assert_true(done.used <= NT_SHAPES_TEXT + 1 || done.texts == 1);
        at += done.used;
        assert_int_equal(from, at + (at == len && exact[len - 1] != ','));
    }
    free(exact);
    free(place);
}

static void texts_are_taken_piece_by_piece(void **state) {
    (void)state;
    enum { TEXTS = 3000 };
    static const char *const kinds[] = {"{\"a\":\"some text\",\"b\":12}", "{\"a\":{\"b\":[1,\"}\"]}}", " {\"b\":0} ",
                                        "{\"b\":\"\"}", "[1,[2,{}],\"x,y\"]", "null", "-12.5e3", "\"\\\"]\"", "{}",
                                        "{\"a\":\"\\n\",\"b\":1}"};
    static const uint32_t fitting[] = {1, 0, 0, 2, 0, 0, 0, 0, 0, 0};
    static const char *each[TEXTS];
    static uint32_t numbers[TEXTS];
    static char texts[TEXTS * 40];
    nt_random r = nt_random_start("pieces");
    add("a b");
    add("b");
    for (int round = 0; round < 30; round++) {
        size_t len = 0, count = 1 + nt_random_below(&r, TEXTS);
        for (size_t i = 0; i < count; i++) {
            size_t kind = nt_random_below(&r, 10);
            each[i] = kinds[kind];
            numbers[i] = fitting[kind];
            len += (size_t)sprintf(texts + len, "%s%s", i ? "," : "", each[i]);
        }
        take_all(texts, len, (8 + NT_SHAPES_ROOM + nt_random_below(&r, 70000)), numbers, each);
    }
    reset();
}

static void long_texts_stand_alone_and_do_not_fit(void **state) {
    (void)state;
    static char longer[NT_SHAPES_TEXT + 100], texts[3 * sizeof longer];
    add("a");
    for (size_t len = NT_SHAPES_TEXT - 20; len < NT_SHAPES_TEXT + 20; len++) {
        memset(longer, 'x', len);
        memcpy(longer, "{\"a\":\"", 6);
        strcpy(longer + len - 2, "\"}");
        const char *each[] = {longer, "{\"a\":1}", longer};
        uint32_t fit = len <= NT_SHAPES_TEXT, numbers[] = {fit, 1, fit};
        size_t all = (size_t)sprintf(texts, "%s,{\"a\":1},%s", longer, longer);
        take_all(texts, all, sizeof out, numbers, each);
    }
    reset();
}

static void what_is_not_a_list_of_texts_is_refused(void **state) {
    (void)state;
    static const char *const wrong[] = {",", "1,,2", "{\"a\":1}x", "{\"a\":1}{\"a\":1}", "1 2",
                                        "{\"a\":1", "1,tru", "[1}"};
    nt_shapes_done done;
    add("a");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const uint8_t *in = (const uint8_t *)wrong[i];
        assert_int_equal(nt_shapes_take(&shapes, in, strlen(wrong[i]), out, sizeof out, &done, &error), NTEE_INVALID);
        assert_int_equal(error.item, i == 1 || i == 6);
    }
    assert_int_equal(nt_shapes_take(&shapes, out, 0, NULL, 0, &done, &error), NTEE_OK);
    assert_int_equal(done.texts, 0);
    const uint8_t *in = (const uint8_t *)"1";
    assert_int_equal(nt_shapes_take(&shapes, in, 1, out, 7 + NT_SHAPES_ROOM, &done, &error), NTEE_SHORT_BUFFER);
    assert_int_equal(nt_shapes_take(&shapes, in, 1, out, 8 + NT_SHAPES_ROOM, &done, &error), NTEE_OK);
    reset();
}

/* ---- Threads -------------------------------------------------------------------------------------- */

static void *add_and_match(void *arg) {
    uint32_t seen[12] = {0};
    uint64_t fields[NT_SHAPE_NAMES];
    for (int i = 0; i < 20000; i++) {
        uint32_t which = (uint32_t)((size_t)arg * 7u + (uint32_t)i * 5u) % 12u;
        char name[8], text[32];
        uint8_t framed[16];
        size_t len;
        ntee_error err;
        sprintf(name, "n%u", which);
        sprintf(text, "{\"%s\":%u}", name, which);
        uint32_t number = nt_shapes_match(&shapes, (const uint8_t *)text, strlen(text), 0, fields, &len);
        if (number == 0) {
            assert_int_equal(seen[which], 0);
            assert_int_equal(nt_shapes_add(&shapes, framed, frame(framed, name), &number, &err), NTEE_OK);
        }
        assert_true(number > 0 && (seen[which] == 0 || seen[which] == number));
        seen[which] = number;
    }
    return NULL;
}

static void threads_add_and_match_at_once(void **state) {
    (void)state;
    pthread_t threads[3];
    for (size_t i = 0; i < 3; i++) pthread_create(&threads[i], NULL, add_and_match, (void *)i);
    for (size_t i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    assert_int_equal(add("n5") <= 12, 1);
    assert_int_equal(add("one more"), 13);
    reset();
}

/* ---- Operations of ntee_run ----------------------------------------------------------------------- */

static ntee_reply reply;

static ntee_status run(ntee *db, uint32_t op, uint32_t flags, const void *in, size_t len, size_t cap) {
    memset(&reply, 0xAB, sizeof reply);
    return ntee_run(db, op, flags, in, len, out, cap, &reply);
}

static void a_get_brings_the_fields_along(void **state) {
    (void)state;
    uint8_t names[16];
    ntee *db = t_open(t_at("s"), 0);
    assert_int_equal(t_put(db, "k", "{\"a\":\"xy\",\"b\":7}"), NTEE_OK);
    assert_int_equal(t_put(db, "w", "{\"a\":\"xy\",\"b\":7} "), NTEE_OK);
    assert_int_equal(t_put(db, "j", "[1]"), NTEE_OK);
    assert_int_equal(run(db, NTEE_OP_GET, NTEE_FIELDS, "k", 1, 1024), NTEE_OK);
    assert_int_equal(reply.count, 0);
    assert_int_equal(run(db, NTEE_OP_SHAPE, 0, names, frame(names, "a b"), 0), NTEE_OK);
    assert_int_equal(reply.count, 1);
    for (uint32_t flags = NTEE_FIELDS; flags <= (NTEE_FIELDS | NTEE_AT_HAND); flags++) {
        if (t_flags && (flags & NTEE_AT_HAND)) continue; /* nothing is at hand without mappings */
        assert_int_equal(run(db, NTEE_OP_GET, flags, "k", 1, 24 + NT_SHAPES_ROOM), NTEE_OK);
        assert_int_equal(reply.count, 1);
        assert_int_equal(reply.length, 16);
        assert_int_equal(reply.kind, NTEE_OBJECT);
        assert_memory_equal(out, "{\"a\":\"xy\",\"b\":7}", 17); /* with a zero */
        assert_true(nt_load64(out + 24) == ((uint64_t)(NT_FIELD_STRING | 2u) << 32 | 6u));
        assert_true(nt_load64(out + 32) == ((uint64_t)NT_FIELD_INTEGER << 32 | 7u));
    }
    assert_int_equal(run(db, NTEE_OP_GET, NTEE_FIELDS, "k", 1, 23 + NT_SHAPES_ROOM), NTEE_OK); /* no room */
    assert_int_equal(reply.count, 0);
    assert_int_equal(run(db, NTEE_OP_GET, NTEE_FIELDS, "k", 1, 15), NTEE_SHORT_BUFFER);
    assert_int_equal(reply.needed, 16);
    assert_int_equal(run(db, NTEE_OP_GET, 0, "k", 1, 1024), NTEE_OK); /* not asked for */
    assert_int_equal(reply.count, 0);
    static const char *const others[] = {"w", "j"};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(run(db, NTEE_OP_GET, NTEE_FIELDS, others[i], 1, 1024), NTEE_OK);
        assert_int_equal(reply.count, 0);
    }
    assert_int_equal(run(db, NTEE_OP_GET, NTEE_FIELDS, "x", 1, 1024), NTEE_NOT_FOUND);
    assert_int_equal(run(db, NTEE_OP_SHAPE, 0, names, 4, 0), NTEE_INVALID);
    t_close(db);
}

static void the_operations_answer_as_the_wire_says(void **state) {
    (void)state;
    golden *vectors = golden_open(__FILE__, "tests/golden/wire.json");
    ntee *db = t_open(t_at("s"), 0);
    assert_non_null(vectors);
    size_t len;
    for (golden *v = golden_get(vectors, "shapes")->first; v; v = v->next) {
        uint8_t *names = golden_bytes(golden_text(v, "hex"), &len);
        assert_int_equal(run(db, NTEE_OP_SHAPE, 0, names, len, 0), NTEE_OK);
        assert_int_equal(reply.count, golden_number(v, "number"));
        free(names);
    }
    for (golden *v = golden_get(vectors, "fields")->first; v; v = v->next) {
        uint8_t *texts = golden_bytes(golden_text(v, "texts"), &len);
        memset(out, 0, 4096);
        assert_int_equal(run(db, NTEE_OP_FIELDS, 0, texts, len, 4096), NTEE_OK);
        assert_int_equal(reply.count, golden_number(v, "count"));
        assert_int_equal(reply.length, len);
        assert_true(golden_same(golden_text(v, "hex"), out, strlen(golden_text(v, "hex")) / 2));
        free(texts);
    }
    assert_int_equal(run(db, NTEE_OP_FIELDS, NTEE_AT_HAND, "1,", 2, 512), NTEE_SHORT_BUFFER);
    assert_int_equal(reply.needed, 520);
    assert_int_equal(run(db, NTEE_OP_FIELDS, NTEE_AT_HAND, "1,", 2, 520), NTEE_OK);
    assert_int_equal(reply.length, 2);
    assert_int_equal(run(db, NTEE_OP_FIELDS, 0, "1,?", 3, 4096), NTEE_INVALID);
    assert_int_equal(reply.error.item, 1);
    golden_close(vectors);
    t_close(db);
}

static void random_bytes_are_never_more_than_refused(void **state) {
    (void)state;
    static const char *const pieces[] = {"{\"a\":1}", "{\"a\":\"x\"}", "[]", "-0.5", " ", "\"", "{", "tru"};
    nt_random r = nt_random_start("random bytes");
    ntee *db = t_open(t_at("s"), 0);
    assert_int_equal(run(db, NTEE_OP_SHAPE, 0, "\1\0a", 3, 0), NTEE_OK);
    long taken = 0;
    for (int i = 0; i < 100000; i++) {
        char text[80] = "";
        for (uint64_t n = 1 + nt_random_below(&r, 6); n > 0; n--) {
            strcat(text, pieces[nt_random_below(&r, nt_random_below(&r, 5) ? 4 : 8)]);
            if (n > 1 || nt_random_below(&r, 4) == 0) strcat(text, ",");
        }
        size_t len = strlen(text);
        uint8_t *exact = malloc(len);
        memcpy(exact, text, len);
        ntee_status status = run(db, NTEE_OP_FIELDS, 0, exact, len, 8192);
        assert_true(status == NTEE_OK || status == NTEE_INVALID);
        if (status == NTEE_OK) {
            taken++;
            uint8_t list[90] = "[";
            memcpy(list + 1, exact, len);
            size_t end = len + 1 - (exact[len - 1] == ','); /* a comma may end the list */
            list[end] = ']';
            assert_int_equal(nt_json_check(list, end + 1), NT_JSON_OTHER);
        }
        uint32_t op = nt_random_below(&r, 2) ? NTEE_OP_SHAPE : NTEE_OP_FIELDS;
        nt_random_fill(&r, exact, len);
        if (len > 1) exact[1] = 0;
        status = run(db, op, 0, exact, len, nt_random_below(&r, 1000));
        assert_true(status == NTEE_OK || status == NTEE_INVALID || status == NTEE_SHORT_BUFFER);
        free(exact);
    }
    assert_true(taken > 1000);
    t_close(db);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T_TEST(equal_shapes_have_one_number_and_the_list_ends),
        T_TEST(the_one_that_fits_is_found_whichever_was_last),
        T_TEST(texts_are_taken_piece_by_piece),
        T_TEST(long_texts_stand_alone_and_do_not_fit),
        T_TEST(what_is_not_a_list_of_texts_is_refused),
        T_TEST(threads_add_and_match_at_once),
        T_TEST(a_get_brings_the_fields_along),
        T_TEST(the_operations_answer_as_the_wire_says),
        T_TEST(random_bytes_are_never_more_than_refused),
    };
    return T_RUN_BOTH(tests);
}
