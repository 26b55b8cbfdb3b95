#include "keydir/keydir.h"

#include <stdatomic.h>
#include <string.h>

#include "base/os.h"

_Static_assert(sizeof(nt_version) <= NT_NODE_SIZE, "a version fits a node");

struct nt_keydir {
    nt_arena *arena;
    _Atomic(const nt_version *) published;
    nt_version *staged;
    nt_version *building; /* NULL outside a turn */
};

/* Bytes of a version that are in use. */
static size_t version_size(const nt_version *version) {
    return offsetof(nt_version, roots) + version->root_count * sizeof(nt_root);
}

nt_keydir *nt_keydir_create(void) {
    nt_keydir *keydir = nt_alloc(sizeof *keydir);
    if (!keydir) return NULL;
    memset(keydir, 0, sizeof *keydir);
    keydir->arena = nt_arena_create();
    if (!keydir->arena || !nt_keydir_begin(keydir)) {
        nt_keydir_destroy(keydir);
        return NULL;
    }
    nt_keydir_publish(keydir, nt_keydir_seal(keydir, 0, 0));
    return keydir;
}

void nt_keydir_destroy(nt_keydir *keydir) {
    if (!keydir) return;
    if (keydir->arena) nt_arena_destroy(keydir->arena);
    nt_free(keydir);
}

int nt_keydir_begin(nt_keydir *keydir) {
    nt_arena_begin(keydir->arena);
    uint32_t id = nt_arena_new(keydir->arena);
    if (id == 0) {
        nt_arena_rollback(keydir->arena);
        return 0;
    }
    nt_version *version = nt_arena_node(keydir->arena, id);
    uint64_t birth = version->node.birth;
    if (keydir->staged) {
        memcpy(version, keydir->staged, version_size(keydir->staged));
        version->node.birth = birth;
        nt_arena_retire(keydir->arena, keydir->staged->id);
    } else {
        memset(version, 0, sizeof *version);
        version->node.birth = birth;
        version->root_count = NT_ROOT_TERMS;
    }
    version->id = id;
    keydir->building = version;
    return 1;
}

int nt_keydir_apply(nt_keydir *keydir, const nt_op *op, uint64_t position, const nt_way *way, uint64_t *old) {
    nt_root *keys = &keydir->building->roots[NT_ROOT_KEYS];
    switch (op->kind) {
    case NT_OP_PUT:
        return nt_tree_put_on(keydir->arena, keys, way, op->key, op->key_len, position, old);
    case NT_OP_DAMAGED:
        return nt_tree_put(keydir->arena, keys, op->key, op->key_len, position | NT_ENTRY_DAMAGED,
                           old);
    default: /* NT_OP_DELETE, NT_OP_EVICT */
        return nt_tree_delete(keydir->arena, keys, op->key, op->key_len, old);
    }
}

nt_root *nt_keydir_root(nt_keydir *keydir, int root) { return &keydir->building->roots[root]; }

const nt_version *nt_keydir_seal(nt_keydir *keydir, uint64_t sequence, uint64_t log_end) {
    nt_version *version = keydir->building;
    version->sequence = sequence;
    version->log_end = log_end;
    keydir->building = NULL;
    keydir->staged = version;
    nt_arena_seal(keydir->arena);
    return version;
}

void nt_keydir_rollback(nt_keydir *keydir) {
    keydir->building = NULL;
    nt_arena_rollback(keydir->arena);
}

void nt_keydir_publish(nt_keydir *keydir, const nt_version *version) {
    uint64_t number = version->node.birth;
    atomic_store_explicit(&keydir->published, version, memory_order_release);
    nt_arena_publish(keydir->arena, number);
}

const nt_version *nt_keydir_staged(const nt_keydir *keydir) { return keydir->staged; }

uint64_t nt_keydir_staged_entry(const nt_keydir *keydir, const void *key, size_t key_len) {
    return nt_tree_find(keydir->arena, keydir->staged->roots[NT_ROOT_KEYS], key, key_len);
}

nt_view nt_keydir_enter(nt_keydir *keydir) {
    nt_view view;
    view.slot = nt_arena_enter(keydir->arena);
    view.version = atomic_load_explicit(&keydir->published, memory_order_acquire);
    return view;
}

int nt_keydir_try_enter(nt_keydir *keydir, nt_view *view) {
    if (!nt_arena_try_enter(keydir->arena, &view->slot)) return 0;
    view->version = atomic_load_explicit(&keydir->published, memory_order_acquire);
    return 1;
}

void nt_keydir_leave(nt_keydir *keydir, nt_view view) {
    nt_arena_leave(keydir->arena, view.slot);
}

void nt_keydir_seek(const nt_keydir *keydir, nt_view view, const void *key, size_t key_len, nt_way *way) {
    nt_tree_seek(keydir->arena, view.version->roots[NT_ROOT_KEYS], key, key_len, way);
}

int nt_keydir_hold(nt_keydir *keydir, nt_view view) {
    return nt_arena_hold(keydir->arena, view.version->node.birth);
}

const nt_version *nt_keydir_hold_newest(nt_keydir *keydir) {
    nt_view view = nt_keydir_enter(keydir);
    int held = nt_keydir_hold(keydir, view);
    nt_keydir_leave(keydir, view);
    return held ? view.version : NULL;
}

void nt_keydir_drop(nt_keydir *keydir, const nt_version *version) {
    nt_arena_drop(keydir->arena, version->node.birth);
}

nt_arena *nt_keydir_arena(const nt_keydir *keydir) { return keydir->arena; }
