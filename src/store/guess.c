#include "store/guess.h"

#include "base/os.h"

#define KEYS_LEAST 32768u
#define BITS_MOST 32u

/* A segment of 2 MiB is given as much address space as the system wants to see before it uses large pages. */
#define LARGE_FROM ((size_t)2 << 20)
#define LARGE_ASKED ((size_t)4 << 20)

static size_t segment_buckets(uint32_t segment) {
    return (size_t)1 << (NT_GUESS_FIRST_SHIFT + segment - (segment > 0));
}

static size_t segment_bytes(uint32_t segment) {
    size_t bytes = segment_buckets(segment) * NT_GUESS_WAYS * sizeof(nt_guess_word);
    return bytes >= LARGE_FROM && bytes < LARGE_ASKED ? LARGE_ASKED : bytes;
}

/* Segments of a table with a shape. */
static uint32_t segments_of(uint64_t shape) {
    uint64_t buckets = (uint64_t)(uint32_t)shape + 1u;
    uint32_t count = 0;
    if (shape)
        for (count = 1; buckets > (uint64_t)1 << (NT_GUESS_FIRST_SHIFT + count - 1u);) count++;
    return count;
}

/* Forgets everything. Reading beside it is harmless. */
static void clear(nt_guess *guess, uint32_t segments) {
    for (uint32_t s = 0; s < segments; s++) {
        nt_guess_word *words = atomic_load_explicit(&guess->segments[s], memory_order_relaxed);
        for (size_t i = 0; i < segment_buckets(s) * NT_GUESS_WAYS; i++)
            if (atomic_load_explicit(&words[i], memory_order_relaxed))
                atomic_store_explicit(&words[i], 0, memory_order_relaxed);
    }
}

void nt_guess_fit(nt_guess *guess, uint64_t keys, uint64_t log_bytes) {
    uint64_t shape = atomic_load_explicit(&guess->shape, memory_order_relaxed);
    uint32_t before = segments_of(shape), segments = before;
    uint32_t bits = shape ? (uint32_t)(shape >> 32) : NT_GUESS_BITS;
    if (keys < KEYS_LEAST) return;
    while (segments < NT_GUESS_SEGMENTS &&
           (!segments || keys > (uint64_t)NT_GUESS_WAYS << (NT_GUESS_FIRST_SHIFT + segments - 1u))) {
        nt_guess_word *fresh = NT_OS->alloc_pages(segment_bytes(segments));
        if (!fresh) break;
        atomic_store_explicit(&guess->segments[segments++], fresh, memory_order_relaxed);
    }
    if (!segments) return;
    while (bits < BITS_MOST && log_bytes >> NT_GUESS_LINE_SHIFT >> bits != 0) bits++;
    if (segments != before || bits != shape >> 32) clear(guess, before);
    uint64_t mask = ((uint64_t)1 << (NT_GUESS_FIRST_SHIFT + segments - 1u)) - 1u;
    atomic_store_explicit(&guess->shape, mask | (uint64_t)bits << 32, memory_order_release);
}

void nt_guess_free(nt_guess *guess) {
    for (uint32_t i = 0; i < NT_GUESS_SEGMENTS; i++) {
        nt_guess_word *words = atomic_load_explicit(&guess->segments[i], memory_order_relaxed);
        if (words) NT_OS->free_pages((void *)(uintptr_t)words, segment_bytes(i));
    }
}
