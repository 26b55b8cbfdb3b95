#include "engine/commit.h"

#include <string.h>

#include "base/bytes.h"
#include "base/os.h"
#include "engine/get.h"
#include "format/json.h"

#define NT_POSITION_LIMIT (1ull << 48)

void nt_write_begin(nt_write *write, const nt_db *db) {
    write->image.data = write->small;
    write->image.cap = sizeof write->small;
    write->image.len = NT_FRAME_HEAD_SIZE;
    write->db = db;
    write->count = 0;
    write->deletes = 0;
    write->only_if = 0;
    write->effective = 0;
    write->staged = NULL;
    write->looking = 0;
}

void nt_write_into(nt_write *write, const nt_db *db) {
    uint64_t at = NT_FRAME_HEAD_SIZE;
    write->db = db;
    while (at < write->image.len) at += nt_record_check(write->image.data + at, db->source.seed);
}

void nt_write_look(nt_write *write, const void *key, size_t key_len) {
    if (!key || key_len == 0 || key_len > NTEE_KEY_MAX) return; /* is refused later */
    write->looking = nt_keydir_try_enter(write->db->keydir, &write->view);
    if (write->looking) nt_keydir_seek(write->db->keydir, write->view, key, key_len, &write->way);
}

/* Ends what nt_write_look began. */
static void stop_looking(nt_write *write) {
    if (!write->looking) return;
    write->looking = 0;
    nt_keydir_leave(write->db->keydir, write->view);
}

void nt_write_clear(nt_write *write) {
    stop_looking(write);
    write->image.len = NT_FRAME_HEAD_SIZE;
    write->count = 0;
    write->deletes = 0;
}

void nt_write_end(nt_write *write) {
    stop_looking(write);
    if (write->image.data != write->small) nt_buf_free(&write->image);
}

/* Makes room in the image, moving it off `small` where that is outgrown. */
static int reserve(nt_write *write, uint64_t size) {
    nt_buf *image = &write->image;
    if (size <= image->cap - image->len) return 1;
    if (image->data != write->small) return nt_buf_reserve(image, (size_t)size);
    nt_buf grown = {0};
    if (!nt_buf_reserve(&grown, image->len + (size_t)size)) return 0;
    memcpy(grown.data, image->data, image->len);
    grown.len = image->len;
    *image = grown;
    return 1;
}

static ntee_status value_kind(const nt_op *op, uint8_t *kind, ntee_error *err) {
    switch (nt_json_check(op->value, op->value_len)) {
    case NT_JSON_OBJECT: *kind = NTEE_OBJECT; return NTEE_OK;
    case NT_JSON_OTHER: *kind = NTEE_JSON; return NTEE_OK;
    case NT_JSON_NOT: *kind = NTEE_BINARY; return NTEE_OK;
    default: return nt_fail(err, NTEE_NOMEM, "no memory to look through a deeply nested value");
    }
}

/* nt_write_add; `object` says that the value is known to be a JSON object. */
static ntee_status add(nt_write *write, uint8_t type, int object, const void *key, size_t key_len,
                       const void *value, uint64_t value_len, ntee_error *err) {
    ntee_status status = nt_check_key(key, key_len, err);
    if (status != NTEE_OK) return status;
    nt_op op = {.key = key, .key_len = (uint16_t)key_len};
    if (type == NT_WIRE_DELETE) {
        op.kind = NT_OP_DELETE;
    } else {
        if (!value && value_len) return nt_fail(err, NTEE_INVALID, "the value is NULL");
        if (value_len > NTEE_VALUE_MAX)
            return nt_fail(err, NTEE_TOO_LARGE, "the value has %llu bytes, the limit is %u",
                           (unsigned long long)value_len, NTEE_VALUE_MAX);
        op.kind = NT_OP_PUT;
        op.value = value ? value : (const uint8_t *)"";
        op.value_len = (uint32_t)value_len;
        op.value_kind = NTEE_OBJECT;
        if (!object) status = value_kind(&op, &op.value_kind, err);
        if (status != NTEE_OK) return status;
    }
    uint64_t size = nt_record_size(&op);
    if (!reserve(write, size))
        return nt_fail(err, NTEE_NOMEM, "no memory for a record of %llu bytes",
                       (unsigned long long)size);
    if (write->db) nt_record_encode(write->image.data + write->image.len, &op, write->db->source.seed);
    else nt_record_lay_out(write->image.data + write->image.len, &op);
    write->image.len += (size_t)size;
    write->count++;
    write->deletes += type == NT_WIRE_DELETE;
    write->only_if = write->count == 1 && type != NT_WIRE_PUT ? type : 0;
    return NTEE_OK;
}

ntee_status nt_write_add(nt_write *write, uint8_t type, const void *key, size_t key_len,
                         const void *value, uint64_t value_len, ntee_error *err) {
    return add(write, type, 0, key, key_len, value, value_len, err);
}

