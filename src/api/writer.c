#include "api/writer.h"

#include "base/os.h"

/* A larger write is not "at hand": staging it takes a while. */
#define AT_HAND_IMAGE (64u * 1024u)

int nt_writer_init(nt_writer *writer, nt_db *db, int sync_each) {
    writer->db = db;
    writer->sync_each = sync_each;
    writer->syncing = 0;
    writer->durable = nt_log_synced(db->log);
    writer->durable_sequence = db->sequence;
    writer->lag_ms = 0;
    atomic_init(&writer->dirty_since, 0);
    atomic_init(&writer->written, writer->durable);
    atomic_init(&writer->marked, writer->durable);
    atomic_init(&writer->idle, 0);
    atomic_init(&writer->failed, 0);
    if (pthread_mutex_init(&writer->turn, NULL)) return 0;
    if (!nt_monitor_init(&writer->group)) goto no_group;
    if (!nt_monitor_init(&writer->work)) goto no_work;
    return 1;
no_work:
    nt_monitor_destroy(&writer->group);
no_group:
    pthread_mutex_destroy(&writer->turn);
    return 0;
}

void nt_writer_destroy(nt_writer *writer) {
    nt_monitor_destroy(&writer->work);
    nt_monitor_destroy(&writer->group);
    pthread_mutex_destroy(&writer->turn);
}

static ntee_status would_block(ntee_error *err) {
    return nt_fail(err, NTEE_WOULD_BLOCK, "the write would have to wait");
}

/* Stages of a failure: the first to fail writes it down, the others may look at it only then. */
enum { FINE = 0, FAILING = 1, FAILED = 2 };

static int has_failed(nt_writer *writer, ntee_error *err) {
    if (atomic_load_explicit(&writer->failed, memory_order_acquire) != FAILED) return 0;
    *err = writer->failure;
    return 1;
}

static void fail(nt_writer *writer, const ntee_error *err) {
    int fine = FINE;
    if (!atomic_compare_exchange_strong(&writer->failed, &fine, FAILING)) return;
    writer->failure = *err;
    atomic_store_explicit(&writer->failed, FAILED, memory_order_release);
}

/* What one sync will make durable and may publish. */
typedef struct sample {
    uint64_t tail;
    const nt_version *staged;
    uint64_t sequence;
    int64_t since; /* when the oldest write was made that it covers and no sync before; 0: none */
} sample;

static sample take_sample(nt_writer *writer) {
    pthread_mutex_lock(&writer->turn);
    sample s = {nt_log_tail(writer->db->log), nt_keydir_staged(writer->db->keydir), writer->db->sequence,
                atomic_load_explicit(&writer->dirty_since, memory_order_relaxed)};
    atomic_store_explicit(&writer->dirty_since, 0, memory_order_relaxed);
    pthread_mutex_unlock(&writer->turn);
    return s;
}

/* One sync for everybody; called with `syncing` set and `group` unlocked. */
static ntee_status lead(nt_writer *writer, sample *done, int64_t *lag_ms, ntee_error *err) {
    sample s = take_sample(writer);
    ntee_status status = nt_log_sync(writer->db->log, err);
    if (status != NTEE_OK) return status;
    if (writer->sync_each) {
        pthread_mutex_lock(&writer->turn);
        nt_keydir_publish(writer->db->keydir, s.staged);
        pthread_mutex_unlock(&writer->turn);
    }
    *lag_ms = s.since ? NT_OS->now_boot() - s.since : 0;
    *done = s;
    return NTEE_OK;
}

/* Waits until the log is durable up to `target`, leading a sync where nobody else does. */
static ntee_status wait_durable(nt_writer *writer, uint64_t target, ntee_error *err) {
    ntee_status status = NTEE_OK;
    nt_monitor_lock(&writer->group);
    while (writer->durable < target) {
        if (status != NTEE_OK) break;
        if (writer->syncing) {
            nt_monitor_wait(&writer->group);
            continue;
        }
        sample done = {0};
        int64_t lag_ms = 0;
        writer->syncing = 1;
        nt_monitor_unlock(&writer->group);
        status = lead(writer, &done, &lag_ms, err);
        nt_monitor_lock(&writer->group);
        writer->syncing = 0;
        if (status == NTEE_OK) {
            writer->durable = done.tail;
            writer->durable_sequence = done.sequence;
            if (lag_ms > writer->lag_ms) writer->lag_ms = lag_ms;
        } else {
            fail(writer, err);
        }
        nt_monitor_wake(&writer->group);
    }
    nt_monitor_unlock(&writer->group);
    return status;
}

