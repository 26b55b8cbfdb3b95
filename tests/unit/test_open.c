/* From a path to an open store and back: locks, files, permissions, noise, and destroying. */
#include "unit/store.h"

#include <sys/un.h>
#include <sys/socket.h>

#define LOG "s/" LOG_NAME

static void opening_and_closing_keeps_the_lock_file_and_the_descriptors(void **state) {
    (void)state;
    struct stat first, now;
    t_close(t_open(t_at("s"), 0));
    assert_int_equal(stat(t_at("s/LOCK"), &first), 0);
    int fds = t_fds();
    for (int i = 0; i < 100; i++) {
        ntee *db = t_open(t_at("s"), i % 4 == 3 ? NTEE_READ_ONLY : 0);
        if (i % 4 == 1) assert_int_equal(t_put(db, "k", "v"), NTEE_OK);
        t_close(db);
        assert_int_equal(stat(t_at("s/LOCK"), &now), 0);
        assert_int_equal(now.st_ino, first.st_ino);
    }
    assert_int_equal(t_fds(), fds);
}

static void an_unused_opening_writes_nothing_into_the_log(void **state) {
    (void)state;
    ntee *db = t_open(t_at("s"), 0);
    assert_int_equal(t_put(db, "k", "v"), NTEE_OK);
    t_close(db);
    size_t size = t_size_of(t_at(LOG));
    for (int i = 0; i < 5; i++) t_close(t_open(t_at("s"), 0));
    assert_int_equal(t_size_of(t_at(LOG)), size);
}

static void a_second_open_is_refused_whatever_the_spelling(void **state) {
    (void)state;
    ntee *db = t_open(t_at("s"), 0), *other;
    char pid[24], cwd[512];
    assert_int_equal(symlink("s", t_at("l")), 0);
    assert_int_equal(mkdir(t_at("x"), 0700), 0);
    const char *spellings[] = {t_at("s"), t_at("s/"), t_at("./s//"), t_at("x/../s"), t_at("l"), t_at("l/.")};
    for (int i = 0; i < 6; i++) {
        assert_int_equal(t_try_open(spellings[i], 0, &other), NTEE_LOCKED);
        assert_null(other);
        assert_int_equal(t_try_open(spellings[i], NTEE_READ_ONLY, &other), NTEE_LOCKED);
        assert_int_equal(ntee_destroy(spellings[i]), NTEE_LOCKED);
    }
    snprintf(pid, sizeof pid, "%ld", (long)getpid());
    assert_non_null(strstr(ntee_last_error()->message, pid));
    assert_non_null(getcwd(cwd, sizeof cwd));
    assert_int_equal(chdir(t_root), 0);
    assert_int_equal(t_try_open("s", 0, &other), NTEE_LOCKED);
    assert_int_equal(t_try_open("x/../l", 0, &other), NTEE_LOCKED);
    assert_int_equal(chdir(cwd), 0);
    assert_int_equal(t_put(db, "k", "v"), NTEE_OK);
    t_close(db);
    t_close(t_open(t_at("l"), 0));
}

/* Runs in a child: 0 to 63 is a status. */
static int open_elsewhere(const char *path, uint32_t flags) {
    int how = 0;
    pid_t child = fork();
    if (child == 0) {
        ntee *db;
        ntee_status status = t_try_open(path, flags, &db);
        _exit(status);
    }
    assert_true(child > 0 && waitpid(child, &how, 0) == child && WIFEXITED(how));
    return WEXITSTATUS(how);
}

static void another_process_is_refused_and_the_lock_dies_with_its_holder(void **state) {
    (void)state;
    ntee *db = t_open(t_at("s"), 0);
    assert_int_equal(open_elsewhere(t_at("s"), 0), NTEE_LOCKED);
    assert_int_equal(open_elsewhere(t_at("s"), NTEE_READ_ONLY), NTEE_LOCKED);
    t_close(db);
    assert_int_equal(open_elsewhere(t_at("s"), 0), NTEE_OK); /* and is gone without a close */
    db = t_open(t_at("s"), 0);
    t_close(db);
}

