/*
 * keydir: what exists. One immutable version of everything, and the next one in the making.
 *
 * A version is a small block of roots (keys, deadlines, one per index) in a node of the arena, so that it is
 * protected, held and freed by the same rules as the trees it names. The writer's turn builds the next
 * version aside: nt_keydir_begin, any number of nt_keydir_apply, then nt_keydir_seal or
 * nt_keydir_rollback. A sealed version is *staged*: later turns build on it, readers do not see it until
 * nt_keydir_publish. Recovery and live writes go through the same nt_keydir_apply.
 *
 * An entry of the key tree is a position (a multiple of 8 below 2^48) with flags in its low three bits.
 *
 * Invariants:
 *  K1. Readers see only published versions; numbers of published versions grow.
 *  K2. Between turns the newest staged version is either the published one or a later one.
 *  K3. keydir knows no clock and no threads: turns are one at a time by the caller's lock; enter, leave,
 *      hold and drop may be called from any thread beside a turn.
 */
#ifndef NT_KEYDIR_KEYDIR_H
#define NT_KEYDIR_KEYDIR_H

#include <stddef.h>
#include <stdint.h>

#include "format/op.h"
#include "store/tree.h"

typedef struct nt_keydir nt_keydir;

/* The roots of a version. */
enum {
    NT_ROOT_KEYS = 0,
    NT_ROOT_DEADLINES = 1,
    NT_ROOT_TERMS = 2, /* the first of up to 32 index roots */
    NT_ROOT_MAX = 34
};

typedef struct nt_version {
    nt_node node;        /* its birth is the version's number */
    uint64_t sequence;   /* the newest record's */
    uint64_t log_end;    /* position just behind the newest frame */
    uint32_t id;         /* its own node */
    uint32_t root_count; /* roots in use; those beyond are not even copied */
    nt_root roots[NT_ROOT_MAX];
} nt_version;

/* An entry's flags and position. */
enum {
    NT_ENTRY_EXPIRES = 1, /* the record has a deadline */
    NT_ENTRY_COUNTER = 2,
    NT_ENTRY_DAMAGED = 4  /* the record is lost: reading it is NTEE_CORRUPT */
};

#define NT_ENTRY_NONE NT_TREE_NONE

static inline uint64_t nt_entry_position(uint64_t entry) { return entry & ~(uint64_t)7u; }

/* Creates an empty keydir whose published version has number 1; NULL where memory is short. */
nt_keydir *nt_keydir_create(void);
/* Frees it. Nobody may be inside. NULL is allowed. */
void nt_keydir_destroy(nt_keydir *keydir);

/* ---- The writer's turn ---- */

/* Begins a turn on top of the newest staged version. 0 where memory is short: then there is no turn. */
int nt_keydir_begin(nt_keydir *keydir);
/* Applies a put, delete, evict or damaged op whose record lies at `position`. `way` is NULL, or what
 * nt_keydir_seek found for this key, by a reader who has not left yet. *old is the key's entry before, or
 * NT_ENTRY_NONE. 0 where memory is short: roll back. */
int nt_keydir_apply(nt_keydir *keydir, const nt_op *op, uint64_t position, const nt_way *way, uint64_t *old);
/* A root of the version in the making, for whoever fills it in bulk. Until the turn ends. */
nt_root *nt_keydir_root(nt_keydir *keydir, int root);
/* Ends the turn; what it made is the newest staged version now, and is returned. */
const nt_version *nt_keydir_seal(nt_keydir *keydir, uint64_t sequence, uint64_t log_end);
/* Ends the turn and forgets what it made. */
void nt_keydir_rollback(nt_keydir *keydir);
/* Lets readers see a staged version, and with it all before it. Not inside a turn. */
void nt_keydir_publish(nt_keydir *keydir, const nt_version *version);

/* The newest staged version, and a key's entry in it (NT_ENTRY_NONE: missing). For the holder of the turn. */
const nt_version *nt_keydir_staged(const nt_keydir *keydir);
uint64_t nt_keydir_staged_entry(const nt_keydir *keydir, const void *key, size_t key_len);

/* ---- Readers ---- */

typedef struct nt_view {
    const nt_version *version;
    uint32_t slot;
} nt_view;

/* Protects and gives the newest published version, for the length of one call. */
nt_view nt_keydir_enter(nt_keydir *keydir);
/* The same for a writer before its turn, who can do without: 1, or 0. */
int nt_keydir_try_enter(nt_keydir *keydir, nt_view *view);
void nt_keydir_leave(nt_keydir *keydir, nt_view view);

/* Finds the way to a key's place in a view's version, and brings its memory near, for an nt_keydir_apply that
 * comes soon. */
void nt_keydir_seek(const nt_keydir *keydir, nt_view view, const void *key, size_t key_len, nt_way *way);

/* Keeps the version of a view beyond nt_keydir_leave, until nt_keydir_drop. 0 where memory is short. */
int nt_keydir_hold(nt_keydir *keydir, nt_view view);
/* The newest published version, kept like that. NULL where memory is short. */
const nt_version *nt_keydir_hold_newest(nt_keydir *keydir);
void nt_keydir_drop(nt_keydir *keydir, const nt_version *version);

/* The arena that the roots of every version point into. */
nt_arena *nt_keydir_arena(const nt_keydir *keydir);

#endif
