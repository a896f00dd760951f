/* SPDX-License-Identifier: MIT
 *
 * Parking: takes a step list and parks one value after another in gaps between its uses.
 */
#ifndef QN_SEARCH_PARK_H
#define QN_SEARCH_PARK_H

#include "plan/search/timeline.h"

struct qn_gap;

struct qn_parking {
    struct qn_timeline timeline; /* the list so far */
    struct qn_gap *gaps;         /* by worth, the largest first */
    int n_gaps;
};

/* `problem` has stores and fetches. Allocated from `arena`. False when out of memory, or when a
 * task runs more often than QN_MOST_RUNS. */
bool qn_parking_open(struct qn_parking *parking, const struct qn_problem *problem,
                     const struct qn_steps *steps, struct qn_arena *arena);

/* Parks one value more: of the gaps around the peak the one with the largest worth (park.c). False:
 * there is none. */
bool qn_parking_step(struct qn_parking *parking);

#endif
