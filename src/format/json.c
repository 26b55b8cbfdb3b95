#include "format/json.h"

#include "base/bytes.h"
#include "base/os.h"

enum { WORD_BITS = 64, INLINE_WORDS = 8 };

/*
 * The open arrays and objects around the place: one bit each, 1 for an object, from the outermost on. `bits`
 * is the inline array for the first 512 levels, then memory of our own.
 */
typedef struct nest {
    uint64_t *bits;
    size_t depth;
    size_t words;
    uint64_t inline_bits[INLINE_WORDS];
} nest;

static int nest_grow(nest *n) {
    int was_inline = n->bits == n->inline_bits;
    uint64_t *bits = nt_realloc(was_inline ? NULL : n->bits, n->words * 2 * sizeof *bits);
    if (bits == NULL) return 0;
    if (was_inline) memcpy(bits, n->inline_bits, sizeof n->inline_bits);
    n->bits = bits;
    n->words *= 2;
    return 1;
}

static inline int nest_push(nest *n, int is_object) {
    size_t word = n->depth / WORD_BITS;
    uint64_t bit = (uint64_t)1 << (n->depth % WORD_BITS);
    if (word == n->words && !nest_grow(n)) return 0;
    if (is_object) n->bits[word] |= bit;
    else n->bits[word] &= ~bit;
    n->depth++;
    return 1;
}

/* Whether the innermost one is an object. The depth is not 0. */
static inline int nest_in_object(const nest *n) {
    size_t at = n->depth - 1;
    return (int)(n->bits[at / WORD_BITS] >> (at % WORD_BITS) & 1);
}

/* ---- Tokens: each takes the place of its first byte and gives the place behind it, or NULL ------- */

