/*
 * run: rounds of rows. In a round every engine has a process of its own, and they take turns row by row,
 * another one first each time, so that the noise of a machine falls on all of them.
 */
#ifndef BENCH_RUN_H
#define BENCH_RUN_H

#include "rows.h"

enum { BENCH_ENGINES_MAX = 8, BENCH_ROUNDS_MAX = 15, BENCH_ROWS_MAX = 32 };

typedef struct bench_plan {
    const bench_data *data;
    const char *root; /* the directory that the stores are made in */
    unsigned rounds;
    size_t engines; /* how many of bench_engines there are */
    uint8_t engine_picked[BENCH_ENGINES_MAX];
    uint8_t row_picked[BENCH_ROWS_MAX];
} bench_plan;

typedef struct bench_results {
    /* By row, figure, engine and round. */
    double all[BENCH_ROWS_MAX][BENCH_FIGURES][BENCH_ENGINES_MAX][BENCH_ROUNDS_MAX];
} bench_results;

/* Whether the plan measures a row for an engine. */
int bench_plan_has(const bench_plan *plan, size_t row, size_t engine);

/* Runs all rounds. 0, or -1 with a message on standard error. */
int bench_run(const bench_plan *plan, bench_results *results);

/* The median of a row's rounds. */
double bench_median(const bench_plan *plan, const bench_results *results, size_t row, size_t figure,
                    size_t engine);

#endif
