#include "model/generate.h"

#include <stdio.h>

static size_t numbered(rng *r, uint64_t spread, uint8_t *out) {
    char text[40];
    int n = snprintf(text, sizeof text, "user:%06llu", (unsigned long long)rng_below(r, spread));
    memcpy(out, text, (size_t)n);
    return (size_t)n;
}

static size_t nested(rng *r, uint8_t *out) {
    static const uint8_t alphabet[4] = {0x00, 'a', 'b', 0xFF};
    size_t len = rng_between(r, 1, 7);
    for (size_t i = 0; i < len; i++) out[i] = alphabet[rng_below(r, 4)];
    return len;
}

static size_t deep(rng *r, uint64_t spread, uint8_t *out) {
    size_t common = 200 + 20 * rng_below(r, 6);
    for (size_t i = 0; i < common; i++) out[i] = (uint8_t)('a' + i % 23);
    return common + numbered(r, spread, out + common);
}

static size_t binary(rng *r, uint64_t spread, uint8_t *out) {
    rng fixed = {rng_below(r, spread)};
    size_t len = rng_between(&fixed, 1, 40);
    rng_fill(&fixed, out, len);
    return len;
}

static size_t huge(rng *r, uint8_t *out) {
    rng fixed = {rng_below(r, 40)};
    size_t len = rng_one_in(&fixed, 8) ? GENERATE_KEY_MAX : rng_between(&fixed, 241, 9000);
    memset(out, 'h', len);
    rng_fill(&fixed, out + len - 8, 8);
    return len;
}

size_t generate_key(rng *r, unsigned families, uint64_t spread, uint8_t *out) {
    for (;;) {
        unsigned family = 1u << rng_below(r, 5);
        if (!(families & family)) continue;
        switch (family) {
        case KEYS_NUMBERED: return numbered(r, spread, out);
        case KEYS_NESTED: return nested(r, out);
        case KEYS_DEEP: return deep(r, spread, out);
        case KEYS_BINARY: return binary(r, spread, out);
        default:
            if (rng_one_in(r, 20)) return huge(r, out);
        }
    }
}

static size_t json_object(rng *r, uint8_t *out) {
    int n = snprintf((char *)out, 200, "{\"n\":%llu,\"s\":\"x\\u00e9\",\"a\":[1,2.5e3,null,true]}",
                     (unsigned long long)rng_next(r));
    return (size_t)n;
}

static size_t json_other(rng *r, uint8_t *out) {
    static const char *const texts[] = {"[]",   "null",      "true", "\"\"", "\"caf\xC3\xA9\"",
                                        " 12 ", "[[[[{}]]]]"};
    if (rng_one_in(r, 2)) return (size_t)snprintf((char *)out, 40, "%llu", (unsigned long long)rng_next(r));
    const char *text = texts[rng_below(r, sizeof texts / sizeof texts[0])];
    memcpy(out, text, strlen(text));
    return strlen(text);
}

static size_t size_of_binary(rng *r) {
    uint64_t pick = rng_below(r, 10000);
    if (pick < 1) return rng_between(r, 1 << 20, GENERATE_VALUE_MAX);
    if (pick < 20) return rng_between(r, 65520, 65560);
    if (pick < 300) return rng_between(r, 4000, 40000);
    if (pick < 1500) return rng_between(r, 300, 4096);
    if (pick < 5000) return rng_between(r, 33, 300);
    return rng_between(r, 1, 32);
}

size_t generate_value(rng *r, uint8_t *out, ntee_kind *kind) {
    uint64_t pick = rng_below(r, 10);
    *kind = NTEE_BINARY;
    if (pick == 0) return 0;
    if (pick == 1) {
        *kind = NTEE_OBJECT;
        return json_object(r, out);
    }
    if (pick == 2) {
        *kind = NTEE_JSON;
        return json_other(r, out);
    }
    size_t len = size_of_binary(r);
    rng_fill(r, out, len < 64 ? len : 64);
    if (len > 64) memset(out + 64, (int)rng_below(r, 256), len - 64);
    if (len > 64) rng_fill(r, out + len - 8, 8);
    out[0] = 0xC0; /* in no valid UTF-8 */
    return len;
}

