/* SPDX-License-Identifier: MIT
 *
 * From the list of runs and cells that a plan is asked for to its program, and back.
 */
#ifndef QN_PLAN_RUNS_H
#define QN_PLAN_RUNS_H

#include "plan/plan.h"

/* Copies the graphs into plan->graphs, fused, and fills in plan->runs and plan->losses; the texts
 * are copied too. After a failure, which is logged, the graphs copied so far are the plan's. */
qn_status qn_runs_make(struct qn_plan *plan, const qn_run_list *list);

/* What would make the same program again; borrowed from the plan. */
struct qn_runs_again {
    qn_run runs[QN_MAX_RUNS];
    qn_cell cells[QN_MAX_CELLS];
    qn_run_list list;
};
void qn_runs_again(const struct qn_plan *plan, struct qn_runs_again *again);

#endif
