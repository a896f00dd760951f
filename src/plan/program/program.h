/* SPDX-License-Identifier: MIT
 *
 * A plan as a program: phases, each with a step list, one after another on a timeline, and the
 * storages alive along it. The exact simulator turns step lists into storages; planner, certificate
 * and tests take the bytes of a moment from it: the sum over the storages alive.
 */
#ifndef QN_PROGRAM_PROGRAM_H
#define QN_PROGRAM_PROGRAM_H

#include "plan/program/schedule.h"

enum qn_phase_kind { QN_START_PHASE, QN_MICRO_PHASE, QN_UPDATE_PHASE, QN_EVALUATION_PHASE };

/* Bytes that hold one value, or several in turn where one is written in place of another, during
 * the closed interval of timeline positions [start, end]. */
struct qn_storage {
    int64_t bytes; /* rounded up to the alignment */
    int start, end;
    enum qn_tag tag;
    const char *name;
    int pool;           /* -1: not placed */
    int64_t offset;     /* bytes */
    int64_t host_bytes; /* of a copy in host memory, where `offset` then lies; else 0 */
};

struct qn_step {
    int task;
    bool recomputed;
    int read[QN_MAX_READS], write[QN_MAX_WRITES]; /* storage of each of the task's reads, writes */
    int scratch;                                  /* storage; -1: none */
};

struct qn_phase_run {
    const char *name;
    enum qn_phase_kind kind;
    const struct qn_problem *problem;
    bool first;   /* accumulators of the cycle are written, not added to */
    bool repeats; /* may run several times in a cycle */
    struct qn_step *steps;
    int n_steps;
    int start;        /* timeline position of its first step */
    int before, next; /* the phases of a kept micro-step: the one whose values this one goes on
                         with, and the one that goes on with its values; -1 */
    int first_storage, n_storages; /* those that it makes, which no other phase but `next` uses;
                                      that one's own follow them */
    double seconds;
    int recomputed;
};

/* The phases of a run in a cycle, by number; -1: none. Phase `later` runs `laters` times, each
 * other once. `kept` is the last micro-step, in the place of one of the others. */
struct qn_run_phases {
    int first, later, rest, kept;
    int64_t laters;
};

/* How one effective batch is split. A run of the whole cycle has phase `first` alone. */
struct qn_cycle_plan {
    int64_t batch;
    int64_t whole;       /* samples of the whole cycle, of which `batch` are a member's share */
    int64_t micro_steps; /* of a whole micro-batch, the first included; 0: `rest` is the cycle */
    int64_t remainder;
    struct qn_run_phases runs[QN_MAX_RUNS];
    double seconds; /* of the cycle; of alternatives the slowest counts */
};

enum { QN_MAX_PHASES = QN_MAX_RUNS * (2 * QN_MAX_BATCH_SIZES + 3) + 3 };

struct qn_program {
    struct qn_phase_run phases[QN_MAX_PHASES];
    int n_phases;
    int main;                    /* the phase that output for people shows as the micro-step */
    int start, norms, update;    /* phases; -1: none */
    int evaluation[QN_MAX_RUNS]; /* by run: phase; -1: none */
    struct qn_cycle_plan cycles[QN_MAX_BATCH_SIZES];
    int n_cycles;
    int length; /* of the timeline */
    struct qn_storage *storages;
    int n_storages;
    int *persistent; /* by value of struct qn_persist: storage; -1: none */
    int64_t live_peak;
    int peak_at;   /* timeline position of the largest sum of live bytes */
    int64_t *live; /* by timeline position */
    int64_t blas_temp;
    int64_t host_bytes; /* of the copies in host memory of the phase that parks most */
};

static inline const struct qn_phase_run *qn_program_main(const struct qn_program *program)
{
    return &program->phases[program->main];
}

/* Adds a phase that runs `steps`; gives its number, -1 when out of memory. Phases are added in the
 * order of the timeline: the start of a cycle, the passes, the norms of a shard, the update,
 * evaluations. */
int qn_program_add(struct qn_program *program, struct qn_arena *arena, const char *name,
                   enum qn_phase_kind kind, const struct qn_problem *problem, bool first,
                   const struct qn_steps *steps);

/* Makes phase `next` go on with the values of phase `before`, which has the same problem: the steps
 * of both are one list, whatever other phases lie between. Both run once in a cycle. */
void qn_program_join(struct qn_program *program, int before, int next);

/* Computes every storage, and the bytes alive at every position. `alone` leaves out the persistent
 * values, which are the same for every step list. */
qn_status qn_program_simulate(struct qn_program *program, const struct qn_persist *persist,
                              bool alone, const struct qn_lowering *how);

#endif
