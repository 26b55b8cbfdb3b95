/* json: whether bytes are one valid JSON text (RFC 8259), in one pass without recursion. */
#ifndef NT_FORMAT_JSON_H
#define NT_FORMAT_JSON_H

#include <stddef.h>
#include <stdint.h>

typedef enum nt_json {
    NT_JSON_NOT = 0,    /* not one JSON text, or not valid UTF-8 */
    NT_JSON_OTHER = 1,  /* array, string, number, true, false, null */
    NT_JSON_OBJECT = 2,
    NT_JSON_NOMEM = 3   /* nested deeper than the memory for its bit stack (8 levels a byte) */
} nt_json;

/* Agrees with JSON.parse of ECMAScript on every valid UTF-8 text: leading and trailing white space is
 * allowed, a byte order mark is not, escapes may name lone surrogates, any nesting depth. */
nt_json nt_json_check(const uint8_t *text, size_t len);

/* The same for the text at the front of the bytes: sets *text_len to its length, white space on both sides
 * included, where there is one. What follows it is not looked at. */
nt_json nt_json_first(const uint8_t *text, size_t len, size_t *text_len);

#endif
