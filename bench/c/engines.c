#include "engine.h"

extern const bench_engine bench_ntee, bench_lmdb, bench_sqlite, bench_sqlite_exclusive;
#ifdef HAVE_LEVELDB
extern const bench_engine bench_leveldb;
#endif
#ifdef HAVE_ROCKSDB
extern const bench_engine bench_rocksdb;
#endif

const bench_engine *const bench_engines[] = {
    &bench_ntee,    &bench_lmdb, &bench_sqlite, &bench_sqlite_exclusive,
#ifdef HAVE_LEVELDB
    &bench_leveldb,
#endif
#ifdef HAVE_ROCKSDB
    &bench_rocksdb,
#endif
    NULL,
};
