/* SPDX-License-Identifier: MIT
 *
 * Seconds of one step of a task: measured by tuning, or estimated from its flops, bytes and
 * launches.
 */
#ifndef QN_COST_SECONDS_H
#define QN_COST_SECONDS_H

#include "plan/cost/tuning.h"

/* max(flops / rate, bytes / rate) + launches * launch_seconds, with the device's rates. */
double qn_seconds_estimated(const struct qn_facts *facts, const struct qn_cost *cost);

/* Estimate of a copy of so many bytes between host and device, in either direction. */
double qn_seconds_parked(const struct qn_facts *facts, int64_t bytes);

/* The seconds of the timed entry of like's task, variant and setting whose batch is nearest to
 * like->batch; at another batch times estimate(cost) / estimate(entry). 0: there is no entry. */
double qn_seconds_measured(const struct qn_tuning *tuning, const struct qn_facts *facts,
                           const struct qn_tuned *like, const struct qn_cost *cost);

/* What the planner counts for a step. */
struct qn_seconds {
    double seconds;
    bool measured; /* at exactly this batch */
};

/* The factor of estimates at `batch`: `calibration`, or 1.25 * calibration where `batch` is not
 * `kept`, the micro-batch that was tuned first: the margin keeps a plan with timed steps unless
 * another one gains more than estimates err. 1 where nothing was timed (`calibration` 0); no margin
 * where no micro-batch was tuned (`kept` 0). */
double qn_seconds_guess(double calibration, int64_t kept, int64_t batch);

/* qn_seconds_measured if timed at exactly this batch; 1.1 times that if timed at another batch;
 * `guess` times the estimate if not timed. */
struct qn_seconds qn_seconds_counted(const struct qn_tuning *tuning, const struct qn_facts *facts,
                                     double guess, const struct qn_tuned *like,
                                     const struct qn_cost *cost);

/* *times: how many times as fast a micro-batch must be predicted to replace the one that was tuned
 * first: 1.1 times the median spread of the timings, or 10 if that median is above 1.3. Another
 * program on the device makes the spread large, and disturbs long kernels more than short ones.
 * False when out of memory. */
bool qn_seconds_must_gain(const struct qn_tuning *tuning, struct qn_arena *arena, double *times);

/* Seconds of a copy to the device or to the host, from measured rates; 0: none were measured. */
double qn_seconds_transfer(const struct qn_transfers *measured, int64_t bytes, bool to_device);

/* *calibration: the median of measured / estimated seconds over all timed entries, 0 if there is
 * none; the factor of estimates for tasks that were not timed. `arena`: for temporary arrays. False
 * when out of memory. */
bool qn_seconds_calibrate(const struct qn_tuning *tuning, const struct qn_facts *facts,
                          struct qn_arena *arena, double *calibration);

#endif
