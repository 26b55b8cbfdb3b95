#include "api/background.h"

#include "base/os.h"
#include "engine/save.h"

void nt_background_init(nt_background *background, nt_writer *writer, int64_t interval_ms) {
    background->writer = writer;
    background->interval_ms = interval_ms;
    background->stop = 0;
    background->thread = 0;
    atomic_init(&background->started, 0);
}

void nt_background_step(nt_background *background) {
    ntee_error ignored; /* the writer keeps it */
    nt_writer *writer = background->writer;
    nt_save_when when = nt_writer_is_dirty(writer) ? NT_SAVE_BUSY : NT_SAVE_QUIET;
    int whole = nt_save_wants_snapshot(writer->db, when);
    const nt_version *version = whole ? nt_keydir_hold_newest(writer->db->keydir) : NULL;
    ntee_status status = NTEE_OK;
    if (when == NT_SAVE_BUSY)
        status = nt_writer_sync(writer, &ignored);
    else
        nt_writer_mark(writer);
    if (version) nt_save_snapshot(writer->db, version);
    else if (status == NTEE_OK) nt_save_step(writer->db, when);
}

static int stopped(nt_background *background) {
    nt_monitor_lock(&background->writer->work);
    int stop = background->stop;
    nt_monitor_unlock(&background->writer->work);
    return stop;
}

/* Runs until told to stop: prepares whenever it is woken, ticks whenever the interval has passed. */
static void *run(void *arg) {
    nt_background *background = arg;
    int64_t next = NT_OS->now_boot() + background->interval_ms;
    while (!stopped(background)) {
        if (NT_OS->now_boot() >= next) {
            /* The next tick is counted from the beginning of this one, so that a write waits for at most one
             * interval and one sync. */
            next = NT_OS->now_boot() + background->interval_ms;
            nt_background_step(background);
        }
        nt_db_fit_guesses(background->writer->db);
        nt_log_prepare(background->writer->db->log); /* behind the sync, which takes prepared pages away */
        nt_writer_rest(background->writer, next - NT_OS->now_boot(), &background->stop);
    }
    return NULL;
}

ntee_status nt_background_start(nt_background *background, ntee_error *err) {
    if (atomic_load_explicit(&background->started, memory_order_acquire)) return NTEE_OK;
    nt_monitor *work = &background->writer->work;
    int failed = 0;
    nt_monitor_lock(work);
    if (!atomic_load(&background->started)) {
        failed = NT_OS->thread_start(run, background, &background->thread);
        if (!failed) atomic_store_explicit(&background->started, 1, memory_order_release);
    }
    nt_monitor_unlock(work);
    return failed ? nt_fail_os(err, failed, "start the thread that syncs", "the store") : NTEE_OK;
}

void nt_background_stop(nt_background *background) {
    nt_monitor *work = &background->writer->work;
    if (!atomic_load(&background->started)) return;
    nt_monitor_lock(work);
    background->stop = 1;
    nt_monitor_wake(work);
    nt_monitor_unlock(work);
    if (background->thread) NT_OS->thread_join(background->thread);
    atomic_store(&background->started, 0);
}
