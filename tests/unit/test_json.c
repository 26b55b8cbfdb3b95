/* The JSON check: against tables, and against a slow reader that follows the grammar rule by rule. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/os.h"
#include "format/json.h"
#include "support.h"

/* ---- The reference: RFC 8259's grammar, one function a rule, recursive --------------------------- */

typedef struct slow {
    const uint8_t *at;
    const uint8_t *end;
} slow;

static int value(slow *s);

static int peek(const slow *s) { return s->at < s->end ? *s->at : -1; }

static int eat(slow *s, int c) {
    if (peek(s) != c) return 0;
    s->at++;
    return 1;
}

static int eat_range(slow *s, int low, int high) {
    if (peek(s) < low || peek(s) > high) return 0;
    s->at++;
    return 1;
}

static void ws(slow *s) {
    while (eat(s, 0x20) || eat(s, 0x09) || eat(s, 0x0A) || eat(s, 0x0D)) continue;
}

static int literal(slow *s, const char *text) {
    for (; *text; text++) {
        if (!eat(s, (uint8_t)*text)) return 0;
    }
    return 1;
}

static int digits(slow *s) {
    if (!eat_range(s, '0', '9')) return 0;
    while (eat_range(s, '0', '9')) continue;
    return 1;
}

/* number = [ minus ] int [ frac ] [ exp ] */
static int number(slow *s) {
    eat(s, '-');
    if (!eat(s, '0')) {
        if (!eat_range(s, '1', '9')) return 0;
        while (eat_range(s, '0', '9')) continue;
    }
    if (eat(s, '.') && !digits(s)) return 0;
    if (eat(s, 'e') || eat(s, 'E')) {
        if (!eat(s, '+')) eat(s, '-');
        if (!digits(s)) return 0;
    }
    return 1;
}

static int hex(slow *s) { return eat_range(s, '0', '9') || eat_range(s, 'a', 'f') || eat_range(s, 'A', 'F'); }

/* The table of well-formed byte sequences of the Unicode standard. */
static int utf8(slow *s) {
    static const uint8_t rows[][5] = { /* lead from, to; second from, to; tails behind it */
        {0xC2, 0xDF, 0x80, 0xBF, 0}, {0xE0, 0xE0, 0xA0, 0xBF, 1}, {0xE1, 0xEC, 0x80, 0xBF, 1},
        {0xED, 0xED, 0x80, 0x9F, 1}, {0xEE, 0xEF, 0x80, 0xBF, 1}, {0xF0, 0xF0, 0x90, 0xBF, 2},
        {0xF1, 0xF3, 0x80, 0xBF, 2}, {0xF4, 0xF4, 0x80, 0x8F, 2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!eat_range(s, rows[i][0], rows[i][1])) continue;
        if (!eat_range(s, rows[i][2], rows[i][3])) return 0;
        for (int tail = 0; tail < rows[i][4]; tail++) {
            if (!eat_range(s, 0x80, 0xBF)) return 0;
        }
        return 1;
    }
    return 0;
}

static int character(slow *s) {
    if (eat(s, '\\')) {
        if (eat(s, 'u')) return hex(s) && hex(s) && hex(s) && hex(s);
        for (const char *c = "\"\\/bfnrt"; *c; c++) {
            if (eat(s, *c)) return 1;
        }
        return 0;
    }
    return eat_range(s, 0x20, 0x21) || eat_range(s, 0x23, 0x5B) || eat_range(s, 0x5D, 0x7F) || utf8(s);
}

static int string(slow *s) {
    if (!eat(s, '"')) return 0;
    while (!eat(s, '"')) {
        if (!character(s)) return 0;
    }
    return 1;
}

static int member(slow *s) {
    ws(s);
    if (!string(s)) return 0;
    ws(s);
    return eat(s, ':') && value(s);
}

static int object(slow *s) {
    ws(s);
    if (eat(s, '}')) return 1;
    do {
        if (!member(s)) return 0;
    } while (eat(s, ','));
    return eat(s, '}');
}

static int array(slow *s) {
    ws(s);
    if (eat(s, ']')) return 1;
    do {
        if (!value(s)) return 0;
    } while (eat(s, ','));
    return eat(s, ']');
}

/* A value with the white space around it. */
static int value(slow *s) {
    int ok;
    ws(s);
    if (eat(s, '{')) ok = object(s);
    else if (eat(s, '[')) ok = array(s);
    else if (peek(s) == '"') ok = string(s);
    else if (peek(s) == 't') ok = literal(s, "true");
    else if (peek(s) == 'f') ok = literal(s, "false");
    else if (peek(s) == 'n') ok = literal(s, "null");
    else ok = number(s);
    ws(s);
    return ok;
}

