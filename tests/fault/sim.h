/* sim: what all parts of the simulator share: counts, the set of states seen, and how failures are
 * reported. */
#ifndef TESTS_FAULT_SIM_H
#define TESTS_FAULT_SIM_H

#include <stdint.h>

#include "fake/fake_os.h"
#include "model/random.h"

/* How many images are made at one moment. */
typedef struct effort {
    uint32_t event_odds;   /* one in so many calls is looked at */
    uint32_t masks;        /* all subsets of the pending items where they are no more, else so many */
    uint32_t randoms;      /* random subsets, some torn */
    uint32_t pages;        /* pages as of different moments */
    uint32_t kills;        /* process kills, the running store or write torn */
    uint32_t depth;        /* generations: write again, crash again */
    uint32_t recovery;     /* one in so many images is also crashed while it is recovered; 0: none */
    uint32_t levels;       /* and what that leaves again, so many times */
} effort;

typedef struct sim_counts {
    uint64_t workloads;
    uint64_t operations;
    uint64_t moments;      /* calls at which images were made */
    uint64_t images;
    uint64_t checked;      /* images opened and compared: not seen before with the same legal states */
    uint64_t distinct;     /* different images by hash */
    uint64_t recoveries;   /* crashes while recovering */
    uint64_t failures;
} sim_counts;

typedef struct sim {
    uint64_t seed;
    uint64_t run;          /* number of the workload */
    const char *mode;
    const char *variant;   /* more for the replay line, or NULL */
    char moment[240];      /* the image that is being looked at */
    const nt_os *table;    /* a lying one, or NULL */
    int replaying;         /* one workload is run again: say more */
    int quiet;             /* failures are counted, not printed */
    sim_counts counts;
    double started;
} sim;

extern sim the_sim;

/* Puts a file system into use, behind the lying table if there is one. */
void sim_use(fake_fs *fs);
/* Counts a failure; prints the first ones, with a line that replays the workload. */
void sim_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Notes an image; 1 where it is new together with what it is to be checked against. */
int sim_note_image(uint64_t image, uint64_t against);
/* Forgets what was seen, so that a new mode counts from zero. */
void sim_begin(const char *mode, uint64_t seed);
/* Prints the mode's line of figures; 1 where nothing failed. */
int sim_report(void);

#endif
