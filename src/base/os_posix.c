/* The operating system behind os.h: Linux and macOS. The only file that includes system headers. */
#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE
#endif
#if defined(__APPLE__) && !defined(_DARWIN_C_SOURCE)
#define _DARWIN_C_SOURCE
#endif
#ifndef _FILE_OFFSET_BITS
#define _FILE_OFFSET_BITS 64
#endif

#include "base/os.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h> /* renameat */
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#if defined(__linux__)
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/vfs.h>
#elif defined(__APPLE__)
#include <sys/mount.h>
#include <sys/param.h>
#include <sys/random.h>
#else
#error "libntee knows Linux and macOS"
#endif

_Static_assert(sizeof(off_t) == 8, "files may be larger than 2 GiB");

enum {
    FILE_MODE = 0600,
    DIR_MODE = 0700,
    CREATE_TRIES = 16,        /* a file that comes and goes between our two looks at it */
    MOVE_MAX = 1 << 30,       /* bytes per read or write: macOS refuses more than INT_MAX */
    REGION = 64 << 10,        /* what `resident` speaks of */
    THREAD_STACK = 1 << 20
};

static int offset_fits(uint64_t offset, uint64_t len) {
    return offset <= INT64_MAX && len <= INT64_MAX - offset;
}

/* ---- Directories --------------------------------------------------------------------------------- */

static int open_retry(int dir, const char *name, int flags, int *fd) {
    do {
        *fd = openat(dir, name, flags | O_CLOEXEC | O_NOCTTY, FILE_MODE);
    } while (*fd < 0 && errno == EINTR);
    return *fd < 0 ? errno : 0;
}

static int posix_open_dir(const char *path, int *fd) {
    return open_retry(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, fd);
}

/* The umask takes bits away from the mode given to mkdir, so the mode is set once more. */
static int posix_make_dir(const char *path) {
    int fd;
    if (mkdir(path, DIR_MODE) != 0) return errno;
    int error = open_retry(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, &fd);
    if (error == EACCES) return chmod(path, DIR_MODE) == 0 ? 0 : errno;
    if (error != 0) return error;
    error = fchmod(fd, DIR_MODE) == 0 ? 0 : errno;
    close(fd);
    return error;
}

static int posix_remove_dir(const char *path) { return rmdir(path) == 0 ? 0 : errno; }

static int sync_file(int fd) {
#if defined(__APPLE__)
    if (fcntl(fd, F_FULLFSYNC) == 0) return 0;
    if (errno != ENOTSUP && errno != EINVAL && errno != ENOTTY) return errno;
    return fsync(fd) == 0 ? 0 : errno;
#else
    return fdatasync(fd) == 0 ? 0 : errno;
#endif
}

static int posix_sync_dir(int dir) {
#if defined(__APPLE__)
    int error = sync_file(dir);
#else
    int error = fsync(dir) == 0 ? 0 : errno;
#endif
    return error == EINVAL ? 0 : error; /* a file system that has no such thing */
}

static int posix_list(int dir, int (*each)(void *arg, const char *name), void *arg) {
    int fd;
    int error = open_retry(dir, ".", O_RDONLY | O_DIRECTORY, &fd);
    if (error != 0) return error;
    DIR *stream = fdopendir(fd);
    if (stream == NULL) {
        error = errno;
        close(fd);
        return error;
    }
    for (;;) {
        errno = 0;
        struct dirent *entry = readdir(stream);
        if (entry == NULL) {
            error = errno;
            break;
        }
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        if (each(arg, entry->d_name) != 0) break;
    }
    closedir(stream);
    return error;
}

/* ---- Files in a directory ------------------------------------------------------------------------ */

#if defined(__linux__)

#define BTRFS_MAGIC 0x9123683Eu

/* Has btrfs write the new, empty file in place. Else each append would copy the last block, and on a full
 * disk even what was allocated ahead could not be written. Not being allowed to is no fault. */
static void write_in_place(int fd) {
    struct statfs about;
    int flags = 0;
    if (fstatfs(fd, &about) != 0 || (uint32_t)about.f_type != BTRFS_MAGIC) return;
    if (ioctl(fd, FS_IOC_GETFLAGS, &flags) != 0) return;
    flags |= FS_NOCOW_FL;
    (void)ioctl(fd, FS_IOC_SETFLAGS, &flags);
}

