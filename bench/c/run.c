#include "run.h"

#include <stdio.h>

/* What a worker answers to the number of a row. */
typedef struct reply {
    double figures[BENCH_FIGURES];
    char error[BENCH_ERROR_MAX];
} reply;

/* One engine's worker in a round. */
typedef struct place {
    bench_session session;
    char dir[BENCH_PATH_MAX];
    bench_worker worker;
    int started;
} place;

static int complain(const char *engine, const char *row, const char *error) {
    fprintf(stderr, "ntee-bench: %s, %s: %s\n", engine, row, error);
    return -1;
}

/* ---- In the worker ------------------------------------------------------------------------------ */

static void answer(void *state, uint32_t command, void *out) {
    place *at = state;
    reply *answered = out;
    const char *error = bench_rows[command].run(&at->session, answered->figures);
    if (error) snprintf(answered->error, sizeof answered->error, "%s", error);
}

static void finish(void *state) {
    place *at = state;
    const char *error = bench_session_close(&at->session);
    if (error) complain(at->session.engine->name, "close", error);
}

/* ---- In the coordinator ------------------------------------------------------------------------- */

static int start(place *at, const bench_plan *plan, size_t engine) {
    *at = (place){.session = {.engine = bench_engines[engine], .data = plan->data, .dir = at->dir}};
    const char *name = bench_engines[engine]->name;
    const char *error = bench_make_dir(plan->root, name, at->dir);
    bench_worker_job job = {answer, finish, at, sizeof(reply)};
    if (!error) error = bench_worker_start(&at->worker, &job);
    if (error) return complain(name, "start", error);
    at->started = 1;
    return 0;
}

static void end(place *at) {
    if (!at->started) return;
    bench_worker_end(&at->worker);
    bench_remove_dir(at->dir);
    at->started = 0;
}

static int ask(place *at, size_t row, double *figures) {
    reply answered;
    const char *error = bench_worker_ask(&at->worker, (uint32_t)row, &answered, sizeof answered);
    if (!error && answered.error[0]) error = answered.error;
    if (error) return complain(at->session.engine->name, bench_rows[row].ids[0], error);
    memcpy(figures, answered.figures, sizeof answered.figures);
    return 0;
}

/* A row that runs alone: a worker for it only, in a directory that nothing else has used. */
static int ask_alone(const bench_plan *plan, size_t row, size_t engine, double *figures) {
    char below[BENCH_PATH_MAX];
    const char *error = bench_make_dir(plan->root, "alone", below);
    if (error) return complain(bench_engines[engine]->name, bench_rows[row].ids[0], error);
    bench_plan own = *plan;
    own.root = below;
    place at;
    if (start(&at, &own, engine) != 0) return -1;
    int failed = ask(&at, row, figures);
    end(&at);
    bench_remove_dir(below);
    return failed;
}

static int name_in(const char *names, const char *name) {
    size_t len = strlen(name);
    for (const char *at = names; (at = strstr(at, name)) != NULL; at += len) {
        if ((at == names || at[-1] == ' ') && (at[len] == ' ' || at[len] == '\0')) return 1;
    }
    return 0;
}

int bench_plan_has(const bench_plan *plan, size_t row, size_t engine) {
    return plan->row_picked[row] && plan->engine_picked[engine] &&
           (engine == 0 || name_in(bench_rows[row].peers, bench_engines[engine]->name));
}

static int run_round(const bench_plan *plan, bench_results *results, unsigned round, place *places) {
    for (size_t row = 0; row < bench_row_count; row++) {
        for (size_t turn = 0; turn < plan->engines; turn++) {
            size_t engine = (turn + round + row) % plan->engines;
            if (!bench_plan_has(plan, row, engine)) continue;
            double figures[BENCH_FIGURES] = {0};
            int failed;
            bench_write_out();
            if (bench_rows[row].alone) {
                failed = ask_alone(plan, row, engine, figures);
            } else {
                place *at = &places[engine];
                failed = (!at->started && start(at, plan, engine) != 0) || ask(at, row, figures) != 0;
            }
            if (failed) return -1;
            for (size_t i = 0; i < BENCH_FIGURES; i++) results->all[row][i][engine][round] = figures[i];
        }
    }
    return 0;
}

int bench_run(const bench_plan *plan, bench_results *results) {
    static place places[BENCH_ENGINES_MAX];
    int failed = 0;
    for (unsigned round = 0; round < plan->rounds && !failed; round++) {
        failed = run_round(plan, results, round, places);
        for (size_t engine = 0; engine < plan->engines; engine++) end(&places[engine]);
    }
    return failed;
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(const bench_plan *plan, const bench_results *results, size_t row, size_t figure,
                    size_t engine) {
    double sorted[BENCH_ROUNDS_MAX];
    memcpy(sorted, results->all[row][figure][engine], plan->rounds * sizeof *sorted);
    qsort(sorted, plan->rounds, sizeof *sorted, compare_doubles);
    unsigned middle = plan->rounds / 2;
    return plan->rounds % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}
