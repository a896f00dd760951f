/* SPDX-License-Identifier: MIT
 *
 * Which variants tuning may time: those made for a device of this kind (CPU or GPU) that pass their
 * self-test on it.
 */
#ifndef QN_TUNE_TRIAL_H
#define QN_TUNE_TRIAL_H

#include "plan/cost/tuning.h"

/* Bit i: variant i of the task's group fits at its default setting and, unless `all`, is made for a
 * device of this kind: a CPU is not given the variants gpu and clblast. */
unsigned qn_trial_candidates(const struct qn_problem *problem, const struct qn_task *task,
                             const struct qn_facts *facts, bool all);

/* Whether the variant passes its self-test and has not been found wrong at that setting. The test
 * is run at most once and its outcome noted, unless the device or its memory failed in the middle
 * of it: the variant is then left out now, and tested another time. Only the default setting is
 * tested against the reference, the others are compared with its results. */
bool qn_trial_passed(qn_device *device, struct qn_tuning *tuning, const struct qn_task *task,
                     int variant, int setting);
/* Whether the variant passes every case of the harness: asked once another variant's results
 * disagreed with its own. */
bool qn_trial_stands(qn_device *device, struct qn_tuning *tuning, const struct qn_task *task,
                     int variant, int setting);
/* Notes in `tuning` that the variant computes wrong numbers at that setting, so that nobody uses
 * it, and logs a warning with the reason. */
void qn_trial_fail(qn_device *device, struct qn_tuning *tuning, const struct qn_task *task,
                   int variant, int setting, const char *reason);
/* Notes that its kernels cannot be launched (QN_ERR_BUILD), and says so in the log; once. */
void qn_trial_refuse(qn_device *device, struct qn_tuning *tuning, const struct qn_task *task,
                     int variant, int setting);

#endif
