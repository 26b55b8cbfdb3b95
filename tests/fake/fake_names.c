/* Directories of the fake file system: paths, entries, and the calls that change them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fake/fake_int.h"

/* Finds the directory that holds the last part of a path, which goes into name: its id, or -1. An
 * empty name is that directory itself. */
int fake_walk(const fake_fs *fs, const char *path, char name[FAKE_NAME]) {
    int dir = 0;
    name[0] = 0;
    while (*path != 0) {
        size_t len = strcspn(path, "/");
        const char *rest = path + len + strspn(path + len, "/");
        if (len >= FAKE_NAME) fake_die("a name is too long: %s", path);
        if (len > 0 && !(len == 1 && path[0] == '.')) {
            memcpy(name, path, len);
            name[len] = 0;
            if (*rest == 0) return dir;
            const fake_entry *entry = fake_find(&fs->nodes[dir]->visible, name);
            if (entry == NULL || !fs->nodes[entry->node]->is_dir) return -1;
            dir = entry->node;
            name[0] = 0;
        }
        path = rest;
    }
    return dir;
}

/* The node that a path names, or -1. */
int fake_look_up(const fake_fs *fs, const char *path) {
    char name[FAKE_NAME];
    int dir = fake_walk(fs, path, name);
    if (dir < 0 || name[0] == 0) return dir;
    const fake_entry *entry = fake_find(&fs->nodes[dir]->visible, name);
    return entry != NULL ? entry->node : -1;
}

static fake_item *entry_item(fake_kind kind, int dir, const char *name, int target) {
    fake_item *item = fake_item_new(fake_now, kind, dir);
    item->target = target;
    item->len = strlen(name) + 1;
    item->data = fake_keep(fake_now, name, (size_t)item->len);
    item->undo = fake_now->bytes_len;
    return item;
}

void fake_link(int dir, const char *name, int node) {
    (void)entry_item(ITEM_LINK, dir, name, node);
    fake_enter(&fake_now->nodes[dir]->visible, name, node);
    fake_now->nodes[node]->links++;
}

static void unlink_node(int dir, const char *name, int node) {
    (void)entry_item(ITEM_UNLINK, dir, name, node);
    fake_remove(&fake_now->nodes[dir]->visible, name);
    fake_now->nodes[node]->links--;
    fake_node_check(fake_now, node);
}

int fake_os_open_dir(const char *path, int *fd) {
    int error = fake_begin(FAKE_OPEN_DIR);
    int id = fake_look_up(fake_now, path);
    if (error == 0 && id < 0) error = ENOENT;
    if (error == 0 && !fake_now->nodes[id]->is_dir) error = ENOTDIR;
    fake_note(FAKE_OPEN_DIR, fake_hash_text(path), (uint64_t)error);
    if (error == 0) *fd = fake_new_fd(id, 0);
    return error;
}

int fake_os_make_dir(const char *path) {
    char name[FAKE_NAME];
    int error = fake_begin(FAKE_MAKE_DIR);
    int dir = fake_walk(fake_now, path, name);
    if (error == 0 && dir < 0) error = ENOENT;
    if (error == 0 && (name[0] == 0 || fake_look_up(fake_now, path) >= 0)) error = EEXIST;
    fake_note(FAKE_MAKE_DIR, fake_hash_text(path), (uint64_t)error);
    if (error != 0) return error;
    fake_tell(FAKE_MAKE_DIR, 0, path, 0, 0);
    fake_link(dir, name, fake_node_new(fake_now, 1));
    fake_tell(FAKE_MAKE_DIR, 1, path, 0, 0);
    return 0;
}

int fake_os_remove_dir(const char *path) {
    char name[FAKE_NAME];
    int error = fake_begin(FAKE_REMOVE_DIR);
    int dir = fake_walk(fake_now, path, name);
    int id = fake_look_up(fake_now, path);
    if (error == 0 && id < 0) error = ENOENT;
    if (error == 0 && !fake_now->nodes[id]->is_dir) error = ENOTDIR;
    if (error == 0 && (id == 0 || fake_now->nodes[id]->visible.count > 0)) error = ENOTEMPTY;
    fake_note(FAKE_REMOVE_DIR, fake_hash_text(path), (uint64_t)error);
    if (error != 0) return error;
    fake_tell(FAKE_REMOVE_DIR, 0, path, 0, 0);
    unlink_node(dir, name, id);
    fake_tell(FAKE_REMOVE_DIR, 1, path, 0, 0);
    return 0;
}

int fake_os_sync_dir(int dir) {
    int id;
    int error = fake_begin(FAKE_SYNC_DIR);
    (void)fake_get_dir(dir, &id);
    fake_note(FAKE_SYNC_DIR, (uint64_t)id, (uint64_t)error);
    if (error != 0) return error;
    fake_tell(FAKE_SYNC_DIR, 0, "", 0, 0);
    fake_sync_entries(fake_now, id);
    fake_tell(FAKE_SYNC_DIR, 1, "", 0, 0);
    return 0;
}

