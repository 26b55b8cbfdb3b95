#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/os.h"
#include "format/record.h"
#include "keydir/hint.h"
#include "store/tree_walk.h"

#define BUFFER (256u << 10)         /* bytes of a body in memory, at most */
#define KEYS_AT_ONCE 1024u
#define KEYS_ROOM (128u << 10)      /* for their bytes and lengths: more than the longest key needs */

/* ---- A piece in the making: its head is written last ---- */

/* Where it goes. */
typedef struct target {
    int fd;
    uint64_t at;
    const char *name;
} target;

static void begin_piece(nt_hint_saver *saver) {
    saver->buf.len = 0;
    saver->entries = saver->flushed = saver->pending = 0;
    saver->failed = NTEE_OK;
    if (nt_buf_reserve(&saver->buf, NT_PIECE_HEAD_SIZE)) {
        saver->buf.len = NT_PIECE_HEAD_SIZE;
    } else {
        saver->failed = nt_fail(&saver->error, NTEE_NOMEM, "no memory to save the index");
    }
}

static ntee_status write_at(const target *to, const void *bytes, size_t len, uint64_t offset,
                            ntee_error *err) {
    size_t done;
    int error = nt_os_write(to->fd, bytes, len, to->at + offset, &done);
    return error != 0 ? nt_fail_os(err, error, "write", to->name) : NTEE_OK;
}

/* Writes what of the body is in memory. */
static ntee_status flush(nt_hint_saver *saver, const target *to, ntee_error *err) {
    const uint8_t *bytes = saver->buf.data + NT_PIECE_HEAD_SIZE;
    size_t len = saver->buf.len - NT_PIECE_HEAD_SIZE;
    ntee_status status = write_at(to, bytes, len, NT_PIECE_HEAD_SIZE + saver->flushed, err);
    if (status != NTEE_OK) return status;
    if (saver->flushed == 0) nt_hash_begin(&saver->hash, saver->id.seed);
    nt_hash_add(&saver->hash, bytes, len);
    saver->flushed += len;
    saver->buf.len = NT_PIECE_HEAD_SIZE;
    return NTEE_OK;
}

/* Room for `len` more bytes of the body, at most BUFFER. NULL, with *err set, where there is none. */
static uint8_t *room_for(nt_hint_saver *saver, const target *to, size_t len, ntee_error *err) {
    if (saver->buf.len + len > NT_PIECE_HEAD_SIZE + BUFFER && flush(saver, to, err) != NTEE_OK) return NULL;
    if (nt_buf_reserve(&saver->buf, len)) return saver->buf.data + saver->buf.len;
    nt_fail(err, NTEE_NOMEM, "no memory to save the index");
    return NULL;
}

/* Adds any number of bytes to the body. */
static ntee_status put_bytes(nt_hint_saver *saver, const target *to, const uint8_t *bytes, uint64_t len,
                             ntee_error *err) {
    while (len > 0) {
        size_t part = len < BUFFER / 2 ? (size_t)len : BUFFER / 2;
        uint8_t *room = room_for(saver, to, part, err);
        if (!room) return err->status;
        memcpy(room, bytes, part);
        saver->buf.len += part;
        bytes += part;
        len -= part;
    }
    return NTEE_OK;
}

static ntee_status put_zeros(nt_hint_saver *saver, const target *to, uint64_t used, ntee_error *err) {
    static const uint8_t zeros[8];
    return put_bytes(saver, to, zeros, nt_align8(used) - used, err);
}

/* Writes the rest of a piece, and its head. Of a small one all at once. */
static ntee_status end_piece(nt_hint_saver *saver, const target *to, nt_piece *piece, ntee_error *err) {
    uint64_t waiting = saver->buf.len - NT_PIECE_HEAD_SIZE;
    ntee_status status = saver->flushed > 0 && waiting > 0 ? flush(saver, to, err) : NTEE_OK;
    if (status != NTEE_OK) return status;
    memcpy(piece->store_id, saver->id.store_id, sizeof piece->store_id);
    piece->generation = saver->id.generation;
    piece->entries = saver->entries;
    piece->body = saver->flushed > 0 ? saver->flushed : waiting;
    piece->digest = saver->flushed > 0
                        ? nt_hash_end(&saver->hash)
                        : nt_hash64(saver->buf.data + NT_PIECE_HEAD_SIZE, waiting, saver->id.seed);
    nt_piece_encode(saver->buf.data, piece, saver->id.seed);
    return write_at(to, saver->buf.data, saver->buf.len, 0, err);
}

