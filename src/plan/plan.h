/* SPDX-License-Identifier: MIT
 *
 * The plan as the trainer reads it.
 */
#ifndef QN_PLAN_PLAN_H
#define QN_PLAN_PLAN_H

#include "plan/search/frontier.h"
#include "plan/placement/place.h"

/* A loss; graphs with a loss of this name share it. */
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
    struct qn_run_set runs;                    /* the runs that were asked for */
    struct qn_plan_loss losses[QN_MAX_LOSSES]; /* of all graphs, by loss index */
    int n_losses;
    struct qn_facts facts;
    struct qn_plan_params params; /* its texts live in the arena */
    struct qn_persist persist;
    struct qn_program program;
    struct qn_placement placement;
    struct qn_frontier frontier;
    struct qn_plan_info info;
};

/* Gives fields of 0 their defaults, and rounds buffer sizes down to the alignment (params.c). */
void qn_plan_fill_facts(struct qn_facts *facts);
/* Marks the nodes that `chosen` names for recomputation, as qn_recompute does. Called before
 * fusion, which copies the marks. */
void qn_plan_mark_chosen(qn_graph *graph, const char *chosen);
/* qn_plan_check: whether filled facts and params are usable. qn_plan_check_graphs: whether
 * plan->graphs and the params go together. The log says why not. */
qn_status qn_plan_check(const struct qn_log *log, const struct qn_facts *facts,
                        const struct qn_plan_params *params);
qn_status qn_plan_check_graphs(const struct qn_plan *plan);

/* Hash of model, training and program (hash.c), for info.hash; needs all other fields. */
uint64_t qn_plan_hash(const struct qn_plan *plan);
/* Hash of all that a search depends on: graphs, facts, and params without the budget. */
uint64_t qn_plan_question(const struct qn_plan *plan);
/* Hash of the training, on any device: graphs, and params without budget and tuning, and without
 * norm_groups, for whose sake no training leaves the micro-batch that it was tuned for. */
uint64_t qn_plan_training(const struct qn_plan *plan);

#endif
