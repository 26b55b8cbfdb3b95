/* modes: the parts of the simulator, each a test of its own. Every one returns 1 where nothing failed. */
#ifndef TESTS_FAULT_MODES_H
#define TESTS_FAULT_MODES_H

#include <stdint.h>

/* Random workloads, crashed at their calls, until `states` distinct states were seen. `only`: the one run to
 * replay, or UINT64_MAX. */
int mode_random(uint64_t seed, uint64_t states, uint64_t only);
/* Every sequence of up to three operations, crashed at every call of the last one. */
int mode_exhaustive(uint64_t seed, uint64_t only);
/* Images crashed at every call of their recovery, and those again. */
int mode_recovery(uint64_t seed, uint64_t states, uint64_t only);
/* The n-th call fails, for every n. */
int mode_errors(uint64_t seed, uint64_t only);
/* The same seed gives the same calls. */
int mode_determinism(uint64_t seed, uint64_t runs);
/* An operating system that lies in one way at a time: the simulator has to notice each. */
int mode_controls(uint64_t seed);

/* One random workload under an effort; 0 where something failed. Behind random, recovery and controls. */
struct effort;
int workload_run(uint64_t seed, uint64_t run, const struct effort *effort, uint64_t *trace);

#endif
