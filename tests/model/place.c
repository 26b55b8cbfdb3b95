#define _POSIX_C_SOURCE 200809L
#include "model/place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void die(const char *what, const char *name) {
    fprintf(stderr, "cannot %s %s: %s\n", what, name, strerror(errno));
    abort();
}

static void name_path(place *p) { snprintf(p->path, sizeof p->path, "%s/%d", p->base, p->number); }

void place_begin(place *p, const char *base, uint64_t seed) {
    *p = (place){0};
    if (base) {
        snprintf(p->base, sizeof p->base, "%s/ntee-model-XXXXXX", base);
        if (!mkdtemp(p->base)) die("make", p->base);
        name_path(p);
        return;
    }
    p->fs = fake_new(seed);
    fake_use(p->fs);
    snprintf(p->path, sizeof p->path, "/store");
}

static void copy_file(int from_dir, int to_dir, const char *name) {
    static char part[1 << 16];
    int from = openat(from_dir, name, O_RDONLY);
    int to = openat(to_dir, name, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (from < 0 || to < 0) die("copy", name);
    for (;;) {
        ssize_t n = read(from, part, sizeof part);
        if (n < 0) die("read", name);
        if (n == 0) break;
        if (write(to, part, (size_t)n) != n) die("write", name);
    }
    close(from);
    close(to);
}

static void copy_directory(const char *from, const char *to) {
    if (mkdir(to, 0700)) die("make", to);
    DIR *list = opendir(from);
    int to_dir = open(to, O_RDONLY | O_DIRECTORY);
    if (!list || to_dir < 0) die("open", from);
    for (struct dirent *e; (e = readdir(list)) != NULL;)
        if (e->d_name[0] != '.') copy_file(dirfd(list), to_dir, e->d_name);
    closedir(list);
    close(to_dir);
}

static void crash_fake(place *p, ntee *db) {
    fake_fs *image = fake_kill(p->fs, 0);
    if (ntee_close(db) != NTEE_OK) die("close", p->path);
    fake_free(p->fs);
    fake_use(image);
    p->fs = image;
}

void place_crash(place *p, ntee *db) {
    char old[sizeof p->path];
    if (p->fs) {
        crash_fake(p, db);
        return;
    }
    memcpy(old, p->path, sizeof old);
    p->number++;
    name_path(p);
    copy_directory(old, p->path);
    if (ntee_drop(db) != NTEE_OK || access(old, F_OK) == 0) die("drop", old);
}

void place_end(place *p) {
    if (p->fs) {
        fake_use(NULL);
        fake_free(p->fs);
    } else {
        if (ntee_destroy(p->path) != NTEE_OK) die("destroy", p->path);
        if (rmdir(p->base)) die("remove", p->base);
    }
}
