/* SPDX-License-Identifier: MIT
 *
 * The parameters of a plan: graphs that name the same parameter share it.
 */
#include "base/log.h"
#include "base/shape.h"
#include "plan/lowering/persist.h"

#include <string.h>

static int find_parameter(const struct qn_persist *persist, const char *name)
{
    for (int i = 0; i < persist->n_parameters; i++)
        if (strcmp(persist->parameters[i].node->name, name) == 0)
            return i;
    return -1;
}

static qn_status check_same(const struct qn_lowering *how, const struct qn_node *a,
                            const struct qn_node *b)
{
    if (a->leaf.dtype == b->leaf.dtype && qn_shape_equal(&a->leaf.shape, &b->leaf.shape) &&
        a->frozen == b->frozen && a->rate == b->rate && a->decay == b->decay)
        return QN_OK;
    return qn_fail(how->log, QN_ERR_SHAPE,
                   "%s: two graphs of the plan describe this parameter differently", a->name);
}

/* Adds what the runs of a graph that go backward compute, those of micro-steps or the whole ones.
 */
static bool mark_used(const struct qn_lowering *how, const struct qn_persist *persist, int graph,
                      bool whole, bool **used)
{
    const struct qn_graph *of = persist->graphs[graph].graph;
    *used = qn_arena_new(how->arena, bool, (size_t)of->n_nodes + 1);
    for (int r = 0; *used && r < persist->runs.n_runs; r++) {
        const struct qn_run_of *run = &persist->runs.run[r];
        if (run->graph == graph && qn_run_trains(run) && run->whole == whole)
            qn_run_mark(&persist->runs, run, of, *used);
    }
    return *used;
}

/* A parameter that no backward pass reaches counts as frozen: no task would write its gradient. */
static qn_status list_graph(const struct qn_lowering *how, struct qn_persist *persist, int number)
{
    struct qn_bound *bound = &persist->graphs[number];
    const struct qn_graph *graph = bound->graph;
    bool *by_steps, *by_whole;
    if (!mark_used(how, persist, number, false, &by_steps) ||
        !mark_used(how, persist, number, true, &by_whole))
        return qn_fail(how->log, QN_ERR_MEMORY, "plan: out of host memory");
    for (int n = 0; n < graph->n_nodes; n++) {
        const struct qn_node *node = &graph->nodes[n];
        if (node->kind != QN_NODE_PARAMETER)
            continue;
        int known = find_parameter(persist, node->name);
        if (known < 0) {
            known = persist->n_parameters++;
            persist->parameters[known] = (struct qn_parameter){.node = node,
                                                               .value = -1,
                                                               .working = -1,
                                                               .average = -1,
                                                               .working_average = -1,
                                                               .gradient = -1,
                                                               .block = -1};
        }
        struct qn_parameter *parameter = &persist->parameters[known];
        QN_TRY(check_same(how, parameter->node, node));
        parameter->by_steps |= by_steps[n];
        parameter->by_whole |= by_whole[n];
        parameter->trainable |= (by_steps[n] || by_whole[n]) && !node->frozen;
        bound->parameter[n] = known;
    }
    return QN_OK;
}

qn_status qn_persist_list_parameters(const struct qn_lowering *how, struct qn_persist *persist)
{
    size_t most = 0;
    for (int g = 0; g < persist->n_graphs; g++)
        most += (size_t)persist->graphs[g].graph->n_nodes;
    persist->parameters = qn_arena_new(how->arena, struct qn_parameter, most + 1);
    if (!persist->parameters)
        return qn_fail(how->log, QN_ERR_MEMORY, "plan: out of host memory");
    for (int g = 0; g < persist->n_graphs; g++)
        QN_TRY(list_graph(how, persist, g));
    return QN_OK;
}
