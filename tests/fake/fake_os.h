/*
 * fake_os: a file system in memory behind the nt_os table, that can crash, tear, fail and fill up.
 *
 * Every file has its visible content, which is also what its mappings show, and a list of pending items:
 * each write, store, size change and allocation since the file's last sync. Every directory has its visible
 * and its durable entries, and pending items for creations, renames and removals since its last sync.
 * A power loss keeps what is durable and any part of what is pending; a process kill keeps what is visible.
 *
 *     fake_fs *fs = fake_new(seed);
 *     fake_use(fs);                      nt_os_now points at the fake from here on
 *     ... open a store, write ...
 *     fake_fs *image = fake_crash(fs, &(fake_crash_plan){.mode = FAKE_RANDOM, .seed = 1});
 *     fake_use(image);
 *     ... open what is left of it, check, close ...
 *     fake_use(fs);
 *     fake_free(image);
 *
 * Single-threaded. Instances are independent of each other; the table acts on the one in use. Misuse
 * (a closed descriptor, a store outside of a mapping, memory freed twice) prints a line and aborts.
 */
#ifndef FAKE_OS_H
#define FAKE_OS_H

#include <stddef.h>
#include <stdint.h>

#include "base/os.h"

typedef struct fake_fs fake_fs;

/* What a call is, for faults, hooks and counts. */
typedef enum fake_call {
    FAKE_ANY, /* in a fault: any call but FAKE_ALLOC */
    FAKE_OPEN_DIR,
    FAKE_MAKE_DIR,
    FAKE_REMOVE_DIR,
    FAKE_SYNC_DIR,
    FAKE_LIST,
    FAKE_OPEN,
    FAKE_RENAME,
    FAKE_UNLINK,
    FAKE_SAME_FILE,
    FAKE_FILE_SYSTEM,
    FAKE_CLOSE,
    FAKE_READ,
    FAKE_WRITE,
    FAKE_SYNC,
    FAKE_TRUNCATE,
    FAKE_ALLOCATE,
    FAKE_SIZE,
    FAKE_LOCK,
    FAKE_MAP,
    FAKE_UNMAP, /* a failing unmap leaves the mapping gone all the same */
    FAKE_RESIDENT,
    FAKE_RANDOM_BYTES,
    FAKE_THREAD,
    FAKE_ALLOC, /* alloc, realloc and alloc_pages */
    FAKE_STORE, /* from here on: cannot fail */
    FAKE_RELEASE,
    FAKE_YIELD,
    FAKE_CALLS
} fake_call;

/* ---- Instances ----------------------------------------------------------------------------------- */

/* An empty file system with a root directory. Paths may be absolute or relative, which is the same. */
fake_fs *fake_new(uint64_t seed);
/* Frees it. Prints and aborts where descriptors, mappings or memory are still out (fake_leaks). */
void fake_free(fake_fs *fs);
/* Frees it whatever is still out: for runs that a test abandons halfway. Their memory stays lost. */
void fake_abandon(fake_fs *fs);
/* Makes `fs` the one behind nt_os_now; NULL: nt_os_now is the POSIX table again. */
void fake_use(fake_fs *fs);
/* The one in use, or NULL. */
fake_fs *fake_current(void);
/* The table itself. */
extern const nt_os fake_os;

/* ---- Settings, changed at any time --------------------------------------------------------------- */

typedef struct fake_settings {
    int traits;            /* of nt_os.file_system; at first mapped reads and writes */
    int no_allocate;       /* 1: allocate answers EOPNOTSUPP */
    int partial_allocate;  /* 1: an allocate that finds the disk full keeps what it got, as ext4 does */
    int not_resident;      /* 1: resident says that nothing is in memory */
    int evict_on_failure;  /* 1: a failed sync makes the bytes it did not write vanish from view at once */
    uint64_t capacity;     /* blocks of 4 KiB on the disk; 0: no limit */
    int64_t real_ms;       /* the clocks: they stand still unless a test moves them */
    int64_t boot_ms;
    int64_t process_id;
    void (*sigbus)(const char *why); /* a store that could have died; NULL: print and abort */
} fake_settings;

