/*
 * rows: what is timed, for every engine in the same way.
 *
 * Rows run in the order of the table. Those of a shared store use one store, which stays open between
 * them and holds data->put_order; a row that runs alone has a process and a fresh directory of its own.
 */
#ifndef BENCH_ROWS_H
#define BENCH_ROWS_H

#include "engine.h"

enum { BENCH_FIGURES = 2, BENCH_ERROR_MAX = 256 };

/* One engine's place to work in. */
typedef struct bench_session {
    const bench_engine *engine;
    const bench_data *data;
    const char *dir;
    void *db;   /* NULL: not open */
    int filled; /* the store holds data->put_order */
    unsigned saving; /* the store saves its index after so many writes; 0: as it does by itself */
} bench_session;

typedef struct bench_row {
    const char *ids[BENCH_FIGURES]; /* the names of the row's figures; the second may be NULL */
    const char *unit;
    const char *peers; /* the engines beside ntee, separated by spaces */
    int alone;
    /* Puts a row's figures into figures[]; NULL, or what went wrong. */
    const char *(*run)(bench_session *session, double *figures);
    const char *note; /* how it is measured */
} bench_row;

extern const bench_row bench_rows[];
extern const size_t bench_row_count;

/* Closes a session's store, if it is open. */
const char *bench_session_close(bench_session *session);

#endif
