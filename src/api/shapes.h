/*
 * shapes: the shapes that an open store's texts are tried for.
 *
 * The list only grows, and a shape in it never changes, so any thread may match while another one adds.
 * Invariant: behind the first empty place all are empty; a place is filled once, by compare-and-swap, and so
 * equal shapes, however many threads add them, have one place.
 */
#ifndef NT_API_SHAPES_H
#define NT_API_SHAPES_H

#include <stdatomic.h>

#include "format/shape.h"

#define NT_SHAPES 16u
/* An object that is taken apart is at most so long, and so are the texts of one call together: a string that
 * a binding cuts out of them keeps at most that much alive. */
#define NT_SHAPES_TEXT 16384u
/* Room for the fields of any shape. */
#define NT_SHAPES_ROOM (NT_SHAPE_NAMES * NT_FIELD_SIZE)

typedef struct nt_shapes {
    _Atomic(nt_shape *) list[NT_SHAPES];
    _Atomic uint32_t last; /* place of the one that fitted last: a hint */
} nt_shapes;               /* all zero: none */

/* Adds the shape with these names (as nt_shape_new takes them): *number is its number, from 1 on, the old one
 * where there is an equal shape; 0 where all places are taken. NTEE_INVALID, NTEE_TOO_LARGE, NTEE_NOMEM. */
ntee_status nt_shapes_add(nt_shapes *shapes, const void *names, size_t len, uint32_t *number,
                          ntee_error *err);

/* Takes apart the object at `text` by the shape that fits: its number, its length in *text_len, its fields in
 * `fields` (NT_SHAPES_ROOM bytes; what is behind the shape's own fields is as it was); 0 where none fits, and
 * the fields mean nothing. `len` and `base` as of nt_shape_match. */
uint32_t nt_shapes_match(nt_shapes *shapes, const uint8_t *text, size_t len, uint32_t base, void *fields,
                         size_t *text_len);

typedef struct nt_shapes_done {
    uint64_t texts; /* texts that were taken */
    size_t used;    /* bytes of `in`, the comma behind the last text included */
    size_t written; /* bytes of `out` */
} nt_shapes_done;

/* Takes apart JSON texts with a comma between any two, as far as `out` and NT_SHAPES_TEXT allow;
 * docs/wire.md has the layout. At least one text is taken, whatever its length, unless there is none.
 * NTEE_INVALID: not such texts (err->item says which). NTEE_SHORT_BUFFER: out has less than one text may
 * need, 8 + NT_SHAPES_ROOM bytes. NTEE_NOMEM. */
ntee_status nt_shapes_take(nt_shapes *shapes, const uint8_t *in, size_t in_len, uint8_t *out, size_t out_cap,
                           nt_shapes_done *done, ntee_error *err);

/* Frees all shapes. Nobody uses them any more. */
void nt_shapes_free(nt_shapes *shapes);

#endif
