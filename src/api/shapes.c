#include "api/shapes.h"

#include "base/bytes.h"
#include "base/os.h"
#include "format/json.h"

static nt_shape *shape_at(nt_shapes *shapes, uint32_t place) {
    return atomic_load_explicit(&shapes->list[place], memory_order_acquire);
}

ntee_status nt_shapes_add(nt_shapes *shapes, const void *names, size_t len, uint32_t *number,
                          ntee_error *err) {
    nt_shape *shape;
    ntee_status status = nt_shape_new(names, len, &shape, err);
    if (status != NTEE_OK) return status;
    for (uint32_t place = 0; place < NT_SHAPES; place++) {
        nt_shape *there = NULL;
        *number = place + 1;
        /* Where the place is taken, `there` becomes what is in it. */
        if (atomic_compare_exchange_strong(&shapes->list[place], &there, shape)) return NTEE_OK;
        if (nt_shape_equal(there, shape)) goto out;
    }
    *number = 0;
out:
    nt_free(shape);
    return NTEE_OK;
}

uint32_t nt_shapes_match(nt_shapes *shapes, const uint8_t *text, size_t len, uint32_t base, void *fields,
                         size_t *text_len) {
    uint32_t last = atomic_load_explicit(&shapes->last, memory_order_relaxed);
    const nt_shape *shape = shape_at(shapes, last);
    if (!shape) return 0; /* there are none at all */
    *text_len = nt_shape_match(shape, text, len, base, fields);
    if (*text_len > 0) return last + 1;
    for (uint32_t place = 0; place < NT_SHAPES && (shape = shape_at(shapes, place)) != NULL; place++) {
        if (place == last) continue;
        *text_len = nt_shape_match(shape, text, len, base, fields);
        if (*text_len == 0) continue;
        atomic_store_explicit(&shapes->last, place, memory_order_relaxed);
        return place + 1;
    }
    return 0;
}

static size_t fields_of(nt_shapes *shapes, uint32_t number) {
    return number > 0 ? nt_shape_count(shape_at(shapes, number - 1)) * NT_FIELD_SIZE : 0;
}

static int ends_at(const uint8_t *in, size_t in_len, size_t at) { return at == in_len || in[at] == ','; }

enum { HEAD = 8 };

ntee_status nt_shapes_take(nt_shapes *shapes, const uint8_t *in, size_t in_len, uint8_t *out, size_t out_cap,
                           nt_shapes_done *done, ntee_error *err) {
    *done = (nt_shapes_done){0};
    if (in_len > 0 && out_cap < HEAD + NT_SHAPES_ROOM)
        return nt_fail(err, NTEE_SHORT_BUFFER, "a text may need %u bytes", HEAD + NT_SHAPES_ROOM);
    size_t fitting = nt_min(in_len, NT_SHAPES_TEXT); /* where the last text that fits ends at most */
    while (done->used < fitting && out_cap - done->written >= HEAD + NT_SHAPES_ROOM) {
        size_t at = done->used, text_len = 0;
        uint8_t *head = out + done->written;
        uint32_t number =
            nt_shapes_match(shapes, in + at, fitting - at, (uint32_t)at, head + HEAD, &text_len);
        if (number > 0 && !ends_at(in, in_len, at + text_len)) number = 0; /* white space is behind it */
        if (number == 0) {
            nt_json kind = nt_json_first(in + at, in_len - at, &text_len);
            if (kind == NT_JSON_NOMEM) return nt_fail(err, NTEE_NOMEM, "no memory for a deep text");
            if (kind == NT_JSON_NOT || !ends_at(in, in_len, at + text_len) || text_len > NTEE_VALUE_MAX) {
                nt_fail(err, NTEE_INVALID, "item %llu: not a JSON text", (unsigned long long)done->texts);
                err->item = (int64_t)done->texts;
                return NTEE_INVALID;
            }
            if (done->texts > 0 && text_len > NT_SHAPES_TEXT - at) return NTEE_OK;
        }
        nt_store32(head, number);
        nt_store32(head + 4, (uint32_t)text_len);
        done->written += HEAD + fields_of(shapes, number);
        done->texts++;
        done->used = at + text_len + (at + text_len < in_len);
    }
    return NTEE_OK;
}

void nt_shapes_free(nt_shapes *shapes) {
    for (uint32_t place = 0; place < NT_SHAPES; place++) nt_free(shape_at(shapes, place));
}