/* The turn itself: *end is where the newest write of all ends in the log. */
static ntee_status take_turn(nt_writer *writer, nt_write *write, uint64_t *end, ntee_error *err) {
    ntee_error broken; /* the log's own: this write may have failed for another reason meanwhile */
    ntee_status status = nt_commit(writer->db, write, err);
    *end = atomic_load_explicit(&writer->written, memory_order_relaxed);
    if (status != NTEE_OK && nt_log_is_broken(writer->db->log) &&
        nt_log_reserve(writer->db->log, 0, 0, &broken) != NTEE_OK)
        fail(writer, &broken);
    if (status != NTEE_OK || !write->staged) return status;
    *end = nt_log_tail(writer->db->log);
    if (!atomic_load_explicit(&writer->dirty_since, memory_order_relaxed))
        atomic_store_explicit(&writer->dirty_since, NT_OS->now_boot(), memory_order_relaxed);
    atomic_store(&writer->written, *end); /* before `idle` is looked at: see nt_writer_rest */
    if (!writer->sync_each) nt_keydir_publish(writer->db->keydir, write->staged);
    if (atomic_load(&writer->idle)) {
        nt_monitor_lock(&writer->work);
        atomic_store(&writer->idle, 0);
        nt_monitor_wake(&writer->work);
        nt_monitor_unlock(&writer->work);
    } else if (nt_log_wants_prepare(writer->db->log)) {
        nt_monitor_wake(&writer->work);
    }
    return NTEE_OK;
}

ntee_status nt_writer_write(nt_writer *writer, nt_write *write, int at_hand, ntee_error *err) {
    ntee_status status;
    uint64_t end = 0;
    if (at_hand) {
        if (writer->sync_each || write->image.len > AT_HAND_IMAGE) return would_block(err);
        if (pthread_mutex_trylock(&writer->turn)) return would_block(err);
    } else {
        pthread_mutex_lock(&writer->turn);
    }
    if (has_failed(writer, err))
        status = err->status;
    else
        status = take_turn(writer, write, &end, err);
    pthread_mutex_unlock(&writer->turn);
    nt_os_yield("written");
    if (!writer->sync_each || (status != NTEE_OK && status != NTEE_EXISTS)) return status;
    /* An answer without a write rests on what others have staged: it is good once that is durable. */
    ntee_status durable = wait_durable(writer, end, err);
    return durable == NTEE_OK ? status : durable;
}

void nt_writer_measure(nt_writer *writer, nt_writer_figures *figures) {
    pthread_mutex_lock(&writer->turn);
    figures->sequence = writer->db->sequence;
    pthread_mutex_unlock(&writer->turn);
    nt_monitor_lock(&writer->group);
    figures->durable_sequence = writer->durable_sequence;
    figures->lag_ms = writer->lag_ms;
    nt_monitor_unlock(&writer->group);
    figures->failed = atomic_load(&writer->failed) != FINE;
}

ntee_status nt_writer_sync(nt_writer *writer, ntee_error *err) {
    uint64_t target = atomic_load_explicit(&writer->written, memory_order_acquire);
    return wait_durable(writer, target, err);
}

int nt_writer_is_dirty(const nt_writer *writer) {
    return nt_log_synced(writer->db->log) <
           atomic_load_explicit(&writer->written, memory_order_acquire);
}

void nt_writer_mark(nt_writer *writer) {
    ntee_error ignored;
    uint64_t written = atomic_load_explicit(&writer->written, memory_order_acquire);
    if (written == atomic_load_explicit(&writer->marked, memory_order_relaxed)) return;
    pthread_mutex_lock(&writer->turn);
    if (!atomic_load(&writer->failed) && writer->db->announced &&
        nt_log_synced(writer->db->log) >= atomic_load(&writer->written)) {
        /* A mark that does not fit says nothing, and nobody misses it. */
        nt_commit_mark(writer->db, 0, &ignored);
        atomic_store(&writer->marked, atomic_load(&writer->written));
    }
    pthread_mutex_unlock(&writer->turn);
}

/* Whether the background has nothing to do but wait for the next write. */
static int is_settled(nt_writer *writer) {
    uint64_t written = atomic_load(&writer->written);
    if (nt_log_synced(writer->db->log) < written) return 0;
    return atomic_load(&writer->marked) == written || atomic_load(&writer->failed);
}

void nt_writer_rest(nt_writer *writer, int64_t ms, const int *stop) {
    nt_monitor_lock(&writer->work);
    if (!*stop) {
        /* A writer stores `written` and then looks at `idle`; here it is the other way round, so that one
         * of the two sees the other. */
        atomic_store(&writer->idle, 1);
        if (is_settled(writer))
            nt_monitor_wait(&writer->work);
        else if (ms > 0) {
            atomic_store(&writer->idle, 0);
            nt_monitor_wait_ms(&writer->work, ms);
        }
        atomic_store(&writer->idle, 0);
    }
    nt_monitor_unlock(&writer->work);
}
