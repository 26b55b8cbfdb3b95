/* support: random numbers and files for the unit tests of the format layer. */
#ifndef NT_TESTS_SUPPORT_H
#define NT_TESTS_SUPPORT_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* splitmix64. The seed comes from NT_SEED, else from the clock, and is printed. */
typedef struct nt_random {
    uint64_t state;
} nt_random;

static inline nt_random nt_random_start(const char *what) {
    const char *given = getenv("NT_SEED");
    nt_random r = {given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL) * 1000003u + (uint64_t)clock()};
    printf("%s: NT_SEED=%" PRIu64 "\n", what, r.state);
    fflush(stdout);
    return r;
}

static inline uint64_t nt_random_next(nt_random *r) {
    uint64_t z = (r->state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

/* 0 to n - 1. */
static inline uint64_t nt_random_below(nt_random *r, uint64_t n) { return nt_random_next(r) % n; }

static inline void nt_random_fill(nt_random *r, uint8_t *out, size_t len) {
    for (size_t i = 0; i < len; i++) out[i] = (uint8_t)nt_random_next(r);
}

/* The whole of a file of the project, NUL-terminated, or NULL. `file` is the test's own __FILE__, two
 * folders below the root; NT_ROOT overrides. The caller frees it. */
static inline char *nt_read_project_file(const char *file, const char *name, size_t *len) {
    char path[1024];
    const char *root = getenv("NT_ROOT");
    const char *slash = strrchr(file, '/');
    if (root) snprintf(path, sizeof path, "%s/%s", root, name);
    else snprintf(path, sizeof path, "%.*s../../%s", slash ? (int)(slash - file + 1) : 0, file, name);
    FILE *in = fopen(path, "rb");
    if (in == NULL) return NULL;
    size_t cap = 1 << 20, got = 0;
    char *text = malloc(cap);
    while (text && (got += fread(text + got, 1, cap - got - 1, in)) == cap - 1) {
        text = realloc(text, cap *= 2);
    }
    fclose(in);
    if (text) text[got] = 0;
    if (len) *len = got;
    return text;
}

#endif
