/*
 * os: the seam between the engine and the operating system.
 *
 * One table of functions; only os_posix.c behind it includes system headers. The product calls the
 * POSIX table; test builds (NT_TESTING) call whatever nt_os_now points to, so that a fake file system
 * can crash, tear, fail and fill up at any call. Functions that can fail return 0 or an errno value.
 *
 * Rules that make the seam worth having:
 *  - bytes are written into a mapping by nt_os_store and nt_os_release only, else the crash simulator
 *    cannot see them;
 *  - files are opened relative to the store's directory descriptor and must be regular files;
 *  - every descriptor is close-on-exec, every mapping of a file stays out of forked children.
 */
#ifndef NT_BASE_OS_H
#define NT_BASE_OS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
    NT_OS_WRITE = 1,  /* read and write; else read only */
    NT_OS_CREATE = 2, /* make it (0600 whatever the umask) where it is missing */
    NT_OS_EXCL = 4    /* with NT_OS_CREATE: EEXIST where it is there already */
};

/* In place of `exclusive`: lets the lock go at once, whatever copies of the descriptor forked children
 * still have. */
enum { NT_OS_UNLOCK = 2 };

/* What a file system may be trusted with (nt_os.file_system). */
enum {
    NT_OS_MAP_READ = 1,  /* shared read mappings follow what pwrite writes */
    NT_OS_MAP_WRITE = 2, /* a mapped, allocated block stays writable, so no SIGBUS on a full disk */
    NT_OS_NETWORK = 4    /* locks or syncs may not mean what they say (NFS, SMB, FUSE, 9p) */
};

/* What a mapping is for (nt_os.map). For filling: it will soon be written from end to end, so its pages may
 * be large, which are written to disk as a whole. */
typedef enum nt_os_use { NT_OS_FOR_READING = 0, NT_OS_FOR_WRITING = 1, NT_OS_FOR_FILLING = 2 } nt_os_use;

typedef struct nt_os {
    /* Directories. Paths are NUL-terminated. make_dir gives EEXIST where anything of that name is. */
    int (*open_dir)(const char *path, int *fd);
    int (*make_dir)(const char *path);
    int (*remove_dir)(const char *path);
    int (*sync_dir)(int dir);
    /* Calls `each` for every name in a directory but "." and ".."; stops where it returns not 0. */
    int (*list)(int dir, int (*each)(void *arg, const char *name), void *arg);

    /* Files in a directory. ELOOP for a symbolic link, EISDIR, EINVAL for another not-a-file and for a
     * name with a slash. Opening never waits. */
    int (*open_at)(int dir, const char *name, int flags, int *fd);
    int (*rename_at)(int dir, const char *from, const char *to);
    int (*unlink_at)(int dir, const char *name);
    /* *same = 1 where `name` in `dir` still is the file behind fd. ENOENT where the name is gone. */
    int (*same_file)(int dir, const char *name, int fd, int *same);
    int (*file_system)(int dir, int *traits);

    /* One file. read and write may move fewer bytes than asked; nt_os_read and nt_os_write loop. */
    int (*close)(int fd);
    int (*pread)(int fd, void *buf, size_t len, uint64_t offset, size_t *moved);
    int (*pwrite)(int fd, const void *buf, size_t len, uint64_t offset, size_t *moved);
    int (*sync_data)(int fd); /* the bytes and what is needed to read them: fdatasync, F_FULLFSYNC */
    int (*truncate)(int fd, uint64_t size);
    int (*allocate)(int fd, uint64_t offset, uint64_t len); /* blocks and size; EOPNOTSUPP: cannot */
    int (*size)(int fd, uint64_t *size);
    /* flock, not waiting: EWOULDBLOCK where another has it; or NT_OS_UNLOCK. */
    int (*lock)(int fd, int exclusive);

    /* Mappings, shared with the file. offset is a multiple of 64 KiB. */
    int (*map)(int fd, uint64_t offset, size_t len, nt_os_use use, void **at);
    int (*unmap)(void *at, size_t len);
    void (*store)(void *to, const void *from, size_t len);
    void (*release)(void *to, uint64_t word); /* one aligned 8-byte release store */
    void (*populate)(void *at, size_t len);   /* a hint: take the write faults now */
    /* mincore: one byte per 64 KiB of [at, at + len), 1 where all of its pages are in memory. `at` is
     * aligned to a page. EOPNOTSUPP: cannot tell. */
    int (*resident)(const void *at, size_t len, unsigned char *regions);

    /* Memory. NULL where it is short. alloc_pages is zeroed and page-aligned; len is not 0. */
    void *(*alloc)(size_t len);
    void *(*realloc)(void *old, size_t len);
    void (*free)(void *memory);
    void *(*alloc_pages)(size_t len);
    void (*free_pages)(void *at, size_t len);

    /* Clocks in milliseconds, random bytes, our process id. */
    int64_t (*now_real)(void);
    int64_t (*now_boot)(void);
    int (*random)(void *buf, size_t len);
    int64_t (*process_id)(void);

    /* Starts a thread with all signals blocked. A single-threaded table returns 0 and *thread = 0:
     * the test then runs the background's steps itself. */
    int (*thread_start)(void *(*run)(void *), void *arg, uintptr_t *thread);
    void (*thread_join)(uintptr_t thread);

    /* A point where another thread, or a crash, may come between. `where` names it. */
    void (*yield)(const char *where);
} nt_os;

extern const nt_os nt_os_posix;

#ifdef NT_TESTING
extern const nt_os *nt_os_now; /* tests replace it before they open a store */
#define NT_OS (nt_os_now)
static inline void nt_os_store(void *to, const void *from, size_t len) {
    NT_OS->store(to, from, len);
}
static inline void nt_os_release(void *to, uint64_t word) { NT_OS->release(to, word); }
static inline void nt_os_yield(const char *where) { NT_OS->yield(where); }
#else
#define NT_OS (&nt_os_posix)
static inline void nt_os_store(void *to, const void *from, size_t len) { memcpy(to, from, len); }
static inline void nt_os_release(void *to, uint64_t word) {
    __atomic_store_n((uint64_t *)to, word, __ATOMIC_RELEASE);
}
static inline void nt_os_yield(const char *where) { (void)where; }
#endif

static inline void *nt_alloc(size_t len) { return NT_OS->alloc(len); }
static inline void *nt_realloc(void *old, size_t len) { return NT_OS->realloc(old, len); }
static inline void nt_free(void *memory) { NT_OS->free(memory); }

/* Reads exactly `len` bytes: loops over short reads and EINTR; EIO where the file ends before. */
int nt_os_read(int fd, void *buf, size_t len, uint64_t offset);
/* Writes exactly `len` bytes: loops over short writes and EINTR. *done says how far it came. */
int nt_os_write(int fd, const void *buf, size_t len, uint64_t offset, size_t *done);

#endif