ntee_status nt_write_add_framed(nt_write *write, const void *framed, size_t len, ntee_error *err) {
    nt_wire_reader reader = {.at = framed, .remaining = len, .item = -1};
    nt_wire_write item;
    int got;
    if (len > NTEE_BATCH_MAX)
        return nt_fail(err, NTEE_TOO_LARGE, "the batch has %zu bytes, the limit is %u", len,
                       NTEE_BATCH_MAX);
    while ((got = nt_wire_next_write(&reader, &item, err)) == 1) {
        uint8_t type = item.type;
        if (write->count && (type == NT_WIRE_PUT_IF_ABSENT || write->only_if == NT_WIRE_PUT_IF_ABSENT)) {
            nt_fail(err, NTEE_INVALID, "a put-if-absent stands alone, not in a batch");
            err->item = reader.item;
            return NTEE_INVALID;
        }
        if (type == NT_WIRE_PUT && !write->count && !reader.remaining)
            nt_write_look(write, item.key, item.key_len);
        ntee_status status = add(write, type, item.object, item.key, item.key_len, item.value,
                                 item.value_len, err);
        if (status != NTEE_OK) {
            err->item = reader.item;
            return status;
        }
    }
    return got < 0 ? err->status : NTEE_OK;
}

/* Appends a sealed frame. On success D1 holds for it, but for a new salt. */
static ntee_status chain(nt_db *db, const uint8_t *image, const nt_frame *frame, ntee_error *err) {
    ntee_status status = nt_log_append(db->log, image, (size_t)frame->size, err);
    if (status != NTEE_OK) return status;
    db->number = frame->number;
    db->check = frame->check;
    return NTEE_OK;
}

/* Appends a frame image that is complete but for its head; a data frame's digest is in frame->digest. On
 * success D1 holds for it. */
static ntee_status append(nt_db *db, uint8_t *image, size_t size, nt_frame *frame,
                          ntee_error *err) {
    frame->number = db->number + 1;
    frame->durable = nt_db_durable(db);
    if (frame->kind == NT_FRAME_DATA)
        nt_frame_seal_digested(image, size, frame, db->source.seed, db->salt, nt_log_tail(db->log));
    else
        nt_frame_seal(image, size, frame, db->source.seed, db->salt, nt_log_tail(db->log));
    return chain(db, image, frame, err);
}

/* Appends an open frame that announces `salt`. On success D1 holds for it. */
static ntee_status announce(nt_db *db, uint64_t salt, ntee_error *err) {
    _Alignas(8) uint8_t image[NT_FRAME_OPEN_SIZE];
    nt_frame frame = {.kind = NT_FRAME_OPEN,
                      .number = db->number + 1,
                      .durable = nt_db_durable(db)};
    nt_frame_open_encode(image, &frame, db->source.seed, salt, db->check, nt_log_tail(db->log));
    ntee_status status = chain(db, image, &frame, err);
    if (status != NTEE_OK) return status;
    db->salt = salt;
    db->announced_at = nt_log_tail(db->log);
    return status;
}

/* Twice: without the salt nothing behind it verifies, so damage to the only open frame would look like a
 * torn end. */
ntee_status nt_commit_announce(nt_db *db, ntee_error *err) {
    uint64_t salt;
    if (db->announced) return NTEE_OK;
    int failed = NT_OS->random(&salt, sizeof salt);
    if (failed) return nt_fail_os(err, failed, "get random bytes for", nt_log_name(db->log));
    ntee_status status = NTEE_OK;
    /* The sync after a clean mark may have failed, and left the mark in memory only, marked as written. */
    if (db->recovery.clean) status = nt_log_rewrite(db->log, db->recovery.durable, 0, err);
    if (status == NTEE_OK) status = nt_log_reserve(db->log, 2 * (size_t)NT_FRAME_OPEN_SIZE, 0, err);
    if (status == NTEE_OK) status = announce(db, salt, err);
    if (status == NTEE_OK) status = announce(db, salt, err);
    db->announced = status == NTEE_OK;
    return status;
}

/* D3 for the frame of `size` bytes that comes. */
static ntee_status announce_again(nt_db *db, size_t size, size_t spare, ntee_error *err) {
    if (nt_log_tail(db->log) - db->announced_at < NT_ANNOUNCE_EVERY) return NTEE_OK;
    ntee_status status = nt_log_reserve(db->log, NT_FRAME_OPEN_SIZE + size, spare, err);
    return status == NTEE_OK ? announce(db, db->salt, err) : status;
}