int fake_os_list(int dir, int (*each)(void *arg, const char *name), void *arg) {
    int id;
    int error = fake_begin(FAKE_LIST);
    fake_node *node = fake_get_dir(dir, &id);
    fake_entries entries = {0};
    fake_note(FAKE_LIST, (uint64_t)id, (uint64_t)error);
    if (error != 0) return error;
    fake_copy_entries(&entries, &node->visible); /* `each` may remove files */
    for (size_t i = 0; i < entries.count; i++) {
        if (each(arg, entries.at[i].name) != 0) break;
    }
    free(entries.at);
    return 0;
}

int fake_os_open_at(int dir, const char *name, int flags, int *fd) {
    int id;
    int error = fake_begin(FAKE_OPEN);
    fake_node *node = fake_get_dir(dir, &id);
    const fake_entry *entry = fake_find(&node->visible, name);
    if (error == 0 && (strchr(name, '/') != NULL || strlen(name) >= FAKE_NAME)) error = EINVAL;
    if (error == 0 && entry == NULL && (flags & NT_OS_CREATE) == 0) error = ENOENT;
    if (error == 0 && entry != NULL && fake_now->nodes[entry->node]->is_dir) error = EISDIR;
    int fresh = NT_OS_CREATE | NT_OS_EXCL;
    if (error == 0 && entry != NULL && (flags & fresh) == fresh) error = EEXIST;
    fake_note(FAKE_OPEN + (uint64_t)flags * 256, fake_hash_text(name), (uint64_t)error);
    *fd = -1;
    if (error != 0) return error;
    int file = entry != NULL ? entry->node : -1;
    if (file < 0) {
        fake_tell(FAKE_OPEN, 0, name, 0, 0);
        file = fake_node_new(fake_now, 0);
        fake_link(id, name, file);
        fake_tell(FAKE_OPEN, 1, name, 0, 0);
    }
    *fd = fake_new_fd(file, (flags & NT_OS_WRITE) != 0);
    return 0;
}

int fake_os_rename_at(int dir, const char *from, const char *to) {
    int id;
    int error = fake_begin(FAKE_RENAME);
    fake_node *node = fake_get_dir(dir, &id);
    const fake_entry *entry = fake_find(&node->visible, from);
    const fake_entry *old = fake_find(&node->visible, to);
    if (error == 0 && entry == NULL) error = ENOENT;
    if (error == 0 && strlen(to) >= FAKE_NAME) error = ENAMETOOLONG;
    fake_note(FAKE_RENAME, fake_hash_text(from), fake_mix(fake_hash_text(to), (uint64_t)error));
    if (error != 0) return error;
    int file = entry->node;
    int replaced = old != NULL ? old->node : -1;
    if (replaced == file) return 0;
    fake_tell(FAKE_RENAME, 0, from, 0, 0);
    fake_item *item = entry_item(ITEM_RENAME, id, from, file);
    item->undo_len = strlen(to) + 1;
    item->undo = fake_keep(fake_now, to, item->undo_len);
    fake_remove(&node->visible, from);
    fake_enter(&node->visible, to, file);
    if (replaced >= 0) {
        fake_now->nodes[replaced]->links--;
        fake_node_check(fake_now, replaced);
    }
    fake_tell(FAKE_RENAME, 1, to, 0, 0);
    return 0;
}

int fake_os_unlink_at(int dir, const char *name) {
    int id;
    int error = fake_begin(FAKE_UNLINK);
    fake_node *node = fake_get_dir(dir, &id);
    const fake_entry *entry = fake_find(&node->visible, name);
    if (error == 0 && entry == NULL) error = ENOENT;
    if (error == 0 && fake_now->nodes[entry->node]->is_dir) error = EISDIR;
    fake_note(FAKE_UNLINK, fake_hash_text(name), (uint64_t)error);
    if (error != 0) return error;
    fake_tell(FAKE_UNLINK, 0, name, 0, 0);
    unlink_node(id, name, fake_find(&node->visible, name)->node);
    fake_tell(FAKE_UNLINK, 1, name, 0, 0);
    return 0;
}

int fake_os_same_file(int dir, const char *name, int fd, int *same) {
    int id;
    int error = fake_begin(FAKE_SAME_FILE);
    const fake_entry *entry = fake_find(&fake_get_dir(dir, &id)->visible, name);
    *same = 0;
    if (error == 0 && entry == NULL) error = ENOENT;
    if (error == 0) *same = entry->node == fake_get_fd(fd)->node;
    return error;
}

int fake_os_file_system(int dir, int *traits) {
    int id;
    int error = fake_begin(FAKE_FILE_SYSTEM);
    (void)fake_get_dir(dir, &id);
    *traits = error == 0 ? fake_now->settings.traits : 0;
    return error;
}
