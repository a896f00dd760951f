/* SPDX-License-Identifier: MIT
 *
 * Plans with tuned kernels: what is known of the device is loaded, what is missing is timed, and
 * the outcome is kept for the next run.
 */
#ifndef QUERN_TOOL_TUNING_H
#define QUERN_TOOL_TUNING_H

#include "session.h"

/* Makes session->plan for session->device. With TUNE_QUICK planning and tuning alternate until 95 %
 * of the plan's predicted time is measured: kernels that nobody timed yet are, for 20 seconds at
 * most, and among their variants is searched for 8; building them comes on top. A line tells what
 * was done. A signal ends it with its code. */
int tuning_plan(struct session *session, const qn_plan_params *params, enum tune_mode mode);

/* Makes it again as long as it has kernels that the device cannot launch, which are left out then.
 */
int tuning_probe(struct session *session, const qn_plan_params *params, enum tune_mode mode);

/* Seconds, as in qn_tune_params. */
struct tuning_limits {
    double search, measure;
    bool all; /* also variants that are made for other devices */
};

/* What tuning did so far. */
struct tuning_sum {
    int kernels;            /* tasks that were timed */
    bool changed;           /* the last time found something */
    double compiled, timed; /* seconds */
};

/* Times the kernels of session->plan, keeps the outcome and adds to the sum. A signal ends it with
 * its code; what was found is kept. */
int tuning_search(struct session *session, const struct tuning_limits *limits,
                  struct tuning_sum *sum);

#endif
