/* SPDX-License-Identifier: MIT
 *
 * How long a run of a task takes: measured by tuning, or estimated from what it computes and moves.
 */
#ifndef QN_COST_SECONDS_H
#define QN_COST_SECONDS_H

#include "plan/cost/tuning.h"

/* From the device's rates. */
double qn_seconds_estimated(const struct qn_facts *facts, const struct qn_cost *cost);

/* A copy of so many bytes between host and device, either way. */
double qn_seconds_parked(const struct qn_facts *facts, int64_t bytes);

/* From the run of the same variant and setting that was timed at the batch nearest to `batch`; at
 * another one it grows as the estimates do. 0: none was timed. */
double qn_seconds_measured(const struct qn_tuning *tuning, const struct qn_facts *facts,
                           const struct qn_tuned *like, const struct qn_cost *cost);

/* What the planner counts for a run. */
struct qn_seconds {
    double seconds;
    bool measured; /* at this very batch */
};

/* What estimates at `batch` are multiplied with: `calibration`, and 1.25 times that at another
 * batch than `kept`, the micro-batch that was tuned first. So a plan whose steps were timed is left
 * only for one that promises more than a guess may be wrong by. 1 where nothing was timed
 * (`calibration` 0); no margin where no micro-batch was tuned (`kept` 0). */
double qn_seconds_guess(double calibration, int64_t kept, int64_t batch);

/* qn_seconds_measured where the run was timed at this very batch, and as it is. Where it was timed
 * at another batch 1.1 times that, where it was not timed `guess` times the estimate. */
struct qn_seconds qn_seconds_counted(const struct qn_tuning *tuning, const struct qn_facts *facts,
                                     double guess, const struct qn_tuned *like,
                                     const struct qn_cost *cost);

/* How many times as fast a micro-batch has to look to be taken in place of the one that was tuned
 * first: 1.1 times the median spread of the timings, 10 where that is above 1.3. Another program
 * beside them makes the spread large, and disturbs long kernels more than short ones. False when
 * out of memory. */
bool qn_seconds_must_gain(const struct qn_tuning *tuning, struct qn_arena *arena, double *times);

/* A copy to the host, or to the device, from what was measured; 0: nothing was. */
double qn_seconds_transfer(const struct qn_transfers *measured, int64_t bytes, bool to_device);

/* How much longer than estimated the timed runs took: their median, 0 where none was timed. What
 * was not timed is taken to be as far off. `arena` is for what is needed meanwhile. False when out
 * of memory. */
bool qn_seconds_calibrate(const struct qn_tuning *tuning, const struct qn_facts *facts,
                          struct qn_arena *arena, double *calibration);

#endif
