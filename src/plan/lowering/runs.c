/* SPDX-License-Identifier: MIT
 *
 * The runs of a program: what each computes.
 */
#include "base/shape.h"
#include "plan/problem.h"

#include <string.h>

int64_t qn_largest_batch(const struct qn_plan_params *params)
{
    int64_t largest = 0;
    for (int i = 0; i < QN_MAX_BATCH_SIZES && params->batch[i]; i++)
        largest = params->batch[i] > largest ? params->batch[i] : largest;
    return largest;
}

int64_t qn_largest_cycle(const struct qn_plan_params *params)
{
    int64_t largest = 0;
    for (int i = 0; i < QN_MAX_BATCH_SIZES && params->batch[i]; i++)
        largest = qn_whole_cycle(params, i) > largest ? qn_whole_cycle(params, i) : largest;
    return largest;
}

int64_t qn_one_group(const struct qn_plan_params *params, const struct qn_graph *graph)
{
    int64_t group = qn_graph_batch_group(graph), batch = qn_largest_batch(params);
    return group < batch ? group : batch;
}

bool qn_runs_train(const struct qn_run_set *runs)
{
    for (int i = 0; i < runs->n_runs; i++)
        if (qn_run_trains(&runs->run[i]))
            return true;
    return false;
}

int64_t qn_persist_batch_group(const struct qn_persist *persist)
{
    int64_t group = 1;
    for (int g = 0; g < persist->n_graphs && group > 0; g++) {
        const int64_t own = qn_graph_batch_group(persist->graphs[g].graph);
        group = own < 0 ? own : qn_common_multiple(group, own);
    }
    return group;
}

const struct qn_cell_of *qn_cell_named(const struct qn_run_set *runs, const char *name)
{
    for (int i = 0; i < runs->n_cells; i++)
        if (strcmp(runs->cell[i].name, name) == 0)
            return &runs->cell[i];
    return NULL;
}

const struct qn_cell_of *qn_cell_of_samples(const struct qn_run_set *runs,
                                            const struct qn_node *node)
{
    const struct qn_cell_of *cell =
        node->kind == QN_NODE_INPUT ? qn_cell_named(runs, node->name) : NULL;
    return cell && cell->kind == QN_CELL_SAMPLES ? cell : NULL;
}

int64_t qn_cell_row_bytes(const struct qn_cell_of *cell)
{
    const struct qn_operand *operand = &cell->operand;
    return qn_shape_span(&operand->shape, 1, operand->shape.rank) * qn_dtype_size(operand->dtype);
}

/* Dimensions of the batch are below 0: so many rows a sample. */
int64_t qn_cell_sample_bytes(const struct qn_cell_of *cell)
{
    return -cell->operand.shape.dim[0] * qn_cell_row_bytes(cell);
}

bool qn_cell_forgets(const struct qn_cell_of *cell)
{
    return qn_cell_row_bytes(cell) % 4 == 0;
}

/* Whether a run of this kind computes an output that goes to `cell`; NULL: to the caller. */
static bool computes(qn_run_what what, const struct qn_cell_of *cell)
{
    switch (what) {
    case QN_RUN_EVALUATE:
        return !cell || cell->kind != QN_CELL_TABLE;
    case QN_RUN_BACKWARD:
        return cell && cell->gradient >= 0;
    default:
        return cell;
    }
}

void qn_run_mark(const struct qn_run_set *runs, const struct qn_run_of *run,
                 const struct qn_graph *graph, bool *used)
{
    for (int i = 0; i < graph->n_losses && run->what == QN_RUN_TRAIN; i++)
        used[graph->losses[i].node] = true;
    for (int i = 0; i < graph->n_outputs; i++)
        if (computes(run->what, qn_cell_named(runs, graph->outputs[i].name)))
            used[graph->tensors[graph->outputs[i].tensor].node] = true;
    qn_graph_mark_ancestors(graph, used);
}
