/*
 * Verdicts for json_agrees.test.mjs: reads documents, each behind its u32 length, from standard input and
 * writes one byte each to standard output: '0' not JSON, '1' JSON, '2' an object.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "format/json.h"

int main(void) {
    uint8_t head[4];
    while (fread(head, 1, 4, stdin) == 4) {
        size_t len = nt_load32(head);
        uint8_t *text = malloc(len ? len : 1);
        if (text == NULL || fread(text, 1, len, stdin) != len) return 1;
        if (putchar('0' + (int)nt_json_check(text, len)) == EOF) return 1;
        free(text);
    }
    return ferror(stdin) || fflush(stdout) != 0;
}
