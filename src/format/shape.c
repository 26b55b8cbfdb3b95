#include "format/shape.h"

#include <float.h>
#include <string.h>

#include "base/bytes.h"
#include "base/os.h"
#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* A multiplication rounds once only where doubles are computed as doubles. */
_Static_assert(FLT_EVAL_METHOD == 0, "numbers would not convert exactly");

/* A literal text of the shape, at a place in `texts`, with zeros up to a multiple of 8. */
typedef struct literal {
    uint32_t at;
    uint32_t len;
} literal;

struct nt_shape {
    uint32_t count;
    uint32_t texts_len;
    literal literals[NT_SHAPE_NAMES];
    uint8_t texts[]; /* of all literals, one behind the other: equal shapes have equal texts */
};

/* ---- Making one ---------------------------------------------------------------------------------- */

enum { NAME_HEAD = 2, QUOTES = 4 }; /* {"name": has four bytes that are not its name's */

static int is_plain(uint8_t c) { return c >= 0x20 && c < 0x80 && c != '"' && c != '\\'; }

/* What is wrong with a name, or NULL. */
static const char *name_fault(const uint8_t *name, size_t len) {
    static const char setter[] = "__proto__";
    for (size_t i = 0; i < len; i++)
        if (!is_plain(name[i])) return "shape: a name that is not plain ASCII";
    if (len == sizeof setter - 1 && memcmp(name, setter, len) == 0) return "shape: the name __proto__";
    return NULL;
}

/* Adds the literal before the next value. */
static void add_literal(nt_shape *shape, const uint8_t *name, size_t len) {
    literal *l = &shape->literals[shape->count];
    uint8_t *text = shape->texts + shape->texts_len;
    *l = (literal){.at = shape->texts_len, .len = (uint32_t)len + QUOTES};
    text[0] = shape->count == 0 ? '{' : ',';
    text[1] = '"';
    memcpy(text + 2, name, len);
    text[len + 2] = '"';
    text[len + 3] = ':';
    shape->texts_len += (uint32_t)nt_align8(l->len);
    shape->count++;
}

static int has_name(const nt_shape *shape, const uint8_t *name, size_t len) {
    for (uint32_t i = 0; i < shape->count; i++) {
        const literal *l = &shape->literals[i];
        if (l->len == len + QUOTES && memcmp(shape->texts + l->at + 2, name, len) == 0) return 1;
    }
    return 0;
}

static const char *add_names(nt_shape *shape, const uint8_t *at, size_t left) {
    while (left > 0) {
        if (left < NAME_HEAD) return "shape: cut off";
        size_t len = nt_load16(at);
        at += NAME_HEAD;
        left -= NAME_HEAD;
        if (len > left) return "shape: cut off";
        const char *fault = name_fault(at, len);
        if (fault) return fault;
        if (has_name(shape, at, len)) return "shape: a name comes twice";
        if (shape->count == NT_SHAPE_NAMES) return "shape: too many names";
        add_literal(shape, at, len);
        at += len;
        left -= len;
    }
    return shape->count > 0 ? NULL : "shape: no names";
}

ntee_status nt_shape_new(const void *names, size_t len, nt_shape **out, ntee_error *err) {
    if (len > NT_SHAPE_BYTES) return nt_fail(err, NTEE_TOO_LARGE, "shape: %zu bytes of names", len);
    /* A literal has two bytes more than its framed name, and up to seven zeros. */
    size_t size = sizeof(nt_shape) + len + NT_SHAPE_NAMES * (QUOTES - NAME_HEAD + 7u);
    nt_shape *shape = nt_alloc(size);
    if (!shape) return nt_fail(err, NTEE_NOMEM, "no memory for a shape");
    memset(shape, 0, size);
    const char *fault = add_names(shape, names, len);
    if (fault) {
        nt_free(shape);
        return nt_fail(err, NTEE_INVALID, "%s", fault);
    }
    *out = shape;
    return NTEE_OK;
}

int nt_shape_equal(const nt_shape *a, const nt_shape *b) {
    return a->count == b->count && a->texts_len == b->texts_len &&
           memcmp(a->literals, b->literals, a->count * sizeof(literal)) == 0 &&
           memcmp(a->texts, b->texts, a->texts_len) == 0;
}

uint32_t nt_shape_count(const nt_shape *shape) { return shape->count; }

/* ---- Matching: each step takes a place and gives the place behind what it took, or NULL ---------- */

static inline const uint8_t *skip_literal(const uint8_t *at, const uint8_t *end, const uint8_t *text,
                                          size_t len) {
    size_t left = (size_t)(end - at);
    const uint8_t *behind = at + len;
    if (nt_align8(len) > left) return len <= left && memcmp(at, text, len) == 0 ? behind : NULL;
    for (; len >= 8; at += 8, text += 8, len -= 8)
        if (nt_load64(at) != nt_load64(text)) return NULL;
    /* Of the last word only the first `len` bytes count: the low ones. */
    if (len > 0 && (nt_load64(at) ^ nt_load64(text)) << (64 - 8 * len) != 0) return NULL;
    return behind;
}

