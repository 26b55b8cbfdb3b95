#include "engine/verify.h"

#include <stdio.h>
#include <string.h>

#include "base/os.h"
#include "engine/trail.h"
#include "store/tree_walk.h"

static ntee_error *next_finding(nt_findings *findings, ntee_error *spare) {
    ntee_error *at = findings->count < findings->cap ? &findings->found[findings->count] : spare;
    findings->count++;
    return at;
}

static void note(nt_findings *findings, const nt_db *db, uint64_t offset, const char *what) {
    ntee_error spare;
    nt_fail_corrupt(next_finding(findings, &spare), nt_log_name(db->log), offset, what);
}

/* ---- The log ---- */

static void check_records(const nt_db *db, const nt_frame *frame, uint64_t offset, nt_findings *findings) {
    uint64_t at = 0, len = frame->size - NT_FRAME_HEAD_SIZE;
    while (at < len) {
        const uint8_t *record = frame->body + at;
        nt_op op;
        char key[96], what[160];
        uint64_t size = nt_record_decode(record, len - at, &op);
        uint64_t where = offset + NT_FRAME_HEAD_SIZE + at;
        if (!nt_record_key_ok(record, &op, db->source.seed)) {
            note(findings, db, where, "the key, or what belongs to it, does not match its checksum");
        } else if (!nt_record_value_ok(record, &op, db->source.seed)) {
            snprintf(what, sizeof what, "the value does not match its checksum, key %s",
                     nt_show_key(key, sizeof key, op.key, op.key_len));
            note(findings, db, where, what);
        }
        at += size;
    }
}

static ntee_status check_log(const nt_db *db, uint64_t end, nt_findings *findings, ntee_error *err) {
    nt_reader reader;
    nt_trail trail = nt_trail_start(&db->header);
    ntee_status status = NTEE_OK;
    nt_reader_begin(&reader, db->log, db->source.seed, end);
    while (trail.at < end && status == NTEE_OK) {
        nt_frame frame;
        int got = nt_trail_next(&reader, &trail, &frame, err);
        if (got < 0) {
            status = err->status;
        } else if (got) {
            if (frame.kind == NT_FRAME_DATA) check_records(db, &frame, trail.at, findings);
            nt_trail_follow(&trail, &frame);
        } else {
            nt_trail found;
            uint64_t used;
            note(findings, db, trail.at, "from here on the log is not what was written");
            status = nt_trail_resume(&reader, &trail, &found, &used, err);
            trail = found;
        }
    }
    nt_reader_end(&reader);
    return status;
}

/* Both copies of the header. */
static ntee_status check_header(const nt_db *db, nt_findings *findings, ntee_error *err) {
    static const uint64_t copies[] = {0, NT_LOG_COPY};
    for (int i = 0; i < 2; i++) {
        uint8_t bytes[NT_LOG_HEADER_SIZE];
        nt_log_header header;
        ntee_error wrong;
        ntee_status status = nt_log_read(db->log, copies[i], bytes, sizeof bytes, err);
        if (status != NTEE_OK) return status;
        if (nt_log_header_decode(bytes, sizeof bytes, &header, nt_log_name(db->log), &wrong) != NTEE_OK ||
            memcmp(header.store_id, db->header.store_id, sizeof header.store_id) != 0)
            note(findings, db, copies[i], "this copy of the log's header is not what was written");
    }
    return NTEE_OK;
}

/* ---- The keys ---- */

/* Reads the record that the walk has just stepped over. */
static ntee_status check_key(const nt_db *db, const nt_version *version, const nt_walk *walk, uint64_t entry,
                             uint8_t *key, nt_findings *findings, ntee_error *err) {
    nt_fetch fetch;
    ntee_error wrong;
    nt_wanted wanted = {key, nt_walk_key_length(walk, 1)};
    nt_walk_key(walk, 1, key);
    ntee_status status = nt_fetch_begin(&fetch, &db->source, entry, version->log_end, &wanted, &wrong);
    if (status == NTEE_OK) {
        nt_fetch_end(&fetch);
    } else if (status == NTEE_CORRUPT) {
        *next_finding(findings, err) = wrong;
    } else {
        *err = wrong;
        return status;
    }
    return NTEE_OK;
}

static ntee_status check_keys(const nt_db *db, const nt_version *version, nt_findings *findings,
                              ntee_error *err) {
    nt_walk walk;
    uint64_t entry;
    ntee_status status = NTEE_OK;
    uint8_t *key = nt_alloc(NTEE_KEY_MAX + 1u);
    if (!key) return nt_fail(err, NTEE_NOMEM, "no memory for a key");
    nt_walk_first(&walk, nt_keydir_arena(db->keydir), version->roots[NT_ROOT_KEYS]);
    while (status == NTEE_OK && (entry = nt_walk_next(&walk)) != NT_TREE_NONE)
        status = check_key(db, version, &walk, entry, key, findings, err);
    nt_free(key);
    return status;
}

ntee_status nt_verify(nt_db *db, nt_findings *findings, ntee_error *err) {
    const nt_version *version = nt_keydir_hold_newest(db->keydir);
    if (!version) return nt_fail(err, NTEE_NOMEM, "no memory to keep a state of the store");
    ntee_status status = check_header(db, findings, err);
    if (status == NTEE_OK) status = check_log(db, version->log_end - db->source.base, findings, err);
    if (status == NTEE_OK) status = check_keys(db, version, findings, err);
    nt_keydir_drop(db->keydir, version);
    return status;
}
