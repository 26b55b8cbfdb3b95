#include "store/arena.h"

#include "base/epoch.h"
#include "base/os.h"

/*
 * Whatever lists a node can be in have room for it since its chunk was taken, so that nothing but taking
 * chunks, or a hold, can run out of memory: retiring, sealing, rolling back and freeing cannot fail.
 *
 * A node is in one of these states:
 *   never used   its chunk's fill has not reached it
 *   free         turn = FREE; in `free`
 *   live         turn = 0
 *   retired      in `queue`, those of the current turn last; turn = 0. Then perhaps kept for a hold, with
 *                turn = the turn that retired it; chained by `next` in the hold's `kept`, then perhaps in
 *                `orphans`; then free
 * The nodes born in the current turn are chained by `born`, those given back included, which are the topmost
 * `spare` ones of `free`: within a turn nothing else becomes free.
 *
 * The writer alone touches free and queue, which are arrays, as they are what every write goes through. The
 * lock guards the holds with their lists, and the orphans.
 */

#define CHUNK_NODES (1u << NT_ARENA_CHUNK_SHIFT)
#define CHUNK_BYTES ((size_t)CHUNK_NODES * NT_NODE_SIZE)
#define CHUNK_FIRST 1u
#define CHUNK_END (CHUNK_NODES - 1u)
#define CHUNKS_MAX (1u << (32u - NT_ARENA_CHUNK_SHIFT))
#define TABLE_FIRST 16u

/* The first chunk is taken alone, so that a small store is small; then several at a time, in pieces for which
 * the system may use large pages: those make finds and puts about a quarter faster. */
#define SINGLE_CHUNKS 1u
#define CHUNKS_AT_ONCE 4u

#define FREE UINT64_MAX

#define RECLAIM_AT 96u      /* nodes waiting before it is worth looking at the readers' slots */
#define RECLAIM_LEAST 512u  /* nodes looked at in one publication, besides twice what was retired since */
#define ORPHANS_LEAST 64u   /* the same for orphans, which are cold */
#define LOCK_SPAN 64u       /* nodes looked at under one lock */

typedef struct list {
    uint32_t head, tail; /* 0: empty; the tail of a list with a head is always right */
} list;

typedef struct hold {
    struct hold *older, *newer;
    uint64_t number;
    uint32_t count;
    list kept; /* retired nodes that this version reaches and no newer held version does */
} hold;

/* The chunks, and room for the ids of all their nodes. */
typedef struct table {
    struct table *smaller; /* the one before */
    uint32_t cap;
    uint8_t *_Atomic at[];
} table;

typedef struct retired {
    uint64_t turn;
    uint32_t id;
} retired;

struct nt_arena {
    nt_arena_map map;
    table *chunks;
    uint32_t chunk_count; /* in the table */
    uint32_t open;        /* of them, those that nodes have been taken from: the last one is the newest */
    uint32_t fill;        /* the next node of the newest chunk never used so far */

    uint64_t turn;   /* the current turn's, or the last one's, number */
    uint64_t sealed; /* the last sealed turn's number */
    uint64_t published;
    uint32_t born;
    uint32_t *free;      /* a stack of free_nodes ids */
    uint64_t spare;
    retired *queue;      /* a ring of queued nodes, from number `head` on, in the order of their turns */
    uint32_t queue_mask; /* its size, a power of two, less 1 */
    uint64_t head;
    uint64_t dropped; /* how many of the queue the current turn put there */
    uint64_t looked;  /* nodes in the queue after the last look at it */
    uint64_t look_at; /* the number of queued nodes that makes it worth looking */

    /* Written by the writer, read by whoever measures. The nodes used that are not counted here are live. */
    _Atomic uint64_t used_nodes; /* ever */
    _Atomic uint64_t free_nodes;
    _Atomic uint64_t queued;
    _Atomic uint64_t bytes;

    _Atomic uint64_t clock; /* the published number + 1, so never 0 */
    nt_epoch epoch;

    atomic_flag lock;
    hold *newest;
    list orphans; /* of holds that are gone */
    _Atomic int has_orphans;
    _Atomic uint64_t kept_nodes; /* in the holds' lists and the orphans; the writer counts */

