/*
 * fake_int: the insides of the fake file system, for the files of tests/fake only.
 *
 * A node is a file or a directory; its id is its place in fake_fs.nodes, the root's is 0. A file's bytes lie
 * in a region: a large reservation of address space of which only `content` bytes were ever written, so that a
 * mapping far beyond the end costs nothing. There is no second copy of the durable bytes: each pending item
 * keeps what it overwrote, and an image is the visible bytes, undone, and then redone in part.
 */
#ifndef FAKE_INT_H
#define FAKE_INT_H

#include "fake/fake_os.h"

#define FAKE_REGION ((uint64_t)1 << 31)
#define FAKE_BLOCK 4096u

enum { FAKE_NAME = 72, FAKE_FAULTS = 8, FAKE_FD_BASE = 100000 };

typedef enum fake_kind {
    ITEM_DATA,   /* bytes at offset; undo holds what was there */
    ITEM_GROW,   /* the size rose from old_size to new_size */
    ITEM_CUT,    /* the size fell; undo holds what was cut off, without its trailing zeros */
    ITEM_BLOCKS, /* [offset, offset + len) got blocks */
    ITEM_LINK,   /* directory: name (data) now is `target` */
    ITEM_UNLINK, /* directory: name (data) no longer is `target` */
    ITEM_RENAME  /* directory: `target` is called undo instead of data */
} fake_kind;

typedef struct fake_item {
    fake_kind kind;
    int node;
    int target;
    int dropped; /* a sync failed on it: no later sync makes it durable */
    uint64_t offset;
    uint64_t len;
    uint64_t old_size;
    uint64_t new_size;
    size_t data; /* places in fake_fs.bytes */
    size_t undo;
    size_t undo_len;
} fake_item;

typedef struct fake_entry {
    char name[FAKE_NAME];
    int node;
} fake_entry;

typedef struct fake_entries {
    fake_entry *at;
    size_t count;
    size_t cap;
} fake_entries;

typedef struct fake_node {
    int is_dir;
    int links;    /* visible entries */
    int opens;    /* descriptors and mappings */
    int released; /* gone from view, but a crash could bring it back */
    uint8_t *data;
    uint64_t size;
    uint64_t content; /* bytes beyond are zero */
    uint8_t *blocks;  /* one byte a block */
    uint64_t block_cap;
    uint64_t block_count;
    fake_entries visible;
    fake_entries durable;
} fake_node;

typedef struct fake_fd {
    int used;
    int node;
    int writable;
    int lock; /* 0, 1: shared, 2: exclusive */
} fake_fd;

typedef struct fake_map {
    uint8_t *at;
    size_t len;
    int node;
    int writable;
} fake_map;

struct fake_fs {
    fake_settings settings;
    fake_node **nodes;
    size_t node_count;
    fake_item *items;
    size_t item_count;
    size_t item_cap;
    uint8_t *bytes; /* what items point into, in their order */
    size_t bytes_len;
    size_t bytes_cap;
    fake_fd *fds;
    size_t fd_count;
    fake_map *maps;
    size_t map_count;
    size_t map_cap;
    size_t allocs;
    struct fake_memory *memory; /* a ring of what is out */
    fake_fault faults[FAKE_FAULTS];
    uint64_t fault_seen[FAKE_FAULTS];
    int fault_count;
    uint64_t fired;
    uint64_t counts[FAKE_CALLS];
    uint64_t random;
    uint64_t trace;
    void (*hook)(void *arg, fake_fs *fs, const fake_event *event);
    void *hook_arg;
    int in_hook;
    /* The running store or write, for fake_kill. */
    fake_call running;
    int running_node;
    uint64_t running_offset;
    const void *running_from;
    uint64_t running_len;
};

/* Prints why and aborts. */
void fake_die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
/* malloc and realloc that do not fail. */
void *fake_need(void *old, size_t len);

/* A 64-bit hash of two numbers. */
static inline uint64_t fake_mix(uint64_t a, uint64_t b) {
    uint64_t x = (a ^ (b * 0x9E3779B97F4A7C15u)) + 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}
/* A hash of bytes; trailing zeros count. */
uint64_t fake_hash_bytes(uint64_t seed, const void *data, size_t len);

