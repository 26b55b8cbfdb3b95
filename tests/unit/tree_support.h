/* tree_support: memory that can run out, keys of all shapes, and a sorted array to compare trees with. */
#ifndef NT_TESTS_TREE_SUPPORT_H
#define NT_TESTS_TREE_SUPPORT_H

#include "base/bytes.h"
#include "base/os.h"
#include "store/tree.h"
#include "store/tree_walk.h"
#include "support.h"

/* ---- Memory ------------------------------------------------------------------------------------- */

/* Allocations until one fails (INT64_MAX: none does), and whether all fail from then on. */
static int64_t memory_left = INT64_MAX;
static int memory_sticky;
static int64_t memory_blocks; /* allocated and not freed */

static inline int memory_fails(void) {
    if (memory_left == INT64_MAX) return 0;
    if (memory_left > 0) {
        memory_left--;
        return 0;
    }
    if (!memory_sticky) memory_left = INT64_MAX;
    return 1;
}

static inline void *memory_alloc(size_t len) {
    if (memory_fails()) return NULL;
    __atomic_add_fetch(&memory_blocks, 1, __ATOMIC_RELAXED);
    return malloc(len);
}

static inline void memory_free(void *at) {
    if (at) __atomic_sub_fetch(&memory_blocks, 1, __ATOMIC_RELAXED);
    free(at);
}

#define LARGE_PAGES ((size_t)4 << 20) /* from here on not worth clearing by hand */

static inline void *memory_alloc_pages(size_t len) {
    if (memory_fails()) return NULL;
    __atomic_add_fetch(&memory_blocks, 1, __ATOMIC_RELAXED);
    if (len >= LARGE_PAGES) return nt_os_posix.alloc_pages(len);
    void *at = aligned_alloc(4096, len); /* a sanitizer sees its ends */
    return at ? memset(at, 0, len) : NULL;
}

static inline void memory_free_pages(void *at, size_t len) {
    if (len < LARGE_PAGES) {
        memory_free(at);
        return;
    }
    __atomic_sub_fetch(&memory_blocks, 1, __ATOMIC_RELAXED);
    nt_os_posix.free_pages(at, len);
}

static nt_os memory_os;

static inline void memory_use(void) {
    memory_os = nt_os_posix;
    memory_os.alloc = memory_alloc;
    memory_os.free = memory_free;
    memory_os.alloc_pages = memory_alloc_pages;
    memory_os.free_pages = memory_free_pages;
    nt_os_now = &memory_os;
    memory_left = INT64_MAX;
    memory_sticky = 0;
}

/* ---- Keys --------------------------------------------------------------------------------------- */

enum {
    SHAPE_TINY,   /* 0 to 6 bytes out of five: empty, NULs, prefixes of each other */
    SHAPE_HEX,    /* 16 hexadecimal digits */
    SHAPE_URL,    /* shared beginnings, many lengths */
    SHAPE_NUMBER, /* 8 bytes, big-endian */
    SHAPE_EDGE,   /* 236 to 246 bytes, alike but for the last few */
    SHAPE_LONG,   /* 241 to 2,500 bytes, the first 500 alike */
    SHAPE_HUGE,   /* up to 65,600 bytes, alike but for a few */
    SHAPE_MIXED,
    SHAPES
};

static const char *const SHAPE_NAMES[] = {"tiny", "hex", "url", "number", "edge", "long", "huge", "mixed"};