/* ---- Savers ---- */

/* From here on there is no hint to append to. */
static void let_go(nt_hint_saver *saver) {
    if (saver->fd >= 0) NT_OS->close(saver->fd);
    saver->fd = -1;
    saver->snapshot_entries = saver->delta_entries = saver->pieces = saver->bytes = saver->check = 0;
    memset(&saver->place, 0, sizeof saver->place);
}

/* The last piece is this one now. */
static void count_piece(nt_hint_saver *saver, const nt_piece *piece) {
    saver->place = piece->place;
    saver->check = piece->check;
    saver->pieces++;
    saver->bytes += NT_PIECE_HEAD_SIZE + piece->body;
    if (piece->kind == NT_PIECE_SNAPSHOT) {
        saver->snapshot_entries = piece->entries;
    } else {
        saver->delta_entries += piece->entries;
    }
}

void nt_hint_open(nt_hint_saver *saver, int dir, const char *name, const nt_hint_id *id,
                  const nt_hint_loaded *loaded) {
    memset(saver, 0, sizeof *saver);
    saver->fd = -1;
    saver->dir = dir;
    saver->id = *id;
    snprintf(saver->name, sizeof saver->name, "%s", name);
    if (!loaded || loaded->pieces == 0) return;
    if (NT_OS->open_at(dir, name, NT_OS_WRITE, &saver->fd) != 0) {
        saver->fd = -1;
        return;
    }
    saver->place = loaded->place;
    saver->check = loaded->check;
    saver->pieces = loaded->pieces;
    saver->bytes = loaded->bytes;
    saver->snapshot_entries = loaded->snapshot_entries;
    saver->delta_entries = loaded->delta_entries;
    if (NT_OS->truncate(saver->fd, loaded->bytes) != 0) let_go(saver);
}

void nt_hint_close(nt_hint_saver *saver) {
    let_go(saver);
    nt_buf_free(&saver->buf);
}

/* ---- Snapshots ---- */

/* Adds entries whose keys are in a sink that ends at `lens`. */
static ntee_status put_entries(nt_hint_saver *saver, const target *to, const uint8_t *keys,
                               const uint8_t *lens, const uint64_t *values, uint64_t count,
                               ntee_error *err) {
    for (uint64_t i = 0; i < count; i++) {
        lens -= 2;
        uint16_t len = nt_load16(lens);
        uint8_t *room = room_for(saver, to, NT_PIECE_ENTRY_SIZE + (size_t)len, err);
        if (!room) return err->status;
        nt_piece_entry_encode(room, values[i], len);
        memcpy(room + NT_PIECE_ENTRY_SIZE, keys, len);
        saver->buf.len += NT_PIECE_ENTRY_SIZE + (size_t)len;
        keys += len;
    }
    saver->entries += count;
    return NTEE_OK;
}

/* Adds the section of the keys. */
static ntee_status put_keys(nt_hint_saver *saver, const target *to, const nt_arena *arena, nt_root root,
                            ntee_error *err) {
    uint8_t section[NT_PIECE_SECTION_SIZE];
    nt_walk keys, values;
    int more = root != 0;
    uint64_t *some = nt_alloc(KEYS_AT_ONCE * sizeof *some + KEYS_ROOM);
    if (!some) return nt_fail(err, NTEE_NOMEM, "no memory to save the index");
    uint8_t *bytes = (uint8_t *)(some + KEYS_AT_ONCE), *lens = bytes + KEYS_ROOM;
    nt_piece_section_encode(section, NT_ROOT_KEYS, nt_tree_count(arena, root));
    ntee_status status = put_bytes(saver, to, section, sizeof section, err);
    nt_walk_first(&keys, arena, root);
    nt_walk_first(&values, arena, root);
    while (more && status == NTEE_OK) {
        nt_key_sink sink = {.bytes = bytes, .lens = lens, .budget = KEYS_AT_ONCE};
        more = nt_walk_take_keys(&keys, 1, &sink);
        nt_walk_take_values(&values, 1, some, (size_t)sink.count);
        status = put_entries(saver, to, bytes, lens, some, sink.count, err);
    }
    nt_free(some);
    uint64_t used = saver->flushed + saver->buf.len - NT_PIECE_HEAD_SIZE;
    return status == NTEE_OK ? put_zeros(saver, to, used, err) : status;
}

