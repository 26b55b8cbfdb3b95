/* Files of the fake file system: reads, writes, sizes, syncs, locks, mappings, and meddling. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fake/fake_int.h"

/* ---- Reading and writing ------------------------------------------------------------------------- */

int fake_os_close(int fd) {
    int error = fake_begin(FAKE_CLOSE);
    fake_fd *entry = fake_get_fd(fd);
    int id = entry->node;
    fake_note(FAKE_CLOSE, (uint64_t)id, (uint64_t)error);
    entry->used = 0;
    fake_now->nodes[id]->opens--;
    fake_node_check(fake_now, id);
    return error;
}

int fake_os_pread(int fd, void *buf, size_t len, uint64_t offset, size_t *moved) {
    int id, shorten = 0;
    int error = fake_begin_short(FAKE_READ, &shorten);
    fake_node *node = fake_get_file(fd, 0, &id);
    *moved = 0;
    fake_note(FAKE_READ, fake_mix((uint64_t)id, offset), fake_mix(len, (uint64_t)error));
    if (error != 0) return error;
    uint64_t left = offset < node->size ? node->size - offset : 0;
    size_t n = len < left ? len : (size_t)left;
    if (shorten && n > 1) n /= 2;
    if (n == 0) return 0;
    if (node->data == NULL) memset(buf, 0, n);
    else memcpy(buf, node->data + offset, n);
    *moved = n;
    return 0;
}

int fake_os_pwrite(int fd, const void *buf, size_t len, uint64_t offset, size_t *moved) {
    int id, shorten = 0;
    int error = fake_begin_short(FAKE_WRITE, &shorten);
    (void)fake_get_file(fd, 1, &id);
    *moved = 0;
    if (error == 0 && (offset > FAKE_REGION || len > FAKE_REGION - offset)) error = EFBIG;
    fake_note(FAKE_WRITE, fake_mix((uint64_t)id, offset), fake_mix(len, (uint64_t)error));
    if (error != 0 || len == 0) return error;
    fake_note(FAKE_WRITE, fake_hash_bytes(3, buf, len), 0);
    fake_tell_running(FAKE_WRITE, id, offset, buf, len);
    uint64_t n = shorten && len > 1 ? len / 2 : len;
    n = fake_take_blocks(fake_now, id, offset, n);
    if (n == 0) return ENOSPC;
    fake_put(fake_now, id, offset, buf, n);
    if (offset + n > fake_now->nodes[id]->size) fake_resize(fake_now, id, offset + n);
    *moved = (size_t)n;
    fake_tell(FAKE_WRITE, 1, "", offset, n);
    return 0;
}

int fake_os_sync_data(int fd) {
    int id;
    int error = fake_begin(FAKE_SYNC);
    (void)fake_get_file(fd, 0, &id);
    fake_note(FAKE_SYNC, (uint64_t)id, (uint64_t)error);
    fake_tell(FAKE_SYNC, 0, "", 0, 0);
    if (error != 0) fake_drop(fake_now, id);
    else fake_sync_file(fake_now, id);
    fake_tell(FAKE_SYNC, 1, "", 0, 0);
    return error;
}

int fake_os_truncate(int fd, uint64_t size) {
    int id;
    int error = fake_begin(FAKE_TRUNCATE);
    (void)fake_get_file(fd, 1, &id);
    if (error == 0 && size > FAKE_REGION) error = EFBIG;
    fake_note(FAKE_TRUNCATE, fake_mix((uint64_t)id, size), (uint64_t)error);
    if (error != 0) return error;
    fake_tell(FAKE_TRUNCATE, 0, "", size, 0);
    fake_resize(fake_now, id, size);
    fake_tell(FAKE_TRUNCATE, 1, "", size, 0);
    return 0;
}

/* How many blocks [offset, offset + len) lacks. */
static uint64_t lacking(const fake_node *node, uint64_t offset, uint64_t len) {
    uint64_t count = 0;
    for (uint64_t at = offset - offset % FAKE_BLOCK; at < offset + len; at += FAKE_BLOCK) {
        if (!fake_has_blocks(node, at, 1)) count++;
    }
    return count;
}

