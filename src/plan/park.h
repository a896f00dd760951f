/* SPDX-License-Identifier: MIT
 *
 * Parking: values of a step list go to host memory while nobody reads them, one after another.
 */
#ifndef QN_PLAN_PARK_H
#define QN_PLAN_PARK_H

#include "plan/timeline.h"

struct qn_gap;

struct qn_parking {
    struct qn_timeline timeline; /* the list so far */
    struct qn_gap *gaps;         /* the best first */
    int n_gaps;
};

/* Of a list of a problem with stores and fetches. Allocated from `arena`. False when out of memory,
 * or when a task runs more often than QN_MOST_RUNS. */
bool qn_parking_open(struct qn_parking *parking, const struct qn_problem *problem,
                     const struct qn_steps *steps, struct qn_arena *arena);

/* Parks the value that is not read for longest for the time its transfers take, of those that are
 * there when most is alive. False: there is none. */
bool qn_parking_step(struct qn_parking *parking);

#endif
