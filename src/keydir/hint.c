#include "keydir/hint.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/os.h"
#include "format/record.h"
#include "store/tree_build.h"

#define READ_AHEAD (256u << 10)
#define LARGEST_ENTRY (NT_PIECE_ENTRY_SIZE + UINT16_MAX) /* of a snapshot */
#define POSITION_LIMIT ((uint64_t)1 << 48)

void nt_hint_name(char out[NT_HINT_NAME_SIZE], uint64_t generation) {
    snprintf(out, NT_HINT_NAME_SIZE, "%08llx" NT_HINT_SUFFIX, (unsigned long long)generation);
}

/* A file that is being read, and the pieces so far. */
typedef struct load {
    int fd;
    uint64_t size;
    nt_buf buf;      /* bytes of the file from buf_at on */
    uint64_t buf_at;
    const nt_hint_id *id;
    uint64_t log_size;
    nt_keydir *keydir;
    nt_hint_loaded *loaded;
    int no_memory;
} load;

/* Gives at least `len` bytes at `offset`, which the file has, and in *have how many there are, `end` at most.
 * NULL where they cannot be read, or memory is short. */
static const uint8_t *look(load *l, uint64_t offset, uint64_t len, uint64_t end, uint64_t *have) {
    uint64_t before = offset - l->buf_at;
    if (offset < l->buf_at || before > l->buf.len || len > l->buf.len - before) {
        uint64_t left = l->size - offset, want = len < READ_AHEAD ? READ_AHEAD : len;
        if (want > left) want = left;
        l->buf.len = 0;
        if (!nt_buf_reserve(&l->buf, (size_t)want)) {
            l->no_memory = 1;
            return NULL;
        }
        if (nt_os_read(l->fd, l->buf.data, (size_t)want, offset) != 0) return NULL;
        l->buf.len = (size_t)want;
        l->buf_at = offset;
        before = 0;
    }
    *have = l->buf.len - before;
    if (*have > end - offset) *have = end - offset;
    return l->buf.data + before;
}

/* ---- Snapshots ---- */

/* Whether the tree may hold this, of what the hint speaks of up to `covered`. Flags that this version of the
 * library cannot apply are refused, as recovery refuses such records. */
static inline int value_ok(const load *l, uint64_t value, uint64_t covered) {
    uint64_t position = nt_entry_position(value);
    if (value & (NT_ENTRY_EXPIRES | NT_ENTRY_COUNTER)) return 0;
    return position < POSITION_LIMIT && position >= l->id->base + NT_LOG_START &&
           position - l->id->base < covered;
}

/* Reads the head of the one section that a snapshot has. */
static int read_section(load *l, const nt_piece *piece, uint64_t offset, nt_hash_stream *hash) {
    uint64_t have, count;
    uint32_t root;
    if (piece->body < NT_PIECE_SECTION_SIZE) return 0;
    const uint8_t *at = look(l, offset, NT_PIECE_SECTION_SIZE, offset + NT_PIECE_SECTION_SIZE, &have);
    if (!at || !nt_piece_section_decode(at, have, &root, &count)) return 0;
    nt_hash_add(hash, at, NT_PIECE_SECTION_SIZE);
    return root == NT_ROOT_KEYS && count == piece->entries;
}

/* Reads entries into the tree, as many as are in memory. Returns their bytes; 0 where one is not as it has to
 * be, or memory is short. */
static uint64_t take_entries(load *l, const uint8_t *at, uint64_t have, uint64_t *left, uint64_t covered,
                             nt_build *build) {
    uint64_t done = 0, size, value;
    uint16_t key_len;
    while (*left > 0 && (size = nt_piece_entry_decode(at + done, have - done, &value, &key_len)) != 0) {
        if (!value_ok(l, value, covered)) return 0;
        if (!nt_build_add(build, at + done + NT_PIECE_ENTRY_SIZE, key_len, value)) {
            l->no_memory = build->fault == NT_BUILD_MEMORY;
            return 0;
        }
        done += size;
        (*left)--;
    }
    return done;
}

/* Whether what is left of the body is padding; hashes it. */
static int read_padding(load *l, uint64_t offset, uint64_t end, nt_hash_stream *hash) {
    uint64_t have;
    if (offset == end) return 1;
    if (end - offset >= 8) return 0;
    const uint8_t *at = look(l, offset, end - offset, end, &have);
    if (!at) return 0;
    nt_hash_add(hash, at, have);
    for (uint64_t i = 0; i < have; i++) {
        if (at[i] != 0) return 0;
    }
    return 1;
}

/* Reads a snapshot's body into the turn while it is verified. 1, or 0. */
static int read_snapshot(load *l, const nt_piece *piece, uint64_t offset) {
    nt_build build;
    nt_hash_stream hash;
    uint64_t end = offset + piece->body, left = piece->entries, have;
    nt_hash_begin(&hash, l->id->seed);
    if (!read_section(l, piece, offset, &hash)) return 0;
    offset += NT_PIECE_SECTION_SIZE;
    nt_build_begin(&build, nt_keydir_arena(l->keydir));
    l->loaded->touched = 1;
    while (left > 0) {
        uint64_t most = end - offset < LARGEST_ENTRY ? end - offset : LARGEST_ENTRY;
        const uint8_t *at = look(l, offset, most, end, &have);
        uint64_t done = at ? take_entries(l, at, have, &left, piece->place.covered, &build) : 0;
        if (done == 0) return 0;
        nt_hash_add(&hash, at, done);
        offset += done;
    }
    if (!read_padding(l, offset, end, &hash) || nt_hash_end(&hash) != piece->digest) return 0;
    l->no_memory = !nt_build_end(&build, nt_keydir_root(l->keydir, NT_ROOT_KEYS));
    return !l->no_memory;
}

