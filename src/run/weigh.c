/* SPDX-License-Identifier: MIT
 *
 * Weights of losses: sums over the whole cycle, known before its first backward pass, from the
 * host's data alone. So every split of the batch divides by the same number.
 */
#include "base/log.h"
#include "base/shape.h"
#include "run/trainer.h"

struct weighing {
    struct qn_trainer *trainer;
    const struct qn_cycle *cycle;
    int run;
    int64_t first, count; /* samples of the present part of the cycle */
};

static const qn_graph *graph_of(const struct weighing *w)
{
    return w->trainer->plan->graphs[w->trainer->plan->runs.run[w->run].graph];
}

/* Host data of a tensor that is an input or a constant. */
static qn_status host_data(const struct weighing *w, uint32_t tensor, const void **data)
{
    const qn_graph *graph = graph_of(w);
    const struct qn_log *log = &w->trainer->log;
    uint32_t n = graph->tensors[qn_graph_root(graph, tensor)].node;
    const struct qn_node *node = &graph->nodes[n];
    unsigned char *rows = w->trainer->stages[0].rows +
                          w->trainer->input_at[w->trainer->plan->runs.run[w->run].graph][n];
    *data = node->kind == QN_NODE_CONSTANT ? (const void *)node->values : rows;
    if (node->kind == QN_NODE_CONSTANT)
        return QN_OK;
    if (node->kind != QN_NODE_INPUT || qn_cell_named(&w->trainer->plan->runs, node->name))
        return qn_fail(log, QN_ERR_ARGUMENT,
                       "%s: what weighs a loss must be an input of the graph, and no cell",
                       node->name);
    qn_status status =
        w->cycle->fetch(w->cycle->user, node->name, w->cycle->first + w->first, w->count, rows);
    return status == QN_OK ? QN_OK
                           : qn_fail(log, status, "%s: its data could not be fetched", node->name);
}

static qn_status weigh_by_operator(const struct weighing *w, const struct qn_node *node,
                                   double *sum)
{
    struct qn_call call = {.op = node->op, .attr = node->attr, .name = node->name};
    const void *host[QN_MAX_IN] = {0};
    for (int i = 0; i < node->op->n_in; i++) {
        if (!node->in[i])
            continue;
        qn_operand_at(&graph_of(w)->tensors[node->in[i]].symbolic, w->count, &call.in[i]);
        if (node->op->weight_inputs >> i & 1u)
            QN_TRY(host_data(w, node->in[i], &host[i]));
    }
    *sum += node->op->loss_weight(&call, host);
    return QN_OK;
}

/* The loss itself weighs by its weights or counts, unless what made its rows knows better. */
static qn_status weigh_loss(const struct weighing *w, const struct qn_graph_loss *loss, double *sum)
{
    const qn_graph *graph = graph_of(w);
    const struct qn_node *own = &graph->nodes[loss->node];
    const struct qn_node *rows = &graph->nodes[graph->tensors[loss->rows].node];
    bool says = rows->kind == QN_NODE_OPERATOR && rows->op->loss_weight;
    return weigh_by_operator(w, says && !own->in[1] ? rows : own, sum);
}

/* One repetition of a run. */
static qn_status weigh_part(const struct weighing *w, double weight[QN_MAX_LOSSES])
{
    const qn_graph *graph = graph_of(w);
    for (int i = 0; i < graph->n_losses; i++)
        if (graph->losses[i].reduction == QN_REDUCE_MEAN)
            QN_TRY(weigh_loss(w, &graph->losses[i], &weight[graph->losses[i].index]));
    return QN_OK;
}

/* A run of the whole cycle, which is weighed by the member whose samples are the first. */
static qn_status weigh_whole(struct qn_trainer *trainer, const struct qn_cycle *cycle, int run,
                             double weight[QN_MAX_LOSSES])
{
    const struct weighing w = {.trainer = trainer,
                               .cycle = cycle,
                               .run = run,
                               .count = cycle->whole ? cycle->whole : cycle->samples};
    const bool weighs = trainer->plan->runs.run[run].what == QN_RUN_TRAIN;
    return weighs && cycle->samples && !cycle->first ? weigh_part(&w, weight) : QN_OK;
}

/* The repetitions of the pass that run `first` begins. */
static qn_status weigh_pass(struct qn_trainer *trainer, const struct qn_cycle *cycle, int first,
                            double weight[QN_MAX_LOSSES])
{
    const int64_t part = trainer->plan->info.micro_batch;
    struct weighing w = {.trainer = trainer, .cycle = cycle};
    if (trainer->plan->runs.run[first].whole)
        return weigh_whole(trainer, cycle, first, weight);
    for (; w.first < cycle->samples; w.first += part) {
        const int64_t left = cycle->samples - w.first;
        w.count = left < part ? left : part;
        QN_TRY(qn_trainer_choose(trainer, cycle, first, w.first, w.count, &w.run));
        if (trainer->plan->runs.run[w.run].what == QN_RUN_TRAIN)
            QN_TRY(weigh_part(&w, weight));
    }
    return QN_OK;
}

qn_status qn_trainer_sum_weights(struct qn_trainer *trainer, const struct qn_cycle *cycle,
                                 double weight[QN_MAX_LOSSES])
{
    const struct qn_plan *plan = trainer->plan;
    QN_TRY(qn_stage_wait(trainer, &trainer->stages[0]));
    for (int i = 0; i < plan->n_losses; i++)
        weight[i] = plan->losses[i].reduction == QN_REDUCE_SUM;
    for (int r = 0; r < plan->runs.n_runs; r += qn_pass_length(&plan->runs, r))
        if (plan->runs.run[r].pass >= 0)
            QN_TRY(weigh_pass(trainer, cycle, r, weight));
    return QN_OK;
}