/* Numbers every record of the image and applies it to the keydir's turn. *digest is the frame's then. */
static int stage(nt_db *db, nt_write *write, uint64_t position, uint64_t *digest) {
    uint8_t *image = write->image.data;
    const nt_way *way = write->looking ? &write->way : NULL;
    uint64_t at = NT_FRAME_HEAD_SIZE, sequence = db->sequence;
    write->effective = 0;
    *digest = 0;
    while (at < write->image.len) {
        nt_op op;
        uint64_t old;
        nt_record_number(image + at, ++sequence);
        uint64_t size = nt_record_decode(image + at, write->image.len - at, &op);
        *digest = nt_frame_digest(image + at, *digest);
        if (!nt_keydir_apply(db->keydir, &op, position + at, way, &old)) return 0;
        write->effective += op.kind == NT_OP_PUT || old != NT_ENTRY_NONE;
        at += size;
    }
    return 1;
}

/* Whether the one record of a conditional write is to be written: then *holds is 1. NTEE_EXISTS, or
 * NTEE_CORRUPT where it is not known whether the key is still there, for a put-if-absent. */
static ntee_status check_condition(const nt_db *db, const nt_write *write, int *holds, ntee_error *err) {
    nt_op op;
    nt_record_decode(write->image.data + NT_FRAME_HEAD_SIZE,
                     write->image.len - NT_FRAME_HEAD_SIZE, &op);
    uint64_t entry = nt_keydir_staged_entry(db->keydir, op.key, op.key_len);
    int there = entry != NT_ENTRY_NONE;
    *holds = write->only_if == NT_WIRE_DELETE ? there : !there;
    if (*holds || !there) return NTEE_OK;
    ntee_status status = nt_fetch_doubt(&db->source, entry, op.key, op.key_len, err);
    return status != NTEE_OK ? status : nt_fail(err, NTEE_EXISTS, "the key is there already");
}

ntee_status nt_commit(nt_db *db, nt_write *write, ntee_error *err) {
    size_t size = write->image.len;
    nt_frame frame = {.kind = NT_FRAME_DATA};
    write->effective = 0;
    write->staged = NULL;
    if (write->count == 0) return NTEE_OK;
    int wanted = 1;
    size_t spare = write->deletes == write->count ? 0 : NT_LOG_SPARE; /* deletes work on a full disk */
    ntee_status status = write->only_if ? check_condition(db, write, &wanted, err) : NTEE_OK;
    if (status != NTEE_OK || !wanted) return status;
    status = nt_commit_announce(db, err);
    if (status == NTEE_OK) status = announce_again(db, size, spare, err);
    if (status != NTEE_OK) return status;
    status = nt_log_reserve(db->log, size, spare, err);
    if (status != NTEE_OK) return status;
    uint64_t position = nt_db_end(db);
    if (size > NT_POSITION_LIMIT - position)
        return nt_fail(err, NTEE_FULL, "the log has reached its largest position, 2^48");
    if (!nt_keydir_begin(db->keydir))
        return nt_fail(err, NTEE_NOMEM, "no memory for the index");
    int staged = stage(db, write, position, &frame.digest);
    stop_looking(write); /* now: a sync may have to be waited for */
    if (!staged) {
        nt_keydir_rollback(db->keydir);
        return nt_fail(err, NTEE_NOMEM, "no memory for the index");
    }
    status = append(db, write->image.data, size, &frame, err);
    if (status != NTEE_OK) {
        nt_keydir_rollback(db->keydir);
        return status;
    }
    db->sequence += write->count;
    write->staged = nt_keydir_seal(db->keydir, db->sequence, nt_db_end(db));
    return NTEE_OK;
}

ntee_status nt_commit_mark(nt_db *db, uint8_t flags, ntee_error *err) {
    _Alignas(8) uint8_t image[NT_FRAME_MARK_SIZE];
    nt_frame frame = {.kind = NT_FRAME_MARK, .flags = flags};
    ntee_status status = nt_log_reserve(db->log, NT_FRAME_OPEN_SIZE + sizeof image, 0, err);
    /* The salt once more, so that damage around its announcement does not hide what the mark says. */
    if (status == NTEE_OK) status = announce(db, db->salt, err);
    if (status != NTEE_OK) return status;
    return append(db, image, sizeof image, &frame, err);
}

ntee_status nt_commit_accept(nt_db *db, ntee_error *err) {
    const nt_damage *damage = (const nt_damage *)(const void *)db->recovery.damage.data;
    size_t count = db->recovery.damage.len / sizeof *damage;
    size_t size = NT_FRAME_HEAD_SIZE + count * NT_ACCEPT_SIZE;
    nt_frame frame = {.kind = NT_FRAME_ACCEPT};
    uint8_t *image = nt_alloc(size);
    if (!image) return nt_fail(err, NTEE_NOMEM, "no memory to accept damage");
    for (size_t i = 0; i < count; i++) {
        nt_accept place = {damage[i].offset, damage[i].length, damage[i].rescued};
        nt_frame_accept_encode(image + NT_FRAME_HEAD_SIZE + i * NT_ACCEPT_SIZE, &place);
    }
    ntee_status status = nt_log_reserve(db->log, size, 0, err);
    if (status == NTEE_OK) status = append(db, image, size, &frame, err);
    nt_free(image);
    return status;
}
