/* Shapes: which names make one, which texts fit, and that every field is what a parser would give. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/os.h"
#include "format/json.h"
#include "format/shape.h"
#include "support.h"

static ntee_error err;

/* Frames names, which end in a NULL, and makes their shape. */
static ntee_status make(const char *const *names, nt_shape **shape) {
    static uint8_t framed[8192];
    size_t len = 0;
    for (; *names; names++) {
        size_t name_len = strlen(*names);
        nt_store16(framed + len, (uint16_t)name_len);
        memcpy(framed + len + 2, *names, name_len);
        len += 2 + name_len;
    }
    return nt_shape_new(framed, len, shape, &err);
}

static nt_shape *shape_of(const char *const *names) {
    nt_shape *shape = NULL;
    assert_int_equal(make(names, &shape), NTEE_OK);
    return shape;
}

/* Matches a text that lies in exactly the memory it needs. */
static size_t match(const nt_shape *shape, const char *text, size_t len, void *fields) {
    uint8_t *exact = malloc(len ? len : 1);
    assert_non_null(exact);
    memcpy(exact, text, len);
    size_t got = nt_shape_match(shape, exact, len, 0, fields);
    free(exact);
    return got;
}

static uint64_t bits(double number) {
    uint64_t b;
    memcpy(&b, &number, 8);
    return b;
}

static uint64_t string_at(uint32_t at, uint32_t len) { return (uint64_t)(NT_FIELD_STRING | len) << 32 | at; }

static uint64_t integer(int32_t number) { return (uint64_t)NT_FIELD_INTEGER << 32 | (uint32_t)number; }

/* The field of a number's text. */
static uint64_t number_of(const char *text, char **behind) {
    double number = strtod(text, behind);
    int alone = strcspn(text, ".eE,}") == strcspn(text, ",}");
    if (alone && number >= -INT32_MAX && number <= INT32_MAX && bits(number) != bits(-0.0))
        return integer((int32_t)number);
    return bits(number);
}

static uint64_t constant(uint32_t code) { return (uint64_t)(NT_FIELD_CONSTANT | code) << 32; }

static nt_shape *one_name;

/* Whether {"a":<value>} fits; its field. */
static int fits(const char *value, uint64_t *field) {
    static char text[70000];
    size_t len = (size_t)snprintf(text, sizeof text, "{\"a\":%s}", value);
    size_t got = match(one_name, text, len, field);
    assert_true(got == 0 || got == len);
    return got != 0;
}

/* ---- Names ---------------------------------------------------------------------------------------- */

static void names_are_checked(void **state) {
    (void)state;
    nt_shape *shape = NULL;
    static const char *const bad[][3] = {{NULL},     {"a\"b"},       {"a\\b"}, {"\x1f"}, {"\xc3\xa4"}, {"\n"},
                                         {"a", "a"}, {"__proto__"}, {"a", "__proto__"}, {"", ""}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) assert_int_equal(make(bad[i], &shape), NTEE_INVALID);
    static const char *const good[][3] = {{"a"}, {""}, {"a", "b"}, {"ab", "a"}, {" ~\x7f"}, {"__proto_"}, {"proto"}};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) nt_free(shape_of(good[i]));
    static const uint8_t cut[] = {1, 0, 'a', 3, 0, 'b', 'c'};
    for (size_t len = 0; len <= sizeof cut; len++)
        if (len != 3) assert_int_equal(nt_shape_new(cut, len, &shape, &err), NTEE_INVALID);
}

static void the_limits_of_names_hold(void **state) {
    (void)state;
    static char texts[65][8];
    static uint8_t framed[4097];
    const char *names[66] = {NULL};
    nt_shape *shape = NULL;
    for (int i = 0; i < 65; i++) names[i] = (sprintf(texts[i], "name%d", i), texts[i]);
    assert_int_equal(make(names, &shape), NTEE_INVALID);
    names[64] = NULL;
    nt_shape *most = shape_of(names);
    assert_int_equal(nt_shape_count(most), 64);
    char text[1024] = "{";
    for (int i = 0; i < 64; i++) sprintf(text + strlen(text), "%s\"name%d\":%d", i ? "," : "", i, i);
    strcat(text, "}");
    uint64_t fields[64];
    assert_int_equal(match(most, text, strlen(text), fields), strlen(text));
    for (int i = 0; i < 64; i++) assert_true(fields[i] == integer(i));
    nt_free(most);
    memset(framed, 'n', sizeof framed);
    nt_store16(framed, 4094);
    assert_int_equal(nt_shape_new(framed, 4096, &shape, &err), NTEE_OK);
    nt_free(shape);
    nt_store16(framed, 4095);
    assert_int_equal(nt_shape_new(framed, 4097, &shape, &err), NTEE_TOO_LARGE);
}

