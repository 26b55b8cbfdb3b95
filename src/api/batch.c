/* Batches of the C API: framed bytes, as a binding would send them. */
#include "api/handle.h"
#include "base/os.h"
#include "engine/commit.h"
#include "engine/get.h"
#include "format/wire.h"

struct ntee_batch {
    nt_buf framed;
    size_t count;
};

ntee_batch *ntee_batch_new(void) {
    ntee_batch *batch = nt_alloc(sizeof *batch);
    if (batch) *batch = (ntee_batch){0};
    return batch;
}

void ntee_batch_free(ntee_batch *batch) {
    if (!batch) return;
    nt_buf_free(&batch->framed);
    nt_free(batch);
}

void ntee_batch_clear(ntee_batch *batch) {
    if (!batch) return;
    batch->framed.len = 0;
    batch->count = 0;
}

size_t ntee_batch_count(const ntee_batch *batch) { return batch ? batch->count : 0; }

static ntee_status add(ntee_batch *batch, uint8_t type, const void *key, size_t key_len,
                       const void *value, size_t value_len) {
    ntee_error *err = nt_last_error();
    if (!batch) return nt_fail(err, NTEE_INVALID, "the batch is NULL");
    ntee_status status = nt_check_key(key, key_len, err);
    if (status != NTEE_OK) return status;
    if (!value && value_len) return nt_fail(err, NTEE_INVALID, "the value is NULL");
    size_t room = NTEE_BATCH_MAX - batch->framed.len;
    if (key_len + NT_WIRE_WRITE_HEAD > room || value_len > room - key_len - NT_WIRE_WRITE_HEAD)
        return nt_fail(err, NTEE_TOO_LARGE, "the batch would pass its limit of %u bytes",
                       NTEE_BATCH_MAX);
    if (!nt_wire_add_write(&batch->framed, type, key, key_len, value, value_len))
        return nt_fail(err, NTEE_NOMEM, "no memory for a batch");
    batch->count++;
    return NTEE_OK;
}

ntee_status ntee_batch_put(ntee_batch *batch, const void *key, size_t key_len, const void *value,
                           size_t value_len, const ntee_put_options *options) {
    ntee_error *err = nt_last_error();
    ntee_status status = nt_check_put_options(options, err);
    return status == NTEE_OK ? add(batch, NT_WIRE_PUT, key, key_len, value, value_len) : status;
}

ntee_status ntee_batch_delete(ntee_batch *batch, const void *key, size_t key_len) {
    return add(batch, NT_WIRE_DELETE, key, key_len, NULL, 0);
}

ntee_status ntee_write(ntee *db, const ntee_batch *batch) {
    ntee_error *err = nt_last_error();
    nt_write write;
    ntee_status status = nt_handle_check(db, err);
    if (status != NTEE_OK) return status;
    if (!batch) return nt_fail(err, NTEE_INVALID, "the batch is NULL");
    nt_write_begin(&write, &db->db);
    status = nt_write_add_framed(&write, batch->framed.data, batch->framed.len, err);
    if (status == NTEE_OK) status = nt_handle_write(db, &write, 0, err);
    nt_write_end(&write);
    return status;
}
