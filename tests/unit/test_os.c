/* The rules of the POSIX table that others rely on, checked on a real file system. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/os.h"
#include "fake/fake_os.h"

typedef struct place {
    char path[64];
    int dir;
} place;

static int set_up(void **state) {
    place *here = calloc(1, sizeof *here);
    strcpy(here->path, "/tmp/ntee-os-XXXXXX");
    if (mkdtemp(here->path) == NULL || NT_OS->open_dir(here->path, &here->dir) != 0) return -1;
    *state = here;
    return 0;
}

static int remove_name(void *arg, const char *name) {
    int dir = *(int *)arg;
    if (unlinkat(dir, name, 0) != 0) unlinkat(dir, name, AT_REMOVEDIR);
    return 0;
}

static int tear_down(void **state) {
    place *here = *state;
    NT_OS->list(here->dir, remove_name, &here->dir);
    NT_OS->close(here->dir);
    rmdir(here->path);
    free(here);
    return 0;
}

static int make(const place *here, const char *name, const char *text) {
    int fd;
    size_t done;
    assert_int_equal(NT_OS->open_at(here->dir, name, NT_OS_WRITE | NT_OS_CREATE, &fd), 0);
    assert_int_equal(nt_os_write(fd, text, strlen(text), 0, &done), 0);
    assert_int_equal(done, strlen(text));
    return fd;
}

static void a_symbolic_link_is_refused(void **state) {
    place *here = *state;
    int fd;
    NT_OS->close(make(here, "real", "secret"));
    assert_int_equal(symlinkat("real", here->dir, "link"), 0);
    assert_int_equal(symlinkat("nowhere", here->dir, "dangling"), 0);
    static const int FLAGS[] = {0, NT_OS_WRITE, NT_OS_WRITE | NT_OS_CREATE};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(NT_OS->open_at(here->dir, "link", FLAGS[i], &fd), ELOOP);
        assert_int_equal(NT_OS->open_at(here->dir, "dangling", FLAGS[i], &fd), ELOOP);
        assert_int_equal(fd, -1);
    }
    int fresh = NT_OS_WRITE | NT_OS_CREATE | NT_OS_EXCL;
    assert_int_equal(NT_OS->open_at(here->dir, "dangling", fresh, &fd), EEXIST);
    assert_int_equal(NT_OS->open_at(here->dir, "nowhere", 0, &fd), ENOENT);
}

static void only_regular_files_are_opened_and_opening_never_waits(void **state) {
    place *here = *state;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd;
    assert_int_equal(mkfifoat(here->dir, "fifo", 0600), 0);
    assert_int_equal(mkdirat(here->dir, "dir", 0700), 0);
    int sock = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s/socket", here->path);
    assert_int_equal(bind(sock, (struct sockaddr *)&address, sizeof address), 0);
    for (int flags = 0; flags <= NT_OS_WRITE; flags += NT_OS_WRITE) {
        assert_int_equal(NT_OS->open_at(here->dir, "fifo", flags, &fd), EINVAL);
        assert_int_equal(NT_OS->open_at(here->dir, "fifo", flags | NT_OS_CREATE, &fd), EINVAL);
        assert_int_equal(NT_OS->open_at(here->dir, "dir", flags, &fd), EISDIR);
        assert_int_equal(NT_OS->open_at(here->dir, "socket", flags, &fd), EINVAL);
        assert_int_equal(NT_OS->open_at(here->dir, "dir/x", flags, &fd), EINVAL);
        assert_int_equal(NT_OS->open_at(here->dir, "../x", flags | NT_OS_CREATE, &fd), EINVAL);
    }
    close(sock);
}

static void modes_do_not_depend_on_the_umask(void **state) {
    static const mode_t MASKS[] = {0, 077, 022, 0377, 0777};
    place *here = *state;
    mode_t before = umask(0);
    for (size_t i = 0; i < sizeof MASKS / sizeof MASKS[0]; i++) {
        char file[32], path[128];
        struct stat about;
        umask(MASKS[i]);
        snprintf(file, sizeof file, "file-%zu", i);
        snprintf(path, sizeof path, "%s/dir-%zu", here->path, i);
        NT_OS->close(make(here, file, "x"));
        assert_int_equal(NT_OS->make_dir(path), 0);
        assert_int_equal(fstatat(here->dir, file, &about, 0), 0);
        assert_int_equal(about.st_mode & 07777, 0600);
        assert_int_equal(stat(path, &about), 0);
        assert_int_equal(about.st_mode & 07777, 0700);
    }
    umask(before);
}

static void creating_exclusively_refuses_what_is_there(void **state) {
    place *here = *state;
    int fd;
    int fresh = NT_OS_WRITE | NT_OS_CREATE | NT_OS_EXCL;
    assert_int_equal(NT_OS->open_at(here->dir, "new", 0, &fd), ENOENT);
    assert_int_equal(NT_OS->open_at(here->dir, "new", fresh, &fd), 0);
    NT_OS->close(fd);
    assert_int_equal(NT_OS->open_at(here->dir, "new", fresh, &fd), EEXIST);
    assert_int_equal(NT_OS->open_at(here->dir, "new", NT_OS_WRITE | NT_OS_CREATE, &fd), 0);
    NT_OS->close(fd);
    assert_int_equal(NT_OS->make_dir(here->path), EEXIST);
}

/* The shell lists what it inherited: nothing but the three and what it opens itself to do so. */
static void descriptors_do_not_reach_spawned_programs(void **state) {
    place *here = *state;
    char text[4096] = "";
    int file = make(here, "file", "x");
    FILE *list = popen("ls -l /proc/self/fd", "r");
    assert_non_null(list);
    assert_true(fread(text, 1, sizeof text - 1, list) > 0);
    pclose(list);
    assert_null(strstr(text, here->path));
    assert_int_equal(fcntl(file, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    assert_int_equal(fcntl(here->dir, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    NT_OS->close(file);
}

static void a_lock_is_held_once_or_shared(void **state) {
    place *here = *state;
    int a = make(here, "lock", "");
    int b = make(here, "lock", "");
    assert_int_equal(NT_OS->lock(a, 1), 0);
    assert_int_equal(NT_OS->lock(b, 1), EWOULDBLOCK);
    assert_int_equal(NT_OS->lock(b, 0), EWOULDBLOCK);
    NT_OS->close(a);
    assert_int_equal(NT_OS->lock(b, 0), 0);
    a = make(here, "lock", "");
    assert_int_equal(NT_OS->lock(a, 0), 0);
    assert_int_equal(NT_OS->lock(a, 1), EWOULDBLOCK);
    NT_OS->close(b);
    assert_int_equal(NT_OS->lock(a, 1), 0);
    NT_OS->close(a);
}

static void same_file_notices_a_replaced_name(void **state) {
    place *here = *state;
    int same = 7;
    int fd = make(here, "one", "1");
    assert_int_equal(NT_OS->same_file(here->dir, "one", fd, &same), 0);
    assert_int_equal(same, 1);
    NT_OS->close(make(here, "two", "2"));
    assert_int_equal(NT_OS->rename_at(here->dir, "two", "one"), 0);
    assert_int_equal(NT_OS->same_file(here->dir, "one", fd, &same), 0);
    assert_int_equal(same, 0);
    assert_int_equal(NT_OS->unlink_at(here->dir, "one"), 0);
    assert_int_equal(NT_OS->same_file(here->dir, "one", fd, &same), ENOENT);
    assert_int_equal(NT_OS->unlink_at(here->dir, "one"), ENOENT);
    NT_OS->close(fd);
}

static int count_names(void *arg, const char *name) {
    assert_true(strcmp(name, ".") != 0 && strcmp(name, "..") != 0);
    return ++*(int *)arg == 3;
}

static void list_gives_every_name_until_it_is_told_to_stop(void **state) {
    place *here = *state;
    int count = 0;
    NT_OS->close(make(here, "a", ""));
    NT_OS->close(make(here, "b", ""));
    assert_int_equal(NT_OS->list(here->dir, count_names, &count), 0);
    assert_int_equal(count, 2);
    NT_OS->close(make(here, "c", ""));
    NT_OS->close(make(here, "d", ""));
    count = 0;
    assert_int_equal(NT_OS->list(here->dir, count_names, &count), 0);
    assert_int_equal(count, 3);
}

static void reads_and_writes_are_whole_or_fail(void **state) {
    place *here = *state;
    char text[16];
    uint64_t size;
    size_t done;
    int fd = make(here, "file", "hello world");
    assert_int_equal(nt_os_read(fd, text, 5, 6), 0);
    assert_memory_equal(text, "world", 5);
    assert_int_equal(nt_os_read(fd, text, 6, 6), EIO);
    assert_int_equal(nt_os_read(fd, text, 1, 1u << 20), EIO);
    assert_int_equal(nt_os_read(fd, text, 0, 6), 0);
    assert_int_equal(nt_os_write(fd, "x", 1, UINT64_MAX - 1, &done), EFBIG);
    assert_int_equal(NT_OS->truncate(fd, UINT64_MAX), EFBIG);
    assert_int_equal(NT_OS->truncate(fd, 3), 0);
    assert_int_equal(NT_OS->size(fd, &size), 0);
    assert_int_equal(size, 3);
    NT_OS->close(fd);
    assert_int_equal(NT_OS->open_at(here->dir, "file", 0, &fd), 0);
    assert_int_equal(nt_os_write(fd, "x", 1, 0, &done), EBADF);
    NT_OS->close(fd);
}

static void short_and_interrupted_calls_are_gone_on_with(void **state) {
    fake_fs *fs = fake_new(5);
    int dir, fd;
    size_t done;
    char text[64];
    (void)state;
    fake_use(fs);
    assert_int_equal(NT_OS->open_dir("/", &dir), 0);
    assert_int_equal(NT_OS->open_at(dir, "f", NT_OS_WRITE | NT_OS_CREATE, &fd), 0);
    fake_fail(fs, (fake_fault){.call = FAKE_WRITE, .nth = 1, .error = EINTR});
    fake_fail(fs, (fake_fault){.call = FAKE_WRITE, .nth = 2, .sticky = 1});
    fake_fail(fs, (fake_fault){.call = FAKE_READ, .nth = 3, .error = EINTR});
    fake_fail(fs, (fake_fault){.call = FAKE_READ, .nth = 1, .sticky = 1});
    assert_int_equal(nt_os_write(fd, "0123456789abcdef0123456789abcdef", 32, 0, &done), 0);
    assert_int_equal(done, 32);
    assert_int_equal(fake_count(fs, FAKE_WRITE), 7);
    assert_int_equal(nt_os_read(fd, text, 32, 0), 0);
    assert_memory_equal(text, "0123456789abcdef0123456789abcdef", 32);
    fake_heal(fs);
    fake_fail(fs, (fake_fault){.call = FAKE_WRITE, .nth = 1});
    fake_fail(fs, (fake_fault){.call = FAKE_WRITE, .nth = 2, .error = EIO});
    assert_int_equal(nt_os_write(fd, "0123456789", 10, 0, &done), EIO);
    assert_int_equal(done, 5);
    NT_OS->close(fd);
    NT_OS->close(dir);
    fake_use(NULL);
    fake_free(fs);
}

static void mappings_and_writes_see_each_other(void **state) {
    place *here = *state;
    void *window, *view;
    char text[8];
    size_t done;
    int fd = make(here, "file", "");
    if (NT_OS->allocate(fd, 0, 131072) != 0) skip();
    assert_int_equal(NT_OS->map(fd, 65536, 65536, 1, &window), 0);
    assert_int_equal(NT_OS->map(fd, 0, (size_t)1 << 30, 0, &view), 0);
    NT_OS->populate(window, 65536);
    NT_OS->store((char *)window + 8, "mapped", 6);
    NT_OS->release(window, 77);
    assert_int_equal(nt_os_read(fd, text, 6, 65544), 0);
    assert_memory_equal(text, "mapped", 6);
    assert_int_equal(*(const uint64_t *)((const char *)view + 65536), 77);
    assert_int_equal(nt_os_write(fd, "written", 7, 1000, &done), 0);
    assert_memory_equal((const char *)view + 1000, "written", 7);
    unsigned char resident[4] = {9, 9, 9, 9};
    assert_int_equal(NT_OS->resident(view, 262144, resident), 0);
    assert_int_equal(resident[1], 1);
    assert_int_equal(resident[3], 0);
    assert_int_equal(NT_OS->unmap(window, 65536), 0);
    assert_int_equal(NT_OS->unmap(view, (size_t)1 << 30), 0);
    NT_OS->close(fd);
}

static void mappings_do_not_reach_forked_children(void **state) {
    place *here = *state;
    void *view;
    int status;
    int fd = make(here, "file", "text");
    assert_int_equal(NT_OS->map(fd, 0, 65536, 0, &view), 0);
    pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        _exit(*(volatile const char *)view == 't' ? 1 : 2);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(!WIFEXITED(status) || WEXITSTATUS(status) > 2);
    assert_int_equal(*(const char *)view, 't');
    NT_OS->unmap(view, 65536);
    NT_OS->close(fd);
}

static void *report_mask(void *arg) {
    pthread_sigmask(SIG_SETMASK, NULL, arg);
    return NULL;
}

static void threads_get_no_signals(void **state) {
    uintptr_t thread;
    sigset_t inside, before, after;
    (void)state;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    sigemptyset(&inside);
    assert_int_equal(NT_OS->thread_start(report_mask, &inside, &thread), 0);
    assert_true(thread != 0);
    NT_OS->thread_join(thread);
    NT_OS->thread_join(0);
    static const int SIGNALS[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGALRM, SIGCHLD, SIGPIPE, SIGPROF};
    for (size_t i = 0; i < sizeof SIGNALS / sizeof SIGNALS[0]; i++) {
        assert_int_equal(sigismember(&inside, SIGNALS[i]), 1);
    }
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    assert_int_equal(sigismember(&before, SIGTERM), sigismember(&after, SIGTERM));
}

static void clocks_and_random_bytes_work(void **state) {
    uint8_t a[1000] = {0}, b[1000] = {0};
    int zeros = 0;
    (void)state;
    int64_t boot = NT_OS->now_boot();
    usleep(3000);
    assert_true(NT_OS->now_boot() >= boot + 2);
    assert_true(NT_OS->now_real() > 1600000000000);
    assert_int_equal(NT_OS->random(a, sizeof a), 0);
    assert_int_equal(NT_OS->random(b, sizeof b), 0);
    assert_memory_not_equal(a, b, sizeof a);
    for (size_t i = 0; i < sizeof a; i++) zeros += a[i] == 0;
    assert_true(zeros < 30);
    assert_int_equal(NT_OS->process_id(), getpid());
}

static void pages_are_zeroed_and_aligned(void **state) {
    (void)state;
    uint8_t *at = NT_OS->alloc_pages(300000);
    assert_non_null(at);
    assert_int_equal((uintptr_t)at % 4096, 0);
    for (size_t i = 0; i < 300000; i++) assert_int_equal(at[i], 0);
    memset(at, 1, 300000);
    NT_OS->free_pages(at, 300000);
    NT_OS->free_pages(NULL, 5);
    assert_null(NT_OS->alloc_pages(SIZE_MAX / 2));
    void *memory = nt_realloc(nt_alloc(0), 10);
    assert_non_null(memory);
    nt_free(memory);
    nt_free(NULL);
}

static void directories_are_made_synced_and_removed(void **state) {
    place *here = *state;
    char path[128];
    int dir, traits;
    snprintf(path, sizeof path, "%s/sub", here->path);
    assert_int_equal(NT_OS->open_dir(path, &dir), ENOENT);
    assert_int_equal(NT_OS->make_dir(path), 0);
    assert_int_equal(NT_OS->make_dir(path), EEXIST);
    assert_int_equal(NT_OS->open_dir(path, &dir), 0);
    assert_int_equal(NT_OS->sync_dir(dir), 0);
    assert_int_equal(NT_OS->sync_dir(here->dir), 0);
    assert_int_equal(NT_OS->file_system(dir, &traits), 0);
    NT_OS->close(dir);
    NT_OS->close(make(here, "file", ""));
    assert_int_equal(NT_OS->remove_dir(here->path), ENOTEMPTY);
    assert_int_equal(NT_OS->remove_dir(path), 0);
    assert_int_equal(NT_OS->remove_dir(path), ENOENT);
    snprintf(path, sizeof path, "%s/file", here->path);
    assert_int_equal(NT_OS->open_dir(path, &dir), ENOTDIR);
}

#define IN_PLACE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_PLACE(a_symbolic_link_is_refused),
        IN_PLACE(only_regular_files_are_opened_and_opening_never_waits),
        IN_PLACE(modes_do_not_depend_on_the_umask),
        IN_PLACE(creating_exclusively_refuses_what_is_there),
        IN_PLACE(descriptors_do_not_reach_spawned_programs),
        IN_PLACE(a_lock_is_held_once_or_shared),
        IN_PLACE(same_file_notices_a_replaced_name),
        IN_PLACE(list_gives_every_name_until_it_is_told_to_stop),
        IN_PLACE(reads_and_writes_are_whole_or_fail),
        IN_PLACE(mappings_and_writes_see_each_other),
        IN_PLACE(mappings_do_not_reach_forked_children),
        IN_PLACE(directories_are_made_synced_and_removed),
        cmocka_unit_test(short_and_interrupted_calls_are_gone_on_with),
        cmocka_unit_test(threads_get_no_signals),
        cmocka_unit_test(clocks_and_random_bytes_work),
        cmocka_unit_test(pages_are_zeroed_and_aligned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
