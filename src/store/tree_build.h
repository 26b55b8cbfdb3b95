/*
 * tree_build: makes a tree of keys that come in order, in a fraction of the time that putting them takes.
 *
 * Nodes are filled from left to right to 15/16, so that the first puts that follow find room. What comes out
 * is a tree like any other, in nodes of this turn. A build uses the arena's scratch room: from
 * nt_build_begin to nt_build_end nothing else of the turn may change a tree.
 */
#ifndef NT_STORE_TREE_BUILD_H
#define NT_STORE_TREE_BUILD_H

#include <stddef.h>
#include <stdint.h>

#include "store/node.h"
#include "store/tree.h"

typedef enum nt_build_fault {
    NT_BUILD_FINE = 0,
    NT_BUILD_MEMORY = 1, /* memory is short */
    NT_BUILD_ORDER = 2   /* a key that is not greater than the one before, or longer than a key may be */
} nt_build_fault;

/* What is known of the entries of a leaf in the making. */
typedef struct nt_build_leaf {
    int n;
    int plen;     /* what their inline bytes have in common */
    int varied;   /* whether their lengths differ, or some are long */
    int shortest; /* inline bytes of the shortest */
    int bytes;    /* inline bytes of all, and their trailers */
} nt_build_leaf;

/* A tree in the making, in the caller's memory. */
typedef struct nt_build {
    nt_build_fault fault; /* why a call gave 0 */
    nt_arena *arena;
    uint64_t count;       /* keys so far */
    /* The rest is the module's own. */
    nt_root root;         /* of the leaves that are done; 0: none is */
    uint32_t spine[NT_TREE_LEVELS + 1]; /* the last node of each level above the leaves, the lowest first */
    nt_build_leaf leaf;   /* its entries wait on the bench */
    uint8_t *room;        /* where the next one's inline bytes go */
    nt_entry separator;   /* between that leaf and the one before */
    uint8_t separator_room[NT_NODE_INLINE];
} nt_build;

/* Begins an empty tree in the arena's current turn. */
void nt_build_begin(nt_build *build, nt_arena *arena);
/* Adds a key, greater than all before it, of 0 to NT_TREE_KEY_MAX bytes, with its value. The key's bytes are
 * copied. 1, or 0 and `fault` is set: then no further calls, and the turn is rolled back. */
int nt_build_add(nt_build *build, const void *key, size_t key_len, uint64_t value);
/* Ends the build: *root is the tree of all keys, 0 where there was none. 1, or 0 as above. */
int nt_build_end(nt_build *build, nt_root *root);

#endif
