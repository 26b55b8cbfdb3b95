#define _POSIX_C_SOURCE 200809L
#define _DEFAULT_SOURCE

#include "platform.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { REPLY_MAX = 4096, THREADS_MAX = 8, DESCRIPTORS_MAX = 256 };

static const char *failed(const char *what) {
    static _Thread_local char text[BENCH_PATH_MAX + 128];
    snprintf(text, sizeof text, "%s: %s", what, strerror(errno));
    return text;
}

uint64_t bench_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void bench_write_out(void) { sync(); }

void bench_sleep(uint64_t ns) {
    struct timespec span = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    while (nanosleep(&span, &span) != 0 && errno == EINTR) {
    }
}

void *bench_alloc(size_t len) {
    void *memory = malloc(len ? len : 1);
    if (!memory) {
        fputs("ntee-bench: out of memory\n", stderr);
        exit(1);
    }
    return memory;
}

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number) {
    (void)number;
    interrupted = 1;
}

void bench_catch_interrupts(void) {
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct sigaction action = {.sa_handler = on_interrupt}, old;
        sigaction(numbers[i], &action, &old);
        if (old.sa_handler == SIG_IGN) sigaction(numbers[i], &old, NULL); /* as nohup wants it */
    }
}

/* ---- Directories -------------------------------------------------------------------------------- */

static const char *make_parents(const char *path) {
    char part[BENCH_PATH_MAX];
    snprintf(part, sizeof part, "%s", path);
    for (char *at = part + 1;; at++) {
        if (*at != '/' && *at != '\0') continue;
        char held = *at;
        *at = '\0';
        if (mkdir(part, 0777) != 0 && errno != EEXIST) return failed(part);
        *at = held;
        if (held == '\0') return NULL;
    }
}

const char *bench_make_root(char *out) {
    const char *parent = getenv("TMPDIR");
    if (!parent || !*parent) parent = "build/bench-data";
    if (strlen(parent) > BENCH_PATH_MAX / 2) return "TMPDIR is too long";
    const char *error = make_parents(parent);
    if (error) return error;
    snprintf(out, BENCH_PATH_MAX, "%s/ntee-bench-XXXXXX", parent);
    return mkdtemp(out) ? NULL : failed(out);
}

const char *bench_make_dir(const char *root, const char *name, char *out) {
    int len = snprintf(out, BENCH_PATH_MAX, "%s/%s", root, name);
    if (len < 0 || len >= BENCH_PATH_MAX) return "path too long";
    return mkdir(out, 0700) == 0 || errno == EEXIST ? NULL : failed(out);
}

static int path_of(char *out, const char *dir, const char *name) {
    int len = snprintf(out, BENCH_PATH_MAX, "%s/%s", dir, name);
    return len > 0 && len < BENCH_PATH_MAX;
}

void bench_remove_file(const char *dir, const char *name) {
    char path[BENCH_PATH_MAX];
    if (path_of(path, dir, name)) (void)unlink(path);
}

/* Unlinks the plain files of a directory; what is a directory stays. */
static void remove_files(const char *path) {
    DIR *dir = opendir(path);
    if (!dir) return;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) bench_remove_file(path, entry->d_name);
    closedir(dir);
}

void bench_remove_dir(const char *path) {
    remove_files(path);
    DIR *dir = opendir(path);
    if (!dir) return;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        char below[BENCH_PATH_MAX];
        if (entry->d_name[0] == '.' || !path_of(below, path, entry->d_name)) continue;
        remove_files(below);
        (void)rmdir(below);
    }
    closedir(dir);
    (void)rmdir(path);
}

/* ---- Memory and threads ------------------------------------------------------------------------- */

int64_t bench_anonymous_bytes(void) {
    FILE *file = fopen("/proc/self/status", "r");
    if (!file) return -1;
    int64_t kilobytes = -1;
    char line[256];
    while (kilobytes < 0 && fgets(line, sizeof line, file)) {
        if (strncmp(line, "RssAnon:", 8) == 0) kilobytes = strtoll(line + 8, NULL, 10);
    }
    fclose(file);
    return kilobytes < 0 ? -1 : kilobytes * 1024;
}

typedef struct thread_call {
    void (*run)(void *);
    void *arg;
} thread_call;

static void *thread_main(void *arg) {
    thread_call *call = arg;
    call->run(call->arg);
    return NULL;
}

const char *bench_in_threads(void (*run)(void *), void *const *args, size_t count) {
    pthread_t threads[THREADS_MAX];
    thread_call calls[THREADS_MAX];
    if (count > THREADS_MAX) return "too many threads";
    size_t started = 0;
    for (; started < count; started++) {
        calls[started] = (thread_call){run, args[started]};
        errno = pthread_create(&threads[started], NULL, thread_main, &calls[started]);
        if (errno != 0) break;
    }
    const char *error = started < count ? failed("pthread_create") : NULL;
    for (size_t i = 0; i < started; i++) pthread_join(threads[i], NULL);
    return error;
}

/* ---- Workers ------------------------------------------------------------------------------------ */

static int move_all(int fd, void *buf, size_t len, int writing) {
    char *at = buf;
    while (len > 0) {
        ssize_t moved = writing ? write(fd, at, len) : read(fd, at, len);
        if (moved < 0 && errno == EINTR && !interrupted) continue;
        if (moved <= 0) return -1;
        at += moved;
        len -= (size_t)moved;
    }
    return 0;
}

static void serve(const bench_worker_job *job, int in, int out) {
    static char reply[REPLY_MAX];
    uint32_t command;
    while (move_all(in, &command, sizeof command, 0) == 0) {
        memset(reply, 0, job->reply_len);
        job->answer(job->state, command, reply);
        if (move_all(out, reply, job->reply_len, 1) != 0) break;
    }
    job->finish(job->state);
}

/* A worker ends when its pipe does, so it must not hold the coordinator's ends of any worker's pipes. */
static void keep_only(int in, int out) {
    for (int fd = STDERR_FILENO + 1; fd < DESCRIPTORS_MAX; fd++) {
        if (fd != in && fd != out) close(fd);
    }
}

const char *bench_worker_start(bench_worker *worker, const bench_worker_job *job) {
    int down[2], up[2];
    if (job->reply_len > REPLY_MAX) return "reply too long";
    if (pipe(down) != 0) return failed("pipe");
    if (pipe(up) != 0) {
        close(down[0]);
        close(down[1]);
        return failed("pipe");
    }
    fflush(NULL);
    pid_t process = fork();
    if (process == 0) {
        keep_only(down[0], up[1]);
        serve(job, down[0], up[1]);
        _exit(0);
    }
    close(down[0]);
    close(up[1]);
    *worker = (bench_worker){process, down[1], up[0]};
    return process < 0 ? failed("fork") : NULL;
}

const char *bench_worker_ask(bench_worker *worker, uint32_t command, void *reply, size_t reply_len) {
    if (move_all(worker->to, &command, sizeof command, 1) == 0 &&
        move_all(worker->from, reply, reply_len, 0) == 0 && !interrupted) {
        return NULL;
    }
    return interrupted ? "interrupted" : "the worker died";
}

void bench_worker_end(bench_worker *worker) {
    close(worker->to);
    close(worker->from);
    if (interrupted) kill((pid_t)worker->process, SIGKILL);
    int status;
    while (waitpid((pid_t)worker->process, &status, 0) < 0 && errno == EINTR) {
    }
}
