/*
 * notes: a small note-taker, to show batches, scans and errors.
 *
 *   notes <directory> add <name> <text>     keep a note
 *   notes <directory> move <name> <name>    rename a note: two writes, one batch, all or nothing
 *   notes <directory> remove <name>
 *   notes <directory> list [prefix]         in the order of their names
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ntee.h>

enum { NOTE_MAX = 4096, PAGE = 64 * 1024 };

static int fail(const char *what) {
    const ntee_error *error = ntee_last_error();
    fprintf(stderr, "%s: %s: %s\n", what, ntee_status_name(error->status), error->message);
    return 1;
}

static int add(ntee *db, const char *name, const char *text) {
    ntee_status status = ntee_put_if_absent(db, name, strlen(name), text, strlen(text), NULL);
    if (status == NTEE_EXISTS) {
        fprintf(stderr, "there is a note '%s' already\n", name);
        return 1;
    }
    return status == NTEE_OK ? 0 : fail("add");
}

static int move(ntee *db, const char *from, const char *to) {
    char text[NOTE_MAX];
    size_t len;
    ntee_batch *batch;
    int bad;

    if (ntee_get(db, from, strlen(from), text, sizeof text, &len, NULL) != NTEE_OK) return fail(from);
    batch = ntee_batch_new();
    bad = batch == NULL || ntee_batch_delete(batch, from, strlen(from)) != NTEE_OK ||
          ntee_batch_put(batch, to, strlen(to), text, len, NULL) != NTEE_OK ||
          ntee_write(db, batch) != NTEE_OK;
    ntee_batch_free(batch);
    return bad ? fail("move") : 0;
}

static int list(ntee *db, const char *prefix) {
    ntee_scan_options options = {.size = sizeof options, .flags = NTEE_VALUES};
    ntee_scan *scan;
    ntee_page page;
    ntee_entry entry;
    void *buf = malloc(PAGE); /* longer than the longest note, so every page has an entry */
    int failed = 0;

    options.range.lower = prefix;
    options.range.lower_len = strlen(prefix);
    options.range.flags = NTEE_PREFIX;
    if (buf == NULL || ntee_scan_open(db, &options, &scan) != NTEE_OK) {
        free(buf);
        return fail("list");
    }
    do {
        failed = ntee_scan_page(scan, buf, PAGE, &page) != NTEE_OK;
        while (!failed && ntee_page_next(&page, &entry))
            printf("%.*s: %.*s\n", (int)entry.key_len, (const char *)entry.key, (int)entry.value_len,
                   (const char *)entry.value);
    } while (!failed && page.more);
    ntee_scan_close(scan);
    free(buf);
    return failed ? fail("list") : 0;
}

static int run(ntee *db, int argc, char **argv) {
    const char *verb = argv[2];

    if (argc == 5 && strcmp(verb, "add") == 0 && strlen(argv[4]) <= NOTE_MAX)
        return add(db, argv[3], argv[4]);
    if (argc == 5 && strcmp(verb, "move") == 0) return move(db, argv[3], argv[4]);
    if (argc == 4 && strcmp(verb, "remove") == 0)
        return ntee_delete(db, argv[3], strlen(argv[3])) == NTEE_OK ? 0 : fail("remove");
    if (argc <= 4 && strcmp(verb, "list") == 0) return list(db, argc == 4 ? argv[3] : "");
    fprintf(stderr, "usage: notes <directory> add|move|remove|list ...\n");
    return 2;
}

int main(int argc, char **argv) {
    ntee *db;
    int result;

    if (argc < 3) {
        fprintf(stderr, "usage: notes <directory> add|move|remove|list ...\n");
        return 2;
    }
    if (ntee_open(argv[1], NULL, &db) != NTEE_OK) return fail("open");
    result = run(db, argc, argv);
    if (ntee_close(db) != NTEE_OK) return fail("close");
    return result;
}