static void readers_share_and_exclude_a_writer(void **state) {
    (void)state;
    ntee *writer = t_open(t_at("s"), 0), *other;
    assert_int_equal(t_put(writer, "k", "v"), NTEE_OK);
    t_close(writer);
    ntee *one = t_open(t_at("s"), NTEE_READ_ONLY), *two = t_open(t_at("s"), NTEE_READ_ONLY);
    assert_int_equal(open_elsewhere(t_at("s"), NTEE_READ_ONLY), NTEE_OK);
    assert_int_equal(t_try_open(t_at("s"), 0, &other), NTEE_LOCKED);
    assert_int_equal(open_elsewhere(t_at("s"), 0), NTEE_LOCKED);
    assert_string_equal(t_get(one, "k"), "v");
    assert_string_equal(t_get(two, "k"), "v");
    t_close(one);
    assert_int_equal(t_try_open(t_at("s"), 0, &other), NTEE_LOCKED);
    t_close(two);
    t_close(t_open(t_at("s"), 0));
}

static void a_read_only_store_is_not_changed_in_any_way(void **state) {
    (void)state;
    ntee *db = t_open(t_at("s"), 0);
    for (int i = 0; i < 50; i++) assert_int_equal(ntee_put(db, &i, sizeof i, t_root, 90, NULL), NTEE_OK);
    t_copy(t_at("s"), t_at("crashed"));
    t_close(db);
    t_write(t_at("s/00000002.log.tmp"), "left over", 9);
    t_write(t_at("s/notes.txt"), "mine", 4);
    const char *stores[] = {t_at("s"), t_at("crashed")};
    for (int i = 0; i < 2; i++) {
        uint64_t before = t_fingerprint(stores[i]);
        db = t_open(stores[i], NTEE_READ_ONLY);
        assert_int_equal(t_records(db), 50);
        assert_int_equal(t_put(db, "k", "v"), NTEE_READONLY);
        t_close(db);
        assert_int_equal(t_fingerprint(stores[i]), before);
    }
}

static void a_read_only_open_of_nothing_is_not_found_and_makes_nothing(void **state) {
    (void)state;
    ntee *db;
    assert_int_equal(t_try_open(t_at("none/at/all"), NTEE_READ_ONLY, &db), NTEE_NOT_FOUND);
    assert_false(t_exists(t_at("none")));
    assert_int_equal(mkdir(t_at("d"), 0700), 0);
    assert_int_equal(t_try_open(t_at("d"), NTEE_READ_ONLY, &db), NTEE_NOT_FOUND);
    assert_int_equal(rmdir(t_at("d")), 0);
    assert_int_equal(mkdir(t_at("d"), 0700), 0);
    t_write(t_at("d/LOCK"), "", 0);
    assert_int_equal(t_try_open(t_at("d"), NTEE_READ_ONLY, &db), NTEE_NOT_FOUND);
}

static void files_are_private_whatever_the_umask(void **state) {
    (void)state;
    static const mode_t masks[] = {0, 077, 0177, 0777};
    for (int i = 0; i < 4; i++) {
        struct stat about;
        mode_t old = umask(masks[i]);
        ntee *db;
        ntee_status status = t_try_open(t_at("m%d/b/c", i), 0, &db);
        umask(old);
        assert_int_equal(status, NTEE_OK);
        assert_int_equal(t_put(db, "k", "v"), NTEE_OK);
        t_close(db);
        const char *dirs[] = {t_at("m%d", i), t_at("m%d/b", i), t_at("m%d/b/c", i)};
        for (int j = 0; j < 3; j++) {
            assert_int_equal(stat(dirs[j], &about), 0);
            assert_int_equal(about.st_mode & 07777, 0700);
        }
        assert_int_equal(stat(t_at("m%d/b/c/LOCK", i), &about), 0);
        assert_int_equal(about.st_mode & 07777, 0600);
        assert_int_equal(stat(t_at("m%d/b/c/" LOG_NAME, i), &about), 0);
        assert_int_equal(about.st_mode & 07777, 0600);
    }
}

