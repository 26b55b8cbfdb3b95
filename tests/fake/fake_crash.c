/* What is left after a crash: images of the fake file system. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake/fake_int.h"

enum { SECTOR = 512, WORD = 8 };

/* How the pending items of one image are chosen. */
typedef struct choice {
    fake_mode mode;
    uint64_t seed;
    uint64_t mask;
    uint64_t odds;  /* FAKE_RANDOM: of 256, that an item lands */
    uint64_t tears; /* FAKE_RANDOM: of 256, that one that does is torn */
    size_t items;
} choice;

static choice choose(const fake_fs *fs, const fake_crash_plan *plan) {
    static const uint64_t ODDS[8] = {0, 16, 64, 128, 128, 192, 240, 256};
    static const uint64_t TEARS[4] = {0, 32, 96, 200};
    choice by = {.mode = plan->mode, .seed = fake_mix(plan->seed, 7), .mask = plan->mask};
    by.odds = ODDS[by.seed & 7];
    by.tears = TEARS[by.seed >> 3 & 3];
    by.items = fs->item_count;
    return by;
}

/* The moment (a number of items) up to which a thing has landed: the ends more often than the rest. */
static size_t moment(const choice *by, uint64_t what) {
    uint64_t hash = fake_mix(by->seed, what);
    switch (hash & 7) {
    case 0:
    case 1: return 0;
    case 2:
    case 3: return by->items;
    default: return (size_t)((hash >> 3) % (by->items + 1));
    }
}

static int lands(const choice *by, size_t i, const fake_item *item) {
    switch (by->mode) {
    case FAKE_ALL: return 1;
    case FAKE_MASK: return i < 64 && (by->mask >> i & 1) != 0;
    case FAKE_PAGES:
        if (item->kind < ITEM_LINK) return i < moment(by, fake_mix((uint64_t)item->node, 1));
        return (fake_mix(by->seed, i) & 255) < 128;
    case FAKE_RANDOM: return (fake_mix(by->seed, i) & 255) < by->odds;
    default: return 0;
    }
}

/* ---- Data that lands in part --------------------------------------------------------------------- */

/* Copies the cells of a grid that `pick` names: a beginning, an end, or any of them. */
static void copy_torn(uint8_t *to, const uint8_t *from, uint64_t offset, uint64_t len, uint64_t hash) {
    static const uint64_t GRIDS[4] = {WORD, SECTOR, FAKE_BLOCK, WORD};
    uint64_t grid = GRIDS[hash & 3];
    uint64_t pattern = hash >> 2 & 3;
    uint64_t first = offset / grid;
    uint64_t cells = (offset + len - 1) / grid - first + 1;
    uint64_t edge = (hash >> 8) % (cells + 1);
    for (uint64_t at = 0; at < len;) {
        uint64_t cell = (offset + at) / grid;
        uint64_t part = (cell + 1) * grid - (offset + at);
        int keep = pattern == 0 ? cell - first < edge : pattern == 1 ? cell - first >= edge
                                                                      : (int)(fake_mix(hash, cell) & 1);
        if (part > len - at) part = len - at;
        if (keep) memcpy(to + at, from + at, (size_t)part);
        at += part;
    }
}

static void copy_pages(uint8_t *to, const uint8_t *from, const fake_item *item, size_t i, const choice *by) {
    uint64_t at = 0;
    while (at < item->len) {
        uint64_t sector = (item->offset + at) / SECTOR;
        uint64_t page = (item->offset + at) / FAKE_BLOCK;
        uint64_t what = fake_mix((uint64_t)item->node * 3 + 2, page);
        uint64_t tear = fake_mix(by->seed, what);
        if ((tear >> 40 & 3) == 0 && (sector & 7) >= (tear >> 48 & 7)) what = fake_mix(what, 5);
        uint64_t part = (sector + 1) * SECTOR - (item->offset + at);
        if (part > item->len - at) part = item->len - at;
        if (i < moment(by, what)) memcpy(to + at, from + at, (size_t)part);
        at += part;
    }
}

