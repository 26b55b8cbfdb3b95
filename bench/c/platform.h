/*
 * platform: what the benchmark asks of the operating system. Only platform.c includes POSIX headers.
 *
 * Functions that can fail return NULL, or else a text that says what went wrong; the text is static or
 * stays until the calling thread's next failure.
 */
#ifndef BENCH_PLATFORM_H
#define BENCH_PLATFORM_H

#include <stddef.h>
#include <stdint.h>

enum { BENCH_PATH_MAX = 1024 };

/* Nanoseconds of a clock that never jumps. */
uint64_t bench_now(void);
void bench_sleep(uint64_t ns);

/* Has the system write out what it has not yet, so that nobody's turn pays for the one before. */
void bench_write_out(void);

/* malloc that ends the process with a message where memory is short; free() gives it back. */
void *bench_alloc(size_t len);

/*
 * From now on an interrupt (SIGINT, SIGTERM, SIGHUP) makes bench_worker_ask fail, so that the program can
 * clean up after itself.
 */
void bench_catch_interrupts(void);

/*
 * Makes a new directory for the benchmark's stores in $TMPDIR, or in build/bench-data below the current
 * directory, and puts its path into out[BENCH_PATH_MAX].
 */
const char *bench_make_root(char *out);
/* Makes directory `name` in `root`; its path goes into out[BENCH_PATH_MAX]. */
const char *bench_make_dir(const char *root, const char *name, char *out);
/* Deletes a directory of plain files and of one level of directories of plain files. */
void bench_remove_dir(const char *path);
/* Deletes file `name` of a directory; a missing one is no matter. */
void bench_remove_file(const char *dir, const char *name);

/*
 * Bytes of anonymous memory that the process holds in RAM: RssAnon of Linux. Pages of mapped files count
 * elsewhere (RssFile), so a mapped log is not in it. -1 where the system does not tell.
 */
int64_t bench_anonymous_bytes(void);

/* Runs run(args[0]) .. run(args[count - 1]) in a thread each, at most 8, and waits for all. */
const char *bench_in_threads(void (*run)(void *), void *const *args, size_t count);

/*
 * A worker: a forked process that answers commands, so that one engine's memory and threads do not
 * disturb another's. `answer` runs in it, once per command, with the `state` that the fork copied; what it
 * puts into `reply` (reply_len bytes) comes back. `finish` runs before it exits.
 */
typedef struct bench_worker {
    int64_t process;
    int to, from;
} bench_worker;

typedef struct bench_worker_job {
    void (*answer)(void *state, uint32_t command, void *reply);
    void (*finish)(void *state);
    void *state;
    size_t reply_len; /* at most 4096 */
} bench_worker_job;

const char *bench_worker_start(bench_worker *worker, const bench_worker_job *job);
/* Sends a command and waits for the reply of reply_len bytes. */
const char *bench_worker_ask(bench_worker *worker, uint32_t command, void *reply, size_t reply_len);
/* Lets the worker finish, or stops it after an interrupt, and waits for its end. */
void bench_worker_end(bench_worker *worker);

#endif