/* fake_os.c: what every call begins with. All act on the instance in use. */
extern fake_fs *fake_now;
/* Counts a call; the errno it is to fail with, or 0. *shorten = 1: it is to move less. */
int fake_begin(fake_call call);
int fake_begin_short(fake_call call, int *shorten);
/* Mixes numbers into the trace. */
void fake_note(uint64_t a, uint64_t b, uint64_t c);
uint64_t fake_hash_text(const char *text);
/* Calls the hook; the second one before a store or write, which a kill may tear. */
void fake_tell(fake_call call, int after, const char *name, uint64_t offset, uint64_t len);
void fake_tell_running(fake_call call, int id, uint64_t offset, const void *from, uint64_t len);
fake_fd *fake_get_fd(int fd);
fake_node *fake_get_dir(int fd, int *id);
fake_node *fake_get_file(int fd, int writing, int *id);
int fake_new_fd(int node, int writable);

/* fake_names.c */
/* The directory that holds the last part of a path, which goes into name: its id, or -1. */
int fake_walk(const fake_fs *fs, const char *path, char name[FAKE_NAME]);
/* The node that a path names, or -1. */
int fake_look_up(const fake_fs *fs, const char *path);
/* Makes an entry, pending. */
void fake_link(int dir, const char *name, int node);

/* The calls, as in nt_os. */
int fake_os_open_dir(const char *path, int *fd);
int fake_os_make_dir(const char *path);
int fake_os_remove_dir(const char *path);
int fake_os_sync_dir(int dir);
int fake_os_list(int dir, int (*each)(void *arg, const char *name), void *arg);
int fake_os_open_at(int dir, const char *name, int flags, int *fd);
int fake_os_rename_at(int dir, const char *from, const char *to);
int fake_os_unlink_at(int dir, const char *name);
int fake_os_same_file(int dir, const char *name, int fd, int *same);
int fake_os_file_system(int dir, int *traits);
int fake_os_close(int fd);
int fake_os_pread(int fd, void *buf, size_t len, uint64_t offset, size_t *moved);
int fake_os_pwrite(int fd, const void *buf, size_t len, uint64_t offset, size_t *moved);
int fake_os_sync_data(int fd);
int fake_os_truncate(int fd, uint64_t size);
int fake_os_allocate(int fd, uint64_t offset, uint64_t len);
int fake_os_size(int fd, uint64_t *size);
int fake_os_lock(int fd, int exclusive);
int fake_os_map(int fd, uint64_t offset, size_t len, nt_os_use use, void **at);
int fake_os_unmap(void *at, size_t len);
void fake_os_store(void *to, const void *from, size_t len);
void fake_os_release(void *to, uint64_t word);
void fake_os_populate(void *at, size_t len);
int fake_os_resident(const void *at, size_t len, unsigned char *regions);

/* Zeroed pages straight from the kernel; NULL where there are none. */
void *fake_pages(size_t len);
void fake_pages_free(void *at, size_t len);

/* fake_disk.c: nodes and items. Nothing here looks at faults, hooks or counts. */
int fake_node_new(fake_fs *fs, int is_dir);
void fake_node_free(fake_fs *fs, int id);
/* Frees the node if nothing can bring it back. */
void fake_node_check(fake_fs *fs, int id);
void fake_region(fake_node *node);
fake_entry *fake_find(const fake_entries *entries, const char *name);
void fake_enter(fake_entries *entries, const char *name, int node);
void fake_remove(fake_entries *entries, const char *name);
void fake_copy_entries(fake_entries *to, const fake_entries *from);
fake_item *fake_item_new(fake_fs *fs, fake_kind kind, int node);
size_t fake_keep(fake_fs *fs, const void *data, size_t len);
void fake_set_blocks(fake_node *node, uint64_t offset, uint64_t len, int on);
int fake_has_blocks(const fake_node *node, uint64_t offset, uint64_t len);
/* Gives [offset, offset + len) blocks as far as there are some: returns the bytes that have theirs. */
uint64_t fake_take_blocks(fake_fs *fs, int id, uint64_t offset, uint64_t len);
/* Changes the content, and remembers. */
void fake_put(fake_fs *fs, int id, uint64_t offset, const void *data, uint64_t len);
void fake_resize(fake_fs *fs, int id, uint64_t size);
/* Makes the pending items of a file, or of a directory, durable. */
void fake_sync_file(fake_fs *fs, int id);
void fake_sync_entries(fake_fs *fs, int id);
/* Marks the data items of a file as dropped. */
void fake_drop(fake_fs *fs, int id);

#endif
