/*
 * shape: the ordered member names of a flat JSON object, and where the values of such an object lie.
 *
 * A shape is kept as the literal texts between the values, {"a": and ,"b": and so on, so that a text is
 * taken apart by comparing those and stepping over a scalar in between. Only plain texts fit: no white space,
 * strings of printable ASCII without escapes, numbers that convert exactly by one multiplication or division.
 * What does not fit is no error: such a text is for a JSON parser.
 */
#ifndef NT_FORMAT_SHAPE_H
#define NT_FORMAT_SHAPE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define NT_SHAPE_NAMES 64u   /* names at most */
#define NT_SHAPE_BYTES 4096u /* bytes of names at most, their lengths included */

/*
 * A field is 8 bytes. A number is its double. Everything else is a NaN, which no JSON number is; the high
 * word says what it is:
 *   NT_FIELD_STRING | length               low word: the string's first byte, counted from nt_shape_match's
 *                                          `base`
 *   NT_FIELD_CONSTANT | NT_FIELD_NULL ...  low word: 0
 *   NT_FIELD_INTEGER                       low word: an int32; a number written as digits alone that is one,
 *                                          but for -0 (many readers have integers for less than doubles)
 */
#define NT_FIELD_STRING 0xFFF80000u
#define NT_FIELD_CONSTANT 0xFFF90000u
#define NT_FIELD_INTEGER 0xFFFA0000u
enum { NT_FIELD_NULL = 0, NT_FIELD_TRUE = 1, NT_FIELD_FALSE = 2 };
#define NT_FIELD_SIZE 8u

typedef struct nt_shape nt_shape; /* never changes once it is made, so any thread may use it */

/* Makes a shape from its names, each a u16 length and that many bytes; free it with nt_free. NTEE_INVALID:
 * not 1 to 64 names, a name with other bytes than 0x20 to 0x7f or with a quote or backslash, __proto__, or
 * one that comes twice. NTEE_TOO_LARGE, NTEE_NOMEM. */
ntee_status nt_shape_new(const void *names, size_t len, nt_shape **shape, ntee_error *err);
/* Whether two shapes have the same names in the same order. */
int nt_shape_equal(const nt_shape *a, const nt_shape *b);
/* The number of names, and so of fields. */
uint32_t nt_shape_count(const nt_shape *shape);

/*
 * Takes apart the object that begins at `text`, of which `len` bytes may be read: gives its length, with one
 * field a name in `fields` (room for all of them, no alignment), or 0 where what is there does not fit. What
 * follows the object is not looked at. `base` is added to where strings begin; base + len is below 2^32.
 */
size_t nt_shape_match(const nt_shape *shape, const uint8_t *text, size_t len, uint32_t base,
                      void *fields);

#endif
