/*
 * fuzz_hint: bytes as a saved index, in a file system that is one file. Whatever is loaded has to be a sound tree of
 * entries within the log. So that the fuzzer gets behind the checksums, it can ask that they be made right.
 *
 *   clang -g -O1 -fsanitize=fuzzer,address,undefined -DNT_TESTING -Iinclude -Isrc tests/fuzz/fuzz_hint.c \
 *     src/keydir/{hint,keydir}.c src/store/{tree,node,arena}*.c src/format/{piece,record}.c \
 *     src/base/{status,buf,epoch,os,os_posix}.c -o fuzz_hint && ./fuzz_hint -max_total_time=30
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/os.h"
#include "format/record.h"
#include "keydir/hint.h"
#include "store/tree_walk.h"

static const uint64_t LOG_SIZE = 1u << 20;
static const nt_hint_id ID = {.generation = 1, .base = 4096, .seed = 0x5EED};

static const uint8_t *file;
static size_t file_size;

static int fuzz_open(int dir, const char *name, int flags, int *fd) {
    (void)dir, (void)name, (void)flags;
    *fd = 3;
    return 0;
}

static int fuzz_close(int fd) {
    (void)fd;
    return 0;
}

static int fuzz_size(int fd, uint64_t *size) {
    (void)fd;
    *size = file_size;
    return 0;
}

static int fuzz_read(int fd, void *buf, size_t len, uint64_t offset, size_t *moved) {
    (void)fd;
    if (offset > file_size) return EIO;
    *moved = nt_min(len, file_size - offset);
    memcpy(buf, file + offset, *moved);
    return 0;
}

static void must(int ok) {
    if (!ok) abort();
}

/* Makes the heads of pieces right, for as long as their bodies are within the bytes. */
static void mend(uint8_t *at, size_t len) {
    uint64_t previous = 0;
    for (int first = 1; len >= NT_PIECE_HEAD_SIZE; first = 0) {
        uint64_t body = nt_load64(at + 40) & 0xFFF8;
        if (body > len - NT_PIECE_HEAD_SIZE) body = (len - NT_PIECE_HEAD_SIZE) & ~(uint64_t)7;
        memcpy(at, "NTEEHINT", 8);
        nt_store32(at + 8, NT_FORMAT_VERSION);
        nt_store32(at + 12, first ? NT_PIECE_SNAPSHOT : NT_PIECE_DELTA);
        memcpy(at + 16, ID.store_id, 16);
        nt_store64(at + 32, ID.generation);
        nt_store64(at + 40, body);
        nt_store64(at + 56, nt_load64(at + 56) % LOG_SIZE & ~(uint64_t)7);
        nt_store64(at + 80, 128);
        nt_store64(at + 88, nt_load64(at + 88) % 129);
        nt_store64(at + 112, nt_hash64(at + NT_PIECE_HEAD_SIZE, body, ID.seed));
        nt_store64(at + 120, previous);
        previous = nt_hash64(at, 128, ID.seed);
        nt_store64(at + 128, previous);
        at += NT_PIECE_HEAD_SIZE + body;
        len -= NT_PIECE_HEAD_SIZE + body;
    }
}

static void check(nt_keydir *keydir, const nt_hint_loaded *loaded) {
    const nt_arena *arena = nt_keydir_arena(keydir);
    nt_root root = *nt_keydir_root(keydir, NT_ROOT_KEYS);
    nt_walk walk;
    uint64_t value;
    must(loaded->bytes <= file_size && loaded->place.covered <= LOG_SIZE);
    must(nt_tree_check(arena, root) == NULL);
    must(nt_tree_count(arena, root) <= loaded->snapshot_entries + loaded->delta_entries);
    nt_walk_first(&walk, arena, root);
    while ((value = nt_walk_next(&walk)) != NT_TREE_NONE) {
        size_t len = nt_walk_key_length(&walk, 1);
        uint64_t position = nt_entry_position(value);
        must(len > 0 && len <= UINT16_MAX && (value & 3) == 0);
        must(position >= ID.base + NT_LOG_START && position < ID.base + loaded->place.covered);
    }
}

/* The first byte: 1 asks for right checksums. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static nt_os os;
    static nt_keydir *keydir;
    nt_hint_loaded loaded;
    ntee_error err;
    if (!keydir) {
        os = nt_os_posix;
        os.open_at = fuzz_open;
        os.close = fuzz_close;
        os.size = fuzz_size;
        os.pread = fuzz_read;
        nt_os_now = &os;
        keydir = nt_keydir_create();
    }
    if (size == 0) return 0;
    uint8_t *copy = malloc(size);
    must(copy != NULL && keydir != NULL);
    memcpy(copy, data + 1, size - 1);
    file = copy;
    file_size = size - 1;
    if (data[0] & 1) mend(copy, file_size);
    must(nt_keydir_begin(keydir));
    must(nt_hint_load(0, "hint", &ID, LOG_SIZE, keydir, &loaded, &err) == NTEE_OK);
    if (loaded.pieces > 0) check(keydir, &loaded);
    nt_keydir_rollback(keydir);
    free(copy);
    return 0;
}