static void odd_names_work_and_are_distinct(void **state) {
    (void)state;
    static const char *const names[] = {"Beno\xc3\xaet", "Benoi\xcc\x82t", "\xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x98\x80",
                                        "a b#%[x]'\"", "trailing/", "-rf", "*", "\x01\xff\xfe", "a//b///c//"};
    char longest[256];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        ntee *db = t_open(t_at("%s", names[i]), 0);
        assert_int_equal(t_records(db), 0);
        assert_int_equal(t_put(db, names[i], "v"), NTEE_OK);
        t_close(db);
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        ntee *db = t_open(t_at("%s", names[i]), 0);
        assert_int_equal(t_records(db), 1);
        assert_string_equal(t_get(db, names[i]), "v");
        t_close(db);
    }
    memset(longest, 'x', 255);
    longest[255] = 0;
    t_close(t_open(t_at("%s", longest), 0));
}

static void paths_that_cannot_be_fail_with_their_errno(void **state) {
    (void)state;
    ntee *db;
    char name[257], deep[6000] = "";
    memset(name, 'x', 256);
    name[256] = 0;
    assert_int_equal(t_try_open(t_at("%s", name), 0, &db), NTEE_IO);
    assert_int_equal(ntee_last_error()->os_errno, ENAMETOOLONG);
    assert_non_null(strstr(ntee_last_error()->message, "too long"));
    for (int i = 0; i < 500; i++) strcat(deep, "directory/");
    assert_int_equal(t_try_open(t_at("%s", deep), 0, &db), NTEE_IO);
    assert_int_equal(ntee_last_error()->os_errno, ENAMETOOLONG);
    assert_non_null(strstr(ntee_last_error()->message, "too long"));
    t_write(t_at("file"), "x", 1);
    assert_int_equal(t_try_open(t_at("file"), 0, &db), NTEE_IO);
    assert_int_equal(ntee_last_error()->os_errno, ENOTDIR);
    assert_int_equal(t_try_open(t_at("file/below"), 0, &db), NTEE_IO);
    assert_int_equal(ntee_last_error()->os_errno, ENOTDIR);
    assert_int_equal(t_try_open(t_at("file"), NTEE_READ_ONLY, &db), NTEE_IO);
    assert_int_equal(symlink("nowhere", t_at("dangling")), 0);
    assert_int_equal(t_try_open(t_at("dangling"), 0, &db), NTEE_IO);
    assert_false(t_exists(t_at("nowhere")));
    assert_int_equal(symlink("loop", t_at("loop")), 0);
    assert_int_equal(t_try_open(t_at("loop"), 0, &db), NTEE_IO);
    assert_int_equal(ntee_last_error()->os_errno, ELOOP);
}

/* ---- What stands in place of the files ------------------------------------------------------------ */

static void make_socket(const char *path) {
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_true(strlen(path) < sizeof name.sun_path);
    memcpy(name.sun_path, path, strlen(path) + 1);
    assert_int_equal(bind(fd, (struct sockaddr *)&name, sizeof name), 0);
    close(fd);
}

