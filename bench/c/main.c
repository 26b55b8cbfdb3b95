/* ntee-bench: libntee beside LMDB, SQLite, LevelDB and RocksDB, through their C interfaces. */
#include "report.h"

#include <stdio.h>

static const char USAGE[] =
    "ntee-bench [--json] [--rows NAME,..] [--engines NAME,..] [--n RECORDS] [--rounds ROUNDS]\n"
    "\n"
    "  --json     one JSON document instead of a table\n"
    "  --rows     only these rows\n"
    "  --engines  only these engines\n"
    "  --n        records, 1000000 if not given\n"
    "  --rounds   rounds, of which the medians count; 3 if not given\n"
    "\n"
    "The stores are made in $TMPDIR, or else in build/bench-data, and removed afterwards.\n";

typedef struct options {
    int json, help;
    const char *rows, *engines;
    size_t n;
    unsigned rounds;
} options;

static int complain(const char *what, const char *about) {
    fprintf(stderr, "ntee-bench: %s%s\n", what, about);
    return -1;
}

static int read_count(const char *text, unsigned long max, unsigned long *count) {
    char *end;
    *count = strtoul(text, &end, 10);
    return *text >= '0' && *text <= '9' && !*end && *count >= 1 && *count <= max ? 0 : -1;
}

static int read_options(int argc, char **argv, options *read) {
    *read = (options){.n = 1000000, .rounds = 3};
    for (int i = 1; i < argc; i++) {
        unsigned long count;
        const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(name, "--json") == 0) {
            read->json = 1;
            continue;
        }
        if (strcmp(name, "--help") == 0) {
            read->help = 1;
            return 0;
        }
        if (!value) return complain("what is this, or where is its value: ", name);
        if (strcmp(name, "--rows") == 0) {
            read->rows = value;
        } else if (strcmp(name, "--engines") == 0) {
            read->engines = value;
        } else if (strcmp(name, "--n") == 0) {
            if (read_count(value, 100000000, &count) != 0) return complain("not 1 to 100000000: ", value);
            read->n = count;
        } else if (strcmp(name, "--rounds") == 0) {
            if (read_count(value, BENCH_ROUNDS_MAX, &count) != 0) return complain("not 1 to 15: ", value);
            read->rounds = (unsigned)count;
        } else {
            return complain("no such option: ", name);
        }
        i++;
    }
    return 0;
}

/* ---- Picking by name ---------------------------------------------------------------------------- */

static int row_is(size_t row, const char *name, size_t len) {
    for (size_t i = 0; i < BENCH_FIGURES && bench_rows[row].ids[i]; i++) {
        const char *id = bench_rows[row].ids[i];
        if (strlen(id) == len && memcmp(id, name, len) == 0) return 1;
    }
    return 0;
}

static int engine_is(size_t engine, const char *name, size_t len) {
    return strlen(bench_engines[engine]->name) == len && memcmp(bench_engines[engine]->name, name, len) == 0;
}

/* Sets picked[i] for every i that a name of the list fits; all where there is no list. */
static int pick(const char *list, size_t count, int (*is)(size_t, const char *, size_t), uint8_t *picked) {
    memset(picked, list == NULL, count);
    for (const char *at = list; at;) {
        size_t len = strcspn(at, ",");
        int known = 0;
        for (size_t i = 0; i < count; i++) {
            if (!is(i, at, len)) continue;
            picked[i] = 1;
            known = 1;
        }
        if (!known) return complain("no such name: ", at);
        at = at[len] ? at + len + 1 : NULL;
    }
    return 0;
}

static int make_plan(const options *wanted, bench_plan *plan) {
    *plan = (bench_plan){.rounds = wanted->rounds};
    while (bench_engines[plan->engines]) plan->engines++;
    if (pick(wanted->engines, plan->engines, engine_is, plan->engine_picked) != 0) return -1;
    return pick(wanted->rows, bench_row_count, row_is, plan->row_picked);
}

static int run(bench_plan *plan, const options *wanted) {
    static bench_results results;
    char root[BENCH_PATH_MAX];
    bench_data data;
    bench_catch_interrupts();
    const char *error = bench_make_root(root);
    if (error) return complain("", error);
    bench_data_make(&data, wanted->n);
    plan->data = &data;
    plan->root = root;
    int failed = bench_run(plan, &results);
    bench_remove_dir(root);
    if (!failed) (wanted->json ? bench_print_json : bench_print_table)(plan, &results);
    bench_data_free(&data);
    return failed;
}

int main(int argc, char **argv) {
    options wanted;
    bench_plan plan;
    if (read_options(argc, argv, &wanted) != 0) return 2;
    if (wanted.help) {
        fputs(USAGE, stdout);
        return 0;
    }
    if (make_plan(&wanted, &plan) != 0) return 2;
    return run(&plan, &wanted) != 0;
}