#else

static void write_in_place(int fd) { (void)fd; }

#endif

/* The new file must not outlive a failure to give it its mode. */
static int create_file(int dir, const char *name, int flags, int *fd) {
    int error = open_retry(dir, name, flags | O_CREAT | O_EXCL, fd);
    if (error != 0) return error;
    write_in_place(*fd);
    if (fchmod(*fd, FILE_MODE) == 0) return 0;
    error = errno;
    close(*fd);
    unlinkat(dir, name, 0);
    return error;
}

static int open_or_create(int dir, const char *name, int flags, int access, int *fd) {
    if ((flags & NT_OS_CREATE) == 0) return open_retry(dir, name, access, fd);
    if ((flags & NT_OS_EXCL) != 0) return create_file(dir, name, access, fd);
    int error = EEXIST;
    for (int i = 0; i < CREATE_TRIES && error == EEXIST; i++) {
        error = open_retry(dir, name, access, fd);
        if (error == ENOENT) error = create_file(dir, name, access, fd);
    }
    return error;
}

/* O_NONBLOCK: opening a FIFO that somebody planted must not hang. It means nothing for a file. */
static int posix_open_at(int dir, const char *name, int flags, int *fd) {
    struct stat about;
    int access = ((flags & NT_OS_WRITE) != 0 ? O_RDWR : O_RDONLY) | O_NOFOLLOW | O_NONBLOCK;
    *fd = -1;
    if (strchr(name, '/') != NULL) return EINVAL;
    int error = open_or_create(dir, name, flags, access, fd);
    if (error == ENXIO) return EINVAL; /* a socket, or a device without a driver */
    if (error != 0) return error;
    if (fstat(*fd, &about) != 0) error = errno;
    else if (S_ISDIR(about.st_mode)) error = EISDIR;
    else if (!S_ISREG(about.st_mode)) error = EINVAL;
    if (error != 0) {
        close(*fd);
        *fd = -1;
    }
    return error;
}

static int posix_rename_at(int dir, const char *from, const char *to) {
    return renameat(dir, from, dir, to) == 0 ? 0 : errno;
}

static int posix_unlink_at(int dir, const char *name) { return unlinkat(dir, name, 0) == 0 ? 0 : errno; }

static int posix_same_file(int dir, const char *name, int fd, int *same) {
    struct stat named, opened;
    *same = 0;
    if (fstatat(dir, name, &named, AT_SYMLINK_NOFOLLOW) != 0) return errno;
    if (fstat(fd, &opened) != 0) return errno;
    *same = named.st_dev == opened.st_dev && named.st_ino == opened.st_ino;
    return 0;
}

#if defined(__linux__)

typedef struct fs_kind {
    uint32_t magic; /* statfs.f_type */
    int traits;
} fs_kind;

/*
 * Mapped writes need a file system where an allocated block stays writable, whatever else happens to
 * the disk. Btrfs copies on every write, XFS after a reflink copy of the file: both then find no space
 * at write-fault time and kill the process. Overlayfs says nothing about what lies below it.
 * A file system that is not listed gets plain reads and writes.
 */