static void equal_shapes_have_equal_names_in_equal_order(void **state) {
    (void)state;
    static const char *const lists[][4] = {{"a"}, {"b"}, {"a", "b"}, {"b", "a"}, {"ab"}, {"aaaaaaa", "b"},
                                           {"a", "aaaaab"}};
    nt_shape *shapes[7];
    for (int i = 0; i < 7; i++) shapes[i] = shape_of(lists[i]);
    for (int i = 0; i < 7; i++)
        for (int j = 0; j < 7; j++) assert_int_equal(nt_shape_equal(shapes[i], shapes[j]), i == j);
    nt_shape *again = shape_of(lists[2]);
    assert_true(nt_shape_equal(again, shapes[2]));
    nt_free(again);
    for (int i = 0; i < 7; i++) nt_free(shapes[i]);
}

/* ---- Scalars -------------------------------------------------------------------------------------- */

static void strings_lie_where_their_fields_say(void **state) {
    (void)state;
    static char value[66000];
    uint64_t field;
    for (size_t len = 0; len < 70; len++) {
        value[0] = '"';
        memset(value + 1, '~', len);
        strcpy(value + 1 + len, "\"");
        assert_true(fits(value, &field));
        assert_true(field == string_at(6, (uint32_t)len));
        for (size_t at = 1; at <= len; at++) { /* any byte that is not plain, anywhere */
            static const char wrong[] = "\"\\\x1f\x01\x80\xff\n";
            for (size_t i = 0; i < sizeof wrong - 1; i++) {
                value[at] = wrong[i];
                assert_false(fits(value, &field));
            }
            value[at] = at % 2 ? ' ' : 0x7f;
            assert_true(fits(value, &field));
        }
    }
    memset(value, 'x', sizeof value);
    value[0] = value[65536] = '"';
    value[65537] = 0;
    assert_true(fits(value, &field) && field == string_at(6, 65535));
    value[65536] = 'x';
    value[65537] = '"';
    value[65538] = 0;
    assert_false(fits(value, &field));
}

static void constants_have_their_codes(void **state) {
    (void)state;
    uint64_t field;
    assert_true(fits("null", &field) && field == constant(NT_FIELD_NULL));
    assert_true(fits("true", &field) && field == constant(NT_FIELD_TRUE));
    assert_true(fits("false", &field) && field == constant(NT_FIELD_FALSE));
    static const char *const wrong[] = {"nul", "nulL", "tru", "truee", "fals", "False", "undefined", "NaN", "", "{}",
                                        "[]",  "[1]",  "{\"b\":1}", "Infinity", "-Infinity", "\"", "'a'", " 1", "1 "};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) assert_false(fits(wrong[i], &field));
}

static void numbers_are_the_ones_of_the_grammar(void **state) {
    (void)state;
    uint64_t field;
    static const char *const right[] = {"0", "-0", "-0.0", "2147483647", "-2147483647",
        "2147483648", "-2147483648", "7", "-7", "10", "0.5", "-0.25", "1e3", "1E3",
        "1e+3", "1e-3", "1.5e10", "9007199254740992",
        "-9007199254740992", "1700000000123", "1e22", "1e-22", "0.1", "123.456", "0e0",
        "0.000001", "12e021", "450359962737049.5", "1e022", "900719925474099.2e1"};
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        assert_true(fits(right[i], &field));
        assert_true(field == number_of(right[i], NULL));
    }
    static const char *const wrong[] = {"01", "-01", "00", "-", "+1", "1.", ".5", "-.5", "1e", "1e+", "1e-", "1.e3",
        "1x", "0x1", "--1", "1e1.5", "1..2", "1e0000", "4503599627370496.5", "9007199254740993", "1e23",
        "1e-23", "12345678901234567890",
        "1.00000000000000000000", "18446744073709551617", "36893488147419103232", "1e999", "1e9999999999", "-"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) assert_false(fits(wrong[i], &field));
}