static nt_json reference(const uint8_t *text, size_t len) {
    slow s = {text, text + len};
    slow first = s;
    if (!value(&s) || s.at != s.end) return NT_JSON_NOT;
    ws(&first);
    return peek(&first) == '{' ? NT_JSON_OBJECT : NT_JSON_OTHER;
}

/* ---- Comparing ----------------------------------------------------------------------------------- */

/* The verdict on text at the end of its own memory, so that reading beyond it is seen. */
static nt_json check(const void *text, size_t len) {
    uint8_t *exact = malloc(len ? len : 1);
    assert_non_null(exact);
    if (len > 0) memcpy(exact, text, len);
    nt_json got = nt_json_check(exact, len);
    size_t first_len = 0;
    nt_json first = nt_json_first(exact, len, &first_len);
    assert_true(first_len <= len && (got == NT_JSON_NOT ? first_len < len || len == 0 : first == got));
    if (first != NT_JSON_NOT) assert_int_equal(nt_json_check(exact, first_len), first);
    free(exact);
    return got;
}

static void agree(const uint8_t *text, size_t len) {
    nt_json got = check(text, len), want = reference(text, len);
    if (got == want) return;
    print_error("%d instead of %d: ", (int)got, (int)want);
    for (size_t i = 0; i < len; i++) print_error("%02x", text[i]);
    fail();
}

/* ---- Tables -------------------------------------------------------------------------------------- */

/* A text, perhaps with NUL bytes in it. */
typedef struct sample {
    const char *text;
    size_t len;
} sample;
#define T(text) {text, sizeof text - 1}

static void objects_are_told_from_other_texts(void **state) {
    (void)state;
    static const sample objects[] = {
        T("{}"), T(" \n\t\r{ } \r\n"), T("{\"a\":1}"), T("{\"\":{}}"),
        T("{\"a\":[1,{\"b\":null}],\"a\":2}"), T("{\"__proto__\":{\"x\":1}}"),
        T("{\"\\u006bind\":\"\\u0061\\u0000b\"}"), T("{ \"a\" : 1 , \"b\" : [ ] }"),
        T("{\"kind\":\"\\ud800\",\"e\":\"\\ud83d\\ude00\"}"),
    };
    static const sample others[] = {
        T("0"), T("-0"), T("false"), T("true"), T("null"), T("\"\""), T("[]"), T("[{}]"), T(" \n123\t"),
        T("1e400"), T("12345678901234567890"), T("\"\xE2\x80\xA8\""), T("-1.5e-07"), T("1E+2"), T("0.0"),
        T("0e0"), T("[1, 2 ,3]"), T("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\uABCD\\uabcd\""), T("\"\x7F\""),
        T("[[[[]]],[]]"), T("\"0123456789abcdef0123456789abcdef\""), T("\"\xF4\x8F\xBF\xBF\""),
        T("\"\xED\x9F\xBF\xEE\x80\x80\""), T("\"\\udc00\\ud800\""),
        T("\"\xF0\x90\x80\x80\xC2\x80\xE0\xA0\x80\""),
    };
    for (size_t i = 0; i < sizeof objects / sizeof *objects; i++) {
        assert_int_equal(check(objects[i].text, objects[i].len), NT_JSON_OBJECT);
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_int_equal(check(others[i].text, others[i].len), NT_JSON_OTHER);
    }
}