static const fs_kind FILE_SYSTEMS[] = {
    {0x0000EF53u, NT_OS_MAP_READ | NT_OS_MAP_WRITE}, /* ext2, ext3, ext4 */
    {0x01021994u, NT_OS_MAP_READ | NT_OS_MAP_WRITE}, /* tmpfs */
    {0x58465342u, NT_OS_MAP_READ},                   /* XFS */
    {BTRFS_MAGIC, NT_OS_MAP_READ},
    {0xCA451A4Eu, NT_OS_MAP_READ},                   /* bcachefs */
    {0xF2F52010u, NT_OS_MAP_READ},                   /* F2FS */
    {0x794C7630u, NT_OS_MAP_READ},                   /* overlayfs */
    {0x858458F6u, NT_OS_MAP_READ},                   /* ramfs */
    {0x00006969u, NT_OS_NETWORK},                    /* NFS */
    {0x0000517Bu, NT_OS_NETWORK},                    /* SMB */
    {0xFE534D42u, NT_OS_NETWORK},                    /* SMB2 and later */
    {0xFF534D42u, NT_OS_NETWORK},                    /* CIFS */
    {0x65735546u, NT_OS_NETWORK},                    /* FUSE, virtiofs */
    {0x01021997u, NT_OS_NETWORK},                    /* 9p */
    {0x00C36400u, NT_OS_NETWORK},                    /* Ceph */
    {0x5346414Fu, NT_OS_NETWORK},                    /* AFS */
    {0x73757245u, NT_OS_NETWORK},                    /* Coda */
    {0x01161970u, NT_OS_NETWORK},                    /* GFS2 */
    {0x7461636Fu, NT_OS_NETWORK},                    /* OCFS2 */
    {0x0BD00BD0u, NT_OS_NETWORK},                    /* Lustre */
    {0x786F4256u, NT_OS_NETWORK},                    /* VirtualBox shared folders */
};

static int posix_file_system(int dir, int *traits) {
    struct statfs about;
    *traits = 0;
    if (fstatfs(dir, &about) != 0) return errno;
    uint32_t magic = (uint32_t)about.f_type;
    for (size_t i = 0; i < sizeof FILE_SYSTEMS / sizeof FILE_SYSTEMS[0]; i++) {
        if (FILE_SYSTEMS[i].magic == magic) *traits = FILE_SYSTEMS[i].traits;
    }
    return 0;
}

#else

/* Appends use pwrite on macOS: it has lost mapped stores that were not synced before an unmap. */
static int posix_file_system(int dir, int *traits) {
    struct statfs about;
    *traits = 0;
    if (fstatfs(dir, &about) != 0) return errno;
    if ((about.f_flags & MNT_LOCAL) == 0) *traits = NT_OS_NETWORK;
    else if (strcmp(about.f_fstypename, "apfs") == 0) *traits = NT_OS_MAP_READ;
    else if (strcmp(about.f_fstypename, "hfs") == 0) *traits = NT_OS_MAP_READ;
    return 0;
}

#endif

/* ---- One file ------------------------------------------------------------------------------------ */

/* Never tried again: after EINTR the descriptor is gone already, and may be another's. */
static int posix_close(int fd) {
    if (close(fd) == 0 || errno == EINTR) return 0;
    return errno;
}

static int posix_pread(int fd, void *buf, size_t len, uint64_t offset, size_t *moved) {
    *moved = 0;
    if (!offset_fits(offset, len)) return EINVAL;
    ssize_t n = pread(fd, buf, len < MOVE_MAX ? len : MOVE_MAX, (off_t)offset);
    if (n < 0) return errno;
    *moved = (size_t)n;
    return 0;
}

static int posix_pwrite(int fd, const void *buf, size_t len, uint64_t offset, size_t *moved) {
    *moved = 0;
    if (!offset_fits(offset, len)) return EFBIG;
    ssize_t n = pwrite(fd, buf, len < MOVE_MAX ? len : MOVE_MAX, (off_t)offset);
    if (n < 0) return errno;
    *moved = (size_t)n;
    return 0;
}

static int posix_truncate(int fd, uint64_t size) {
    int result;
    if (!offset_fits(size, 0)) return EFBIG;
    do {
        result = ftruncate(fd, (off_t)size);
    } while (result != 0 && errno == EINTR);
    return result == 0 ? 0 : errno;
}

#if defined(__linux__)

static int posix_allocate(int fd, uint64_t offset, uint64_t len) {
    int result;
    if (!offset_fits(offset, len)) return EFBIG;
    do {
        result = fallocate(fd, 0, (off_t)offset, (off_t)len);
    } while (result != 0 && errno == EINTR);
    if (result == 0) return 0;
    return errno == ENOSYS ? EOPNOTSUPP : errno;
}

#else