static void random_numbers_are_what_strtod_gives(void **state) {
    (void)state;
    nt_random r = nt_random_start("random numbers");
    long taken = 0, rounds = getenv("NT_LONG") ? 5000000 : 500000;
    for (long i = 0; i < rounds; i++) {
        char text[80];
        uint64_t number = nt_random_next(&r) >> nt_random_below(&r, 64), field;
        int cut = (int)nt_random_below(&r, 8);
        int len = sprintf(text, "%s%" PRIu64, nt_random_below(&r, 2) ? "-" : "", number);
        if (cut < 5) len += sprintf(text + len, ".%0*" PRIu64, cut + 1, nt_random_next(&r) >> (62 - 3 * cut));
        if (nt_random_below(&r, 3) == 0) sprintf(text + len, "e%d", (int)nt_random_below(&r, 60) - 30);
        if (!fits(text, &field)) continue;
        taken++;
        if (field != number_of(text, NULL)) fail_msg("%s", text);
    }
    assert_true(taken > rounds / 3);
    for (long i = 0; i < rounds; i++) { /* what programs write most: all of it fits */
        char text[40];
        uint64_t field;
        double number = ((double)nt_random_below(&r, 2000000) - 1e6) / (double)(1 + nt_random_below(&r, 1000));
        sprintf(text, "%.15g", number);
        if (strchr(text, 'e')) continue;
        if (!fits(text, &field) || field != number_of(text, NULL)) fail_msg("%s", text);
    }
}

/* ---- Texts ---------------------------------------------------------------------------------------- */

static const char *const six[] = {"endpoint", "b", "status", "a longer name of a member", "user", "at", NULL};
static const char text[] = "{\"endpoint\":\"/api/v1/resource/17\",\"b\":\"\",\"status\":-200.5,"
                           "\"a longer name of a member\":true,\"user\":null,\"at\":1700000000123}";

static void a_text_is_taken_apart(void **state) {
    (void)state;
    nt_shape *shape = shape_of(six);
    uint8_t fields[6 * 8 + 1];
    for (uint32_t base = 0; base < 40000; base += 13333) {
        uint64_t want[] = {string_at(base + 13, 19), string_at(base + 39, 0), bits(-200.5),
                           constant(NT_FIELD_TRUE),  constant(NT_FIELD_NULL), bits(1700000000123.0)};
        fields[48] = 0xEE;
        assert_int_equal(nt_shape_match(shape, (const uint8_t *)text, sizeof text - 1, base, fields), sizeof text - 1);
        assert_memory_equal(fields, want, 48);
        assert_int_equal(fields[48], 0xEE);
        /* What follows is nothing to it, and where the fields lie neither. */
        uint8_t odd[49];
        assert_int_equal(nt_shape_match(shape, (const uint8_t *)text, sizeof text, base, odd + 1), sizeof text - 1);
        assert_memory_equal(odd + 1, want, 48);
    }
    nt_free(shape);
}

static void cut_texts_do_not_fit(void **state) {
    (void)state;
    nt_shape *shape = shape_of(six);
    uint64_t fields[6];
    for (size_t len = 0; len < sizeof text - 1; len++) assert_int_equal(match(shape, text, len, fields), 0);
    nt_free(shape);
}

