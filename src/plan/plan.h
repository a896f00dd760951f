/* SPDX-License-Identifier: MIT
 *
 * The plan as the trainer reads it.
 */
#ifndef QN_PLAN_PLAN_H
#define QN_PLAN_PLAN_H

#include "plan/frontier.h"
#include "plan/program.h"

struct qn_plan {
    struct qn_log log;
    struct qn_arena arena;
    qn_graph *graph; /* the plan's own copy */
    struct qn_facts facts;
    struct qn_plan_params params; /* its texts live in the arena */
    struct qn_persist persist;
    struct qn_program program;
    struct qn_placement placement;
    struct qn_frontier frontier;
    struct qn_plan_info info;
};

/* Each field of 0 takes its default; buffers hold whole units of the alignment (params.c). */
void qn_plan_fill_facts(struct qn_facts *facts);
/* Whether graph, filled facts and params are usable; the log says why not. */
qn_status qn_plan_check(const struct qn_log *log, const qn_graph *graph,
                        const struct qn_facts *facts, const struct qn_plan_params *params);

/* Of model, training and program (hash.c); all but info.hash must be there. */
uint64_t qn_plan_hash(const struct qn_plan *plan);
/* Of all that a search depends on: the graph, the facts and the params but for the budget. */
uint64_t qn_plan_question(const struct qn_plan *plan);

#endif