    _Alignas(64) uint8_t scratch[NT_ARENA_SCRATCH];
};

#define ARENA_BYTES ((sizeof(struct nt_arena) + 0xFFFFu) & ~(size_t)0xFFFFu)

/* ---- Small tools ---- */

static void add(_Atomic uint64_t *figure, uint64_t by) { /* one writer: no atomic addition needed */
    uint64_t now = atomic_load_explicit(figure, memory_order_relaxed);
    atomic_store_explicit(figure, now + by, memory_order_relaxed);
}

static void take(_Atomic uint64_t *figure, uint64_t by) { add(figure, (uint64_t)0 - by); }

static uint64_t get(const _Atomic uint64_t *figure) {
    return atomic_load_explicit(figure, memory_order_relaxed);
}

static nt_node *node_of(const nt_arena *arena, uint32_t id) { return nt_arena_node(arena, id); }

static void append(nt_arena *arena, list *to, uint32_t id) {
    node_of(arena, id)->next = 0;
    if (to->head == 0) {
        to->head = id;
    } else {
        node_of(arena, to->tail)->next = id;
    }
    to->tail = id;
}

static uint32_t pop(nt_arena *arena, list *from) {
    uint32_t id = from->head;
    if (id != 0) from->head = node_of(arena, id)->next;
    return id;
}

/* Moves all of `from` behind the end of `to`. */
static void join(nt_arena *arena, list *to, list *from) {
    if (from->head == 0) return;
    if (to->head == 0) {
        *to = *from;
    } else {
        node_of(arena, to->tail)->next = from->head;
        to->tail = from->tail;
    }
    from->head = from->tail = 0;
}

static void lock(nt_arena *arena) {
    while (atomic_flag_test_and_set_explicit(&arena->lock, memory_order_acquire)) {
        nt_os_yield("arena lock");
        nt_epoch_pause();
    }
}

static void unlock(nt_arena *arena) { atomic_flag_clear_explicit(&arena->lock, memory_order_release); }

/* ---- Chunks ---- */

/* Bytes of the free stack and the queue for `cap` chunks. */
static size_t free_bytes(uint32_t cap) { return (size_t)cap * CHUNK_NODES * sizeof(uint32_t); }

static size_t queue_bytes(uint32_t cap) { return (size_t)cap * CHUNK_NODES * sizeof(retired); }

static void move_ids(nt_arena *arena, uint32_t *free_ids, retired *queue) {
    uint64_t queued = get(&arena->queued);
    for (uint64_t i = 0; i < queued; i++) queue[i] = arena->queue[(arena->head + i) & arena->queue_mask];
    memcpy(free_ids, arena->free, get(&arena->free_nodes) * sizeof(*free_ids));
    NT_OS->free_pages(arena->free, free_bytes(arena->chunks->cap));
    NT_OS->free_pages(arena->queue, queue_bytes(arena->chunks->cap));
}

/* Doubles the room for chunks and for the ids of their nodes. */
static int grow_table(nt_arena *arena) {
    table *old = arena->chunks;
    uint32_t cap = old ? old->cap * 2u : TABLE_FIRST;
    size_t bytes = sizeof(table) + cap * sizeof(old->at[0]);
    table *larger = nt_alloc(bytes);
    uint32_t *free_ids = NT_OS->alloc_pages(free_bytes(cap)); /* pages: untouched ones cost nothing */
    retired *queue = NT_OS->alloc_pages(queue_bytes(cap));
    if (!larger || !free_ids || !queue) {
        nt_free(larger);
        if (free_ids) NT_OS->free_pages(free_ids, free_bytes(cap));
        if (queue) NT_OS->free_pages(queue, queue_bytes(cap));
        return 0;
    }
    larger->smaller = old; /* readers may still be looking at it */
    larger->cap = cap;
    for (uint32_t i = 0; i < cap; i++) {
        uint8_t *chunk = old && i < old->cap ? atomic_load_explicit(&old->at[i], memory_order_relaxed) : NULL;
        atomic_init(&larger->at[i], chunk);
    }
    if (old) move_ids(arena, free_ids, queue);
    arena->free = free_ids;
    arena->queue = queue;
    arena->queue_mask = cap * CHUNK_NODES - 1u;
    arena->head = 0;
    arena->chunks = larger;
    atomic_store_explicit(&arena->map.chunks, larger->at, memory_order_release);
    add(&arena->bytes, bytes + (free_bytes(cap) + queue_bytes(cap)) / (old ? 2u : 1u));
    return 1;
}

