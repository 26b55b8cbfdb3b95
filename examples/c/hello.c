/* hello: opens a store, counts its runs in it, and greets. usage: hello <directory> */
#include <stdio.h>
#include <stdlib.h>

#include <ntee.h>

static int fail(const char *what) {
    const ntee_error *error = ntee_last_error();
    fprintf(stderr, "%s: %s: %s\n", what, ntee_strerror(error->status), error->message);
    return 1;
}

int main(int argc, char **argv) {
    ntee *db;
    char text[32] = "0";
    size_t len = 0;
    long runs;
    int n;

    if (argc != 2) {
        fprintf(stderr, "usage: hello <directory>\n");
        return 2;
    }
    if (ntee_open(argv[1], NULL, &db) != NTEE_OK) return fail("open");

    ntee_status status = ntee_get(db, "runs", 4, text, sizeof text - 1, &len, NULL);
    if (status != NTEE_OK && status != NTEE_NOT_FOUND) return fail("get");
    text[len] = '\0';
    runs = strtol(text, NULL, 10) + 1;

    n = snprintf(text, sizeof text, "%ld", runs);
    if (ntee_put(db, "runs", 4, text, (size_t)n, NULL) != NTEE_OK) return fail("put");
    printf("hello, run %ld of libntee %s\n", runs, ntee_version());

    if (ntee_close(db) != NTEE_OK) return fail("close");
    return 0;
}