static int posix_allocate(int fd, uint64_t offset, uint64_t len) {
    struct stat about;
    if (!offset_fits(offset, len)) return EFBIG;
    if (fstat(fd, &about) != 0) return errno;
    off_t end = (off_t)(offset + len);
    off_t blocks = (off_t)about.st_blocks * 512;
    if (blocks < end) {
        fstore_t wish = {F_ALLOCATEALL, F_PEOFPOSMODE, 0, end - blocks, 0};
        if (fcntl(fd, F_PREALLOCATE, &wish) != 0) return errno == ENOTSUP ? EOPNOTSUPP : errno;
    }
    if (about.st_size < end && ftruncate(fd, end) != 0) return errno;
    return 0;
}

#endif

static int posix_size(int fd, uint64_t *size) {
    struct stat about;
    if (fstat(fd, &about) != 0) return errno;
    *size = (uint64_t)about.st_size;
    return 0;
}

static int posix_lock(int fd, int exclusive) {
    int how = exclusive == NT_OS_UNLOCK ? LOCK_UN : (exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB;
    int result;
    do {
        result = flock(fd, how);
    } while (result != 0 && errno == EINTR);
    return result == 0 ? 0 : errno;
}

/* ---- Mappings ------------------------------------------------------------------------------------ */

static int keep_from_children(void *at, size_t len) {
#if defined(__linux__)
    return madvise(at, len, MADV_DONTFORK) == 0 ? 0 : errno;
#else
    return minherit(at, len, VM_INHERIT_NONE) == 0 ? 0 : errno;
#endif
}

static int posix_map(int fd, uint64_t offset, size_t len, nt_os_use use, void **at) {
    if (!offset_fits(offset, len)) return EINVAL;
    int protection = use == NT_OS_FOR_READING ? PROT_READ : PROT_READ | PROT_WRITE;
    void *mapped = mmap(NULL, len, protection, MAP_SHARED, fd, (off_t)offset);
    if (mapped == MAP_FAILED) return errno;
    int error = keep_from_children(mapped, len);
    if (error != 0) {
        munmap(mapped, len);
        return error;
    }
    /* Read-ahead of zeros stalls writers. */
    if (use != NT_OS_FOR_READING) (void)madvise(mapped, len, MADV_RANDOM);
#ifdef MADV_HUGEPAGE
    if (use == NT_OS_FOR_FILLING) (void)madvise(mapped, len, MADV_HUGEPAGE);
#endif
    *at = mapped;
    return 0;
}

static int posix_unmap(void *at, size_t len) { return munmap(at, len) == 0 ? 0 : errno; }

static void posix_store(void *to, const void *from, size_t len) { memcpy(to, from, len); }

static void posix_release(void *to, uint64_t word) {
    __atomic_store_n((uint64_t *)to, word, __ATOMIC_RELEASE);
}

static void posix_populate(void *at, size_t len) {
#if defined(__linux__)
    enum { POPULATE_WRITE = 23 }; /* MADV_POPULATE_WRITE, Linux 5.14; older headers lack it */
    (void)madvise(at, len, POPULATE_WRITE);
#else
    (void)at;
    (void)len;
#endif
}

/* One batch of mincore: at most 16 regions, so that the answer fits a small buffer. */
static int resident_batch(const uint8_t *at, size_t len, size_t page, unsigned char *regions) {
    enum { LEAST_PAGE = 4096 };
    unsigned char pages[16 * (REGION / LEAST_PAGE)];
#if defined(__linux__)
    if (mincore((void *)(uintptr_t)at, len, pages) != 0) return errno;
#else
    if (mincore((const void *)at, len, (char *)pages) != 0) return errno;
#endif
    size_t per_region = page < REGION ? REGION / page : 1;
    size_t count = (len + page - 1) / page;
    for (size_t i = 0; i < count; i++) {
        unsigned char *region = &regions[i / per_region];
        if (i % per_region == 0) *region = 1;
        if ((pages[i] & 1) == 0) *region = 0;
    }
    return 0;
}

static int posix_resident(const void *at, size_t len, unsigned char *regions) {
    const uint8_t *from = at;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t batch = 16u * REGION;
    if (page > REGION) return EOPNOTSUPP;
    while (len > 0) {
        size_t now = len < batch ? len : batch;
        int error = resident_batch(from, now, page, regions);
        if (error != 0) return error;
        from += now;
        len -= now;
        regions += now / REGION;
    }
    return 0;
}

/* ---- Memory, clocks, threads --------------------------------------------------------------------- */

static void *posix_alloc(size_t len) { return malloc(len > 0 ? len : 1); }

static void *posix_realloc(void *old, size_t len) { return realloc(old, len > 0 ? len : 1); }

static void posix_free(void *memory) { free(memory); }

#define HUGE_FROM ((size_t)4 << 20)

static void *posix_alloc_pages(size_t len) {
    void *at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON, -1, 0);
    if (at == MAP_FAILED) return NULL;
#ifdef MADV_HUGEPAGE
    /* A large index is read all over: with large pages its lookups miss the TLB less. */
    if (len >= HUGE_FROM) (void)madvise(at, len, MADV_HUGEPAGE);
#endif
    return at;
}