ntee_status nt_hint_snapshot(nt_hint_saver *saver, const nt_keydir *keydir, const nt_version *version,
                             const nt_hint_place *place, ntee_error *err) {
    char making[NT_HINT_NAME_SIZE];
    nt_piece piece = {.kind = NT_PIECE_SNAPSHOT, .place = *place};
    target to = {.name = making};
    snprintf(making, sizeof making, "%.*s.tmp", NT_HINT_NAME_SIZE - 5, saver->name);
    begin_piece(saver);
    if (saver->failed != NTEE_OK) {
        *err = saver->error;
        return saver->failed;
    }
    (void)NT_OS->unlink_at(saver->dir, making); /* of a crash, with whatever mode it has */
    int error = NT_OS->open_at(saver->dir, making, NT_OS_WRITE | NT_OS_CREATE | NT_OS_EXCL, &to.fd);
    if (error != 0) return nt_fail_os(err, error, "create", making);
    ntee_status status = put_keys(saver, &to, nt_keydir_arena(keydir), version->roots[NT_ROOT_KEYS], err);
    if (status == NTEE_OK) status = end_piece(saver, &to, &piece, err);
    if (status == NTEE_OK) {
        error = NT_OS->rename_at(saver->dir, making, saver->name);
        if (error != 0) status = nt_fail_os(err, error, "rename", making);
    }
    nt_buf_free(&saver->buf); /* deltas need less, mostly */
    begin_piece(saver);
    if (status != NTEE_OK) {
        NT_OS->close(to.fd);
        (void)NT_OS->unlink_at(saver->dir, making);
        return status;
    }
    let_go(saver);
    saver->fd = to.fd;
    count_piece(saver, &piece);
    return NTEE_OK;
}

/* ---- Deltas ---- */

int nt_hint_delta_begin(nt_hint_saver *saver) {
    begin_piece(saver);
    return saver->fd >= 0;
}

void nt_hint_delta_add(nt_hint_saver *saver, uint64_t position, const uint8_t *record) {
    ntee_error *err = &saver->error;
    target to = {saver->fd, saver->bytes, saver->name};
    if (saver->fd < 0 || saver->failed != NTEE_OK) return;
    uint64_t size = nt_piece_record_size(record);
    if (size <= BUFFER) {
        uint8_t *room = room_for(saver, &to, (size_t)size, err);
        if (room) {
            nt_piece_record_encode(room, position, record);
            saver->buf.len += size;
        } else {
            saver->failed = err->status;
        }
    } else { /* long terms */
        uint8_t head[8];
        uint64_t front = nt_record_claimed_front(record, UINT64_MAX);
        nt_store64(head, position);
        saver->failed = put_bytes(saver, &to, head, sizeof head, err);
        if (saver->failed == NTEE_OK) saver->failed = put_bytes(saver, &to, record, front, err);
        if (saver->failed == NTEE_OK) saver->failed = put_zeros(saver, &to, front, err);
    }
    saver->entries++;
    saver->pending += size;
}

ntee_status nt_hint_delta_end(nt_hint_saver *saver, const nt_hint_place *place, ntee_error *err) {
    nt_piece piece = {.kind = NT_PIECE_DELTA, .place = *place, .previous = saver->check};
    target to = {saver->fd, saver->bytes, saver->name};
    if (saver->fd < 0 || place->covered <= saver->place.covered) {
        begin_piece(saver);
        return NTEE_OK;
    }
    ntee_status status = saver->failed;
    if (status != NTEE_OK) *err = saver->error;
    if (status == NTEE_OK) status = end_piece(saver, &to, &piece, err);
    begin_piece(saver);
    if (status == NTEE_OK) {
        count_piece(saver, &piece);
    } else {
        let_go(saver);
        (void)NT_OS->unlink_at(saver->dir, saver->name);
    }
    return status;
}
