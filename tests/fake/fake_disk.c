/* Nodes, blocks, items: the disk of the fake file system. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "fake/fake_int.h"

enum { POOL = 128, CLEAR_BY_HAND = 4 << 20 };

/* Regions that are not in use, all zero. Mapping one takes longer than a whole crash image. */
static uint8_t *pool[POOL];
static size_t pool_count;

void fake_die(const char *format, ...) {
    va_list args;
    va_start(args, format);
    fputs("fake_os: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    abort();
}

void *fake_need(void *old, size_t len) {
    void *memory = realloc(old, len > 0 ? len : 1);
    if (memory == NULL) fake_die("out of memory");
    return memory;
}

void *fake_pages(size_t len) {
    void *at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

void fake_pages_free(void *at, size_t len) { munmap(at, len); }

static uint64_t load(const uint8_t *at) {
    uint64_t word;
    memcpy(&word, at, 8);
    return word;
}

uint64_t fake_hash_bytes(uint64_t seed, const void *data, size_t len) {
    const uint64_t odd = 0x9E3779B97F4A7C15u;
    const uint8_t *at = data;
    uint64_t a = seed, b = seed ^ odd, c = ~seed, d = seed + len;
    size_t left = len;
    for (; left >= 32; left -= 32, at += 32) {
        a = (a ^ load(at)) * odd;
        b = (b ^ load(at + 8)) * odd;
        c = (c ^ load(at + 16)) * odd;
        d = (d ^ load(at + 24)) * odd;
        a ^= a >> 29;
        b ^= b >> 31;
        c ^= c >> 30;
        d ^= d >> 32;
    }
    for (; left > 0; left--, at++) a = (a ^ *at) * odd ^ (a >> 29);
    return fake_mix(fake_mix(a, b), fake_mix(c, d));
}

/* ---- Regions and nodes --------------------------------------------------------------------------- */

void fake_region(fake_node *node) {
    if (node->data != NULL) return;
    if (pool_count > 0) {
        node->data = pool[--pool_count];
        return;
    }
    node->data = fake_pages(FAKE_REGION);
    if (node->data == NULL) fake_die("no address space");
}

static void give_back(fake_node *node) {
    if (node->data == NULL) return;
    if (pool_count == POOL) {
        munmap(node->data, FAKE_REGION);
    } else {
        if (node->content <= CLEAR_BY_HAND) memset(node->data, 0, node->content);
        else madvise(node->data, FAKE_REGION, MADV_DONTNEED);
        pool[pool_count++] = node->data;
    }
    node->data = NULL;
}

int fake_node_new(fake_fs *fs, int is_dir) {
    fake_node *node = fake_need(NULL, sizeof *node);
    memset(node, 0, sizeof *node);
    node->is_dir = is_dir;
    size_t id = 0;
    while (id < fs->node_count && fs->nodes[id] != NULL) id++;
    if (id == fs->node_count) {
        fs->nodes = fake_need(fs->nodes, (id + 1) * sizeof *fs->nodes);
        fs->node_count++;
    }
    fs->nodes[id] = node;
    return (int)id;
}

void fake_node_free(fake_fs *fs, int id) {
    fake_node *node = fs->nodes[id];
    give_back(node);
    free(node->blocks);
    free(node->visible.at);
    free(node->durable.at);
    free(node);
    fs->nodes[id] = NULL;
}

static int mentions(const fake_entries *entries, int id) {
    for (size_t i = 0; i < entries->count; i++) {
        if (entries->at[i].node == id) return 1;
    }
    return 0;
}

static int is_entry_item(const fake_item *item) { return item->kind >= ITEM_LINK; }

static int can_come_back(const fake_fs *fs, int id) {
    for (size_t i = 0; i < fs->node_count; i++) {
        if (fs->nodes[i] != NULL && mentions(&fs->nodes[i]->durable, id)) return 1;
    }
    for (size_t i = 0; i < fs->item_count; i++) {
        if (is_entry_item(&fs->items[i]) && fs->items[i].target == id) return 1;
    }
    return 0;
}

/* Removes the items that `gone` picks, and closes the gaps in what the others point to. */
static void remove_items(fake_fs *fs, int id, int (*gone)(const fake_item *item)) {
    size_t kept = 0, bytes = 0;
    for (size_t i = 0; i < fs->item_count; i++) {
        fake_item item = fs->items[i];
        if (item.node == id && gone(&item)) continue;
        size_t data_len = item.kind == ITEM_DATA || is_entry_item(&item) ? (size_t)item.len : 0;
        memmove(fs->bytes + bytes, fs->bytes + item.data, data_len);
        item.data = bytes;
        bytes += data_len;
        memmove(fs->bytes + bytes, fs->bytes + item.undo, item.undo_len);
        item.undo = bytes;
        bytes += item.undo_len;
        fs->items[kept++] = item;
    }
    fs->item_count = kept;
    fs->bytes_len = bytes;
}

static int any_item(const fake_item *item) { return item != NULL; }

void fake_node_check(fake_fs *fs, int id) {
    fake_node *node = fs->nodes[id];
    if (id == 0 || node->links > 0 || node->opens > 0) return;
    node->released = 1;
    if (can_come_back(fs, id)) return;
    remove_items(fs, id, any_item);
    fake_node_free(fs, id);
}

/* ---- Entries ------------------------------------------------------------------------------------- */

fake_entry *fake_find(const fake_entries *entries, const char *name) {
    for (size_t i = 0; i < entries->count; i++) {
        if (strcmp(entries->at[i].name, name) == 0) return &entries->at[i];
    }
    return NULL;
}

void fake_enter(fake_entries *entries, const char *name, int node) {
    fake_entry *entry = fake_find(entries, name);
    if (entry == NULL) {
        if (entries->count == entries->cap) {
            entries->cap = entries->cap * 2 + 4;
            entries->at = fake_need(entries->at, entries->cap * sizeof *entries->at);
        }
        entry = &entries->at[entries->count++];
        memset(entry->name, 0, sizeof entry->name);
        memcpy(entry->name, name, strlen(name));
    }
    entry->node = node;
}

void fake_remove(fake_entries *entries, const char *name) {
    fake_entry *entry = fake_find(entries, name);
    if (entry != NULL) *entry = entries->at[--entries->count];
}

void fake_copy_entries(fake_entries *to, const fake_entries *from) {
    if (to->cap < from->count) {
        to->cap = from->count;
        to->at = fake_need(to->at, to->cap * sizeof *to->at);
    }
    if (from->count > 0) memcpy(to->at, from->at, from->count * sizeof *to->at);
    to->count = from->count;
}

/* ---- Items --------------------------------------------------------------------------------------- */

fake_item *fake_item_new(fake_fs *fs, fake_kind kind, int node) {
    if (fs->item_count == fs->item_cap) {
        fs->item_cap = fs->item_cap * 2 + 16;
        fs->items = fake_need(fs->items, fs->item_cap * sizeof *fs->items);
    }
    fake_item *item = &fs->items[fs->item_count++];
    memset(item, 0, sizeof *item);
    item->kind = kind;
    item->node = node;
    item->data = item->undo = fs->bytes_len;
    return item;
}

size_t fake_keep(fake_fs *fs, const void *data, size_t len) {
    size_t at = fs->bytes_len;
    if (fs->bytes_cap - at < len) {
        fs->bytes_cap = (at + len) * 2 + 1024;
        fs->bytes = fake_need(fs->bytes, fs->bytes_cap);
    }
    if (len > 0) memcpy(fs->bytes + at, data, len);
    fs->bytes_len += len;
    return at;
}

/* ---- Blocks -------------------------------------------------------------------------------------- */

static uint64_t blocks_of(uint64_t bytes) { return (bytes + FAKE_BLOCK - 1) / FAKE_BLOCK; }

static void room_for_blocks(fake_node *node, uint64_t count) {
    if (count <= node->block_cap) return;
    uint64_t cap = count + count / 2 + 16;
    node->blocks = fake_need(node->blocks, cap);
    memset(node->blocks + node->block_cap, 0, cap - node->block_cap);
    node->block_cap = cap;
}

void fake_set_blocks(fake_node *node, uint64_t offset, uint64_t len, int on) {
    uint64_t end = blocks_of(offset + len);
    if (len == 0) return;
    if (on) room_for_blocks(node, end);
    for (uint64_t i = offset / FAKE_BLOCK; i < end && i < node->block_cap; i++) {
        if (node->blocks[i] == on) continue;
        node->blocks[i] = (uint8_t)on;
        if (on) node->block_count++;
        else node->block_count--;
    }
}

int fake_has_blocks(const fake_node *node, uint64_t offset, uint64_t len) {
    uint64_t end = blocks_of(offset + len);
    if (end > node->block_cap) return 0;
    for (uint64_t i = offset / FAKE_BLOCK; i < end; i++) {
        if (!node->blocks[i]) return 0;
    }
    return 1;
}

uint64_t fake_used(const fake_fs *fs) {
    uint64_t used = 0;
    for (size_t i = 0; i < fs->node_count; i++) {
        if (fs->nodes[i] != NULL && !fs->nodes[i]->released) used += fs->nodes[i]->block_count;
    }
    return used;
}

uint64_t fake_take_blocks(fake_fs *fs, int id, uint64_t offset, uint64_t len) {
    fake_node *node = fs->nodes[id];
    uint64_t end = blocks_of(offset + len);
    uint64_t i = offset / FAKE_BLOCK;
    if (len == 0 || fake_has_blocks(node, offset, len)) return len;
    uint64_t capacity = fs->settings.capacity;
    uint64_t used = capacity > 0 ? fake_used(fs) : 0;
    uint64_t taken = 0, first = 0, last = 0;
    room_for_blocks(node, end);
    for (; i < end; i++) {
        if (node->blocks[i]) continue;
        if (capacity > 0 && used + taken >= capacity) break;
        node->blocks[i] = 1;
        if (taken++ == 0) first = i;
        last = i;
    }
    node->block_count += taken;
    if (taken > 0) {
        fake_item *item = fake_item_new(fs, ITEM_BLOCKS, id);
        item->offset = first * FAKE_BLOCK;
        item->len = (last + 1 - first) * FAKE_BLOCK;
    }
    if (i == end) return len;
    return i * FAKE_BLOCK > offset ? i * FAKE_BLOCK - offset : 0;
}

/* ---- Changes ------------------------------------------------------------------------------------- */

void fake_put(fake_fs *fs, int id, uint64_t offset, const void *data, uint64_t len) {
    fake_node *node = fs->nodes[id];
    if (len == 0) return;
    fake_region(node);
    fake_item *item = fake_item_new(fs, ITEM_DATA, id);
    item->offset = offset;
    item->len = len;
    item->undo_len = (size_t)len;
    item->data = fake_keep(fs, data, (size_t)len);
    item->undo = fake_keep(fs, node->data + offset, (size_t)len);
    memcpy(node->data + offset, data, (size_t)len);
    if (offset + len > node->content) node->content = offset + len;
}

void fake_resize(fake_fs *fs, int id, uint64_t size) {
    fake_node *node = fs->nodes[id];
    if (size == node->size) return;
    fake_item *item = fake_item_new(fs, size > node->size ? ITEM_GROW : ITEM_CUT, id);
    item->old_size = node->size;
    item->new_size = size;
    if (size < node->size) {
        uint64_t end = node->content;
        while (end > size && node->data[end - 1] == 0) end--;
        item->undo_len = end > size ? (size_t)(end - size) : 0;
        item->undo = fake_keep(fs, node->data + size, item->undo_len);
        if (item->undo_len > 0) memset(node->data + size, 0, item->undo_len);
        if (node->content > size) node->content = size;
        uint64_t first = blocks_of(size) * FAKE_BLOCK;
        uint64_t last = node->block_cap * FAKE_BLOCK;
        if (first < last) fake_set_blocks(node, first, last - first, 0);
    }
    node->size = size;
}

/* ---- Syncs --------------------------------------------------------------------------------------- */

static int is_durable_item(const fake_item *item) { return !is_entry_item(item) && !item->dropped; }

/* The part of `inner` bytes at `offset` that lies in [from, to). */
static uint64_t overlap(uint64_t offset, uint64_t len, uint64_t from, uint64_t to, uint64_t *at) {
    uint64_t begin = offset > from ? offset : from;
    uint64_t end = offset + len < to ? offset + len : to;
    *at = begin;
    return end > begin ? end - begin : 0;
}

/* What a dropped item wrote no longer matters where a later one, durable now, wrote again. */
static void overrule(fake_fs *fs, fake_item *old, const fake_item *item) {
    uint64_t at;
    uint64_t to = item->kind == ITEM_CUT ? UINT64_MAX : item->offset + item->len;
    uint64_t from = item->kind == ITEM_CUT ? item->new_size : item->offset;
    uint64_t len = overlap(old->offset, old->len, from, to, &at);
    uint8_t *data = fs->bytes + old->data + (len > 0 ? at - old->offset : 0);
    uint8_t *undo = fs->bytes + old->undo + (len > 0 ? at - old->offset : 0);
    if (len == 0) return;
    if (item->kind == ITEM_CUT) {
        memset(data, 0, (size_t)len);
        memset(undo, 0, (size_t)len);
    } else {
        memcpy(data, fs->bytes + item->data + (at - item->offset), (size_t)len);
        memcpy(undo, fs->bytes + item->data + (at - item->offset), (size_t)len);
    }
}

void fake_sync_file(fake_fs *fs, int id) {
    for (size_t i = 0; i < fs->item_count; i++) {
        fake_item *old = &fs->items[i];
        if (old->node != id || !old->dropped) continue;
        for (size_t j = i + 1; j < fs->item_count; j++) {
            const fake_item *item = &fs->items[j];
            if (item->node != id || item->dropped) continue;
            if (item->kind == ITEM_DATA || item->kind == ITEM_CUT) overrule(fs, old, item);
        }
    }
    remove_items(fs, id, is_durable_item);
}

void fake_sync_entries(fake_fs *fs, int id) {
    fake_copy_entries(&fs->nodes[id]->durable, &fs->nodes[id]->visible);
    remove_items(fs, id, is_entry_item);
    for (size_t i = 0; i < fs->node_count; i++) {
        if (fs->nodes[i] != NULL && fs->nodes[i]->released) fake_node_check(fs, (int)i);
    }
}

void fake_drop(fake_fs *fs, int id) {
    for (size_t i = 0; i < fs->item_count; i++) {
        fake_item *item = &fs->items[i];
        if (item->node == id && item->kind == ITEM_DATA) item->dropped = 1;
    }
    if (fs->settings.evict_on_failure) fake_evict(fs);
}
