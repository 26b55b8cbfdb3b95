/*
 * arena: the memory of all trees of a store, in nodes of 1 KiB named by 32-bit ids.
 *
 * Nodes are copy-on-write. A node is born in one turn of the writer; until that turn is sealed the
 * writer changes it in place, afterwards it never changes again. A node that a later turn replaces is
 * *retired* by that turn and freed when nobody can reach it any more.
 *
 * Turns have numbers, counting up from 1; a node carries the number of its turn (birth). A version of
 * the store is what one sealed turn left; it is published, or, where a sync must come first, it waits
 * as staged while later turns build on it.
 *
 * Invariants:
 *  A1. A node with birth < current turn is never written, but for the arena's own words at its beginning.
 *  A2. A node retired by turn t is reachable only from versions with number < t (and >= its birth).
 *  A3. It is freed only when t <= the published number, t <= every reader's slot number, and no held
 *      version v has birth <= v < t.
 *  A4. nt_arena_rollback leaves exactly the nodes that were there when the turn began.
 *
 * One thread at a time is in a turn (the caller has a lock for that). Readers call nt_arena_enter and
 * nt_arena_leave from any thread; nt_arena_hold and nt_arena_drop too.
 */
#ifndef NT_STORE_ARENA_H
#define NT_STORE_ARENA_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define NT_NODE_SIZE 1024u
#define NT_ARENA_SCRATCH (88u * 1024u)

typedef struct nt_arena nt_arena;

/* Creates an empty arena; NULL where memory is short. */
nt_arena *nt_arena_create(void);
/* Frees everything. Nobody may be inside. */
void nt_arena_destroy(nt_arena *arena);

/* ---- The writer's turn ---- */

/* Begins a turn and returns its number (the last sealed turn's number + 1). */
uint64_t nt_arena_begin(nt_arena *arena);
/* Ends a turn and keeps it. Cannot fail. */
void nt_arena_seal(nt_arena *arena);
/* Ends a turn and undoes it: its nodes are freed, what it retired is not retired. Cannot fail.
 * Its number is given out again. */
void nt_arena_rollback(nt_arena *arena);
/* Says that version `number` is published now: readers that enter from here on see it or a newer one.
 * Call after the store that publishes it. Frees some of the retired nodes once enough of them wait; calling
 * it again with the same number does so whatever waits. Any thread, one at a time, never beside a turn. */
void nt_arena_publish(nt_arena *arena, uint64_t number);

/* A new node of this turn (contents undefined but for its birth), or 0 where memory is short. */
uint32_t nt_arena_new(nt_arena *arena);
/* Retires a node of an earlier turn, or frees one of this turn at once. Needs no memory, cannot fail. */
void nt_arena_retire(nt_arena *arena, uint32_t id);
/* The current turn's number. */
uint64_t nt_arena_turn(const nt_arena *arena);
/* NT_ARENA_SCRATCH bytes, aligned for any type, for whoever is in a turn. */
void *nt_arena_scratch(nt_arena *arena);

/* ---- Readers ---- */

/* Protects every version that is published now or later, until nt_arena_leave. Short: one call. */
uint32_t nt_arena_enter(nt_arena *arena);
/* The same for a writer before its turn (nt_epoch_try): *slot and 1, or 0. */
int nt_arena_try_enter(nt_arena *arena, uint32_t *slot);
void nt_arena_leave(nt_arena *arena, uint32_t slot);
/* Protects version `number` for long, at the price of the nodes that it alone reaches. The caller is
 * between enter and leave and has loaded that version. 0 where memory is short. */
int nt_arena_hold(nt_arena *arena, uint64_t number);
/* Ends one hold on version `number`: nobody reads it by virtue of this hold any more. What it alone kept is
 * freed bit by bit by the publications that follow. */
void nt_arena_drop(nt_arena *arena, uint64_t number);

/* ---- Figures, for tests and statistics ---- */

typedef struct nt_arena_usage {
    uint64_t live;    /* nodes in use by the newest version */
    uint64_t waiting; /* retired, not free yet */
    uint64_t free;    /* ready for reuse */
    uint64_t bytes;   /* address space taken from the system; nodes never used cost no memory */
    uint32_t holds;   /* not yet dropped */
} nt_arena_usage;

/* Any thread; beside a turn the figures may be a few nodes apart from each other. */
void nt_arena_measure(nt_arena *arena, nt_arena_usage *usage);
/* Whether a node is neither free nor never used (it may be retired). Not beside a turn of another thread. */
int nt_arena_is_used(const nt_arena *arena, uint32_t id);

/* ---- For the tree modules ---- */

/* Every node begins with this. Readers of a node look at none of it. */
typedef struct nt_node {
    uint64_t birth;
    uint64_t turn; /* the arena's own, from here on */
    uint32_t next;
    uint32_t born;
} nt_node;

/* Nodes per chunk: 2,048, so a chunk is 2 MiB. The first is never handed out, as 0 is no node's id, and the
 * last is not, so that reading a little past the end of a node is harmless. */
#define NT_ARENA_CHUNK_SHIFT 11u

/* The part of the arena that readers touch. */
typedef struct nt_arena_map {
    uint8_t *_Atomic *_Atomic chunks; /* chunk table; old tables live until destroy */
} nt_arena_map;

/* A node's memory. Any thread that protects a version which reaches it. */
static inline void *nt_arena_node(const nt_arena *arena, uint32_t id) {
    const nt_arena_map *map = (const nt_arena_map *)arena; /* the arena's first member */
    uint8_t *_Atomic *chunks = atomic_load_explicit(&map->chunks, memory_order_acquire);
    uint8_t *chunk =
        atomic_load_explicit(&chunks[id >> NT_ARENA_CHUNK_SHIFT], memory_order_relaxed);
    return chunk + (size_t)(id & ((1u << NT_ARENA_CHUNK_SHIFT) - 1u)) * NT_NODE_SIZE;
}

#endif