static void what_is_not_one_text_is_refused(void **state) {
    (void)state;
    static const sample bad[] = {
        T(""), T(" "), T("\xEF\xBB\xBF{}"), T("\"\xFF\""), T("\"\xED\xA0\x80\""), T("\"\xC0\x80\""),
        T("\"\x01\""), T("1\0"), T("\0"), T("01"), T("+1"), T("1."), T(".5"), T("NaN"), T("'a'"),
        T("\xC2\xA0" "1"), T("1 2"), T("-"), T("-a"), T("-01"), T("00"), T("1e"), T("1e+"), T("1E-"),
        T("1.e1"), T("1.5."), T("1e1.5"), T("0x10"), T("--1"), T("Infinity"), T("-Infinity"),
        T("undefined"), T("tru"), T("truE"), T("True"), T("nul"), T("nulll"), T("fals"), T("falsey"),
        T("{"), T("}"), T("["), T("]"), T("[}"), T("{]"), T("[1,]"), T("[,1]"), T("[1 2]"), T("[,]"),
        T("[1]]"), T("{\"a\"}"), T("{\"a\":}"), T("{\"a\":1,}"), T("{,\"a\":1}"), T("{a:1}"), T("{1:1}"),
        T("{\"a\" 1}"), T("{\"a\":1 \"b\":2}"), T("{\"a\":1,,\"b\":2}"), T("{\"a\":1}{}"),
        T("[{\"a\":1]}"), T("\""), T("\"\\\""), T("\"\\"), T("\"\\x41\""), T("\"\\u12\""),
        T("\"\\u12G4\""), T("\"\\u123"), T("\"\\U1234\""), T("\"\\'\""), T("\"\n\""), T("\"\t\""),
        T("\"\x1F\""), T("\"a\0\""), T("\"\x80\""), T("\"\xBF\""), T("\"\xC1\xBF\""), T("\"\xC2\""),
        T("\"\xC2"), T("\"\xE0\x9F\xBF\""), T("\"\xE2\x82\""), T("\"\xE2\x82"), T("\"\xE2"),
        T("\"\xED\xBF\xBF\""), T("\"\xF0\x8F\xBF\xBF\""), T("\"\xF4\x90\x80\x80\""),
        T("\"\xF5\x80\x80\x80\""), T("\"\xF0\x9F\x98\""), T("\"\xF0\x9F\x98"),
        T("\"\xF8\x88\x80\x80\x80\""), T("\"\xFE\xFF\""), T("\xC3\xA9"), T("/**/1"), T("1//"), T("\v1"),
        T("\f1"), T("\xE2\x80\x83" "1"), T("\xEF\xBB\xBF" "1"), T("1\xEF\xBB\xBF"), T("{} {}"),
        T("[] x"), T("null,"), T(",null"), T("\"a\"\"b\""), T("{\"a\":1:2}"), T("[1:2]"), T("[\"a\":1]"),
        T("{\"a\",\"b\"}"),
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (check(bad[i].text, bad[i].len) != NT_JSON_NOT) fail_msg("accepted: %s", bad[i].text);
        agree((const uint8_t *)bad[i].text, bad[i].len);
    }
}

/* Every byte, and every two of them, as a text and within a string. */
static void all_short_texts_agree(void **state) {
    (void)state;
    for (unsigned a = 0; a < 256; a++) {
        for (unsigned b = 0; b < 256; b++) {
            const uint8_t bytes[4] = {'"', (uint8_t)a, (uint8_t)b, '"'};
            agree(bytes + 1, 1);
            agree(bytes + 1, 2);
            agree(bytes, 4);
        }
    }
}

/* All heads of UTF-8 sequences: each lead with each second byte and tails at the edges. */
static void all_utf8_sequences_agree(void **state) {
    (void)state;
    static const uint8_t tails[] = {0x7F, 0x80, 0x9F, 0xA0, 0xBF, 0xC0, '"'};
    for (unsigned lead = 0x80; lead < 256; lead++) {
        for (unsigned second = 0; second < 256; second++) {
            for (size_t t = 0; t < sizeof tails * sizeof tails; t++) {
                const uint8_t bytes[6] = {'"', (uint8_t)lead, (uint8_t)second, tails[t / sizeof tails],
                                          tails[t % sizeof tails], '"'};
                agree(bytes, 6);
            }
        }
    }
}

/* A special byte at every place of strings of every length around the word size. */
static void special_bytes_are_seen_at_every_place(void **state) {
    (void)state;
    for (size_t len = 1; len < 40; len++) {
        for (size_t at = 0; at < len; at++) {
            for (unsigned c = 0; c < 256; c++) {
                uint8_t text[44];
                memset(text, 'a' + (int)(len % 26), sizeof text);
                text[0] = '"';
                text[1 + at] = (uint8_t)c;
                text[1 + len] = '"';
                agree(text, len + 2);
            }
        }
    }
}

/* ---- Mutations and random documents -------------------------------------------------------------- */

static const char *const DOCUMENTS[] = {
    "{\"id\":12345,\"name\":\"Anna\",\"tags\":[\"a\",\"b\",{}],"
    "\"ok\":true,\"no\":null,\"f\":false,\"score\":-3.75e+10}",
    " [ 0 , -0.5 , 1E9 , \"\\u00e9\\n\" , [ ] , { \"k\" : [ [ 1 ] ] } ] ",
    "{\"text\":\"gr\xC3\xB6\xC3\x9F" "er \xE6\x9D\xB1\xE4\xBA\xAC"
    " \xF0\x9F\x98\x80 \xED\x9F\xBF\",\"\":\"\\ud83d\\\"\\\\\"}",
    "{\"a\":{\"b\":{\"c\":[{\"d\":[[[{\"e\":\"a long plain string of more than sixteen bytes\"}]]]}]}}}",
    "\"0123456789abcdef\"",
    "-123.456e-78",
};

