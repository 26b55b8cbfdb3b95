/*
 * tree_path: the way from a root to a leaf, and the steps of a change that several tree_* files share.
 */
#ifndef NT_STORE_TREE_PATH_H
#define NT_STORE_TREE_PATH_H

#include "store/node.h"
#include "store/tree.h"

#define NT_PATH_MAX NT_TREE_LEVELS

/* A way whose root no longer matters, and whose last `at` is the entry in the leaf. */
typedef nt_way nt_path;

static inline uint32_t nt_root_id(nt_root root) { return (uint32_t)root; }
static inline int nt_root_height(nt_root root) { return (int)(root >> 32); }
static inline nt_root nt_root_of(uint32_t id, int height) { return id | (uint64_t)(unsigned)height << 32; }

/* After an insertion at the end of `path` found no room: makes it by another layout of the leaf, or splits it
 * and what is above. 1, or 0 where memory is short. */
int nt_tree_grow(nt_arena *arena, nt_root *root, nt_path *path, const nt_entry *entry);

/* After a removal at the end of `path`: joins nodes that are nearly empty with their neighbours, or lets
 * neighbours share, and takes levels off. 1, or 0 where memory is short. */
int nt_tree_shrink(nt_arena *arena, nt_root *root, nt_path *path);

#define NT_TREE_LOW ((int)NT_NODE_SIZE / 3) /* a node with fewer bytes in use looks for company */

/* Finds company for a node of this turn with few bytes, `own`, which is child i of `above`, itself of this
 * turn: the neighbour with which it makes one node, or else one to share with. 1, or 0 where memory is
 * short. */
int nt_tree_relieve(nt_arena *arena, nt_tnode *above, int i, int inner, uint32_t own);

#endif
