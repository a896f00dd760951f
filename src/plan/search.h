/* SPDX-License-Identifier: MIT
 *
 * The search: micro-batch, remainder and recomputation chosen together.
 */
#ifndef QN_PLAN_SEARCH_H
#define QN_PLAN_SEARCH_H

#include "plan/plan.h"
#include "plan/seeds.h"

/* What was chosen, in words from which the same program can be built again. */
struct qn_choice {
    int64_t micro_batch;
    int candidate;    /* number in the frontier of its micro-batch; -1: nothing fits */
    double seconds;   /* of one update of every batch size together */
    int64_t bytes;    /* of all buffers */
    int64_t smallest; /* least bytes of all that was tried */
    int64_t smallest_micro_batch;
    const char *largest_step; /* at the peak of the smallest program */
};

/* Tries every useful micro-batch and every candidate. The choice does not depend on the budget but
 * through what fits, so more budget is never slower. */
qn_status qn_search(const struct qn_lowering *how, const struct qn_persist *persist,
                    struct qn_choice *choice);

/* Builds program and placement of a choice into how->arena. */
qn_status qn_search_build(const struct qn_lowering *how, const struct qn_persist *persist,
                          int64_t micro_batch, int candidate, struct qn_program *program,
                          struct qn_placement *placement, double *keep_all_seconds);

#endif
