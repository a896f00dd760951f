/* SPDX-License-Identifier: MIT
 *
 * Turns the list of runs and cells that a plan is asked for into plan->runs, and back.
 */
#ifndef QN_PLAN_RUNS_H
#define QN_PLAN_RUNS_H

#include "plan/plan.h"

/* Copies the graphs into plan->graphs, fused, and fills in plan->runs and plan->losses; the texts
 * are copied too. After a failure, which is logged, the plan owns the graphs copied so far. */
qn_status qn_runs_make(struct qn_plan *plan, const qn_run_list *list);

/* The list that makes the same program again; its graphs and texts are borrowed from the plan. */
struct qn_runs_again {
    qn_run runs[QN_MAX_RUNS];
    qn_cell cells[QN_MAX_CELLS];
    qn_run_list list;
};
void qn_runs_again(const struct qn_plan *plan, struct qn_runs_again *again);

#endif