static inline size_t make_key(nt_random *r, int shape, uint64_t space, uint8_t *out) {
    static const uint8_t five[] = {0, 1, 'a', 'b', 0xFF};
    uint64_t x = nt_random_below(r, space), h = x * 0x9E3779B97F4A7C15u;
    size_t len;
    switch (shape) {
    case SHAPE_TINY:
        len = nt_random_below(r, 7);
        for (size_t i = 0; i < len; i++) out[i] = five[nt_random_below(r, 5)];
        return len;
    case SHAPE_HEX:
        return (size_t)sprintf((char *)out, "%016" PRIx64, h);
    case SHAPE_URL:
        return (size_t)sprintf((char *)out, "https://%s.example.org/%s/%" PRIu64 "/%s",
                               h & 1 ? "www" : "static", h & 2 ? "articles" : "a", x % (space / 2 + 1),
                               h & 4 ? "" : "index.html");
    case SHAPE_NUMBER:
        nt_store64be(out, x);
        return 8;
    case SHAPE_EDGE:
        len = 236 + x % 11;
        memset(out, 'e', len);
        for (size_t i = len - 1; i > len - 4; i--, h >>= 2) out[i] = five[h & 3];
        if (x % 7 == 0) out[h % 200] = 'f';
        return len;
    case SHAPE_LONG:
        len = 241 + (h >> 20) % (x % 3 ? 600 : 2260);
        memset(out, 'l', len);
        for (size_t i = 0; i < 8; i++, h >>= 8) out[x % 2 || len < 520 ? len - 1 - i : 500 + i] = (uint8_t)h;
        return len;
    case SHAPE_HUGE:
        len = x % 4 == 0 ? NT_TREE_KEY_MAX : 60000 + (h >> 20) % 5601;
        memset(out, 'h', len);
        for (size_t i = 0; i < 3; i++, h >>= 8) out[x % 3 ? len - 1 - i : 1240 + i] = (uint8_t)h;
        return len;
    default:
        shape = (int)nt_random_below(r, 40);
        if (shape == 39) return make_key(r, SHAPE_HUGE, 8, out);
        return make_key(r, shape % 6, space / 4 + 1, out);
    }
}

/* ---- The model ---------------------------------------------------------------------------------- */

typedef struct pair_of {
    uint8_t *key;
    size_t len;
    uint64_t value;
} model_pair;

typedef struct model {
    model_pair *at;
    size_t n, cap;
} model;

static inline size_t model_rank(const model *m, const uint8_t *key, size_t len, int *there) {
    size_t low = 0, high = m->n;
    *there = 0;
    while (low < high) {
        size_t middle = (low + high) / 2;
        int c = nt_compare(m->at[middle].key, m->at[middle].len, key, len);
        if (c == 0) {
            *there = 1;
            return middle;
        }
        if (c < 0) low = middle + 1;
        else high = middle;
    }
    return low;
}

static inline uint8_t *model_copy_bytes(const uint8_t *key, size_t len) {
    uint8_t *copy = malloc(len ? len : 1); /* exact, so that reading past a key is seen */
    if (len) memcpy(copy, key, len);
    return copy;
}

static inline uint64_t model_put(model *m, const uint8_t *key, size_t len, uint64_t value) {
    int there;
    size_t i = model_rank(m, key, len, &there);
    if (there) {
        uint64_t old = m->at[i].value;
        m->at[i].value = value;
        return old;
    }
    if (m->n == m->cap) m->at = realloc(m->at, (m->cap = m->cap * 2 + 16) * sizeof *m->at);
    memmove(m->at + i + 1, m->at + i, (m->n++ - i) * sizeof *m->at);
    m->at[i] = (model_pair){model_copy_bytes(key, len), len, value};
    return NT_TREE_NONE;
}

static inline uint64_t model_delete(model *m, const uint8_t *key, size_t len) {
    int there;
    size_t i = model_rank(m, key, len, &there);
    if (!there) return NT_TREE_NONE;
    uint64_t old = m->at[i].value;
    free(m->at[i].key);
    memmove(m->at + i, m->at + i + 1, (--m->n - i) * sizeof *m->at);
    return old;
}

static inline model model_clone(const model *m) {
    model c = {malloc((m->n + 1) * sizeof *c.at), m->n, m->n + 1};
    for (size_t i = 0; i < m->n; i++) {
        c.at[i] = m->at[i];
        c.at[i].key = model_copy_bytes(m->at[i].key, m->at[i].len);
    }
    return c;
}

static inline void model_free(model *m) {
    for (size_t i = 0; i < m->n; i++) free(m->at[i].key);
    free(m->at);
    memset(m, 0, sizeof *m);
}

static uint8_t key_room[NT_TREE_KEY_MAX + 64]; /* for the key at hand */