/* How many chunks were, or are to be, taken together with the one of this number. */
static uint32_t chunks_together(uint32_t chunk) { return chunk < SINGLE_CHUNKS ? 1 : CHUNKS_AT_ONCE; }

static int take_chunks(nt_arena *arena) {
    uint32_t count = chunks_together(arena->chunk_count);
    if (arena->chunk_count + count > CHUNKS_MAX) return 0;
    if (arena->chunk_count + count > arena->chunks->cap && !grow_table(arena)) return 0;
    uint8_t *memory = NT_OS->alloc_pages(count * CHUNK_BYTES);
    if (!memory) return 0;
    for (uint32_t i = 0; i < count; i++) {
        atomic_store_explicit(&arena->chunks->at[arena->chunk_count++], memory + i * CHUNK_BYTES,
                              memory_order_relaxed);
    }
    add(&arena->bytes, count * CHUNK_BYTES);
    return 1;
}

/* A node never used before, or 0. */
static uint32_t carve(nt_arena *arena) {
    if (arena->fill == CHUNK_END) {
        if (arena->open == arena->chunk_count && !take_chunks(arena)) return 0;
        arena->open++;
        arena->fill = CHUNK_FIRST;
    }
    add(&arena->used_nodes, 1);
    return (arena->open - 1u) << NT_ARENA_CHUNK_SHIFT | arena->fill++;
}

/* Where the nodes of a chunk end that have been used. */
static uint32_t end_of(const nt_arena *arena, uint32_t chunk) {
    return chunk + 1u == arena->open ? arena->fill : CHUNK_END;
}

nt_arena *nt_arena_create(void) {
    nt_arena *arena = NT_OS->alloc_pages(ARENA_BYTES); /* pages: the slots want their alignment */
    if (!arena) return NULL;
    atomic_flag_clear(&arena->lock);
    atomic_init(&arena->clock, 1);
    atomic_init(&arena->bytes, ARENA_BYTES);
    arena->fill = CHUNK_END;
    arena->look_at = RECLAIM_AT;
    if (!grow_table(arena)) {
        nt_arena_destroy(arena);
        return NULL;
    }
    return arena;
}

void nt_arena_destroy(nt_arena *arena) {
    if (!arena) return;
    for (uint32_t i = 0; i < arena->chunk_count; i += chunks_together(i)) {
        NT_OS->free_pages(atomic_load_explicit(&arena->chunks->at[i], memory_order_relaxed),
                          chunks_together(i) * CHUNK_BYTES);
    }
    if (arena->chunks) {
        NT_OS->free_pages(arena->free, free_bytes(arena->chunks->cap));
        NT_OS->free_pages(arena->queue, queue_bytes(arena->chunks->cap));
    }
    while (arena->chunks) {
        table *smaller = arena->chunks->smaller;
        nt_free(arena->chunks);
        arena->chunks = smaller;
    }
    while (arena->newest) {
        hold *older = arena->newest->older;
        nt_free(arena->newest);
        arena->newest = older;
    }
    NT_OS->free_pages(arena, ARENA_BYTES);
}

/* ---- Giving nodes back ---- */

static void push_free(nt_arena *arena, uint32_t id) {
    uint64_t count = get(&arena->free_nodes);
    arena->free[count] = id;
    atomic_store_explicit(&arena->free_nodes, count + 1u, memory_order_relaxed);
}

/* Makes a node free that is live or retired. */
static void release(nt_arena *arena, uint32_t id) {
    nt_node *node = node_of(arena, id);
#ifdef NT_TESTING /* whoever still reads it shall notice */
    memset(node + 1, 0xDD, NT_NODE_SIZE - sizeof(*node));
#endif
    node->turn = FREE;
    push_free(arena, id);
}

/* The newest held version before `turn`, where it is not older than `birth`: the version that keeps a node
 * of that birth, retired by that turn. Under the lock. */
