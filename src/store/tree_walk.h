/*
 * tree_walk: going through a tree in order, in both directions.
 *
 * A walk is a place between two keys of one version, in the caller's memory. It owns nothing and allocates
 * nothing; it is good for as long as the version is protected.
 */
#ifndef NT_STORE_TREE_WALK_H
#define NT_STORE_TREE_WALK_H

#include "store/tree.h"

#define NT_TREE_HEIGHT_MAX 24

typedef struct nt_walk {
    const nt_arena *arena;
    nt_root root;
    uint32_t ids[NT_TREE_HEIGHT_MAX]; /* inner nodes from the root down */
    uint16_t at[NT_TREE_HEIGHT_MAX];  /* the child taken in each */
    int depth;
    uint32_t leaf; /* 0: the tree is empty */
    int position;  /* index of the entry in the leaf that is next going up */
} nt_walk;

/* Places of a walk: */
enum {
    NT_WALK_BEFORE = 0,      /* just before `key`: going up gives key itself first */
    NT_WALK_AFTER = 1,       /* just after `key`: going down gives key itself first */
    NT_WALK_AFTER_PREFIX = 2 /* just after the last key that begins with `key` */
};

/* Begins a walk before the first key, or after the last. */
void nt_walk_first(nt_walk *walk, const nt_arena *arena, nt_root root);
void nt_walk_last(nt_walk *walk, const nt_arena *arena, nt_root root);
/* Begins a walk at a place relative to a key, which need not be there. */
void nt_walk_seek(nt_walk *walk, const nt_arena *arena, nt_root root, const void *key, size_t key_len,
                  int place);

/* Steps over the next key going up (down) and gives its value, or NT_TREE_NONE at the end. */
uint64_t nt_walk_next(nt_walk *walk);
uint64_t nt_walk_prev(nt_walk *walk);
/* The length of the key just stepped over by next (prev), and the key itself copied to `out`, which has
 * room for it. */
size_t nt_walk_key_length(const nt_walk *walk, int went_up);
void nt_walk_key(const nt_walk *walk, int went_up, uint8_t *out);

/* Where the keys of many entries go: key bytes one behind the other, lengths as u16 growing downwards. */
typedef struct nt_key_sink {
    uint8_t *bytes;       /* next key byte goes here */
    uint8_t *lens;        /* just above the next length: entry's u16 is written at lens - 2 */
    uint64_t budget;      /* entries still wanted */
    uint64_t count;       /* entries written so far */
    uint8_t seen;         /* OR of all key bytes written so far: below 128 = all ASCII */
} nt_key_sink;

/* Copies keys in bulk until the budget, the room between bytes and lens, or the tree ends; the fast path of
 * key scans. Between the two ends it may write up to 64 bytes too many. It does not step over an entry that
 * did not fit. Lengths are cut to 16 bits: not for trees with keys over 65,535 bytes. 1: the walk has
 * further entries; 0: it is at its end. */
int nt_walk_take_keys(nt_walk *walk, int up, nt_key_sink *sink);

/* Copies up to `max` values (8 bytes each) in bulk; returns how many. Fewer than max: the end. */
size_t nt_walk_take_values(nt_walk *walk, int up, uint64_t *values, size_t max);

#endif