static void other_things_in_place_of_files_are_refused(void **state) {
    (void)state;
    static const int errnos[] = {ELOOP, ELOOP, EISDIR, EINVAL, EINVAL};
    for (int victim = 0; victim < 2; victim++) {
        for (int kind = 0; kind < 5; kind++) {
            ntee *db;
            char file[300];
            snprintf(file, sizeof file, "%s/s/%s", t_root, victim ? LOG_NAME : "LOCK");
            t_remove(t_at("s"));
            db = t_open(t_at("s"), 0);
            assert_int_equal(t_put(db, "k", "v"), NTEE_OK);
            t_close(db);
            assert_int_equal(rename(file, t_at("real")), 0);
            if (kind == 0) assert_int_equal(symlink(t_at("real"), file), 0);
            if (kind == 1) assert_int_equal(symlink("nowhere", file), 0);
            if (kind == 2) assert_int_equal(mkdir(file, 0700), 0);
            if (kind == 3) assert_int_equal(mkfifo(file, 0600), 0);
            if (kind == 4) make_socket(file);
            int fds = t_fds();
            for (int ro = 0; ro < 2; ro++) {
                assert_int_equal(t_try_open(t_at("s"), ro ? NTEE_READ_ONLY : 0, &db), NTEE_IO);
                assert_int_equal(ntee_last_error()->os_errno, errnos[kind]);
                assert_null(db);
            }
            assert_int_equal(t_fds(), fds);
            assert_true(t_exists(file));
            assert_false(t_exists(t_at("s/nowhere")));
            t_remove(file);
            assert_int_equal(rename(t_at("real"), file), 0);
            db = t_open(t_at("s"), 0);
            assert_string_equal(t_get(db, "k"), "v");
            t_close(db);
        }
    }
}

static void noise_in_place_of_the_log_is_corrupt_and_left_alone(void **state) {
    (void)state;
    uint8_t noise[4096];
    nt_random r = nt_random_start("noise");
    for (int i = 0; i < 30; i++) {
        ntee *db;
        size_t len = i < 5 ? (size_t)i : nt_random_below(&r, sizeof noise);
        nt_random_fill(&r, noise, len);
        if (i % 4 == 3 && len > 8) memcpy(noise, "NTEE-LOG\0\0\0\0", len < 12 ? 8 : 12);
        t_remove(t_at("s"));
        assert_int_equal(mkdir(t_at("s"), 0700), 0);
        t_write(t_at(LOG), noise, len);
        assert_int_equal(t_try_open(t_at("s"), 0, &db), NTEE_CORRUPT);
        assert_non_null(strstr(ntee_last_error()->message, LOG_NAME));
        assert_int_equal(t_try_open(t_at("s"), NTEE_READ_ONLY, &db), NTEE_CORRUPT);
        size_t after;
        uint8_t *now = t_read(t_at(LOG), &after);
        assert_int_equal(after, len);
        if (len) assert_memory_equal(now, noise, len);
        free(now);
    }
}

static void a_newer_version_is_refused_unread(void **state) {
    (void)state;
    ntee *db = t_open(t_at("s"), 0);
    size_t len;
    t_close(db);
    uint8_t *bytes = t_read(t_at(LOG), &len);
    nt_store32(bytes + 8, 7);
    nt_store32(bytes + NT_LOG_COPY + 8, 7); /* else it is a damaged header, and the copy counts */
    for (int valid = 0; valid < 2; valid++) {
        if (valid) nt_store64(bytes + 120, nt_hash64(bytes, 120, 0));
        t_write(t_at(LOG), bytes, len);
        assert_int_equal(t_try_open(t_at("s"), 0, &db), NTEE_VERSION);
        assert_int_equal(t_try_open(t_at("s"), NTEE_READ_ONLY, &db), NTEE_VERSION);
    }
    free(bytes);
}

static void two_thousand_failing_opens_leak_nothing(void **state) {
    (void)state;
    ntee *db = t_open(t_at("s"), 0);
    t_close(db);
    size_t len;
    uint8_t *bytes = t_read(t_at(LOG), &len);
    bytes[50] ^= 1;
    bytes[NT_LOG_COPY + 50] ^= 1;
    t_write(t_at(LOG), bytes, len);
    t_use_table();
    int fds = t_fds();
    long memory = atomic_load(&t_memory);
    for (int i = 0; i < 2000; i++)
        assert_int_equal(t_try_open(t_at("s"), i % 3 == 2 ? NTEE_READ_ONLY : 0, &db), NTEE_CORRUPT);
    assert_int_equal(t_fds(), fds);
    assert_int_equal(atomic_load(&t_memory), memory);
    bytes[50] ^= 1;
    t_write(t_at(LOG), bytes, len);
    free(bytes);
    t_close(t_open(t_at("s"), 0));
}

