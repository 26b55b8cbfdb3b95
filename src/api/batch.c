/* Batches of the C API: the image of the frame that they will be, without the checksums of a store. */
#include "api/handle.h"
#include "base/os.h"
#include "engine/commit.h"
#include "engine/get.h"
#include "format/wire.h"

struct ntee_batch {
    nt_write write;
    uint64_t bytes; /* as the framed bytes of ntee_run would have */
};

ntee_batch *ntee_batch_new(void) {
    ntee_batch *batch = nt_alloc(sizeof *batch);
    if (!batch) return NULL;
    batch->bytes = 0;
    nt_write_begin(&batch->write, NULL);
    return batch;
}

void ntee_batch_free(ntee_batch *batch) {
    if (!batch) return;
    nt_write_end(&batch->write);
    nt_free(batch);
}

void ntee_batch_clear(ntee_batch *batch) {
    if (!batch) return;
    nt_write_clear(&batch->write);
    batch->bytes = 0;
}

size_t ntee_batch_count(const ntee_batch *batch) { return batch ? (size_t)batch->write.count : 0; }

static ntee_status add(ntee_batch *batch, uint8_t type, const void *key, size_t key_len,
                       const void *value, size_t value_len) {
    ntee_error *err = nt_last_error();
    if (!batch) return nt_fail(err, NTEE_INVALID, "the batch is NULL");
    ntee_status status = nt_check_key(key, key_len, err);
    if (status != NTEE_OK) return status;
    uint64_t room = NTEE_BATCH_MAX - batch->bytes, size = NT_WIRE_WRITE_HEAD + key_len;
    if (size > room || value_len > room - size)
        return nt_fail(err, NTEE_TOO_LARGE, "the batch would pass its limit of %u bytes",
                       NTEE_BATCH_MAX);
    status = nt_write_add(&batch->write, type, key, key_len, value, value_len, err);
    if (status != NTEE_OK) return status;
    batch->bytes += size + value_len;
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

/* The image is the batch's own memory: its checksums are taken anew for every store that it goes into. */
ntee_status ntee_write(ntee *db, const ntee_batch *batch) {
    ntee_error *err = nt_last_error();
    ntee_status status = nt_handle_check(db, err);
    if (status != NTEE_OK) return status;
    if (!batch) return nt_fail(err, NTEE_INVALID, "the batch is NULL");
    nt_write *write = (nt_write *)(uintptr_t)&batch->write;
    nt_write_into(write, &db->db);
    status = nt_handle_write(db, write, 0, err);
    write->db = NULL; /* what is added from here on has no checksums either */
    return status;
}
