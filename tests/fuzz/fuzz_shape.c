/*
 * fuzz_shape: shapes of any names, and texts of any bytes. What fits is one JSON object, and every field of a string
 * lies in it, between quotes.
 *
 *   clang -g -O1 -fsanitize=fuzzer,address,undefined -Iinclude -Isrc tests/fuzz/fuzz_shape.c \
 *     src/format/{shape,json}.c src/base/{status,os,os_posix}.c -o fuzz_shape && ./fuzz_shape -max_total_time=30
 */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/os.h"
#include "format/json.h"
#include "format/shape.h"

static void check(const uint8_t *text, size_t len, const uint8_t *fields, uint32_t count) {
    size_t first_len = 0;
    if (nt_json_first(text, len, &first_len) != NT_JSON_OBJECT) abort();
    for (uint32_t i = 0; i < count; i++) {
        uint32_t low = nt_load32(fields + 8 * i), high = nt_load32(fields + 8 * i + 4), length = high & 0xFFFF;
        if (high < NT_FIELD_STRING || high >= NT_FIELD_CONSTANT) continue;
        if (low == 0 || low >= len || length >= len - low) abort();
        if (text[low - 1] != '"' || text[low + length] != '"') abort();
    }
}

/* The first byte is the length of the framed names; the text is behind them. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const uint8_t usual[] = {1, 0, 'a', 1, 0, 'b'};
    ntee_error err;
    nt_shape *shape;
    if (size == 0) return 0;
    size_t names_len = nt_min(data[0], size - 1);
    const uint8_t *text = data + 1 + names_len;
    size_t len = size - 1 - names_len;
    const void *names = names_len > 0 ? (const void *)(data + 1) : usual;
    if (nt_shape_new(names, names_len > 0 ? names_len : sizeof usual, &shape, &err) != NTEE_OK) return 0;
    uint32_t count = nt_shape_count(shape);
    uint8_t *exact = malloc(len ? len : 1), *fields = malloc(count * NT_FIELD_SIZE);
    if (exact == NULL || fields == NULL) abort();
    memcpy(exact, text, len);
    size_t got = nt_shape_match(shape, exact, len, 0, fields);
    if (got > len) abort();
    if (got > 0) check(exact, got, fields, count);
    free(exact);
    free(fields);
    nt_free(shape);
    return 0;
}
