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
#define XXH_NO_STREAM
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#include <xxhash.h>
#pragma GCC diagnostic pop

static inline uint64_t nt_hash64(const void *data, size_t len, uint64_t seed) {
    return XXH3_64bits_withSeed(data, len, seed);
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