static void land_data(const fake_fs *fs, fake_node *node, size_t i, const choice *by) {
    const fake_item *item = &fs->items[i];
    const uint8_t *from = fs->bytes + item->data;
    uint8_t *to = node->data + item->offset;
    uint64_t hash = fake_mix(by->seed, i + ((uint64_t)1 << 40));
    if (by->mode == FAKE_PAGES) {
        copy_pages(to, from, item, i, by);
    } else if (!lands(by, i, item)) {
        return;
    } else if (by->mode == FAKE_RANDOM && (hash & 255) < by->tears) {
        copy_torn(to, from, item->offset, item->len, hash >> 8);
    } else {
        memcpy(to, from, (size_t)item->len);
    }
    fake_set_blocks(node, item->offset, item->len, 1);
}

/* ---- Files --------------------------------------------------------------------------------------- */

static fake_node *copy_node(const fake_node *node) {
    fake_node *copy = fake_need(NULL, sizeof *copy);
    memset(copy, 0, sizeof *copy);
    copy->is_dir = node->is_dir;
    copy->size = node->size;
    copy->content = node->content;
    if (node->block_cap > 0) {
        copy->blocks = fake_need(NULL, (size_t)node->block_cap);
        memcpy(copy->blocks, node->blocks, (size_t)node->block_cap);
        copy->block_cap = node->block_cap;
        copy->block_count = node->block_count;
    }
    if (node->data != NULL) {
        fake_region(copy);
        memcpy(copy->data, node->data, (size_t)node->content);
    }
    return copy;
}

static void undo(const fake_fs *fs, fake_node *node, const fake_item *item) {
    const uint8_t *bytes = fs->bytes + item->undo;
    uint64_t at = item->kind == ITEM_CUT ? item->new_size : item->offset;
    if (item->kind == ITEM_BLOCKS) fake_set_blocks(node, item->offset, item->len, 0);
    if (item->kind == ITEM_GROW || item->kind == ITEM_CUT) node->size = item->old_size;
    if (item->undo_len == 0) return;
    memcpy(node->data + at, bytes, item->undo_len);
    if (node->content < at + item->undo_len) node->content = at + item->undo_len;
    fake_set_blocks(node, at, item->undo_len, 1);
}

static void clear_from(fake_node *node, uint64_t size) {
    if (node->data == NULL || node->content <= size) return;
    memset(node->data + size, 0, (size_t)(node->content - size));
    node->content = size;
}

static void land(const fake_fs *fs, fake_node *node, size_t i, const choice *by) {
    const fake_item *item = &fs->items[i];
    if (item->kind == ITEM_DATA) {
        if (node->content < item->offset + item->len) node->content = item->offset + item->len;
        land_data(fs, node, i, by);
    } else if (!lands(by, i, item)) {
        return;
    } else if (item->kind == ITEM_GROW) {
        if (node->size < item->new_size) node->size = item->new_size;
    } else if (item->kind == ITEM_CUT) {
        clear_from(node, item->new_size);
        if (node->size > item->new_size) node->size = item->new_size;
    } else {
        fake_set_blocks(node, item->offset, item->len, 1);
    }
}

/* Blocks behind the end of the file are none. */
static void trim(fake_node *node) {
    uint64_t end = (node->size + FAKE_BLOCK - 1) / FAKE_BLOCK * FAKE_BLOCK;
    uint64_t last = node->block_cap * FAKE_BLOCK;
    clear_from(node, node->size);
    if (end < last) fake_set_blocks(node, end, last - end, 0);
}

static fake_node *file_image(const fake_fs *fs, int id, const choice *by) {
    fake_node *node = copy_node(fs->nodes[id]);
    int touched = 0;
    for (size_t i = fs->item_count; i-- > 0;) {
        const fake_item *item = &fs->items[i];
        if (item->node != id || item->kind >= ITEM_LINK) continue;
        undo(fs, node, item);
        touched = 1;
    }
    if (!touched) return node;
    for (size_t i = 0; i < fs->item_count; i++) {
        const fake_item *item = &fs->items[i];
        if (item->node == id && item->kind < ITEM_LINK) land(fs, node, i, by);
    }
    trim(node);
    return node;
}

