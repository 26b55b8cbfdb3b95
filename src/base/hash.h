/*
 * hash: the one checksum of the project, XXH3 (64 bits) from xxHash.
 *
 * Inlined from the system's header, so that the library needs nothing but libc at run time.
 */
#ifndef NT_BASE_HASH_H
#define NT_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define XXH_INLINE_ALL
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#include <xxhash.h>
#pragma GCC diagnostic pop

#define NT_HASH_ALIGN 64u /* of a stream's state */

static inline uint64_t nt_hash64(const void *data, size_t len, uint64_t seed) {
    return XXH3_64bits_withSeed(data, len, seed);
}

/* The same of bytes that come in parts. The state must not be moved from nt_hash_begin to nt_hash_end. */
typedef struct nt_hash_stream {
    uint8_t room[sizeof(XXH3_state_t) + NT_HASH_ALIGN - 1u]; /* the state, aligned */
} nt_hash_stream;

static inline XXH3_state_t *nt_hash_state(nt_hash_stream *stream) {
    uintptr_t at = ((uintptr_t)stream->room + NT_HASH_ALIGN - 1u) & ~(uintptr_t)(NT_HASH_ALIGN - 1u);
    return (XXH3_state_t *)(void *)at;
}

static inline void nt_hash_begin(nt_hash_stream *stream, uint64_t seed) {
    XXH3_INITSTATE(nt_hash_state(stream));
    (void)XXH3_64bits_reset_withSeed(nt_hash_state(stream), seed);
}

static inline void nt_hash_add(nt_hash_stream *stream, const void *data, size_t len) {
    (void)XXH3_64bits_update(nt_hash_state(stream), data, len);
}

static inline uint64_t nt_hash_end(nt_hash_stream *stream) {
    return XXH3_64bits_digest(nt_hash_state(stream));
}

/* Folds a sequence number into a hash that was made before the number was known. */
static inline uint32_t nt_hash_finish(uint64_t hash, uint64_t sequence) {
    uint64_t x = hash ^ (sequence * 0x9E3779B97F4A7C15ull);
    x ^= x >> 32;
    x *= 0xD6E8FEB86659FD93ull;
    x ^= x >> 32;
    return (uint32_t)x;
}

#endif
