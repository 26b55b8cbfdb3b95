/* The nt_os table of the fake file system: calls, faults, hooks, accounts. */
#include "fake/fake_os.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake/fake_int.h"

typedef struct fake_memory {
    struct fake_memory *before;
    struct fake_memory *after;
    fake_fs *fs;
    void *whole; /* what malloc gave */
    size_t len;
    uint64_t magic;
} fake_memory;

#define MEMORY_MAGIC 0x6661B3F05EA7C0DEu

enum { PAGE = 4096 };

fake_fs *fake_now;

/* ---- Instances ----------------------------------------------------------------------------------- */

fake_fs *fake_new(uint64_t seed) {
    fake_fs *fs = fake_need(NULL, sizeof *fs);
    memset(fs, 0, sizeof *fs);
    fs->settings.traits = NT_OS_MAP_READ | NT_OS_MAP_WRITE;
    fs->settings.real_ms = 1700000000000;
    fs->settings.boot_ms = 1000000;
    fs->settings.process_id = 4242;
    fs->random = fake_mix(seed, 3);
    (void)fake_node_new(fs, 1);
    fs->nodes[0]->links = 1;
    return fs;
}

void fake_abandon(fake_fs *fs) {
    if (fs == fake_now) fake_use(NULL);
    for (size_t i = 0; i < fs->node_count; i++) {
        if (fs->nodes[i] != NULL) fake_node_free(fs, (int)i);
    }
    free(fs->nodes);
    free(fs->items);
    free(fs->bytes);
    free(fs->fds);
    free(fs->maps);
    free(fs);
}

void fake_free(fake_fs *fs) {
    if (fake_leaks(fs, 1) > 0) fake_die("something is still out");
    fake_abandon(fs);
}

void fake_use(fake_fs *fs) {
    fake_now = fs;
    nt_os_now = fs != NULL ? &fake_os : &nt_os_posix;
}

fake_fs *fake_current(void) { return fake_now; }

fake_settings *fake_set(fake_fs *fs) { return &fs->settings; }

size_t fake_leaks(const fake_fs *fs, int print) {
    size_t fds = 0;
    for (size_t i = 0; i < fs->fd_count; i++) {
        if (!fs->fds[i].used) continue;
        fds++;
        if (print) fprintf(stderr, "fake_os: descriptor %zu is open\n", i + FAKE_FD_BASE);
    }
    for (size_t i = 0; i < fs->map_count && print; i++) {
        fprintf(stderr, "fake_os: %zu bytes are mapped\n", fs->maps[i].len);
    }
    const fake_memory *memory = fs->memory;
    for (size_t i = 0; i < fs->allocs && print && i < 20; i++) {
        fprintf(stderr, "fake_os: %zu bytes of memory are out\n", memory->len);
        memory = memory->after;
    }
    return fds + fs->map_count + fs->allocs;
}

/* ---- Calls --------------------------------------------------------------------------------------- */

void fake_fail(fake_fs *fs, fake_fault fault) {
    if (fs->fault_count == FAKE_FAULTS) fake_die("too many faults");
    if (fault.error == EINTR) fault.sticky = 0;
    fs->fault_seen[fs->fault_count] = 0;
    fs->faults[fs->fault_count++] = fault;
}

void fake_heal(fake_fs *fs) { fs->fault_count = 0; }

uint64_t fake_fired(const fake_fs *fs) { return fs->fired; }

uint64_t fake_count(const fake_fs *fs, fake_call call) { return fs->counts[call]; }

uint64_t fake_trace(const fake_fs *fs) { return fs->trace; }

void fake_note(uint64_t a, uint64_t b, uint64_t c) {
    fake_now->trace = fake_mix(fake_now->trace, fake_mix(a, fake_mix(b, c)));
}

uint64_t fake_hash_text(const char *text) { return fake_hash_bytes(2, text, strlen(text)); }