int fake_os_allocate(int fd, uint64_t offset, uint64_t len) {
    int id;
    int error = fake_begin(FAKE_ALLOCATE);
    fake_node *node = fake_get_file(fd, 1, &id);
    const fake_settings *settings = &fake_now->settings;
    if (error == 0 && settings->no_allocate) error = EOPNOTSUPP;
    if (error == 0 && len == 0) error = EINVAL;
    if (error == 0 && (offset > FAKE_REGION || len > FAKE_REGION - offset)) error = EFBIG;
    if (error == 0 && settings->capacity > 0 && !settings->partial_allocate &&
        fake_used(fake_now) + lacking(node, offset, len) > settings->capacity) {
        error = ENOSPC;
    }
    fake_note(FAKE_ALLOCATE, fake_mix((uint64_t)id, offset), fake_mix(len, (uint64_t)error));
    if (error != 0) return error;
    fake_tell(FAKE_ALLOCATE, 0, "", offset, len);
    uint64_t got = fake_take_blocks(fake_now, id, offset, len);
    if (got > 0 && offset + got > node->size) fake_resize(fake_now, id, offset + got);
    fake_tell(FAKE_ALLOCATE, 1, "", offset, got);
    return got == len ? 0 : ENOSPC;
}

int fake_os_size(int fd, uint64_t *size) {
    int id;
    int error = fake_begin(FAKE_SIZE);
    fake_node *node = fake_get_file(fd, 0, &id);
    if (error == 0) *size = node->size;
    return error;
}

int fake_os_lock(int fd, int exclusive) {
    int error = fake_begin(FAKE_LOCK);
    fake_fd *entry = fake_get_fd(fd);
    for (size_t i = 0; i < fake_now->fd_count && error == 0; i++) {
        const fake_fd *other = &fake_now->fds[i];
        if (!other->used || other == entry || other->node != entry->node || other->lock == 0) continue;
        if (exclusive || other->lock == 2) error = EWOULDBLOCK;
    }
    fake_note(FAKE_LOCK, (uint64_t)entry->node, fake_mix((uint64_t)exclusive, (uint64_t)error));
    if (error == 0) entry->lock = exclusive ? 2 : 1;
    return error;
}

/* ---- Mappings ------------------------------------------------------------------------------------ */

int fake_os_map(int fd, uint64_t offset, size_t len, nt_os_use use, void **at) {
    int id;
    int writable = use != NT_OS_FOR_READING;
    int error = fake_begin(FAKE_MAP);
    fake_node *node = fake_get_file(fd, writable, &id);
    if (error == 0 && (offset % 65536 != 0 || len == 0)) error = EINVAL;
    if (error == 0 && (offset > FAKE_REGION || len > FAKE_REGION - offset)) error = ENOMEM;
    fake_note(FAKE_MAP, fake_mix((uint64_t)id, offset), fake_mix(len, (uint64_t)error));
    if (error != 0) return error;
    fake_region(node);
    if (fake_now->map_count == fake_now->map_cap) {
        fake_now->map_cap = fake_now->map_cap * 2 + 8;
        fake_now->maps = fake_need(fake_now->maps, fake_now->map_cap * sizeof *fake_now->maps);
    }
    fake_now->maps[fake_now->map_count++] = (fake_map){node->data + offset, len, id, writable};
    node->opens++;
    *at = node->data + offset;
    return 0;
}

int fake_os_unmap(void *at, size_t len) {
    int error = fake_begin(FAKE_UNMAP);
    for (size_t i = fake_now->map_count; i-- > 0;) {
        fake_map map = fake_now->maps[i];
        if (map.at != at || map.len != len) continue;
        fake_now->maps[i] = fake_now->maps[--fake_now->map_count];
        fake_now->nodes[map.node]->opens--;
        fake_note(FAKE_UNMAP, (uint64_t)map.node, len);
        fake_node_check(fake_now, map.node);
        return error;
    }
    fake_die("unmapping what is not mapped");
}

