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
    struct qn_call call; /* with the place of every operand that the task names */
    struct qn_ref operand[QN_RIG_OPERANDS];
    int values[QN_RIG_OPERANDS]; /* of the problem, by operand */
    int n_operands, n_reads;     /* the first n_reads are read, the others written */
    struct qn_slab *slab;
    int64_t scratch_bytes;
    float *expected; /* what the first variant wrote; NULL: none ran yet */
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

/* Inputs are random numbers, tables what they are in training. QN_ERR_BUDGET, of which the log says
 * nothing: it would take more. QN_ERR_MEMORY: the device has no room. */
qn_status qn_rig_open(struct qn_rig *rig, qn_device *device, const struct qn_rig_task *what);
void qn_rig_close(struct qn_rig *rig);

/* Whether the variant can run here; if not, *why says why. */
bool qn_rig_fits(struct qn_rig *rig, int variant, int setting, const char **why);

/* One variant at one setting. */
struct qn_rig_run {
    int variant, setting;
    double least;        /* seconds of timing at least */
    double given_up;     /* no more runs once one took longer than this, in seconds; 0: never */
    bool again;          /* it ran in this rig before: it is only timed */
    struct qn_cost cost; /* filled in */
    double seconds;      /* filled in: the fastest of the runs, those before included if `again` */
    double median;       /* filled in: of the runs of this time */
};

/* Runs it once, compares what it writes with what the first variant of this rig wrote, then times
 * it. The verdict says what is wrong with the results; the status is that of the device. The watch
 * is told what that took; once it stops, what runs is the last, and run->seconds may stay as it
 * was. */
qn_status qn_rig_time(struct qn_rig *rig, struct qn_rig_run *run, struct qn_verdict *verdict);

/* Forgets the first variant's results: those of the next are what others are compared with. */
void qn_rig_forget(struct qn_rig *rig);

#endif
