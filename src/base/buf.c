#include "base/buf.h"

#include <string.h>

#include "base/os.h"

enum { FIRST_CAPACITY = 64 };

int nt_buf_reserve(nt_buf *buf, size_t extra) {
    if (extra <= buf->cap - buf->len) return 1;
    if (extra > SIZE_MAX - buf->len) return 0;
    size_t needed = buf->len + extra;
    size_t cap = buf->cap > SIZE_MAX / 2 ? needed : buf->cap * 2;
    if (cap < needed) cap = needed;
    if (cap < FIRST_CAPACITY) cap = FIRST_CAPACITY;
    uint8_t *data = nt_realloc(buf->data, cap);
    if (data == NULL) return 0;
    buf->data = data;
    buf->cap = cap;
    return 1;
}

int nt_buf_append(nt_buf *buf, const void *data, size_t len) {
    if (!nt_buf_reserve(buf, len)) return 0;
    if (len > 0) memcpy(buf->data + buf->len, data, len);
    buf->len += len;
    return 1;
}

void nt_buf_free(nt_buf *buf) {
    nt_free(buf->data);
    *buf = (nt_buf){0};
}
