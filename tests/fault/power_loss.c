/*
 * power_loss: what is left of a store when the power goes, the process is killed, or a call fails, at any
 * call.
 *
 *     power_loss random | exhaustive | recovery | errors | determinism | controls
 *
 * NT_SEED=n replays a run, with NT_RUN=n one workload of it; NT_STATES=n sets how many states are enough.
 */
#include <stdio.h>
#include <string.h>

#include "fault/modes.h"
#include "fault/subject.h"

int main(int argc, char **argv) {
    uint64_t seed = seed_from_environment();
    uint64_t only = number_from_environment("NT_RUN", UINT64_MAX);
    const char *mode = argc > 1 ? argv[1] : "random";
    int good;
    subject_setup();
    if (!strcmp(mode, "random")) {
        good = mode_random(seed, number_from_environment("NT_STATES", is_long() ? 20000000 : 500000), only);
    } else if (!strcmp(mode, "exhaustive")) {
        good = mode_exhaustive(seed, only);
    } else if (!strcmp(mode, "recovery")) {
        good = mode_recovery(seed, number_from_environment("NT_STATES", is_long() ? 5000000 : 100000), only);
    } else if (!strcmp(mode, "errors")) {
        good = mode_errors(seed, only);
    } else if (!strcmp(mode, "determinism")) {
        good = mode_determinism(seed, number_from_environment("NT_STATES", is_long() ? 20000 : 1000));
    } else if (!strcmp(mode, "controls")) {
        good = mode_controls(seed);
    } else {
        fprintf(stderr,
                "usage: power_loss random | exhaustive | recovery | errors | determinism | controls\n");
        return 2;
    }
    return good ? 0 : 1;
}
