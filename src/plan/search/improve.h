/* SPDX-License-Identifier: MIT
 *
 * Step lists by local search, made at one batch size for all.
 */
#ifndef QN_SEARCH_IMPROVE_H
#define QN_SEARCH_IMPROVE_H

#include "plan/program/schedule.h"

enum { QN_MOST_LISTS = 1280 }; /* at least two for each target of each pass */

struct qn_lists {
    struct qn_steps items[QN_MOST_LISTS];
    int count;
    int n_tasks; /* of the problem that they are for */
};

/* Lists of a run for a range of bytes; none if there is no choice or the effort is "instant". They
 * are found at one batch size, which depends on graph, facts and effective batches alone; tasks
 * have the same numbers at all batch sizes. Neither budget nor micro-batch matters: more budget
 * never leads to a slower plan, and a plan made again at its micro-batch is the same. Allocated
 * from how->arena. */
qn_status qn_lists_find(const struct qn_lowering *how, const struct qn_persist *persist, int run,
                        struct qn_lists *lists);

#endif
