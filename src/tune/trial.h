/* SPDX-License-Identifier: MIT
 *
 * Which variants tuning may time: those made for a device of this kind (CPU or GPU) that pass their
 * self-test on it.
 */
#ifndef QN_TUNE_TRIAL_H
#define QN_TUNE_TRIAL_H

#include "plan/cost/tuning.h"

/* Bit i: variant i of the task's group fits at its default setting and, unless `all`, is made for a
 * device of this kind: gpu and clblast are left out on a CPU. */
unsigned qn_trial_candidates(const struct qn_problem *problem, const struct qn_task *task,
                             const struct qn_facts *facts, bool all);

/* Whether the variant passes its self-test and `tuning` does not say that it is wrong at that
 * setting. The self-test runs at most once and its outcome is noted, unless the device or its
 * memory fails meanwhile: the variant is then left out now and tested another time. Only the
 * default setting is tested against the reference, others are compared with the default's results.
 */
bool qn_trial_passed(qn_device *device, struct qn_tuning *tuning, const struct qn_task *task,
                     int variant, int setting);
/* Whether the variant passes every case of the harness; for a variant with whose results those of
 * another one disagree. */
bool qn_trial_stands(qn_device *device, struct qn_tuning *tuning, const struct qn_task *task,
                     int variant, int setting);
/* Notes in `tuning` that the variant computes wrong numbers at that setting, so that no plan takes
 * it, and logs a warning with the reason. With the default setting go all others, which are only
 * ever compared with it. */
void qn_trial_fail(qn_device *device, struct qn_tuning *tuning, const struct qn_task *task,
                   int variant, int setting, const char *reason);
/* Notes that the variant's kernels cannot be launched, and logs it, once. To be called next after
 * the call that failed with QN_ERR_BUILD: the reason is the line that qn_last_error gives. */
void qn_trial_refuse(qn_device *device, struct qn_tuning *tuning, const struct qn_task *task,
                     int variant, int setting);

#endif