fake_settings *fake_set(fake_fs *fs);

/* ---- Faults -------------------------------------------------------------------------------------- */

/* Fails the nth call (1: the next one) of a kind from now on. EINTR is never sticky. */
typedef struct fake_fault {
    fake_call call;
    uint64_t nth;
    int error;      /* errno; 0 for a read or write: it moves only half, at least one byte */
    int sticky;     /* 1: all later ones as well */
} fake_fault;

/* Adds a fault; up to 8 at a time. */
void fake_fail(fake_fs *fs, fake_fault fault);
/* Removes all faults. */
void fake_heal(fake_fs *fs);
/* How many calls faults have changed since fake_new. */
uint64_t fake_fired(const fake_fs *fs);
/* How many calls of a kind were made (FAKE_ANY: all that can fail, FAKE_ALLOC not included). */
uint64_t fake_count(const fake_fs *fs, fake_call call);

/* ---- Hooks --------------------------------------------------------------------------------------- */

typedef struct fake_event {
    fake_call call;
    int after;        /* 0: before the call took effect, 1: after */
    const char *name; /* of the file, directory entry or yield point */
    uint64_t offset;
    uint64_t len;
} fake_event;

/* Called before and after every call that changes something (create, rename, unlink, syncs, write, truncate,
 * allocate, store, release, directories) and at every yield. Not called for what a hook itself does to
 * the same instance. It may use other instances and must put this one back in use. NULL: none. */
void fake_hook(fake_fs *fs, void (*hook)(void *arg, fake_fs *fs, const fake_event *event), void *arg);

/* ---- Crashes ------------------------------------------------------------------------------------- */

typedef enum fake_mode {
    FAKE_NONE,   /* nothing that is pending landed */
    FAKE_ALL,    /* all of it did */
    FAKE_MASK,   /* item i landed where bit i of `mask` is set (beyond 64 items: not) */
    FAKE_RANDOM, /* each item by chance, some torn at 8, 512 or 4096 bytes; the odds differ by seed */
    FAKE_PAGES   /* write-back: each page as it was at some moment, some torn at 512 bytes; sizes and blocks
                    as they were at some moment of their own */
} fake_mode;

typedef struct fake_crash_plan {
    fake_mode mode;
    uint64_t seed;
    uint64_t mask;
} fake_crash_plan;

/* How many items are pending. Data and the size change that it causes are two. */
size_t fake_pending(const fake_fs *fs);
/* What a power loss leaves, as a new instance: durable, nothing pending, nothing open. */
fake_fs *fake_crash(const fake_fs *fs, const fake_crash_plan *plan);
/* What a process kill leaves: all that is visible; what was pending still is. Within a hook, `tear` not 0
 * lets a part of the running store or write land. */
fake_fs *fake_kill(const fake_fs *fs, uint64_t tear);
/* Makes what failed syncs did not write vanish from view, as if its clean-marked pages were evicted. */
void fake_evict(fake_fs *fs);
/* A hash of all that is visible: names, sizes, contents. */
uint64_t fake_hash(const fake_fs *fs);
/* A hash of all calls with their arguments so far: equal for two equal runs. */
uint64_t fake_trace(const fake_fs *fs);

/* ---- Looking and meddling ------------------------------------------------------------------------ */

/* The visible bytes of a file, or NULL. Valid until the file changes. Changes made to them are
 * durable at once. */
uint8_t *fake_bytes(fake_fs *fs, const char *path, uint64_t *size);
/* Makes a file with this content, or replaces it; durable at once, with its directories. */
void fake_plant(fake_fs *fs, const char *path, const void *bytes, size_t len);
/* Whether anything of that name is visible. */
int fake_exists(const fake_fs *fs, const char *path);
/* Descriptors, mappings and pieces of memory that are out. `print`: with a line for each. */
size_t fake_leaks(const fake_fs *fs, int print);
/* Blocks in use. */
uint64_t fake_used(const fake_fs *fs);

#endif