/* Counts a call and gives the errno that it is to fail with; *shorten is set where it is to move less. */
int fake_begin_short(fake_call call, int *shorten) {
    int error = 0;
    if (fake_now == NULL) fake_die("no instance is in use");
    fake_now->counts[call]++;
    if (call != FAKE_ALLOC) fake_now->counts[FAKE_ANY]++;
    for (int i = 0; i < fake_now->fault_count; i++) {
        const fake_fault *fault = &fake_now->faults[i];
        if (fault->call != call && (fault->call != FAKE_ANY || call == FAKE_ALLOC)) continue;
        uint64_t seen = ++fake_now->fault_seen[i];
        if (seen != fault->nth && (!fault->sticky || seen < fault->nth)) continue;
        fake_now->fired++;
        if (fault->error == 0) *shorten = 1;
        else error = fault->error;
    }
    return error;
}

int fake_begin(fake_call call) {
    int shorten = 0;
    return fake_begin_short(call, &shorten);
}

void fake_hook(fake_fs *fs, void (*hook)(void *arg, fake_fs *fs, const fake_event *event), void *arg) {
    fs->hook = hook;
    fs->hook_arg = arg;
}

void fake_tell(fake_call call, int after, const char *name, uint64_t offset, uint64_t len) {
    fake_fs *fs = fake_now;
    fake_event event = {call, after, name, offset, len};
    if (fs->hook == NULL || fs->in_hook) return;
    fs->in_hook = 1;
    fs->hook(fs->hook_arg, fs, &event);
    if (fake_now != fs) fake_die("a hook must put its instance back in use");
    fs->in_hook = 0;
}

/* The same for a store or write, whose bytes a kill may tear. */
void fake_tell_running(fake_call call, int id, uint64_t offset, const void *from, uint64_t len) {
    if (fake_now->hook == NULL || fake_now->in_hook) return;
    fake_now->running = call;
    fake_now->running_node = id;
    fake_now->running_offset = offset;
    fake_now->running_from = from;
    fake_now->running_len = len;
    fake_tell(call, 0, "", offset, len);
    fake_now->running = FAKE_ANY;
}

fake_fd *fake_get_fd(int fd) {
    size_t i = (size_t)(fd - FAKE_FD_BASE);
    int good = fd >= FAKE_FD_BASE && i < fake_now->fd_count && fake_now->fds[i].used;
    if (!good) fake_die("bad descriptor %d", fd);
    return &fake_now->fds[i];
}

fake_node *fake_get_dir(int fd, int *id) {
    *id = fake_get_fd(fd)->node;
    if (!fake_now->nodes[*id]->is_dir) fake_die("descriptor %d is no directory", fd);
    return fake_now->nodes[*id];
}

fake_node *fake_get_file(int fd, int writing, int *id) {
    fake_fd *entry = fake_get_fd(fd);
    *id = entry->node;
    if (fake_now->nodes[*id]->is_dir) fake_die("descriptor %d is a directory", fd);
    if (writing && !entry->writable) fake_die("descriptor %d is not open for writing", fd);
    return fake_now->nodes[*id];
}

int fake_new_fd(int node, int writable) {
    size_t i = 0;
    while (i < fake_now->fd_count && fake_now->fds[i].used) i++;
    if (i == fake_now->fd_count) {
        fake_now->fds = fake_need(fake_now->fds, (i + 1) * sizeof *fake_now->fds);
        fake_now->fd_count++;
    }
    fake_now->fds[i] = (fake_fd){.used = 1, .node = node, .writable = writable};
    fake_now->nodes[node]->opens++;
    return (int)i + FAKE_FD_BASE;
}

/* ---- Memory -------------------------------------------------------------------------------------- */

static void account(fake_memory *memory, void *whole, size_t len) {
    *memory = (fake_memory){NULL, fake_now->memory, fake_now, whole, len, MEMORY_MAGIC};
    if (memory->after != NULL) memory->after->before = memory;
    fake_now->memory = memory;
    fake_now->allocs++;
}

static fake_memory *dismiss(void *at) {
    fake_memory *memory = (fake_memory *)at - 1;
    if (memory->magic != MEMORY_MAGIC) fake_die("freeing what was not allocated here, or is free");
    memory->magic = 0;
    if (memory->after != NULL) memory->after->before = memory->before;
    if (memory->before != NULL) memory->before->after = memory->after;
    else memory->fs->memory = memory->after;
    memory->fs->allocs--;
    return memory;
}