static inline const uint8_t *skip_space(const uint8_t *at, const uint8_t *end) {
    while (at < end && *at <= ' ' && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t')) at++;
    return at;
}

static inline int is_digit(uint8_t c) { return (uint8_t)(c - '0') <= 9; }

static inline int is_hex(uint8_t c) { return is_digit(c) || (uint8_t)((c | 0x20) - 'a') <= 5; }

static inline int is_tail(uint8_t c) { return (c & 0xC0) == 0x80; }

/* The place behind one or more digits. */
static inline const uint8_t *skip_digits(const uint8_t *at, const uint8_t *end) {
    if (at == end || !is_digit(*at)) return NULL;
    do at++;
    while (at < end && is_digit(*at));
    return at;
}

static inline const uint8_t *skip_number(const uint8_t *at, const uint8_t *end) {
    if (*at == '-' && ++at == end) return NULL;
    at = *at == '0' ? at + 1 : skip_digits(at, end);
    if (at != NULL && at < end && *at == '.') at = skip_digits(at + 1, end);
    if (at != NULL && at < end && (*at | 0x20) == 'e') {
        at++;
        if (at < end && (*at == '+' || *at == '-')) at++;
        at = skip_digits(at, end);
    }
    return at;
}

static inline const uint8_t *skip_literal(const uint8_t *at, const uint8_t *end) {
    size_t left = (size_t)(end - at);
    if (left >= 4 && memcmp(at, "true", 4) == 0) return at + 4;
    if (left >= 4 && memcmp(at, "null", 4) == 0) return at + 4;
    if (left >= 5 && memcmp(at, "false", 5) == 0) return at + 5;
    return NULL;
}

/* A character of two to four bytes: no overlong form, no surrogate, at most U+10FFFF. */
static inline const uint8_t *skip_character(const uint8_t *at, const uint8_t *end) {
    size_t left = (size_t)(end - at);
    uint8_t lead = at[0];
    if (lead >= 0xC2 && lead <= 0xDF) return left >= 2 && is_tail(at[1]) ? at + 2 : NULL;
    if ((lead & 0xF0) == 0xE0) {
        if (left < 3 || !is_tail(at[1]) || !is_tail(at[2])) return NULL;
        if (lead == 0xE0 && at[1] < 0xA0) return NULL;
        if (lead == 0xED && at[1] > 0x9F) return NULL;
        return at + 3;
    }
    if (lead < 0xF0 || lead > 0xF4) return NULL;
    if (left < 4 || !is_tail(at[1]) || !is_tail(at[2]) || !is_tail(at[3])) return NULL;
    if (lead == 0xF0 && at[1] < 0x90) return NULL;
    if (lead == 0xF4 && at[1] > 0x8F) return NULL;
    return at + 4;
}

/* A run of them. */
static const uint8_t *skip_characters(const uint8_t *at, const uint8_t *end) {
    do at = skip_character(at, end);
    while (at != NULL && at < end && *at >= 0x80);
    return at;
}

static const uint8_t *skip_escape(const uint8_t *at, const uint8_t *end) {
    size_t left = (size_t)(end - at);
    if (left < 2) return NULL;
    switch (at[1]) {
    case '"': case '\\': case '/': case 'b': case 'f': case 'n': case 'r': case 't':
        return at + 2;
    case 'u':
        return left >= 6 && is_hex(at[2]) && is_hex(at[3]) && is_hex(at[4]) && is_hex(at[5]) ? at + 6 : NULL;
    default:
        return NULL;
    }
}

/* A byte that ends a run of plain string bytes: a control, a quote, a backslash, or not ASCII. */
static inline int is_special(uint8_t c) { return c < 0x20 || c == '"' || c == '\\' || c >= 0x80; }

/*
 * The high bits of the special bytes of a word: exact up to the lowest one, whose borrow may reach the bytes
 * above it, so only the lowest counts.
 */
static inline uint64_t specials_of(uint64_t word) {
    const uint64_t ones = 0x0101010101010101u;
    uint64_t quote = word ^ (ones * '"');
    uint64_t backslash = word ^ (ones * '\\');
    uint64_t found = (word - ones * 0x20) | (quote - ones) | (backslash - ones) | word;
    return found & (ones * 0x80);
}

/* The next special byte, or the end. */
static inline const uint8_t *skip_plain(const uint8_t *at, const uint8_t *end) {
    for (; end - at >= 8; at += 8) {
        uint64_t found = specials_of(nt_load64(at));
        if (found != 0) return at + __builtin_ctzll(found) / 8;
    }
    while (at < end && !is_special(*at)) at++;
    return at;
}

static inline const uint8_t *skip_string(const uint8_t *at, const uint8_t *end) {
    at = skip_plain(at + 1, end);
    while (at < end && *at != '"') {
        if (*at < 0x20) return NULL;
        at = *at == '\\' ? skip_escape(at, end) : skip_characters(at, end);
        if (at == NULL) return NULL;
        at = skip_plain(at, end);
    }
    return at < end ? at + 1 : NULL;
}

/* A member's name and the colon behind it. */
static inline const uint8_t *skip_name(const uint8_t *at, const uint8_t *end) {
    at = skip_space(at, end);
    if (at == end || *at != '"') return NULL;
    at = skip_string(at, end);
    if (at == NULL) return NULL;
    at = skip_space(at, end);
    return at < end && *at == ':' ? at + 1 : NULL;
}

/* ---- The text ------------------------------------------------------------------------------------ */

static inline const uint8_t *skip_scalar(const uint8_t *at, const uint8_t *end) {
    if (*at == '"') return skip_string(at, end);
    if (is_digit(*at) || *at == '-') return skip_number(at, end);
    return skip_literal(at, end);
}

/*
 * Behind a value: closes what ends here, and steps over the comma (and the next member's name) to where the
 * next value begins. At depth 0 no value follows: the place behind the outermost one. NULL where the text is
 * wrong.
 */
static inline const uint8_t *skip_to_value(const uint8_t *at, const uint8_t *end, nest *n) {
    while (n->depth > 0) {
        at = skip_space(at, end);
        if (at == end) return NULL;
        int in_object = nest_in_object(n);
        if (*at == ',') {
            return in_object ? skip_name(at + 1, end) : at + 1;
        }
        if (*at != (in_object ? '}' : ']')) return NULL;
        n->depth--;
        at++;
    }
    return at;
}

/*
 * The text at *place, which is then behind it. One round a value: either it is complete within the round, or
 * it opens an array or object that is not empty, and the next round takes its first value.
 */
static nt_json check(const uint8_t **place, const uint8_t *end, nest *n) {
    const uint8_t *at = *place;
    for (;;) {
        at = skip_space(at, end);
        if (at == end) return NT_JSON_NOT;
        if (*at == '{' || *at == '[') {
            int is_object = *at == '{';
            at = skip_space(at + 1, end);
            if (at == end) return NT_JSON_NOT;
            if (*at != (is_object ? '}' : ']')) {
                if (!nest_push(n, is_object)) return NT_JSON_NOMEM;
                if (is_object) at = skip_name(at, end);
                if (at == NULL) return NT_JSON_NOT;
                continue;
            }
            at++;
        } else {
            at = skip_scalar(at, end);
            if (at == NULL) return NT_JSON_NOT;
        }
        at = skip_to_value(at, end, n);
        if (at == NULL) return NT_JSON_NOT;
        if (n->depth == 0) break;
    }
    *place = skip_space(at, end);
    return NT_JSON_OTHER;
}

nt_json nt_json_first(const uint8_t *text, size_t len, size_t *text_len) {
    nest n;
    if (len == 0) return NT_JSON_NOT;
    n.bits = n.inline_bits;
    n.depth = 0;
    n.words = INLINE_WORDS;
    const uint8_t *end = text + len;
    const uint8_t *first = skip_space(text, end);
    const uint8_t *at = first;
    nt_json verdict = check(&at, end, &n);
    if (n.bits != n.inline_bits) nt_free(n.bits);
    if (verdict != NT_JSON_OTHER) return verdict;
    *text_len = (size_t)(at - text);
    return *first == '{' ? NT_JSON_OBJECT : NT_JSON_OTHER;
}

nt_json nt_json_check(const uint8_t *text, size_t len) {
    size_t text_len = 0;
    nt_json verdict = nt_json_first(text, len, &text_len);
    return verdict == NT_JSON_NOMEM || text_len == len ? verdict : NT_JSON_NOT;
}
