/* report: what the benchmark prints. */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include "run.h"

/* A table for people. */
void bench_print_table(const bench_plan *plan, const bench_results *results);

/* One JSON document for programs. */
void bench_print_json(const bench_plan *plan, const bench_results *results);

#endif
