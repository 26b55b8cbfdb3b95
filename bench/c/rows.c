#include "rows.h"

#include <stdatomic.h>
#include <stdio.h>

enum {
    SCANS = 3,
    MIXED_MS = 1000,
    HINT_EVERY = 5,
    PUT_BLOCK = 1000,  /* of engines whose puts are slow, of so many puts .. */
    PUT_TIMED = 100    /* .. so many are timed */
};

static const char WRONG_RESULT[] = "a result is not what was written";

static double per_op(uint64_t start, uint64_t operations) {
    return (double)(bench_now() - start) / (double)operations;
}

/* ---- The store ---------------------------------------------------------------------------------- */

static const char *open_store(bench_session *session) {
    if (session->saving && !session->db)
        return session->engine->open_saving(session->dir, session->saving, &session->db);
    return session->db ? NULL : session->engine->open(session->dir, &session->db);
}

const char *bench_session_close(bench_session *session) {
    void *db = session->db;
    session->db = NULL;
    return db ? session->engine->close(db) : NULL;
}

static const char *put_each(bench_session *session, size_t from, size_t to) {
    const bench_data *data = session->data;
    const bench_engine *engine = session->engine;
    const char *error = NULL;
    for (size_t i = from; i < to && !error; i++) {
        error = engine->put(session->db, data->put_order[i].bytes, BENCH_KEY_LEN, bench_value(data, i),
                            BENCH_VALUE_LEN);
    }
    return error;
}

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* Puts data->put_order into an empty store and leaves nothing to be done; *ns_per_put may be NULL. */
static const char *put_all(bench_session *session, double *ns_per_put) {
    const bench_engine *engine = session->engine;
    size_t n = session->data->n, block = engine->slow_puts ? PUT_BLOCK : n;
    size_t sample = engine->slow_puts ? PUT_TIMED : n, timed = 0;
    uint64_t spent = 0;
    const char *error = open_store(session);
    for (size_t from = 0; from < n && !error; from += block) {
        size_t middle = least(from + sample, n), to = least(from + block, n);
        uint64_t start = bench_now();
        error = put_each(session, from, middle);
        spent += bench_now() - start;
        timed += middle - from;
        if (!error && middle < to) error = engine->put_many(session->db, session->data, middle, to);
    }
    if (ns_per_put) *ns_per_put = (double)spent / (double)timed;
    if (!error) error = engine->settle(session->db);
    session->filled = !error;
    return error;
}

static const char *fill(bench_session *session) {
    return session->filled ? NULL : put_all(session, NULL);
}

/* ---- Reading ------------------------------------------------------------------------------------ */

typedef struct read_job {
    bench_session *session;
    const bench_key *keys;
    size_t n;
    uint64_t sum; /* out: of the values' words */
    const char *error;
} read_job;

static void read_keys(void *arg) {
    read_job *job = arg;
    const bench_engine *engine = job->session->engine;
    char value[BENCH_VALUE_LEN];
    uint64_t sum = 0;
    void *reader;
    job->error = engine->reader_open(job->session->db, BENCH_READER_STEADY, &reader);
    if (job->error) return;
    for (size_t i = 0; i < job->n && !job->error; i++) {
        size_t len;
        job->error = engine->get(reader, job->keys[i].bytes, BENCH_KEY_LEN, value, sizeof value, &len);
        if (!job->error && len != BENCH_VALUE_LEN) job->error = WRONG_RESULT;
        sum += bench_value_word(value);
    }
    job->sum = sum;
    engine->reader_close(reader);
}

static read_job read_job_of(bench_session *session, int order) {
    return (read_job){session, session->data->get_order[order], session->data->n, 0, NULL};
}

/* The values of a job that got every key are proved by their sum to be the ones that were put. */
static const char *check_read(const read_job *job) {
    if (job->error) return job->error;
    return job->sum == job->session->data->value_sum ? NULL : WRONG_RESULT;
}

static const char *check_all(bench_session *session) {
    read_job job = read_job_of(session, 0);
    read_keys(&job);
    return check_read(&job);
}

static const char *run_get(bench_session *session, double *figures) {
    const char *error = fill(session);
    if (error) return error;
    read_job job = read_job_of(session, 1);
    error = check_all(session); /* untimed: brings the pages, and whatever an engine caches, in */
    if (error) return error;
    uint64_t start = bench_now();
    read_keys(&job);
    figures[0] = per_op(start, job.n);
    return check_read(&job);
}

