/* SPDX-License-Identifier: MIT
 *
 * A plan as a program: phases, each a step list, on one timeline, and the storages that live along
 * it. The exact simulator turns step lists into storages; the sum of those alive at a moment is the
 * one truth about bytes for planner, certificate and tests.
 */
#ifndef QN_PLAN_PROGRAM_H
#define QN_PLAN_PROGRAM_H

#include "plan/schedule.h"

enum qn_phase_kind { QN_RUN_MICRO, QN_RUN_UPDATE, QN_RUN_EVALUATION };

/* Bytes that hold one value, or several in turn where one is written over in place, during the
 * closed interval of timeline positions [start, end]. */
struct qn_storage {
    int64_t bytes; /* rounded up to the alignment */
    int start, end;
    enum qn_tag tag;
    const char *name;
    int pool;           /* -1: not placed */
    int64_t offset;     /* bytes */
    int64_t host_bytes; /* of a copy in host memory, which is placed there; else 0 */
};

struct qn_step {
    int task;
    bool recomputed;
    int read[QN_MAX_READS], write[QN_MAX_WRITES]; /* storages, as the task's reads and writes */
    int scratch;                                  /* storage; -1 */
};

struct qn_phase_run {
    const char *name;
    enum qn_phase_kind kind;
    const struct qn_problem *problem;
    bool first; /* accumulators of the cycle are written, not added to */
    struct qn_step *steps;
    int n_steps;
    int start;                     /* timeline position of its first step */
    int first_storage, n_storages; /* of those that no other phase uses */
    double seconds;
    int recomputed;
};

/* How one effective batch is split: `first` once, `later` (micro_steps - 1) times, then `rest`. */
struct qn_cycle_plan {
    int64_t batch;
    int64_t micro_steps; /* of the micro-batch, the first included; 0: `rest` alone is the cycle */
    int first, later, rest; /* phases; -1: not used */
    int64_t remainder;
    double seconds;
};

enum { QN_MAX_PHASES = 2 * QN_MAX_BATCH_SIZES + 4 };

struct qn_program {
    struct qn_phase_run phases[QN_MAX_PHASES];
    int n_phases, update, evaluation; /* numbers of phases; evaluation -1: none */
    struct qn_cycle_plan cycles[QN_MAX_BATCH_SIZES];
    int n_cycles;
    int length; /* of the timeline */
    struct qn_storage *storages;
    int n_storages;
    int *persistent; /* by value of the persist: storage */
    int64_t live_peak;
    int peak_at;   /* timeline position of the largest sum of live bytes */
    int64_t *live; /* by timeline position */
    int64_t blas_temp;
    int64_t host_bytes; /* of all copies of the phase that parks most */
};

/* Adds a phase that runs `steps`; gives its number, -1 when out of memory. Phases are added in the
 * order of the timeline: micro-steps, then the update, then evaluation. */
int qn_program_add(struct qn_program *program, struct qn_arena *arena, const char *name,
                   enum qn_phase_kind kind, const struct qn_problem *problem, bool first,
                   const struct qn_steps *steps);

/* Computes every storage, and the bytes alive at every position. `alone` leaves out what is
 * persistent, which is the same for every step list. */
qn_status qn_program_simulate(struct qn_program *program, const struct qn_persist *persist,
                              bool alone, const struct qn_lowering *how);

/* --- placement (place.c) --- */

enum { QN_MAX_POOLS = 254 };

struct qn_placement {
    int64_t pool_bytes[QN_MAX_POOLS];
    int n_pools;
    int64_t total;
};

/* Gives every storage a pool and an offset, no two that are alive together overlapping; pools are
 * at most `capacity` bytes. Of several greedy orders the best, and where that leaves gaps a short
 * search in each pool (tighten.h). QN_ERR_BUDGET: more than QN_MAX_POOLS pools would be needed;
 * QN_ERR_MEMORY: out of host memory. */
qn_status qn_place_storages(struct qn_storage *storages, int count, int64_t capacity,
                            struct qn_arena *arena, struct qn_placement *placement);
/* The same for the storages of a program. Phases that run the same steps have their values at the
 * same places, unless several pools need less otherwise. */
qn_status qn_program_place(struct qn_program *program, int64_t capacity, struct qn_arena *arena,
                           struct qn_placement *placement);

#endif