static void near_misses_do_not_fit(void **state) {
    (void)state;
    static const char *const two[] = {"a", "b", NULL};
    static const char *const wrong[] = {"{\"a\":1}", "{\"a\":1,\"b\":2,\"c\":3}", "{\"b\":1,\"a\":2}",
        "{\"a\":1,\"a\":2}",
        "{\"a\": 1,\"b\":2}", " {\"a\":1,\"b\":2}", "{ \"a\":1,\"b\":2}", "{\"a\":1,\"b\":2 }", "{\"a\":1 ,\"b\":2}",
        "{\"a\":1,\"B\":2}", "{\"a\":[],\"b\":2}", "{\"a\":{},\"b\":2}", "{\"\\u0061\":1,\"b\":2}", "[1,2]", "1", "{}",
        "{\"a\":1,\"b\":2,}", "{\"a\":1,,\"b\":2}", "{\"a\":1;\"b\":2}"};
    nt_shape *shape = shape_of(two);
    uint64_t fields[2];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(match(shape, wrong[i], strlen(wrong[i]), fields), 0);
    assert_int_equal(match(shape, "{\"a\":1,\"b\":2}", 13, fields), 13);
    nt_free(shape);
}

/* Whatever fits is JSON, every string is as long as its field says, and every number is strtod's. */
static void check_match(const char *mutant, size_t len, const uint64_t *fields) {
    size_t at = 0;
    assert_int_equal(nt_json_check((const uint8_t *)mutant, len), NT_JSON_OBJECT);
    for (int i = 0; six[i]; i++) {
        at += strlen(six[i]) + 4;
        uint32_t high = (uint32_t)(fields[i] >> 32);
        if (high >= NT_FIELD_CONSTANT && high != NT_FIELD_INTEGER) {
            static const char *const names[] = {"null", "true", "false"};
            const char *name = names[high & 3];
            assert_memory_equal(mutant + at, name, strlen(name));
            at += strlen(name);
        } else if (high >= NT_FIELD_STRING && high != NT_FIELD_INTEGER) {
            assert_int_equal((uint32_t)fields[i], at + 1);
            at += (high & 0xFFFF) + 2;
            assert_int_equal(mutant[at - 1], '"');
        } else {
            char *behind;
            assert_true(fields[i] == number_of(mutant + at, &behind));
            at = (size_t)(behind - mutant);
        }
    }
    assert_int_equal(at + 1, len);
}

static void mutants_fit_only_where_they_are_right(void **state) {
    (void)state;
    nt_random r = nt_random_start("mutants");
    nt_shape *shape = shape_of(six);
    static const char bytes[] = "\"\\{}[]:,0123456789-+.eEabtrufalsn \x1f\x80~";
    int fitting = 0;
    for (int i = 0; i < 300000; i++) {
        char mutant[sizeof text + 8];
        uint64_t fields[6];
        size_t len = sizeof text - 1;
        memcpy(mutant, text, sizeof text);
        for (uint64_t n = 1 + nt_random_below(&r, 3); n > 0; n--) {
            size_t at = nt_random_below(&r, len);
            char byte = bytes[nt_random_below(&r, sizeof bytes - 1)];
            uint64_t how = nt_random_below(&r, 4);
            if (how == 0) memmove(mutant + at, mutant + at + 1, len-- - at);
            if (how == 1) memmove(mutant + at + 1, mutant + at, ++len - at);
            if (how != 0) mutant[at] = byte;
        }
        mutant[len] = 0;
        size_t got = match(shape, mutant, len, fields);
        if (got == 0) continue;
        fitting++;
        if (got == len) check_match(mutant, len, fields);
    }
    assert_true(fitting > 10000);
    nt_free(shape);
}

static int make_one(void **state) {
    static const char *const a[] = {"a", NULL};
    (void)state;
    one_name = shape_of(a);
    return 0;
}

static int free_one(void **state) {
    (void)state;
    nt_free(one_name);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_checked),
        cmocka_unit_test(the_limits_of_names_hold),
        cmocka_unit_test(equal_shapes_have_equal_names_in_equal_order),
        cmocka_unit_test(strings_lie_where_their_fields_say),
        cmocka_unit_test(constants_have_their_codes),
        cmocka_unit_test(numbers_are_the_ones_of_the_grammar),
        cmocka_unit_test(random_numbers_are_what_strtod_gives),
        cmocka_unit_test(a_text_is_taken_apart),
        cmocka_unit_test(cut_texts_do_not_fit),
        cmocka_unit_test(near_misses_do_not_fit),
        cmocka_unit_test(mutants_fit_only_where_they_are_right),
    };
    return cmocka_run_group_tests(tests, make_one, free_one);
}