static const char *run_readers(bench_session *session, double *figures) {
    const char *error = fill(session);
    if (!error) error = check_all(session);
    if (error) return error;
    read_job jobs[2] = {read_job_of(session, 0), read_job_of(session, 1)};
    void *args[2] = {&jobs[0], &jobs[1]};
    uint64_t start = bench_now();
    error = bench_in_threads(read_keys, args, 2);
    figures[0] = per_op(start, session->data->n); /* time x 2 threads / 2n gets */
    for (int i = 0; i < 2 && !error; i++) error = check_read(&jobs[i]);
    return error;
}

static const char *run_scan(bench_session *session, double *figures) {
    const char *error = fill(session);
    uint64_t start = bench_now();
    for (int pass = 0; pass <= SCANS && !error; pass++) {
        if (pass == 1) start = bench_now(); /* the pass before brought the pages in */
        bench_scan scan = {0, 0};
        error = session->engine->scan_keys(session->db, &scan);
        if (!error && (scan.count != session->data->n || scan.hash != session->data->scan_hash)) {
            error = WRONG_RESULT;
        }
    }
    figures[0] = per_op(start, session->data->n * SCANS);
    return error;
}

/* ---- Writing ------------------------------------------------------------------------------------ */

static const char *run_put(bench_session *session, double *figures) {
    return put_all(session, &figures[0]);
}

/* Every key once, in another order than they came; the values stay such that their sum is the same. */
static const char *run_overwrite(bench_session *session, double *figures) {
    const char *error = fill(session);
    const bench_data *data = session->data;
    uint64_t start = bench_now();
    for (size_t i = 0; i < data->n && !error; i++) {
        error = session->engine->put(session->db, data->get_order[1][i].bytes, BENCH_KEY_LEN,
                                     bench_value(data, i), BENCH_VALUE_LEN);
    }
    figures[0] = per_op(start, data->n);
    return error ? error : check_all(session);
}

static const char *run_batch(bench_session *session, double *figures) {
    const char *error = open_store(session);
    if (error) return error;
    uint64_t start = bench_now();
    error = session->engine->put_many(session->db, session->data, 0, session->data->n);
    figures[0] = per_op(start, session->data->n);
    return error ? error : check_all(session);
}

/* ---- Reading and writing at once ---------------------------------------------------------------- */

typedef struct mixed_job {
    bench_session *session;
    atomic_int *left;
    int role; /* 0 reads, 1 writes, 2 ends the run */
    double ns_per_op;
    const char *error;
} mixed_job;

static void mixed_read(mixed_job *job) {
    const bench_data *data = job->session->data;
    const bench_engine *engine = job->session->engine;
    char value[BENCH_VALUE_LEN];
    size_t at = 0;
    uint64_t gets = 0, start = bench_now();
    void *reader;
    job->error = engine->reader_open(job->session->db, BENCH_READER_NEWEST, &reader);
    if (job->error) return;
    while (!job->error && atomic_load_explicit(job->left, memory_order_relaxed)) {
        size_t len = 0;
        job->error = engine->get(reader, data->get_order[0][at].bytes, BENCH_KEY_LEN, value, sizeof value,
                                 &len);
        if (!job->error && len != BENCH_VALUE_LEN) job->error = WRONG_RESULT;
        if (++at == data->n) at = 0;
        gets++;
    }
    job->ns_per_op = per_op(start, gets);
    engine->reader_close(reader);
}

static void mixed_write(mixed_job *job) {
    const bench_data *data = job->session->data;
    const bench_engine *engine = job->session->engine;
    size_t at = 0;
    uint64_t puts = 0, start = bench_now();
    while (!job->error && atomic_load_explicit(job->left, memory_order_relaxed)) {
        job->error = engine->put(job->session->db, data->get_order[1][at].bytes, BENCH_KEY_LEN,
                                 bench_value(data, at), BENCH_VALUE_LEN);
        if (++at == data->n) at = 0;
        puts++;
    }
    job->ns_per_op = per_op(start, puts);
}

static void mixed_thread(void *arg) {
    mixed_job *job = arg;
    if (job->role == 0) mixed_read(job);
    if (job->role == 1) mixed_write(job);
    if (job->role == 2) bench_sleep((uint64_t)MIXED_MS * 1000000u);
    if (job->role == 2 || job->error) atomic_store(job->left, 0);
}

