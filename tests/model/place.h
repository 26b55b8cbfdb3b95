/*
 * place: where the model's store lies, and how it crashes there: a directory of the real file system, which
 * is copied under the open store, or the fake one, which makes the image of a process kill.
 */
#ifndef TESTS_MODEL_PLACE_H
#define TESTS_MODEL_PLACE_H

#include "fake/fake_os.h"
#include "ntee.h"

typedef struct place {
    fake_fs *fs; /* NULL: the real file system */
    int number;
    char base[300];
    char path[340];
} place;

/* Makes an empty place. `base` is a directory of the real file system, NULL: the fake one, seeded. */
void place_begin(place *p, const char *base, uint64_t seed);
/* Makes the image of a crash, gets rid of `db` and of what it lies in, and goes on in the image. The caller
 * has closed all scans. */
void place_crash(place *p, ntee *db);
void place_end(place *p);

#endif