static void leftovers_are_removed_and_never_promoted(void **state) {
    (void)state;
    size_t len;
    ntee *db = t_open(t_at("s"), 0);
    assert_int_equal(t_put(db, "k", "old"), NTEE_OK);
    t_close(db);
    uint8_t *bytes = t_read(t_at(LOG), &len);
    for (size_t n = 0; n <= len; n += len / 2) {
        t_write(t_at("s/00000001.log.tmp"), bytes, n);
        t_write(t_at("s/00000002.log.tmp"), bytes, n);
        t_write(t_at("s/notes.tmp"), bytes, n);
        db = t_open(t_at("s"), 0);
        assert_string_equal(t_get(db, "k"), "old");
        t_close(db);
        assert_false(t_exists(t_at("s/00000001.log.tmp")));
        assert_false(t_exists(t_at("s/00000002.log.tmp")));
        assert_true(t_exists(t_at("s/notes.tmp")));
    }
    free(bytes);
}

static void a_creation_that_was_cut_off_is_an_empty_store(void **state) {
    (void)state;
    uint8_t part[100] = "NTEE-LOG";
    for (int i = 0; i < 3; i++) {
        t_remove(t_at("s"));
        assert_int_equal(mkdir(t_at("s"), 0700), 0);
        t_write(t_at("s/LOCK"), "123\n", i == 0 ? 0 : 4);
        if (i == 2) t_write(t_at("s/00000001.log.tmp"), part, sizeof part);
        ntee *db = t_open(t_at("s"), 0);
        assert_int_equal(t_records(db), 0);
        assert_int_equal(t_put(db, "k", "v"), NTEE_OK);
        t_close(db);
        db = t_open(t_at("s"), 0);
        assert_string_equal(t_get(db, "k"), "v");
        t_close(db);
    }
}

static void closing_on_a_full_disk_is_no_failure_where_all_is_synced(void **state) {
    (void)state;
    t_use_table();
    ntee *db = t_open(t_at("s"), NTEE_SYNC_EVERY_WRITE);
    assert_int_equal(t_put(db, "k", "v"), NTEE_OK);
    t_copy(t_at("s"), t_at("t"));
    t_fail(T_ALLOCATE, 1, ENOSPC, 1);
    atomic_store(&t_fail_at[T_WRITE], 1);
    assert_int_equal(ntee_close(db), NTEE_OK);
    t_heal();
    db = t_open(t_at("t"), 0); /* an unclean one, only read from */
    t_fail(T_ALLOCATE, 1, ENOSPC, 1);
    atomic_store(&t_fail_at[T_WRITE], 1);
    assert_string_equal(t_get(db, "k"), "v");
    assert_int_equal(ntee_close(db), NTEE_OK);
    t_heal();
    db = t_open(t_at("s"), 0);
    assert_string_equal(t_get(db, "k"), "v");
    t_close(db);
}

/* ---- Who comes between ----------------------------------------------------------------------------- */

static int destroyed;

/* Another process destroys the store between our opening of its lock file and our locking of it. */
static int destroy_and_lock(int fd, int exclusive) {
    if (exclusive == 1 && !destroyed++) t_remove(t_at("s"));
    return nt_os_posix.lock(fd, exclusive);
}

static void a_lock_that_was_destroyed_meanwhile_is_no_lock(void **state) {
    (void)state;
    ntee *db, *other;
    t_close(t_open(t_at("s"), 0));
    t_use_table();
    t_os.lock = destroy_and_lock;
    destroyed = 0;
    db = t_open(t_at("s"), 0);
    assert_int_equal(destroyed, 2);
    assert_true(t_exists(t_at("s/LOCK")));
    assert_int_equal(t_try_open(t_at("s"), 0, &other), NTEE_LOCKED);
    assert_int_equal(t_put(db, "k", "v"), NTEE_OK);
    t_close(db);
    destroyed = 0;
    assert_int_equal(ntee_destroy(t_at("s")), NTEE_OK);
    assert_false(t_exists(t_at("s")));
}

