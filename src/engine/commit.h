/*
 * commit: one write, from the caller's bytes to a staged version.
 *
 * A write is built before the writer's turn as the image of the frame it will become: checked, its JSON
 * passed over, its checksums taken. The turn numbers the records, stages the next version, appends
 * the frame, and seals. Up to the append a failure leaves no trace.
 */
#ifndef NT_ENGINE_COMMIT_H
#define NT_ENGINE_COMMIT_H

#include "base/buf.h"
#include "engine/db.h"
#include "format/wire.h"

typedef struct nt_write {
    nt_buf image;          /* room for a frame head, then records; data points to `small` at first */
    const nt_db *db;       /* NULL: not known yet, and the records have no checksums */
    uint64_t count;        /* records */
    uint64_t deletes;      /* of these */
    uint8_t only_if;       /* the one record is NT_WIRE_DELETE (if there) or NT_WIRE_PUT_IF_ABSENT; else 0 */
    uint64_t effective;    /* result: puts, and deletes of keys that were there */
    const nt_version *staged; /* result: the version to publish, NULL where nothing was to be done */
    int looking;              /* nt_write_look has entered the view, and nobody has left it yet */
    nt_view view;
    nt_way way;               /* to the one record's key */
    _Alignas(8) uint8_t small[512];
} nt_write;

/* Begins an empty write into a store; with NULL into one that nt_write_into will name. */
void nt_write_begin(nt_write *write, const nt_db *db);
/* Makes a write that was begun without a store ready for nt_commit into this one: takes the checksums. After
 * that commit it may go into the same or another store. */
void nt_write_into(nt_write *write, const nt_db *db);
/* Before the one put of a write is added: looks where its key belongs, so that the memory is on its way while
 * the value is checked. The write is a reader from here on until nt_commit or nt_write_end. */
void nt_write_look(nt_write *write, const void *key, size_t key_len);
/* Adds one write (NT_WIRE_*). NT_WIRE_PUT_IF_ABSENT must be alone. NTEE_INVALID, NTEE_TOO_LARGE,
 * NTEE_NOMEM. */
ntee_status nt_write_add(nt_write *write, uint8_t type, const void *key, size_t key_len,
                         const void *value, uint64_t value_len, ntee_error *err);
/* Adds a framed batch; a refused item leaves err->item. */
ntee_status nt_write_add_framed(nt_write *write, const void *framed, size_t len, ntee_error *err);
/* Empties a write and keeps its memory. */
void nt_write_clear(nt_write *write);
void nt_write_end(nt_write *write);

/* In the turn: stages and appends. write->effective and write->staged are the results; NTEE_EXISTS where a
 * put-if-absent found its key. */
ntee_status nt_commit(nt_db *db, nt_write *write, ntee_error *err);

/* In the turn: announces this opening's salt in an open frame, unless that has happened (D3). */
ntee_status nt_commit_announce(nt_db *db, ntee_error *err);

/* In the turn, and announced: appends a frame that accepts the damage in db->recovery. */
ntee_status nt_commit_accept(nt_db *db, ntee_error *err);

/* In the turn, and announced: appends a mark that says how far the log is durable, with NT_FRAME_* flags. */
ntee_status nt_commit_mark(nt_db *db, uint8_t flags, ntee_error *err);

#endif
