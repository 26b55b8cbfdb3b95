#include "report.h"

#include <stdio.h>

enum { DESCRIPTION_MAX = 256 };

static void describe(size_t engine, char *out) { bench_engines[engine]->describe(out, DESCRIPTION_MAX); }

/* ---- The table ---------------------------------------------------------------------------------- */

static void print_line(const bench_plan *plan, const bench_results *results, size_t row, size_t figure) {
    printf("%-22s %-5s", bench_rows[row].ids[figure], bench_rows[row].unit);
    double ours = bench_median(plan, results, row, figure, 0);
    for (size_t engine = 0; engine < plan->engines; engine++) {
        if (!plan->engine_picked[engine]) continue;
        if (!bench_plan_has(plan, row, engine)) {
            printf(" %18s", "");
            continue;
        }
        double median = bench_median(plan, results, row, figure, engine);
        char cell[32];
        if (engine == 0 || !plan->engine_picked[0]) snprintf(cell, sizeof cell, "%.1f", median);
        else snprintf(cell, sizeof cell, "%.1f (%.2f)", median, ours / median);
        printf(" %18s", cell);
    }
    putchar('\n');
}

void bench_print_table(const bench_plan *plan, const bench_results *results) {
    printf("%zu records, values of %d bytes, medians of %u rounds; in brackets: ntee / peer\n\n",
           plan->data->n, BENCH_VALUE_LEN, plan->rounds);
    for (size_t engine = 0; engine < plan->engines; engine++) {
        char text[DESCRIPTION_MAX];
        if (!plan->engine_picked[engine]) continue;
        describe(engine, text);
        printf("  %s: %s\n", bench_engines[engine]->name, text);
    }
    printf("\n%-22s %-5s", "row", "unit");
    for (size_t engine = 0; engine < plan->engines; engine++) {
        if (plan->engine_picked[engine]) printf(" %18s", bench_engines[engine]->name);
    }
    putchar('\n');
    for (size_t row = 0; row < bench_row_count; row++) {
        if (!plan->row_picked[row]) continue;
        for (size_t i = 0; i < BENCH_FIGURES && bench_rows[row].ids[i]; i++) {
            print_line(plan, results, row, i);
        }
    }
    putchar('\n');
    for (size_t row = 0; row < bench_row_count; row++) {
        if (plan->row_picked[row]) printf("  %s: %s\n", bench_rows[row].ids[0], bench_rows[row].note);
    }
}

/* ---- JSON --------------------------------------------------------------------------------------- */

/* The texts that this program prints hold nothing that JSON would want escaped. */
static void print_json_figures(const bench_plan *plan, const bench_results *results, size_t row,
                               size_t figure) {
    for (size_t engine = 0; engine < plan->engines; engine++) {
        if (!bench_plan_has(plan, row, engine)) continue;
        printf(", \"%s\": %.2f", bench_engines[engine]->name,
               bench_median(plan, results, row, figure, engine));
    }
    const char *between = "";
    printf(",\n     \"rounds\": {");
    for (size_t engine = 0; engine < plan->engines; engine++) {
        if (!bench_plan_has(plan, row, engine)) continue;
        printf("%s\"%s\": [", between, bench_engines[engine]->name);
        for (unsigned round = 0; round < plan->rounds; round++) {
            printf("%s%.2f", round ? ", " : "", results->all[row][figure][engine][round]);
        }
        putchar(']');
        between = ", ";
    }
    putchar('}');
}

void bench_print_json(const bench_plan *plan, const bench_results *results) {
    printf("{\"bench\": \"c\", \"records\": %zu, \"valueBytes\": %d, \"rounds\": %u,\n \"engines\": {",
           plan->data->n, BENCH_VALUE_LEN, plan->rounds);
    const char *between = "\n";
    for (size_t engine = 0; engine < plan->engines; engine++) {
        char text[DESCRIPTION_MAX];
        if (!plan->engine_picked[engine]) continue;
        describe(engine, text);
        printf("%s  \"%s\": \"%s\"", between, bench_engines[engine]->name, text);
        between = ",\n";
    }
    printf("},\n \"rows\": [");
    between = "\n";
    for (size_t row = 0; row < bench_row_count; row++) {
        if (!plan->row_picked[row]) continue;
        for (size_t i = 0; i < BENCH_FIGURES && bench_rows[row].ids[i]; i++) {
            printf("%s    {\"id\": \"%s\", \"unit\": \"%s\"", between, bench_rows[row].ids[i],
                   bench_rows[row].unit);
            print_json_figures(plan, results, row, i);
            printf(",\n     \"note\": \"%s\"}", bench_rows[row].note);
            between = ",\n";
        }
    }
    printf("]}\n");
}