/* ---- Comparing a tree with the model ------------------------------------------------------------- */

static inline void assert_sound(const nt_arena *arena, nt_root root) {
    const char *wrong = nt_tree_check(arena, root);
    if (wrong) fail_msg("%s", wrong);
}

/* Every key and value, going up and going down. */
static inline void assert_same(const nt_arena *arena, nt_root root, const model *m) {
    nt_walk walk;
    assert_sound(arena, root);
    assert_int_equal(nt_tree_count(arena, root), m->n);
    nt_walk_first(&walk, arena, root);
    for (size_t i = 0; i < m->n; i++) {
        assert_true(nt_walk_next(&walk) == m->at[i].value);
        assert_int_equal(nt_walk_key_length(&walk, 1), m->at[i].len);
        nt_walk_key(&walk, 1, key_room);
        if (m->at[i].len) assert_memory_equal(key_room, m->at[i].key, m->at[i].len);
    }
    assert_true(nt_walk_next(&walk) == NT_TREE_NONE);
    nt_walk_last(&walk, arena, root);
    for (size_t i = m->n; i-- > 0;) {
        assert_true(nt_walk_prev(&walk) == m->at[i].value);
        assert_int_equal(nt_walk_key_length(&walk, 0), m->at[i].len);
    }
    assert_true(nt_walk_prev(&walk) == NT_TREE_NONE);
}

static inline uint64_t live_nodes(nt_arena *arena) {
    nt_arena_usage usage;
    nt_arena_measure(arena, &usage);
    return usage.live;
}

/* Publishes again until nothing more is freed by it. */
static inline void settle(nt_arena *arena, uint64_t number) {
    nt_arena_usage usage;
    uint64_t waited = UINT64_MAX;
    for (int same = 0; same < 4; same++) {
        nt_arena_publish(arena, number);
        nt_arena_measure(arena, &usage);
        if (usage.waiting != waited) same = 0;
        waited = usage.waiting;
    }
}

/* ---- A tree and its model ------------------------------------------------------------------------- */

typedef struct world {
    nt_arena *arena;
    nt_root root;
    model model;
    uint64_t turn;
} world;

static inline world world_new(void) {
    world w = {.arena = nt_arena_create()};
    assert_non_null(w.arena);
    return w;
}

static inline void world_free(world *w) {
    nt_arena_destroy(w->arena);
    model_free(&w->model);
    assert_int_equal(memory_blocks, 0);
}

/* The key in memory of its own, so that reading past it is noticed by a sanitizer. */
static inline void put(world *w, const uint8_t *key, size_t len, uint64_t value) {
    static unsigned puts;
    uint8_t *exact = model_copy_bytes(key, len);
    uint64_t old, was = model_put(&w->model, key, len, value);
    nt_way way;
    memset(&way, 0x55, sizeof way); /* of another root: it must not be followed */
    if (puts++ % 2) nt_tree_seek(w->arena, w->root, exact, len, &way);
    assert_int_equal(nt_tree_put_on(w->arena, &w->root, puts % 3 ? &way : NULL, exact, len, value, &old), 1);
    assert_true(old == was);
    free(exact);
}

static inline void del(world *w, const uint8_t *key, size_t len) {
    uint8_t *exact = model_copy_bytes(key, len);
    uint64_t old, was = model_delete(&w->model, key, len);
    assert_int_equal(nt_tree_delete(w->arena, &w->root, exact, len, &old), 1);
    assert_true(old == was);
    free(exact);
}

static inline void begin(world *w) { w->turn = nt_arena_begin(w->arena); }

static inline void commit(world *w) {
    nt_arena_seal(w->arena);
    nt_arena_publish(w->arena, w->turn);
}

static inline void assert_no_leak(world *w) {
    assert_int_equal(live_nodes(w->arena), nt_tree_nodes(w->arena, w->root));
}

static inline void check_all(world *w) {
    assert_same(w->arena, w->root, &w->model);
    assert_no_leak(w);
}

static inline int memory_set_up(void **state) {
    (void)state;
    memory_use();
    return 0;
}

#endif