static int network(int dir, int *traits) {
    (void)dir;
    *traits = NT_OS_NETWORK;
    return 0;
}

static void network_file_systems_are_refused(void **state) {
    (void)state;
    ntee *db;
    t_use_table();
    t_os.file_system = network;
    assert_int_equal(t_try_open(t_at("s"), 0, &db), NTEE_INVALID);
    assert_non_null(strstr(ntee_last_error()->message, "network"));
}

/* Processes that open, check that they are alone, and close, while one destroys: case B06. */
static int be_alone(const char *store, const char *sign, int destroys) {
    for (int i = 0; i < 60; i++) {
        ntee *db;
        int fd;
        if (destroys && i % 3 == 0) ntee_destroy(store);
        ntee_status status = t_try_open(store, 0, &db);
        if (status == NTEE_LOCKED) {
            t_sleep(1);
            continue;
        }
        if (status != NTEE_OK) return 10 + status;
        fd = open(sign, O_CREAT | O_EXCL | O_WRONLY, 0600);
        if (fd < 0) return 1; /* somebody else has it open as well */
        t_sleep(1);
        close(fd);
        unlink(sign);
        if (t_put(db, "k", "v") != NTEE_OK) return 2;
        if ((destroys && i % 2 ? ntee_drop(db) : ntee_close(db)) != NTEE_OK) return 3;
    }
    return 0;
}

static void there_are_never_two_owners(void **state) {
    (void)state;
    pid_t children[6];
    for (int i = 0; i < 6; i++) {
        children[i] = fork();
        if (children[i] == 0) _exit(be_alone(t_at("s"), t_at("sign"), i == 0));
    }
    for (int i = 0; i < 6; i++) {
        int how;
        assert_int_equal(waitpid(children[i], &how, 0), children[i]);
        assert_true(WIFEXITED(how));
        assert_int_equal(WEXITSTATUS(how), 0);
    }
}

/* ---- Destroying ----------------------------------------------------------------------------------- */

static void destroy_removes_a_store_and_nothing_else(void **state) {
    (void)state;
    ntee *db = t_open(t_at("s"), 0);
    assert_int_equal(t_put(db, "k", "v"), NTEE_OK);
    assert_int_equal(ntee_destroy(t_at("s")), NTEE_LOCKED);
    t_close(db);
    assert_int_equal(ntee_destroy(t_at("s")), NTEE_OK);
    assert_false(t_exists(t_at("s")));
    assert_int_equal(ntee_destroy(t_at("s")), NTEE_OK);
    assert_int_equal(ntee_destroy(t_at("never/was")), NTEE_OK);
    assert_false(t_exists(t_at("never")));
    t_close(t_open(t_at("s"), 0));
    t_write(t_at("s/00000001.log.tmp"), "x", 1);
    t_write(t_at("s/photo.jpg"), "x", 1);
    t_write(t_at("s/00000009.log"), "a log of another program", 24);
    t_write(t_at("s/1.log"), "x", 1);
    t_write(t_at("s/0000000g.log"), "x", 1);
    assert_int_equal(mkdir(t_at("s/00000003.log"), 0700), 0);
    assert_int_equal(ntee_destroy(t_at("s")), NTEE_OK);
    assert_false(t_exists(t_at(LOG)));
    assert_false(t_exists(t_at("s/LOCK")));
    assert_false(t_exists(t_at("s/00000001.log.tmp")));
    assert_true(t_exists(t_at("s/photo.jpg")));
    assert_true(t_exists(t_at("s/00000009.log")));
    assert_true(t_exists(t_at("s/1.log")));
    assert_true(t_exists(t_at("s/0000000g.log")));
    assert_true(t_exists(t_at("s/00000003.log")));
}

