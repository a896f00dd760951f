/* SPDX-License-Identifier: MIT
 *
 * How long a run of a task takes: measured by tuning, or estimated from what it computes and moves.
 */
#ifndef QN_PLAN_SECONDS_H
#define QN_PLAN_SECONDS_H

#include "plan/tuning.h"

/* From the device's rates. */
double qn_seconds_estimated(const struct qn_facts *facts, const struct qn_cost *cost);

/* A copy of so many bytes between host and device, either way. */
double qn_seconds_parked(const struct qn_facts *facts, int64_t bytes);

/* From the run of the same variant and setting that was timed at the batch nearest to `batch`; at
 * another one it grows as the estimates do. 0: none was timed. */
double qn_seconds_measured(const struct qn_tuning *tuning, const struct qn_facts *facts,
                           const struct qn_tuned *like, const struct qn_cost *cost);

/* A copy to the host, or to the device, from what was measured; 0: nothing was. */
double qn_seconds_transfer(const struct qn_transfers *measured, int64_t bytes, bool to_device);

/* How much longer than estimated the timed runs took: their median, 0 where none was timed. What
 * was not timed is taken to be as far off. `arena` is for what is needed meanwhile. False when out
 * of memory. */
bool qn_seconds_calibrate(const struct qn_tuning *tuning, const struct qn_facts *facts,
                          struct qn_arena *arena, double *calibration);

#endif