static void sigbus(const char *why) {
    if (fake_now->settings.sigbus == NULL) fake_die("%s", why);
    fake_now->settings.sigbus(why);
}

/* Finds the file that a store goes to; *offset is where. -1 where the store could have died. */
static int target_of(const uint8_t *to, size_t len, uint64_t *offset) {
    for (size_t i = fake_now->map_count; i-- > 0;) {
        const fake_map *map = &fake_now->maps[i];
        if (!map->writable || to < map->at || (size_t)(to - map->at) > map->len) continue;
        if (len > map->len - (size_t)(to - map->at)) continue;
        const fake_node *node = fake_now->nodes[map->node];
        *offset = (uint64_t)(to - node->data);
        if (*offset + len > node->size) sigbus("a store beyond the end of its file");
        else if (!fake_has_blocks(node, *offset, len)) sigbus("a store into a block that is not allocated");
        else return map->node;
        return -1;
    }
    fake_die("a store outside of a writable mapping");
}

static void store(fake_call call, void *to, const void *from, size_t len) {
    uint64_t offset;
    fake_now->counts[call]++;
    if (len == 0) return;
    int id = target_of(to, len, &offset);
    if (id < 0) return;
    fake_note(call, fake_mix((uint64_t)id, offset), fake_hash_bytes(4, from, len));
    fake_tell_running(call, id, offset, from, len);
    fake_put(fake_now, id, offset, from, len);
    fake_tell(call, 1, "", offset, len);
}

void fake_os_store(void *to, const void *from, size_t len) { store(FAKE_STORE, to, from, len); }

void fake_os_release(void *to, uint64_t word) {
    if ((uintptr_t)to % 8 != 0) fake_die("a release store that is not aligned");
    store(FAKE_RELEASE, to, &word, sizeof word);
}

void fake_os_populate(void *at, size_t len) {
    uint64_t offset;
    (void)target_of(at, len, &offset);
}

int fake_os_resident(const void *at, size_t len, unsigned char *regions) {
    int error = fake_begin(FAKE_RESIDENT);
    if (error != 0) return error;
    if ((uintptr_t)at % FAKE_BLOCK != 0) fake_die("residence of an odd address");
    memset(regions, fake_now->settings.not_resident ? 0 : 1, (len + 65535) / 65536);
    return 0;
}

/* ---- Looking and meddling ------------------------------------------------------------------------ */

uint8_t *fake_bytes(fake_fs *fs, const char *path, uint64_t *size) {
    int id = fake_look_up(fs, path);
    if (id < 0 || fs->nodes[id]->is_dir) return NULL;
    fake_node *node = fs->nodes[id];
    fake_region(node);
    if (node->content < node->size) node->content = node->size; /* whatever is changed must be copied */
    *size = node->size;
    return node->data;
}

int fake_exists(const fake_fs *fs, const char *path) { return fake_look_up(fs, path) >= 0; }

void fake_plant(fake_fs *fs, const char *path, const void *bytes, size_t len) {
    char name[FAKE_NAME];
    fake_fs *before = fake_now;
    int dir = fake_walk(fs, path, name);
    if (dir < 0 || name[0] == 0) fake_die("cannot plant %s", path);
    fake_now = fs;
    fake_entry *entry = fake_find(&fs->nodes[dir]->visible, name);
    int id = entry != NULL ? entry->node : fake_node_new(fs, 0);
    if (entry == NULL) fake_link(dir, name, id);
    fake_resize(fs, id, 0);
    fake_set_blocks(fs->nodes[id], 0, len, 1);
    fake_put(fs, id, 0, bytes, len);
    fake_resize(fs, id, len);
    fake_sync_file(fs, id);
    fake_sync_entries(fs, dir);
    fake_now = before;
}