/* ---- Deltas ---- */

/* Gives a whole entry of a delta whose body ends at `end`: *have is at least its size. NULL where it does
 * not fit, or cannot be read. */
static const uint8_t *look_record(load *l, uint64_t offset, uint64_t end, uint64_t *have) {
    uint64_t need = NT_PIECE_RECORD_LEAST;
    for (;;) {
        if (need > end - offset) return NULL;
        const uint8_t *at = look(l, offset, need, end, have);
        if (!at) return NULL;
        need = nt_piece_record_claim(at, *have);
        if (need <= *have) return at;
    }
}

/* Goes over a delta's body: verifies it, or, once that is done, applies it. 1, or 0. */
static int read_delta(load *l, const nt_piece *piece, uint64_t offset, int apply) {
    nt_hash_stream hash;
    uint64_t end = offset + piece->body, entries = 0, have, position, old;
    uint64_t least = l->loaded->place.covered; /* of a record's offset */
    nt_op op;
    nt_hash_begin(&hash, l->id->seed);
    while (offset < end) {
        const uint8_t *at = look_record(l, offset, end, &have);
        uint64_t size = at ? nt_piece_record_decode(at, have, &position, &op) : 0;
        if (size == 0 || !nt_op_is_known(&op)) return 0;
        uint64_t in_log = position - l->id->base; /* huge where it is before the base */
        if (position % 8 != 0 || position >= POSITION_LIMIT) return 0;
        if (in_log < least || in_log >= piece->place.covered) return 0;
        least = in_log + 8;
        if (!apply) {
            nt_hash_add(&hash, at, size);
        } else if (!nt_keydir_apply(l->keydir, &op, position, NULL, &old)) {
            l->no_memory = 1;
            return 0;
        }
        offset += size;
        entries++;
    }
    return entries == piece->entries && (apply || nt_hash_end(&hash) == piece->digest);
}

/* ---- Pieces ---- */

/* Whether a piece goes on from those so far, and speaks of this log. */
static int belongs(const load *l, const nt_piece *piece) {
    const nt_hint_loaded *so_far = l->loaded;
    if (memcmp(piece->store_id, l->id->store_id, sizeof piece->store_id) != 0) return 0;
    if (piece->generation != l->id->generation || piece->place.covered > l->log_size) return 0;
    if (so_far->pieces == 0) return piece->kind == NT_PIECE_SNAPSHOT;
    return piece->kind == NT_PIECE_DELTA && piece->previous == so_far->check &&
           piece->place.covered >= so_far->place.covered && piece->place.number >= so_far->place.number &&
           piece->place.sequence >= so_far->place.sequence;
}

static void count_piece(nt_hint_loaded *loaded, const nt_piece *piece) {
    loaded->pieces++;
    loaded->place = piece->place;
    loaded->check = piece->check;
    loaded->bytes += NT_PIECE_HEAD_SIZE + piece->body;
    if (piece->kind == NT_PIECE_SNAPSHOT) {
        loaded->snapshot_entries = piece->entries;
    } else {
        loaded->delta_entries += piece->entries;
    }
}

static void read_pieces(load *l) {
    nt_piece piece;
    uint64_t have;
    for (;;) {
        uint64_t offset = l->loaded->bytes, left = l->size - offset;
        if (left < NT_PIECE_HEAD_SIZE) return;
        const uint8_t *at = look(l, offset, NT_PIECE_HEAD_SIZE, l->size, &have);
        if (!at || !nt_piece_decode(at, NT_PIECE_HEAD_SIZE, l->id->seed, &piece)) return;
        if (!belongs(l, &piece) || piece.body > left - NT_PIECE_HEAD_SIZE) return;
        offset += NT_PIECE_HEAD_SIZE;
        if (piece.kind == NT_PIECE_SNAPSHOT) {
            if (!read_snapshot(l, &piece, offset)) return;
        } else {
            if (!read_delta(l, &piece, offset, 0)) return;
            if (!read_delta(l, &piece, offset, 1)) { /* it changed since, or cannot be read any more */
                l->loaded->pieces = 0;
                return;
            }
        }
        count_piece(l->loaded, &piece);
    }
}

ntee_status nt_hint_load(int dir, const char *name, const nt_hint_id *id, uint64_t log_size,
                         nt_keydir *keydir, nt_hint_loaded *loaded, ntee_error *err) {
    load l = {.fd = -1, .id = id, .log_size = log_size, .keydir = keydir, .loaded = loaded};
    memset(loaded, 0, sizeof *loaded);
    if (NT_OS->open_at(dir, name, 0, &l.fd) != 0) return NTEE_OK;
    if (NT_OS->size(l.fd, &l.size) == 0) read_pieces(&l);
    NT_OS->close(l.fd);
    nt_buf_free(&l.buf);
    return l.no_memory ? nt_fail(err, NTEE_NOMEM, "no memory for the index") : NTEE_OK;
}
