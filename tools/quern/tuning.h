/* SPDX-License-Identifier: MIT
 *
 * Plans with tuned kernels: what is known of the device is loaded, what is missing is timed, and
 * the outcome is kept for the next run.
 */
#ifndef QUERN_TOOL_TUNING_H
#define QUERN_TOOL_TUNING_H

#include "session.h"

/* Makes session->plan for session->device. With TUNE_QUICK kernels that nobody timed yet are, for a
 * few seconds at most, with a line that tells so. */
int tuning_plan(struct session *session, const qn_plan_params *params, enum tune_mode mode);

/* Times the kernels of session->plan for `seconds` at most (0: no limit), also those that are made
 * for other devices if `all`, and keeps the outcome; `*timed` tasks were new. */
int tuning_search(struct session *session, double seconds, bool all, int *timed);

#endif