/* The next byte that is not plain, or the end. */
static inline const uint8_t *skip_plain(const uint8_t *at, const uint8_t *end) {
#ifdef __SSE2__
    const __m128i space = _mm_set1_epi8(0x20), quote = _mm_set1_epi8('"'), backslash = _mm_set1_epi8('\\');
    for (; end - at >= 16; at += 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);
        __m128i marks = _mm_or_si128(_mm_cmpeq_epi8(bytes, quote), _mm_cmpeq_epi8(bytes, backslash));
        /* As signed numbers the bytes from 0x80 on are below a space, too. */
        int mask = _mm_movemask_epi8(_mm_or_si128(marks, _mm_cmplt_epi8(bytes, space)));
        if (mask != 0) return at + __builtin_ctz((unsigned)mask);
    }
#endif
    while (at < end && is_plain(*at)) at++;
    return at;
}

static inline void put_field(uint8_t *field, uint32_t high, uint32_t low) {
    nt_store64(field, (uint64_t)high << 32 | low);
}

static inline const uint8_t *take_string(const uint8_t *at, const uint8_t *end, uint32_t place,
                                         uint8_t *field) {
    const uint8_t *first = at + 1;
    at = skip_plain(first, end);
    if (at == end || *at != '"' || at - first > 0xFFFF) return NULL;
    put_field(field, NT_FIELD_STRING | (uint32_t)(at - first), place + 1);
    return at + 1;
}

/* Adds digits to *number, which may overflow; the place of the first byte that is none. */
static inline const uint8_t *add_digits(const uint8_t *at, const uint8_t *end, uint64_t *number) {
    uint64_t sum = *number;
    for (; at < end && (uint8_t)(*at - '0') <= 9; at++) sum = sum * 10 + (uint8_t)(*at - '0');
    *number = sum;
    return at;
}

enum { POWER_MAX = 22, DIGITS_MAX = 19 }; /* 10^22 is a double, 19 digits fit into 64 bits */
static const double POWERS[POWER_MAX + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                             1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                             1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* Adds what stands behind an e to *power, up to three digits of it. */
static const uint8_t *take_power(const uint8_t *at, const uint8_t *end, int *power) {
    uint64_t number = 0;
    int negative = at < end && *at == '-';
    if (at < end && (*at == '-' || *at == '+')) at++;
    const uint8_t *first = at;
    at = add_digits(at, end, &number);
    if (at == first || at - first > 3) return NULL;
    *power += negative ? -(int)number : (int)number;
    return at;
}

/* Both operands are doubles without error, so the one operation rounds as the conversion itself would. */
static inline const uint8_t *take_number(const uint8_t *at, const uint8_t *end, uint8_t *field) {
    uint64_t digits = 0;
    int power = 0, negative = *at == '-';
    const uint8_t *first = at + negative;
    at = add_digits(first, end, &digits);
    ptrdiff_t count = at - first;
    if (count == 0 || (count > 1 && *first == '0')) return NULL;
    if (at < end && *at == '.') {
        const uint8_t *fraction = at + 1;
        at = add_digits(fraction, end, &digits);
        if (at == fraction) return NULL;
        count += at - fraction;
        if (count > DIGITS_MAX) return NULL;
        power = -(int)(at - fraction);
    }
    if (count > DIGITS_MAX || digits > (uint64_t)1 << 53) return NULL;
    if (at < end && (*at | 0x20) == 'e') {
        at = take_power(at + 1, end, &power);
        if (at == NULL) return NULL;
    } else if (power == 0 && digits <= INT32_MAX && digits + !negative > 0) { /* not -0 */
        put_field(field, NT_FIELD_INTEGER, negative ? 0u - (uint32_t)digits : (uint32_t)digits);
        return at;
    }
    if (power < -POWER_MAX || power > POWER_MAX) return NULL;
    double number = power < 0 ? (double)digits / POWERS[-power] : (double)digits * POWERS[power];
    if (negative) number = -number;
    memcpy(field, &number, sizeof number);
    return at;
}

static inline const uint8_t *take_constant(const uint8_t *at, const uint8_t *end, uint8_t *field) {
    static const struct {
        char text[6];
        uint8_t len, code;
    } constants[] = {{"null", 4, NT_FIELD_NULL}, {"true", 4, NT_FIELD_TRUE}, {"false", 5, NT_FIELD_FALSE}};
    size_t left = (size_t)(end - at);
    for (size_t i = 0; i < 3; i++) {
        size_t len = constants[i].len;
        if (len > left || memcmp(at, constants[i].text, len) != 0) continue;
        put_field(field, NT_FIELD_CONSTANT | constants[i].code, 0);
        return at + len;
    }
    return NULL;
}

size_t nt_shape_match(const nt_shape *shape, const uint8_t *text, size_t len, uint32_t base,
                      void *fields) {
    const uint8_t *at = text, *end = text + len;
    uint8_t *field = fields;
    for (uint32_t i = 0; i < shape->count; i++, field += NT_FIELD_SIZE) {
        const literal *l = &shape->literals[i];
        at = skip_literal(at, end, shape->texts + l->at, l->len);
        if (at == NULL || at == end) return 0;
        if (*at == '"') at = take_string(at, end, base + (uint32_t)(at - text), field);
        else if (*at == '-' || (uint8_t)(*at - '0') <= 9) at = take_number(at, end, field);
        else at = take_constant(at, end, field);
        if (at == NULL) return 0;
    }
    return at < end && *at == '}' ? (size_t)(at + 1 - text) : 0;
}