static void destroy_leaves_a_directory_without_a_store_alone(void **state) {
    (void)state;
    assert_int_equal(mkdir(t_at("d"), 0700), 0);
    assert_int_equal(ntee_destroy(t_at("d")), NTEE_OK);
    assert_true(t_exists(t_at("d")));
    t_write(t_at("d/data.txt"), "x", 1);
    uint64_t before = t_fingerprint(t_at("d"));
    assert_int_equal(ntee_destroy(t_at("d")), NTEE_OK);
    assert_int_equal(t_fingerprint(t_at("d")), before);
    t_write(t_at("file"), "x", 1);
    assert_int_equal(ntee_destroy(t_at("file")), NTEE_OK);
    assert_int_equal(ntee_destroy(t_at("file/below")), NTEE_OK);
    assert_true(t_exists(t_at("file")));
}

static void drop_closes_and_destroys(void **state) {
    (void)state;
    int fds = t_fds();
    ntee *db = t_open(t_at("s"), 0);
    assert_int_equal(t_put(db, "k", "v"), NTEE_OK);
    assert_int_equal(ntee_drop(db), NTEE_OK);
    assert_false(t_exists(t_at("s")));
    assert_int_equal(t_fds(), fds);
    db = t_open(t_at("s"), 0);
    assert_int_equal(t_records(db), 0);
    t_write(t_at("s/mine"), "x", 1);
    assert_int_equal(ntee_drop(db), NTEE_OK);
    assert_true(t_exists(t_at("s/mine")));
    assert_false(t_exists(t_at("s/LOCK")));
}

static void a_store_whose_directory_was_removed_neither_crashes_nor_hangs(void **state) {
    (void)state;
    ntee *db = t_open(t_at("s"), 0);
    for (int i = 0; i < 10; i++) assert_int_equal(ntee_put(db, &i, sizeof i, "v", 1, NULL), NTEE_OK);
    t_remove(t_at("s"));
    for (int i = 0; i < 10; i++) assert_int_equal(ntee_has(db, &i, sizeof i), NTEE_OK);
    t_put(db, "k", "v");
    ntee_close(db);
    db = t_open(t_at("s"), 0);
    assert_int_equal(t_records(db), 0);
    assert_int_equal(t_put(db, "k", "v"), NTEE_OK);
    t_remove(t_at("s"));
    ntee_drop(db);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T_TEST(opening_and_closing_keeps_the_lock_file_and_the_descriptors),
        T_TEST(an_unused_opening_writes_nothing_into_the_log),
        T_TEST(a_second_open_is_refused_whatever_the_spelling),
        T_TEST(another_process_is_refused_and_the_lock_dies_with_its_holder),
        T_TEST(readers_share_and_exclude_a_writer),
        T_TEST(a_read_only_store_is_not_changed_in_any_way),
        T_TEST(a_read_only_open_of_nothing_is_not_found_and_makes_nothing),
        T_TEST(files_are_private_whatever_the_umask),
        T_TEST(odd_names_work_and_are_distinct),
        T_TEST(paths_that_cannot_be_fail_with_their_errno),
        T_TEST(other_things_in_place_of_files_are_refused),
        T_TEST(noise_in_place_of_the_log_is_corrupt_and_left_alone),
        T_TEST(a_newer_version_is_refused_unread),
        T_TEST(two_thousand_failing_opens_leak_nothing),
        T_TEST(leftovers_are_removed_and_never_promoted),
        T_TEST(a_creation_that_was_cut_off_is_an_empty_store),
        T_TEST(closing_on_a_full_disk_is_no_failure_where_all_is_synced),
        T_TEST(a_lock_that_was_destroyed_meanwhile_is_no_lock),
        T_TEST(network_file_systems_are_refused),
        T_TEST(there_are_never_two_owners),
        T_TEST(destroy_removes_a_store_and_nothing_else),
        T_TEST(destroy_leaves_a_directory_without_a_store_alone),
        T_TEST(drop_closes_and_destroys),
        T_TEST(a_store_whose_directory_was_removed_neither_crashes_nor_hangs),
    };
    return T_RUN_BOTH(tests);
}
