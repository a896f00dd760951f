/* SPDX-License-Identifier: MIT
 *
 * Cells: their values on the device, and the inputs that read them.
 */
#include "plan/lowering/persist.h"

/* Adds the value of a cell; cells of samples live within the cycle and have `batch` rows. */
static int add_cell(struct qn_persist *persist, const struct qn_cell_of *cell, int64_t batch,
                    enum qn_tag tag)
{
    const bool samples = cell->kind == QN_CELL_SAMPLES;
    struct qn_value value = {.name = cell->name,
                             .tag = tag,
                             .life = samples ? QN_LIFE_CYCLE : QN_LIFE_TRAINING,
                             .block = -1};
    qn_operand_at(&cell->operand, batch, &value.operand);
    value.bytes = qn_operand_bytes(&value.operand);
    return qn_persist_add(persist, &value);
}

void qn_persist_lay_cells(const struct qn_lowering *how, struct qn_persist *persist)
{
    static const enum qn_tag tags[] = {[QN_CELL_SAMPLES] = QN_TAG_BANKS,
                                       [QN_CELL_RING] = QN_TAG_BANKS,
                                       [QN_CELL_APPEND] = QN_TAG_CACHES,
                                       [QN_CELL_TABLE] = QN_TAG_TABLES};
    const int64_t batch = qn_largest_cycle(how->params);
    for (int c = 0; c < persist->runs.n_cells; c++) {
        struct qn_cell_of *cell = &persist->runs.cell[c];
        const bool wanted = cell->gradient >= 0;
        cell->value = add_cell(persist, cell, batch, tags[cell->kind]);
        if (wanted)
            cell->gradient = add_cell(persist, cell, batch, QN_TAG_BANKS);
    }
}

void qn_persist_bind_cell(const struct qn_persist *persist, struct qn_bound *bound, int n)
{
    const struct qn_cell_of *cell = qn_cell_named(&persist->runs, bound->graph->nodes[n].name);
    if (!cell)
        return;
    bound->leaf[n] = cell->value;
    bound->gradient[n] = cell->gradient;
}

void qn_persist_bind_tables(const struct qn_persist *persist, struct qn_bound *bound)
{
    for (int i = 0; i < bound->graph->n_outputs; i++) {
        const struct qn_graph_output *output = &bound->graph->outputs[i];
        const struct qn_cell_of *cell = qn_cell_named(&persist->runs, output->name);
        if (cell && cell->kind == QN_CELL_TABLE)
            bound->leaf[bound->graph->tensors[output->tensor].node] = cell->value;
    }
}