static const char *run_mixed(bench_session *session, double *figures) {
    const char *error = fill(session);
    if (!error) error = check_all(session);
    if (error) return error;
    atomic_int left = 1;
    mixed_job jobs[3];
    void *args[3];
    for (int role = 0; role < 3; role++) {
        jobs[role] = (mixed_job){session, &left, role, 0, NULL};
        args[role] = &jobs[role];
    }
    error = bench_in_threads(mixed_thread, args, 3);
    figures[0] = jobs[0].ns_per_op;
    figures[1] = jobs[1].ns_per_op;
    if (error) return error;
    return jobs[0].error ? jobs[0].error : jobs[1].error;
}

/* ---- The cost of keys --------------------------------------------------------------------------- */

static const char *run_open_scan(bench_session *session, double *figures) {
    const char *error = fill(session);
    if (!error) error = bench_session_close(session);
    if (error) return error;
    bench_remove_file(session->dir, "00000001.hint");
    uint64_t start = bench_now();
    error = open_store(session);
    figures[0] = per_op(start, session->data->n);
    return error ? error : check_all(session);
}

static const char *run_open_hint(bench_session *session, double *figures) {
    const char *error = fill(session);
    if (!error) error = bench_session_close(session);
    if (error) return error;
    uint64_t start = bench_now();
    error = open_store(session);
    figures[0] = per_op(start, session->data->n);
    return error ? error : check_all(session);
}

static const char *run_put_hint(bench_session *session, double *figures) {
    session->saving = HINT_EVERY;
    const char *error = put_all(session, &figures[0]);
    return error ? error : check_all(session);
}

static const char *run_ram(bench_session *session, double *figures) {
    const char *error = open_store(session);
    if (error) return error;
    int64_t before = bench_anonymous_bytes();
    if (before < 0) return "this system does not tell how much anonymous memory a process has";
    for (size_t i = 0; i < session->data->n && !error; i++) {
        uint64_t key[2] = {bench_scatter(2 * i), bench_scatter(2 * i + 1)};
        error = session->engine->put(session->db, key, sizeof key, NULL, 0);
    }
    figures[0] = (double)(bench_anonymous_bytes() - before) / (double)session->data->n;
    return error;
}

/* ---- The table ---------------------------------------------------------------------------------- */

const bench_row bench_rows[] = {
    {{"put_1m", NULL}, "ns", "lmdb sqlite sqlite_exclusive leveldb rocksdb", 0, run_put,
     "new keys in random order into an empty store, a transaction each; SQLite: 100 of every 1000 are timed, "
     "the others come in one transaction"},
    {{"get_1m", NULL}, "ns", "lmdb sqlite sqlite_exclusive leveldb rocksdb", 0, run_get,
     "hits in random order, the value copied out; LMDB: in one long transaction"},
    {{"scan_keys_1m", NULL}, "ns", "lmdb sqlite sqlite_exclusive leveldb rocksdb", 0, run_scan,
     "per key, all keys in order, copied into a buffer"},
    {{"readers_2", NULL}, "ns", "lmdb", 0, run_readers,
     "time x threads / gets of two threads, each as in get_1m"},
    {{"open_scan_ns_per_key", NULL}, "ns", "", 0, run_open_scan,
     "open after a clean close without a hint, log in the page cache, per key"},
    {{"open_hint_ns_per_key", NULL}, "ns", "", 0, run_open_hint,
     "open after a clean close with the hint that it left, files in the page cache, per key"},
    {{"overwrite_1m", NULL}, "ns", "lmdb", 0, run_overwrite, "every key once in random order"},
    {{"reader_beside_writer", "writer_beside_reader"}, "ns", "lmdb", 0, run_mixed,
     "one thread gets, one overwrites, both in random order, for a second; every get sees the newest state "
     "(LMDB: the read transaction is renewed for each)"},
    {{"put_hint5_1m", NULL}, "ns", "", 1, run_put_hint, "put_1m with hint_every 5"},
    {{"batch_1m", NULL}, "ns", "lmdb", 1, run_batch,
     "per record, all in one atomic write into an empty store, building the batch included"},
    {{"ram_bytes_per_key", NULL}, "bytes", "", 1, run_ram,
     "growth of RssAnon by putting 16 random bytes as key and no value one by one; pages of the mapped log "
     "are RssFile and so not in it"},
};

const size_t bench_row_count = sizeof bench_rows / sizeof *bench_rows;
