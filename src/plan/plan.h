/* SPDX-License-Identifier: MIT
 *
 * The plan as the trainer reads it.
 */
#ifndef QN_PLAN_PLAN_H
#define QN_PLAN_PLAN_H

#include "plan/search/frontier.h"
#include "plan/placement/place.h"

/* A loss, which several graphs may have a part in. */
struct qn_plan_loss {
    const char *name;
    enum qn_reduction reduction;
    double coefficient;
};

struct qn_plan {
    struct qn_log log;
    struct qn_arena arena;
    qn_graph *graphs[QN_MAX_RUNS]; /* the plan's own copies, fused */
    int n_graphs;
    struct qn_run_set runs;                    /* as they were asked for */
    struct qn_plan_loss losses[QN_MAX_LOSSES]; /* of all graphs, by place in the control block */
    int n_losses;
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
/* Marks the nodes that `chosen` names for recomputation, as qn_recompute does. Before fusion, which
 * passes marks on. */
void qn_plan_mark_chosen(qn_graph *graph, const char *chosen);
/* Whether filled facts and params are usable; and, once plan->graphs are there, whether they and
 * the params go together. The log says why not. */
qn_status qn_plan_check(const struct qn_log *log, const struct qn_facts *facts,
                        const struct qn_plan_params *params);
qn_status qn_plan_check_graphs(const struct qn_plan *plan);

/* Of model, training and program (hash.c); all but info.hash must be there. */
uint64_t qn_plan_hash(const struct qn_plan *plan);
/* Of all that a search depends on: the graph, the facts and the params but for the budget. */
uint64_t qn_plan_question(const struct qn_plan *plan);
/* Of the graph and the params but for budget and tuning: what is trained, wherever. */
uint64_t qn_plan_training(const struct qn_plan *plan);

#endif