static hold *keeper(const nt_arena *arena, uint64_t birth, uint64_t turn) {
    hold *h = arena->newest;
    while (h && h->number >= turn) h = h->older;
    return h && h->number >= birth ? h : NULL;
}

/* Looks at one retired node that no slot protects: a hold keeps it, or it is free. Under the lock. */
static void keep_or_release(nt_arena *arena, uint32_t id, uint64_t turn) {
    hold *h = arena->newest ? keeper(arena, node_of(arena, id)->birth, turn) : NULL;
    if (h) {
        node_of(arena, id)->turn = turn;
        append(arena, &h->kept, id);
        add(&arena->kept_nodes, 1);
    } else {
        release(arena, id);
    }
}

/* Looks at up to `most` nodes of the queue whose turn is before `limit`. 1 where there may be more. */
static int drain_queue(nt_arena *arena, uint64_t limit, uint64_t most) {
    while (most > 0) {
        lock(arena);
        for (uint32_t i = 0; i < LOCK_SPAN && most > 0; i++, most--) {
            retired next = arena->queue[arena->head & arena->queue_mask];
            if (get(&arena->queued) == 0 || next.turn >= limit) {
                unlock(arena);
                return 0;
            }
            arena->head++;
            take(&arena->queued, 1);
            keep_or_release(arena, next.id, next.turn);
        }
        unlock(arena);
    }
    return 1;
}

/* The same for what dropped holds left behind. */
static void drain_orphans(nt_arena *arena, uint64_t most) {
    for (int more = 1; more && most > 0;) {
        lock(arena);
        for (uint32_t i = 0; i < LOCK_SPAN && most > 0; i++, most--) {
            uint32_t id = pop(arena, &arena->orphans);
            if (id == 0) {
                atomic_store_explicit(&arena->has_orphans, 0, memory_order_relaxed);
                more = 0;
                break;
            }
            take(&arena->kept_nodes, 1);
            keep_or_release(arena, id, node_of(arena, id)->turn);
        }
        unlock(arena);
    }
}

/* ---- The writer's turn ---- */

uint64_t nt_arena_begin(nt_arena *arena) {
    arena->turn = arena->sealed + 1u;
    arena->born = 0;
    arena->spare = 0;
    arena->dropped = 0;
    return arena->turn;
}

void nt_arena_seal(nt_arena *arena) { arena->sealed = arena->turn; }

void nt_arena_rollback(nt_arena *arena) {
    take(&arena->free_nodes, arena->spare); /* they come back with all the born */
    for (uint32_t id = arena->born, next; id != 0; id = next) {
        next = node_of(arena, id)->born;
        release(arena, id);
    }
    take(&arena->queued, arena->dropped);
    arena->turn = arena->sealed;
}

void nt_arena_publish(nt_arena *arena, uint64_t number) {
    int again = number == arena->published;
    arena->published = number;
    atomic_store_explicit(&arena->clock, number + 1u, memory_order_release);
    uint64_t queued = get(&arena->queued), twice = queued > arena->looked ? 2u * (queued - arena->looked) : 0;
    if (atomic_load_explicit(&arena->has_orphans, memory_order_relaxed)) {
        drain_orphans(arena, ORPHANS_LEAST + twice);
    }
    if (queued < arena->look_at && !again) return;
    /* Slots hold clocks: a reader with the number of version v in its slot may reach what v + 1 retired. */
    atomic_store(&arena->clock, number + 1u); /* again, in the one order with the slots */
    uint64_t oldest = nt_epoch_oldest(&arena->epoch);
    int more = drain_queue(arena, oldest < number + 1u ? oldest : number + 1u, RECLAIM_LEAST + twice);
    arena->looked = get(&arena->queued);
    arena->look_at = more ? 0 : arena->looked + RECLAIM_AT;
}

uint32_t nt_arena_new(nt_arena *arena) {
    uint64_t count = get(&arena->free_nodes);
    uint32_t id;
    if (count > 0) {
        id = arena->free[count - 1u];
        atomic_store_explicit(&arena->free_nodes, count - 1u, memory_order_relaxed);
        if (arena->spare > 0) { /* is among the born already */
            arena->spare--;
            node_of(arena, id)->turn = 0;
            return id;
        }
    } else if ((id = carve(arena)) == 0) {
        return 0;
    }
    *node_of(arena, id) = (nt_node){.birth = arena->turn, .born = arena->born};
    arena->born = id;
    return id;
}

