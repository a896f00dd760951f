/* SPDX-License-Identifier: MIT
 *
 * The fastest of the variants that can run one task and compute the right numbers.
 */
#ifndef QN_TUNE_CONTEST_H
#define QN_TUNE_CONTEST_H

#include "plan/cost/tuning.h"
#include "tune/rig.h"
#include "tune/tasks.h"

struct qn_contest_params {
    qn_device *device;
    struct qn_tuning *tuning; /* outcomes of self-tests are added */
    int64_t budget;           /* bytes of device memory */
    struct qn_watch *watch;
    bool (*over)(void *user); /* true: time no further candidate; the first is always timed */
    void *user;
};

/* Whether `candidates` (bit i: variant i takes part, at each of its settings) are more than one. */
bool qn_contest_has_choice(const struct qn_tune_task *task, unsigned candidates);

/* Times the variant that the plan takes, alone and without a self-test. QN_ERR_BUDGET, which is not
 * logged: timing the task needs more than the budget. Where watch->stopped is set afterwards,
 * run->seconds may be 0: the variant was not timed. */
qn_status qn_contest_measure(const struct qn_contest_params *params,
                             const struct qn_tune_task *task, struct qn_rig_run *run);

/* Times all candidates that pass their self-test. The first of them is the default: another wins
 * only if it is faster by a few per cent, also when both run again in turns. run->seconds is 0 if
 * none was timed. */
qn_status qn_contest_run(const struct qn_contest_params *params, const struct qn_tune_task *task,
                         unsigned candidates, struct qn_rig_run *run);

#endif
