/* SPDX-License-Identifier: MIT
 *
 * Parking: values of a step list go to host memory while nobody reads them, one after another.
 */
#ifndef QN_SEARCH_PARK_H
#define QN_SEARCH_PARK_H

#include "plan/search/timeline.h"

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

/* Parks one value more: of those alive at the peak and read again later, the one with the largest
 * ratio of the time until that read to the time of its transfers. False: there is none. */
bool qn_parking_step(struct qn_parking *parking);

#endif