static void posix_free_pages(void *at, size_t len) {
    if (at != NULL) munmap(at, len);
}

static int64_t clock_ms(clockid_t clock) {
    struct timespec now;
    if (clock_gettime(clock, &now) != 0) return 0;
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int64_t posix_now_real(void) { return clock_ms(CLOCK_REALTIME); }

/* A clock that goes on while the machine sleeps. */
static int64_t posix_now_boot(void) {
#if defined(__linux__)
    return clock_ms(CLOCK_BOOTTIME);
#else
    return clock_ms(CLOCK_MONOTONIC_RAW);
#endif
}

static int posix_random(void *buf, size_t len) {
    uint8_t *to = buf;
    while (len > 0) {
        size_t now = len < 256 ? len : 256; /* what comes whole, and what getentropy allows */
#if defined(__linux__)
        ssize_t n = getrandom(to, now, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return errno;
        now = (size_t)n;
#else
        if (getentropy(to, now) != 0) return errno;
#endif
        to += now;
        len -= now;
    }
    return 0;
}

static int64_t posix_process_id(void) { return (int64_t)getpid(); }

static int posix_thread_start(void *(*run)(void *), void *arg, uintptr_t *thread) {
    pthread_t started;
    pthread_attr_t attributes;
    sigset_t all, before;
    *thread = 0;
    int error = pthread_attr_init(&attributes);
    if (error != 0) return error;
    (void)pthread_attr_setstacksize(&attributes, THREAD_STACK);
    sigfillset(&all);
    error = pthread_sigmask(SIG_SETMASK, &all, &before);
    if (error == 0) {
        error = pthread_create(&started, &attributes, run, arg);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    pthread_attr_destroy(&attributes);
    if (error == 0) *thread = (uintptr_t)started;
    return error;
}

static void posix_thread_join(uintptr_t thread) {
    if (thread != 0) pthread_join((pthread_t)thread, NULL);
}

static void posix_yield(const char *where) { (void)where; }

const nt_os nt_os_posix = {
    .open_dir = posix_open_dir,
    .make_dir = posix_make_dir,
    .remove_dir = posix_remove_dir,
    .sync_dir = posix_sync_dir,
    .list = posix_list,
    .open_at = posix_open_at,
    .rename_at = posix_rename_at,
    .unlink_at = posix_unlink_at,
    .same_file = posix_same_file,
    .file_system = posix_file_system,
    .close = posix_close,
    .pread = posix_pread,
    .pwrite = posix_pwrite,
    .sync_data = sync_file,
    .truncate = posix_truncate,
    .allocate = posix_allocate,
    .size = posix_size,
    .lock = posix_lock,
    .map = posix_map,
    .unmap = posix_unmap,
    .store = posix_store,
    .release = posix_release,
    .populate = posix_populate,
    .resident = posix_resident,
    .alloc = posix_alloc,
    .realloc = posix_realloc,
    .free = posix_free,
    .alloc_pages = posix_alloc_pages,
    .free_pages = posix_free_pages,
    .now_real = posix_now_real,
    .now_boot = posix_now_boot,
    .random = posix_random,
    .process_id = posix_process_id,
    .thread_start = posix_thread_start,
    .thread_join = posix_thread_join,
    .yield = posix_yield,
};
