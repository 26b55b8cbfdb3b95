/*
 * tree: an ordered map from byte strings to 48-bit numbers, as a copy-on-write B+tree.
 *
 * A tree is its root, one 64-bit word. Changing a tree gives a new root; the old one stays readable for
 * as long as the arena keeps its nodes. All trees of a store share one arena and its turns. Keys are 0
 * to 65,600 bytes, any bytes, in memcmp order with a key before its extensions. A tree has at most 2^32 - 1
 * keys.
 *
 * Nodes are 1 KiB, slotted, with the prefix common to all keys of a node stored once, 4-byte key heads for
 * the search, and subtree counts in inner nodes. Of a key over 240 bytes a node holds the first 240, and
 * the rest lies in overflow nodes, which versions share for as long as the key is in the tree.
 */
#ifndef NT_STORE_TREE_H
#define NT_STORE_TREE_H

#include <stddef.h>
#include <stdint.h>

#include "store/arena.h"
#include "store/node.h"

#define NT_TREE_KEY_MAX 65600u
#define NT_TREE_NONE UINT64_MAX       /* no value */
#define NT_TREE_VALUE_MAX ((1ull << 48) - 1u)

typedef uint64_t nt_root; /* node id | height << 32; 0: the empty tree */

#define NT_TREE_LEVELS 24 /* of inner nodes, at most */

/* The way from a root to the leaf that a key belongs into. */
typedef struct nt_way {
    nt_root root;                     /* 0: no way */
    int depth;                        /* inner nodes above the leaf */
    uint32_t ids[NT_TREE_LEVELS + 1]; /* nodes, from the root to the leaf */
    int at[NT_TREE_LEVELS + 1];       /* the child taken in each; the place in the leaf is left open */
} nt_way;

/* ---- Reading: any thread that protects the version ---- */

/* The value of a key, or NT_TREE_NONE. */
uint64_t nt_tree_find(const nt_arena *arena, nt_root root, const void *key, size_t key_len);
/* What nt_tree_find_begin found. */
typedef struct nt_lookup {
    const nt_tnode *leaf; /* NULL: the tree is empty */
    nt_probe probe;
} nt_lookup;

/* nt_tree_find in two steps, for a caller who has something to do while the leaf comes from memory. This one
 * finds the leaf and asks the processor for it; the key stays where it is until the second step. */
void nt_tree_find_begin(const nt_arena *arena, nt_root root, const void *key, size_t key_len,
                        nt_lookup *lookup);
/* The second step: the value of the key, or NT_TREE_NONE. */
uint64_t nt_tree_find_end(const nt_arena *arena, const nt_lookup *lookup);
/* The number of keys. O(1) in the height. */
uint64_t nt_tree_count(const nt_arena *arena, nt_root root);
/* The number of keys less than `key`; with `inclusive`, less or equal. */
uint64_t nt_tree_rank(const nt_arena *arena, nt_root root, const void *key, size_t key_len,
                      int inclusive);
/* The number of keys less than every key that begins with `prefix` or comes after all of them; that is,
 * rank(prefix) and the keys with the prefix. */
uint64_t nt_tree_rank_after_prefix(const nt_arena *arena, nt_root root, const void *prefix,
                                   size_t prefix_len);

/* Finds the way to where a key belongs, and asks the processor for the leaf, for a later nt_tree_put_on. */
void nt_tree_seek(const nt_arena *arena, nt_root root, const void *key, size_t key_len, nt_way *way);

/* ---- Writing: inside a turn ---- */

/* Sets a key's value. *old is what it had, or NT_TREE_NONE. 1, or 0 where memory is short (then the caller
 * rolls the turn back). */
int nt_tree_put(nt_arena *arena, nt_root *root, const void *key, size_t key_len, uint64_t value,
                uint64_t *old);
/* The same, with the way to this key found before (NULL: none), which counts if the tree still has the root
 * that it begins with. Whoever found it has protected that version until now. */
int nt_tree_put_on(nt_arena *arena, nt_root *root, const nt_way *way, const void *key, size_t key_len,
                   uint64_t value, uint64_t *old);
/* Removes a key. *old is what it had, or NT_TREE_NONE and nothing changed. 1, or 0 as above. */
int nt_tree_delete(nt_arena *arena, nt_root *root, const void *key, size_t key_len, uint64_t *old);
/* Retires a whole tree and sets *root to 0. Needs no memory; 1 always. */
int nt_tree_clear(nt_arena *arena, nt_root *root);

/* ---- Checking ---- */

/* Walks a whole tree and checks every invariant (order, prefixes, counts, fill, births, separators).
 * NULL, or a static text that names the first one that does not hold. */
const char *nt_tree_check(const nt_arena *arena, nt_root root);
/* The number of arena nodes that a tree reaches. Walks it. */
uint64_t nt_tree_nodes(const nt_arena *arena, nt_root root);

#endif
