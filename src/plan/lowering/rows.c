/* SPDX-License-Identifier: MIT
 *
 * The tasks that move rows into cells and gradients out of them.
 */
#include "base/log.h"
#include "op/cell.h"
#include "plan/lowering/lowering.h"

#include <inttypes.h>

static const struct qn_cell_attr *attributes(struct lowering *l, int64_t rows,
                                             const struct qn_cell_of *cell)
{
    struct qn_cell_attr *attr = qn_arena_new(l->how->arena, struct qn_cell_attr, 1);
    if (attr)
        *attr = (struct qn_cell_attr){rows, cell->slot};
    else
        l->status = qn_fail(l->how->log, QN_ERR_MEMORY, "plan: out of host memory");
    return attr;
}

/* Readers of a repetition see the rows that it appends: no task may read the cell before them. */
static void check_readers(struct lowering *l, const struct qn_cell_of *cell)
{
    for (int t = 0; t < l->problem->n_tasks && cell->kind == QN_CELL_APPEND; t++)
        for (int i = 0; i < l->problem->tasks[t].n_reads; i++)
            if (l->problem->tasks[t].reads[i].value == cell->value && l->status == QN_OK)
                l->status = qn_fail(l->how->log, QN_ERR_ARGUMENT,
                                    "%s: reads the cell '%s' before what it appends is made",
                                    l->problem->tasks[t].name, cell->name);
}

/* QN_ERR_SHAPE: the rows of a repetition are more than the cell has; with a smaller micro-batch
 * they may fit. */
static void check_room(struct lowering *l, const struct qn_cell_of *cell, uint32_t tensor)
{
    const int64_t rows = l->shapes.tensors[tensor].shape.dim[0];
    const int64_t room = l->problem->values[cell->value].operand.shape.dim[0];
    if (rows <= room || l->status != QN_OK)
        return;
    if (l->how->too_large)
        *l->how->too_large = true;
    l->status = qn_fail(l->how->log, QN_ERR_SHAPE,
                        "cell '%s': has %" PRId64 " rows, and %" PRId64 " samples make %" PRId64,
                        cell->name, room, l->problem->batch, rows);
}

static void store(struct lowering *l, const struct qn_cell_of *cell, uint32_t tensor)
{
    check_readers(l, cell);
    check_room(l, cell, tensor);
    const struct qn_operand *whole = &l->problem->values[cell->value].operand;
    struct qn_task *task =
        qn_lower_add_own(l, "cell_store", cell->name, attributes(l, whole->shape.dim[0], cell));
    const int value = qn_lower_forward_value(l, tensor);
    task->reads[task->n_reads++] =
        (struct qn_use){value, QN_REF(QN_REF_IN, 0), l->shapes.tensors[tensor]};
    task->writes[task->n_writes++] = (struct qn_output_use){
        .value = cell->value, .ref = QN_REF(QN_REF_STATE, 0), .operand = *whole, .in_place = -1};
}

/* Whether outputs are stored in the cell now. Rows of samples and caches are stored when they are
 * made, rows of a ring `last`, after all readers. An evaluation stores in caches alone. */
static bool stores(const struct lowering *l, const struct qn_cell_of *cell, bool last)
{
    const bool evaluates = l->run->what == QN_RUN_EVALUATE;
    if (l->run->what == QN_RUN_BACKWARD || cell->kind == QN_CELL_TABLE ||
        (evaluates && cell->kind != QN_CELL_APPEND))
        return false;
    return (cell->kind == QN_CELL_RING) == last;
}

/* Stores the outputs that node n, or a view of it, makes; n = -1: of all nodes. */
static void store_outputs(struct lowering *l, int n, bool last)
{
    for (int i = 0; i < l->graph->n_outputs; i++) {
        const uint32_t tensor = l->graph->outputs[i].tensor;
        const int maker = (int)l->graph->tensors[qn_lower_root_of(l, tensor)].node;
        const struct qn_cell_of *cell =
            qn_cell_named(&l->problem->persist->runs, l->graph->outputs[i].name);
        if (cell && (n < 0 || maker == n) && stores(l, cell, last))
            store(l, cell, tensor);
    }
}

void qn_lower_store_made(struct lowering *l, int n)
{
    store_outputs(l, n, false);
}

bool qn_lower_makes_table(const struct lowering *l, int n)
{
    return l->graph->nodes[n].kind == QN_NODE_OPERATOR && l->problem->bound->leaf[n] >= 0;
}

void qn_lower_store_last(struct lowering *l)
{
    store_outputs(l, -1, true);
    for (int n = 0; n < l->graph->n_nodes; n++)
        if (l->used[n] && qn_lower_makes_table(l, n))
            qn_lower_add_group(l, n, l->graph->nodes[n].op->groups, false);
}

void qn_lower_load_gradients(struct lowering *l)
{
    for (int i = 0; i < l->graph->n_outputs; i++) {
        const uint32_t tensor = l->graph->outputs[i].tensor;
        const struct qn_cell_of *cell =
            qn_cell_named(&l->problem->persist->runs, l->graph->outputs[i].name);
        if (!cell || cell->gradient < 0 || l->run->what != QN_RUN_BACKWARD || !l->wanted[tensor])
            continue;
        const struct qn_operand *rows = &l->shapes.tensors[tensor];
        const int value = qn_lower_gradient_value(l, tensor);
        if (l->written[value] && l->status == QN_OK)
            l->status =
                qn_fail(l->how->log, QN_ERR_ARGUMENT,
                        "cell '%s': another cell has the gradient of the same tensor", cell->name);
        struct qn_task *task =
            qn_lower_add_own(l, "cell_load", cell->name, attributes(l, rows->shape.dim[0], cell));
        task->backward = true;
        task->reads[task->n_reads++] = (struct qn_use){cell->gradient, QN_REF(QN_REF_IN, 0),
                                                       l->problem->values[cell->gradient].operand};
        task->writes[task->n_writes++] = (struct qn_output_use){
            .value = value, .ref = QN_REF(QN_REF_OUT, 0), .operand = *rows, .in_place = -1};
        l->written[value] = true;
    }
}

static void add_zero(struct lowering *l, int number)
{
    const struct qn_value *value = &l->problem->values[number];
    struct qn_task *task = qn_lower_add_own(l, "zero", value->name, NULL);
    task->writes[task->n_writes++] = (struct qn_output_use){
        .value = number, .ref = QN_REF(QN_REF_OUT, 0), .operand = value->operand, .in_place = -1};
}

void qn_lower_add_zeros(struct lowering *l)
{
    const struct qn_persist *persist = l->problem->persist;
    for (int b = 0; b < persist->n_blocks; b++)
        add_zero(l, persist->blocks[b].gradients);
    for (int i = 0; i < persist->n_moving; i++) {
        const int gather = persist->moving[i].gather;
        if (gather >= 0 && persist->values[gather].block_offset == 0)
            add_zero(l, persist->values[gather].block);
    }
    for (int c = 0; c < persist->runs.n_cells; c++)
        if (persist->runs.cell[c].gradient >= 0)
            add_zero(l, persist->runs.cell[c].gradient);
}
