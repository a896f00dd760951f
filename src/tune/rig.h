/* SPDX-License-Identifier: MIT
 *
 * A test rig: one task of a plan on the device, with operands of its own, on which the variants of
 * its group are run, timed and compared. Launches go the way of training: emit() into a recording.
 */
#ifndef QN_TUNE_RIG_H
#define QN_TUNE_RIG_H

#include "check/verdict.h"
#include "cl/slab.h"
#include "plan/problem.h"
#include "tune/watch.h"

enum { QN_RIG_OPERANDS = QN_MAX_READS + QN_MAX_WRITES };

struct qn_rig {
    qn_device *device;
    const struct qn_problem *problem;
    const struct qn_task *task;
    struct qn_call call; /* every operand that the task names has its buffer and offset */
    struct qn_ref operand[QN_RIG_OPERANDS];
    int values[QN_RIG_OPERANDS]; /* by operand: number of its value in `problem` */
    int n_operands, n_reads;     /* the first n_reads are read, the others written */
    struct qn_slab *slab;
    int64_t scratch_bytes;
    float *expected; /* results of the variant that ran first; NULL: none ran yet */
    struct qn_watch *watch;
};

/* What a rig is made for. */
struct qn_rig_task {
    const struct qn_problem *problem;
    const struct qn_task *task;
    unsigned usable; /* bit i: variant i may run, at any setting */
    int64_t budget;  /* bytes of device memory that the rig may take */
    struct qn_watch *watch;
};

/* Operands get random numbers, chunk tables their contents in training. QN_ERR_BUDGET, which is not
 * logged: the buffers need more than what->budget. QN_ERR_MEMORY: the device has no room. */
qn_status qn_rig_open(struct qn_rig *rig, qn_device *device, const struct qn_rig_task *what);
void qn_rig_close(struct qn_rig *rig);

/* Whether the variant can run the task at this setting; if not, *why is the reason. */
bool qn_rig_fits(struct qn_rig *rig, int variant, int setting, const char **why);

/* One variant at one setting. */
struct qn_rig_run {
    int variant, setting;
    double least;        /* repetitions go on until they add up to so many seconds */
    double given_up;     /* timing ends with a repetition of more seconds than this; 0: never */
    bool again;          /* ran in this rig before: is only timed, not compared */
    struct qn_cost cost; /* filled in */
    double seconds;      /* filled in: fastest repetition; if `again`, of all calls so far */
    double median;       /* filled in: of the repetitions of this call */
};

/* Runs the variant once, compares its results with those of the rig's first variant, then times it.
 * The verdict says what is wrong with the results; the status is that of the device. Adds the
 * seconds spent to the watch; once the watch stops, no further repetition begins, and run->seconds
 * may stay as it was. */
qn_status qn_rig_time(struct qn_rig *rig, struct qn_rig_run *run, struct qn_verdict *verdict);

/* Forgets the first variant's results: later variants are compared with the next one that runs. */
void qn_rig_forget(struct qn_rig *rig);

#endif