/* ---- Directories --------------------------------------------------------------------------------- */

static void land_entry(const fake_fs *fs, fake_entries *entries, const fake_item *item) {
    const char *name = (const char *)fs->bytes + item->data;
    const fake_entry *entry = fake_find(entries, name);
    int is_there = entry != NULL && entry->node == item->target;
    if (item->kind == ITEM_LINK) {
        fake_enter(entries, name, item->target);
        return;
    }
    if (is_there) fake_remove(entries, name);
    if (item->kind == ITEM_RENAME) fake_enter(entries, (const char *)fs->bytes + item->undo, item->target);
}

static fake_node *dir_image(const fake_fs *fs, int id, const choice *by) {
    fake_node *node = copy_node(fs->nodes[id]);
    fake_copy_entries(&node->visible, &fs->nodes[id]->durable);
    for (size_t i = 0; i < fs->item_count; i++) {
        const fake_item *item = &fs->items[i];
        if (item->node != id || item->kind < ITEM_LINK) continue;
        if (lands(by, i, item)) land_entry(fs, &node->visible, item);
    }
    fake_copy_entries(&node->durable, &node->visible);
    return node;
}

/* ---- Images -------------------------------------------------------------------------------------- */

static fake_fs *empty_like(const fake_fs *fs) {
    fake_fs *image = fake_need(NULL, sizeof *image);
    memset(image, 0, sizeof *image);
    image->settings = fs->settings;
    image->random = fake_mix(fs->random, 11);
    image->node_count = fs->node_count;
    image->nodes = fake_need(NULL, fs->node_count * sizeof *image->nodes);
    memset(image->nodes, 0, fs->node_count * sizeof *image->nodes);
    return image;
}

/* Makes the nodes below the root that the image's own entries reach. A directory comes before what is in
 * it, so going round until nothing is new ends after as many rounds as there are levels. */
static void make_reachable(const fake_fs *fs, fake_fs *image, const choice *by) {
    int again = 1;
    image->nodes[0] = dir_image(fs, 0, by);
    image->nodes[0]->links = 1;
    while (again) {
        again = 0;
        for (size_t d = 0; d < image->node_count; d++) {
            fake_node *dir = image->nodes[d];
            if (dir == NULL || !dir->is_dir || dir->opens != 0) continue;
            dir->opens = 1; /* visited */
            for (size_t i = 0; i < dir->visible.count; i++) {
                int id = dir->visible.at[i].node;
                int is_dir = fs->nodes[id]->is_dir;
                if (image->nodes[id] == NULL) {
                    image->nodes[id] = is_dir ? dir_image(fs, id, by) : file_image(fs, id, by);
                    again = 1;
                }
                image->nodes[id]->links++;
            }
        }
    }
    for (size_t i = 0; i < image->node_count; i++) {
        if (image->nodes[i] != NULL) image->nodes[i]->opens = 0;
    }
}

size_t fake_pending(const fake_fs *fs) { return fs->item_count; }

fake_fs *fake_crash(const fake_fs *fs, const fake_crash_plan *plan) {
    choice by = choose(fs, plan);
    fake_fs *image = empty_like(fs);
    make_reachable(fs, image, &by);
    return image;
}

/* The running write or store gets some of its bytes through: a store any of its words, a write whole
 * pages from its beginning on. */
static void tear_running(const fake_fs *fs, fake_fs *image, uint64_t tear) {
    int id = fs->running_node;
    uint64_t len = fs->running_len;
    uint64_t offset = fs->running_offset;
    if (fs->running == FAKE_STORE) {
        fake_node *node = image->nodes[id];
        uint8_t *torn = fake_need(NULL, (size_t)len);
        if (node->data == NULL) memset(torn, 0, (size_t)len);
        else memcpy(torn, node->data + offset, (size_t)len);
        copy_torn(torn, fs->running_from, offset, len, tear & ~(uint64_t)3); /* by words */
        fake_put(image, id, offset, torn, len);
        free(torn);
    } else if (fs->running == FAKE_WRITE) {
        uint64_t edges = (offset + len) / FAKE_BLOCK - offset / FAKE_BLOCK;
        if (edges == 0) return;
        uint64_t end = (offset / FAKE_BLOCK + 1 + tear % edges) * FAKE_BLOCK;
        if (end > offset + len) end = offset + len;
        end = offset + fake_take_blocks(image, id, offset, end - offset);
        fake_put(image, id, offset, fs->running_from, end - offset);
        if (end > image->nodes[id]->size) fake_resize(image, id, end);
    }
}