void nt_arena_retire(nt_arena *arena, uint32_t id) {
    nt_node *node = node_of(arena, id);
    if (node->birth == arena->turn) {
        node->turn = FREE;
        push_free(arena, id);
        arena->spare++;
        return;
    }
    uint64_t queued = get(&arena->queued);
    arena->queue[(arena->head + queued) & arena->queue_mask] = (retired){arena->turn, id};
    atomic_store_explicit(&arena->queued, queued + 1u, memory_order_relaxed);
    arena->dropped++;
}

uint64_t nt_arena_turn(const nt_arena *arena) { return arena->turn; }

void *nt_arena_scratch(nt_arena *arena) { return arena->scratch; }

/* ---- Readers ---- */

uint32_t nt_arena_enter(nt_arena *arena) { return nt_epoch_enter(&arena->epoch, &arena->clock); }

int nt_arena_try_enter(nt_arena *arena, uint32_t *slot) {
    return nt_epoch_try(&arena->epoch, &arena->clock, slot);
}

void nt_arena_leave(nt_arena *arena, uint32_t slot) { nt_epoch_leave(&arena->epoch, slot); }

/* Where a hold on `number` is or belongs: the newest one that is not newer. Under the lock. */
static hold *place_of(const nt_arena *arena, uint64_t number, hold **newer) {
    hold *h = arena->newest;
    *newer = NULL;
    while (h && h->number > number) {
        *newer = h;
        h = h->older;
    }
    return h;
}

/*
 * Why a hold never comes too late: the caller's slot holds a clock of at most number + 1, so until it leaves
 * no node retired by a turn after `number` passes the limit of nt_arena_publish; and a publication that no
 * longer sees the slot sees the hold, which was made before.
 */
int nt_arena_hold(nt_arena *arena, uint64_t number) {
    hold *fresh = nt_alloc(sizeof(*fresh)), *newer;
    if (!fresh) return 0;
    *fresh = (hold){.number = number, .count = 1};
    lock(arena);
    hold *h = place_of(arena, number, &newer);
    if (h && h->number == number) {
        h->count++;
    } else {
        fresh->older = h;
        fresh->newer = newer;
        if (h) h->newer = fresh;
        *(newer ? &newer->older : &arena->newest) = fresh;
        fresh = NULL;
    }
    unlock(arena);
    nt_free(fresh);
    return 1;
}

void nt_arena_drop(nt_arena *arena, uint64_t number) {
    hold *newer;
    lock(arena);
    hold *h = place_of(arena, number, &newer);
    if (!h || h->number != number || --h->count > 0) {
        unlock(arena);
        return;
    }
    if (h->older) h->older->newer = newer;
    *(newer ? &newer->older : &arena->newest) = h->older;
    if (h->kept.head != 0) {
        join(arena, &arena->orphans, &h->kept);
        atomic_store_explicit(&arena->has_orphans, 1, memory_order_relaxed);
    }
    unlock(arena);
    nt_free(h);
}

/* ---- Figures ---- */

void nt_arena_measure(nt_arena *arena, nt_arena_usage *usage) {
    usage->free = get(&arena->free_nodes);
    usage->waiting = get(&arena->queued) + get(&arena->kept_nodes);
    uint64_t used = get(&arena->used_nodes), others = usage->free + usage->waiting;
    usage->live = used > others ? used - others : 0; /* beside a turn they need not add up */
    usage->bytes = get(&arena->bytes);
    usage->holds = 0;
    lock(arena);
    for (hold *h = arena->newest; h; h = h->older) usage->holds += h->count;
    unlock(arena);
}

int nt_arena_is_used(const nt_arena *arena, uint32_t id) {
    uint32_t chunk = id >> NT_ARENA_CHUNK_SHIFT, i = id & (CHUNK_NODES - 1u);
    if (chunk >= arena->open || i < CHUNK_FIRST || i >= end_of(arena, chunk)) return 0;
    return node_of(arena, id)->turn != FREE;
}
