/*
 * fuzz_json: the JSON check on any bytes. What it says of a text must hold for the text in an array, in an
 * object, and between white space, too, where all of them are read by other ways through the code.
 *
 *   clang -g -O1 -fsanitize=fuzzer,address,undefined -Iinclude -Isrc tests/fuzz/fuzz_json.c \
 *     src/format/json.c src/base/os.c src/base/os_posix.c -o fuzz_json && ./fuzz_json -max_total_time=30
 */
#include <stdlib.h>
#include <string.h>

#include "format/json.h"

static nt_json wrapped(const char *before, const uint8_t *data, size_t size, const char *after) {
    size_t a = strlen(before), b = strlen(after);
    uint8_t *text = malloc(a + size + b);
    if (text == NULL) abort();
    memcpy(text, before, a);
    if (size > 0) memcpy(text + a, data, size);
    memcpy(text + a + size, after, b);
    nt_json verdict = nt_json_check(text, a + size + b);
    free(text);
    return verdict;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    nt_json verdict = nt_json_check(data, size);
    if (verdict != wrapped(" \n", data, size, "\t\r ")) abort();
    if (verdict == NT_JSON_NOT) {
        /* Only a list of values without its brackets becomes a text by them. */
        if (wrapped("[", data, size, "]") == NT_JSON_OBJECT) abort();
        return 0;
    }
    if (wrapped("[1,", data, size, ",\"\"]") != NT_JSON_OTHER) abort();
    if (wrapped("{\"a\":", data, size, "}") != NT_JSON_OBJECT) abort();
    if (wrapped("", data, size, ",") != NT_JSON_NOT) abort();
    if (wrapped("\"", data, size, "") == NT_JSON_OBJECT) abort();
    return 0;
}