static void copy_items(const fake_fs *fs, fake_fs *image) {
    image->items = fake_need(NULL, fs->item_count * sizeof *fs->items);
    if (fs->item_count > 0) memcpy(image->items, fs->items, fs->item_count * sizeof *fs->items);
    image->item_count = image->item_cap = fs->item_count;
    image->bytes = fake_need(NULL, fs->bytes_len);
    if (fs->bytes_len > 0) memcpy(image->bytes, fs->bytes, fs->bytes_len);
    image->bytes_len = image->bytes_cap = fs->bytes_len;
}

fake_fs *fake_kill(const fake_fs *fs, uint64_t tear) {
    fake_fs *image = empty_like(fs);
    for (size_t i = 0; i < fs->node_count; i++) {
        const fake_node *node = fs->nodes[i];
        if (node == NULL) continue;
        image->nodes[i] = copy_node(node);
        image->nodes[i]->links = node->links;
        fake_copy_entries(&image->nodes[i]->visible, &node->visible);
        fake_copy_entries(&image->nodes[i]->durable, &node->durable);
    }
    copy_items(fs, image);
    if (tear != 0 && fs->running != FAKE_ANY && fs->nodes[fs->running_node] != NULL) {
        tear_running(fs, image, tear);
    }
    for (size_t i = 0; i < image->node_count; i++) {
        if (image->nodes[i] != NULL) fake_node_check(image, (int)i);
    }
    return image;
}

/* ---- Eviction ------------------------------------------------------------------------------------ */

void fake_evict(fake_fs *fs) {
    size_t kept = 0;
    for (size_t i = fs->item_count; i-- > 0;) {
        const fake_item *item = &fs->items[i];
        if (item->kind != ITEM_DATA) continue;
        memcpy(fs->nodes[item->node]->data + item->offset, fs->bytes + item->undo, item->undo_len);
    }
    for (size_t i = 0; i < fs->item_count; i++) {
        fake_item item = fs->items[i];
        if (item.kind == ITEM_DATA && item.dropped) continue;
        if (item.kind == ITEM_DATA) {
            uint8_t *to = fs->nodes[item.node]->data + item.offset;
            memcpy(fs->bytes + item.undo, to, item.undo_len);
            memcpy(to, fs->bytes + item.data, (size_t)item.len);
        }
        fs->items[kept++] = item;
    }
    fs->item_count = kept; /* the bytes of the dropped ones go with the next sync */
}

/* ---- Hashes -------------------------------------------------------------------------------------- */

static uint64_t hash_file(const fake_node *node) {
    uint64_t end = node->content < node->size ? node->content : node->size;
    uint64_t hash = fake_mix(node->size, (uint64_t)node->is_dir);
    while (end > 0 && node->data[end - 1] == 0) end--;
    return end > 0 ? fake_hash_bytes(hash, node->data, (size_t)end) : hash;
}

/* Sums, so that the order of entries does not matter. A name's hash is that of its whole path's end only:
 * the directory that holds it is hashed by its own name, which is enough to tell images apart. */
uint64_t fake_hash(const fake_fs *fs) {
    uint64_t sum = 0;
    for (size_t d = 0; d < fs->node_count; d++) {
        const fake_node *dir = fs->nodes[d];
        if (dir == NULL || !dir->is_dir || dir->links == 0) continue;
        for (size_t i = 0; i < dir->visible.count; i++) {
            const fake_entry *entry = &dir->visible.at[i];
            uint64_t name = fake_hash_bytes(1, entry->name, strlen(entry->name));
            sum += fake_mix(name, hash_file(fs->nodes[entry->node]));
        }
    }
    return sum;
}
