/*
 * bytes: little- and big-endian loads and stores, and the arithmetic of lengths.
 *
 * All integers on disk are little-endian and go through these. Lengths are compared as
 * `len <= remaining`, never as `offset + len <= end`, so that nothing can wrap.
 */
#ifndef NT_BASE_BYTES_H
#define NT_BASE_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "libntee supports little-endian machines only (x86-64, arm64)"
#endif

static inline uint16_t nt_load16(const void *p) { uint16_t v; memcpy(&v, p, 2); return v; }
static inline uint32_t nt_load32(const void *p) { uint32_t v; memcpy(&v, p, 4); return v; }
static inline uint64_t nt_load64(const void *p) { uint64_t v; memcpy(&v, p, 8); return v; }
static inline void nt_store16(void *p, uint16_t v) { memcpy(p, &v, 2); }
static inline void nt_store32(void *p, uint32_t v) { memcpy(p, &v, 4); }
static inline void nt_store64(void *p, uint64_t v) { memcpy(p, &v, 8); }

static inline uint64_t nt_load48(const void *p) {
    uint64_t v = 0;
    memcpy(&v, p, 6);
    return v;
}
static inline void nt_store48(void *p, uint64_t v) { memcpy(p, &v, 6); }

/* Big-endian: bytes that sort as the numbers do. */
static inline uint32_t nt_load32be(const void *p) { return __builtin_bswap32(nt_load32(p)); }
static inline uint64_t nt_load64be(const void *p) { return __builtin_bswap64(nt_load64(p)); }
static inline void nt_store32be(void *p, uint32_t v) { nt_store32(p, __builtin_bswap32(v)); }
static inline void nt_store64be(void *p, uint64_t v) { nt_store64(p, __builtin_bswap64(v)); }

/* Rounds up to a multiple of 8. The caller has checked that n is far from the type's end. */
static inline uint64_t nt_align8(uint64_t n) { return (n + 7u) & ~(uint64_t)7u; }

static inline size_t nt_min(size_t a, size_t b) { return a < b ? a : b; }

/* memcmp order, a key before its extensions: negative, 0 or positive. */
static inline int nt_compare(const void *a, size_t a_len, const void *b, size_t b_len) {
    size_t n = nt_min(a_len, b_len);
    int c = n ? memcmp(a, b, n) : 0;
    if (c != 0) return c;
    return a_len < b_len ? -1 : a_len > b_len;
}

#endif