static void every_mutation_and_truncation_agrees(void **state) {
    (void)state;
    for (size_t d = 0; d < sizeof DOCUMENTS / sizeof *DOCUMENTS; d++) {
        uint8_t text[256];
        size_t len = strlen(DOCUMENTS[d]);
        memcpy(text, DOCUMENTS[d], len);
        assert_int_not_equal(check(text, len), NT_JSON_NOT);
        for (size_t at = 0; at < len; at++) {
            for (unsigned c = 0; c < 256; c++) {
                text[at] = (uint8_t)c;
                agree(text, len);
            }
            text[at] = (uint8_t)DOCUMENTS[d][at];
            agree(text, at);
            agree(text + at, len - at);
        }
    }
}

/* A generator of documents, iterative: tokens that mostly go together. */
typedef struct generator {
    nt_random *r;
    uint8_t *out;
    size_t len;
} generator;

static void put(generator *g, const char *text) {
    size_t n = strlen(text);
    memcpy(g->out + g->len, text, n);
    g->len += n;
}

static void put_one(generator *g, const char *const *choices, size_t count) {
    put(g, choices[nt_random_below(g->r, count)]);
}

static void put_space(generator *g) {
    static const char *const spaces[] = {"", "", "", "", "", " ", "\n", "\t ", "\r\n", "    "};
    put_one(g, spaces, 10);
}

static void put_string(generator *g) {
    static const char *const parts[] = {"a", "bc", "hello world, this is plain", "\\n", "\\u0041",
                                        "\\ud800", "\\\"", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80",
                                        "12345678", "/", "\x7F"};
    put(g, "\"");
    for (uint64_t n = nt_random_below(g->r, 5); n > 0; n--) put_one(g, parts, 13);
    put(g, "\"");
}

static void put_number(generator *g) {
    static const char *const signs[] = {"", "-"};
    static const char *const wholes[] = {"0", "1", "42", "1234567890123"};
    static const char *const fracs[] = {"", "", ".0", ".25"};
    static const char *const exps[] = {"", "", "e1", "E-20", "e+400"};
    put_one(g, signs, 2);
    put_one(g, wholes, 4);
    put_one(g, fracs, 4);
    put_one(g, exps, 5);
}

/* One document of at most about 4 KiB into `out`; returns its length. */
static size_t generate(nt_random *r, uint8_t *out) {
    static const char *const words[] = {"true", "false", "null", "[]", "{}", "[ ]", "{\n}"};
    generator g = {r, out, 0};
    uint8_t stack[40];
    size_t depth = 0;
    for (;;) {
        put_space(&g);
        uint64_t pick = nt_random_below(r, 10);
        if (pick < 4 && depth < sizeof stack && g.len < 2000) {
            stack[depth] = pick < 2;
            put(&g, stack[depth] ? "{" : "[");
            if (stack[depth++]) {
                put_space(&g);
                put_string(&g);
                put_space(&g);
                put(&g, ":");
            }
            continue;
        }
        if (pick < 6) put_string(&g);
        else if (pick < 8) put_number(&g);
        else put_one(&g, words, 7);
        for (;;) {
            put_space(&g);
            if (depth == 0) return g.len;
            if (g.len < 1500 && nt_random_below(r, 2)) break;
            put(&g, stack[--depth] ? "}" : "]");
        }
        put(&g, ",");
        if (stack[depth - 1]) {
            put_space(&g);
            put_string(&g);
            put(&g, ":");
        }
    }
}

static void mutate(nt_random *r, uint8_t *text, size_t *len) {
    static const uint8_t likely[] = "\"\\{}[],:0123456789-+.eEtfn \n\x00\x1F\x80\xC3\xE2\xED\xF0\xFF";
    size_t at = (size_t)nt_random_below(r, *len);
    uint8_t c = likely[nt_random_below(r, sizeof likely)];
    switch (nt_random_below(r, 4)) {
    case 0: text[at] = c; break;
    case 1: text[at] ^= (uint8_t)(1u << nt_random_below(r, 8)); break;
    case 2:
        memmove(text + at, text + at + 1, *len - at - 1);
        --*len;
        break;
    default:
        memmove(text + at + 1, text + at, *len - at);
        text[at] = c;
        ++*len;
    }
}

