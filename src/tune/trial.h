/* SPDX-License-Identifier: MIT
 *
 * Which variants may be timed: those made for such a device that pass their self-test there.
 */
#ifndef QN_TUNE_TRIAL_H
#define QN_TUNE_TRIAL_H

#include "plan/tuning.h"

/* Bit i: variant i of the task's group fits at its default setting and, unless `all`, is made for
 * such a device: the GPU shape and CLBlast are not for CPUs. */
unsigned qn_trial_candidates(const struct qn_problem *problem, const struct qn_task *task,
                             const struct qn_facts *facts, bool all);

/* Whether the variant passes its self-test and has not been found wrong at that setting. The test
 * is run at most once and its outcome noted; only the default setting is tested against the
 * reference, the others are compared with its results. */
bool qn_trial_passed(qn_device *device, struct qn_tuning *tuning, const struct qn_task *task,
                     int variant, int setting);
/* Whether it passes every case of the harness, after another disagreed with it. */
bool qn_trial_stands(qn_device *device, struct qn_tuning *tuning, const struct qn_task *task,
                     int variant, int setting);
/* Notes that it does not compute the right numbers, and says so in the log. */
void qn_trial_fail(qn_device *device, struct qn_tuning *tuning, const struct qn_task *task,
                   int variant, int setting, const char *reason);

#endif
