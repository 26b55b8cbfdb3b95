/* buf: a byte buffer that grows, through the seam's allocator so that tests can make it fail. */
#ifndef NT_BASE_BUF_H
#define NT_BASE_BUF_H

#include <stddef.h>
#include <stdint.h>

typedef struct nt_buf {
    uint8_t *data;
    size_t len;
    size_t cap;
} nt_buf;

/* Makes room for `extra` more bytes; 1, or 0 where memory is short (the buffer is as it was). */
int nt_buf_reserve(nt_buf *buf, size_t extra);
/* Appends bytes; 1, or 0 where memory is short. */
int nt_buf_append(nt_buf *buf, const void *data, size_t len);
/* Frees the memory; the buffer is empty and usable again. */
void nt_buf_free(nt_buf *buf);

#endif