static void *os_alloc(size_t len) {
    if (fake_begin(FAKE_ALLOC) != 0 || len > SIZE_MAX - sizeof(fake_memory)) return NULL;
    fake_memory *memory = malloc(sizeof *memory + len);
    if (memory == NULL) return NULL;
    account(memory, memory, len);
    return memory + 1;
}

static void os_free(void *at) {
    if (at != NULL) free(dismiss(at)->whole);
}

static void *os_realloc(void *old, size_t len) {
    void *grown = os_alloc(len);
    if (grown == NULL || old == NULL) return grown;
    size_t old_len = ((fake_memory *)old - 1)->len;
    memcpy(grown, old, old_len < len ? old_len : len);
    os_free(old);
    return grown;
}

/* Large pieces come straight from the kernel, which has zeroed pages cheaper than memset. */
static void *os_alloc_pages(size_t len) {
    if (fake_begin(FAKE_ALLOC) != 0) return NULL;
    uint8_t *whole = fake_pages(len + PAGE);
    if (whole == NULL) return NULL;
    account((fake_memory *)(void *)(whole + PAGE) - 1, whole, len);
    return whole + PAGE;
}

static void os_free_pages(void *at, size_t len) {
    if (at == NULL) return;
    fake_memory *memory = dismiss(at);
    if (memory->len != len) fake_die("freeing %zu of %zu bytes of pages", len, memory->len);
    fake_pages_free(memory->whole, len + PAGE);
}

/* ---- Clocks and the rest ------------------------------------------------------------------------- */

static int64_t os_now_real(void) { return fake_now->settings.real_ms; }

static int64_t os_now_boot(void) { return fake_now->settings.boot_ms; }

static int os_random(void *buf, size_t len) {
    uint8_t *to = buf;
    int error = fake_begin(FAKE_RANDOM_BYTES);
    if (error != 0) return error;
    for (size_t i = 0; i < len; i++) {
        fake_now->random = fake_mix(fake_now->random, 1);
        to[i] = (uint8_t)(fake_now->random >> 24);
    }
    return 0;
}

static int64_t os_process_id(void) { return fake_now->settings.process_id; }

static int os_thread_start(void *(*run)(void *), void *arg, uintptr_t *thread) {
    (void)run;
    (void)arg;
    *thread = 0;
    return fake_begin(FAKE_THREAD);
}

static void os_thread_join(uintptr_t thread) {
    if (thread != 0) fake_die("joining a thread that was never started");
}

static void os_yield(const char *where) {
    if (fake_now == NULL) return;
    fake_now->counts[FAKE_YIELD]++;
    fake_tell(FAKE_YIELD, 1, where, 0, 0);
}

const nt_os fake_os = {
    .open_dir = fake_os_open_dir,
    .make_dir = fake_os_make_dir,
    .remove_dir = fake_os_remove_dir,
    .sync_dir = fake_os_sync_dir,
    .list = fake_os_list,
    .open_at = fake_os_open_at,
    .rename_at = fake_os_rename_at,
    .unlink_at = fake_os_unlink_at,
    .same_file = fake_os_same_file,
    .file_system = fake_os_file_system,
    .close = fake_os_close,
    .pread = fake_os_pread,
    .pwrite = fake_os_pwrite,
    .sync_data = fake_os_sync_data,
    .truncate = fake_os_truncate,
    .allocate = fake_os_allocate,
    .size = fake_os_size,
    .lock = fake_os_lock,
    .map = fake_os_map,
    .unmap = fake_os_unmap,
    .store = fake_os_store,
    .release = fake_os_release,
    .populate = fake_os_populate,
    .resident = fake_os_resident,
    .alloc = os_alloc,
    .realloc = os_realloc,
    .free = os_free,
    .alloc_pages = os_alloc_pages,
    .free_pages = os_free_pages,
    .now_real = os_now_real,
    .now_boot = os_now_boot,
    .random = os_random,
    .process_id = os_process_id,
    .thread_start = os_thread_start,
    .thread_join = os_thread_join,
    .yield = os_yield,
};