static void random_documents_agree(void **state) {
    (void)state;
    static uint8_t text[16384];
    nt_random r = nt_random_start("random documents");
    for (int i = 0; i < 100000; i++) {
        size_t len = generate(&r, text);
        nt_json got = check(text, len);
        if (got == NT_JSON_NOT) fail_msg("refused: %.*s", (int)len, (const char *)text);
        agree(text, len);
        for (uint64_t n = 1 + nt_random_below(&r, 2); n > 0 && len > 0; n--) mutate(&r, text, &len);
        agree(text, len);
    }
}

/* ---- Nesting ------------------------------------------------------------------------------------- */

/* `depth` times `open`, then `inner`, then `depth` times `close`. */
static nt_json nested(size_t depth, const char *open, const char *inner, const char *close, size_t cut) {
    size_t n = strlen(open), len = depth * (n + 1) + strlen(inner);
    uint8_t *text = malloc(len + 1);
    assert_non_null(text);
    for (size_t i = 0; i < depth; i++) memcpy(text + i * n, open, n);
    memcpy(text + depth * n, inner, strlen(inner));
    memset(text + depth * n + strlen(inner), close[0], depth);
    nt_json got = nt_json_check(text, len - cut);
    free(text);
    return got;
}

static void nesting_has_no_limit(void **state) {
    (void)state;
    static const size_t depths[] = {1, 63, 64, 65, 511, 512, 513, 1024, 1025, 100000, 1000000};
    for (size_t i = 0; i < sizeof depths / sizeof *depths; i++) {
        size_t depth = depths[i];
        assert_int_equal(nested(depth, "[", "", "]", 0), NT_JSON_OTHER);
        assert_int_equal(nested(depth, "{\"a\":", "1", "}", 0), NT_JSON_OBJECT);
        assert_int_equal(nested(depth, "[", "", "]", 1), NT_JSON_NOT);
        assert_int_equal(nested(depth, "[", "", "}", 0), NT_JSON_NOT);
        assert_int_equal(nested(depth, "{\"a\":", "1", "]", 0), NT_JSON_NOT);
        assert_int_equal(nested(depth, "[{\"a\":", "1", "]", 0), NT_JSON_NOT);
        assert_int_equal(nested(depth, "[", "]", "]", 0), NT_JSON_NOT);
    }
}

/* The kind of every level is kept: they close in the right order only, across the move to the heap. */
static void every_level_keeps_its_kind(void **state) {
    (void)state;
    enum { DEPTH = 1400 };
    static uint8_t text[DEPTH * 8];
    nt_random r = nt_random_start("levels");
    for (int round = 0; round < 20; round++) {
        uint8_t kinds[DEPTH];
        size_t len = 0, closing;
        for (size_t i = 0; i < DEPTH; i++) {
            kinds[i] = (uint8_t)nt_random_below(&r, 2);
            memcpy(text + len, kinds[i] ? "{\"\":" : "[", kinds[i] ? 4 : 1);
            len += kinds[i] ? 4 : 1;
        }
        text[len++] = '0';
        closing = len;
        for (size_t i = DEPTH; i-- > 0;) text[len++] = kinds[i] ? '}' : ']';
        assert_int_equal(nt_json_check(text, len), kinds[0] ? NT_JSON_OBJECT : NT_JSON_OTHER);
        for (size_t at = closing; at < len; at++) {
            text[at] ^= '}' ^ ']';
            assert_int_equal(nt_json_check(text, len), NT_JSON_NOT);
            text[at] ^= '}' ^ ']';
        }
    }
}

static int allocations_left;

static void *short_realloc(void *old, size_t len) {
    return allocations_left-- > 0 ? nt_os_posix.realloc(old, len) : NULL;
}

static void no_memory_for_the_nesting_says_so(void **state) {
    (void)state;
    nt_os os = nt_os_posix;
    os.realloc = short_realloc;
    nt_os_now = &os;
    for (int n = 0; n < 5; n++) {
        allocations_left = n;
        assert_int_equal(nested(100000, "[", "", "]", 0), NT_JSON_NOMEM);
        allocations_left = n;
        assert_int_equal(nested(512, "[", "", "]", 0), NT_JSON_OTHER);
    }
    nt_os_now = &nt_os_posix;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_are_told_from_other_texts),
        cmocka_unit_test(what_is_not_one_text_is_refused),
        cmocka_unit_test(all_short_texts_agree),
        cmocka_unit_test(all_utf8_sequences_agree),
        cmocka_unit_test(special_bytes_are_seen_at_every_place),
        cmocka_unit_test(every_mutation_and_truncation_agrees),
        cmocka_unit_test(random_documents_agree),
        cmocka_unit_test(nesting_has_no_limit),
        cmocka_unit_test(every_level_keeps_its_kind),
        cmocka_unit_test(no_memory_for_the_nesting_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
