/* SPDX-License-Identifier: MIT
 *
 * Rows of a micro-step (in 0) into a cell (state 0), beginning at the row that the control block
 * says and going round at its end. The other rows stay.
 */
#include "ops/cell.h"

static qn_status shape(struct qn_shape_call *call)
{
    const struct qn_cell_attr *attr = call->attr;
    struct qn_shape cell = call->in[0].shape;
    const qn_status status = qn_cell_shape(call);
    if (status != QN_OK)
        return status;
    if (cell.dim[0] > attr->rows)
        return qn_shape_error(call, "a micro-step has more rows than the cell");
    cell.dim[0] = attr->rows;
    qn_shape_set(&call->state[0], call->in[0].dtype, cell.rank, cell.dim);
    return QN_OK;
}

static qn_status store(struct qn_emit *emit, const struct qn_call *call)
{
    return qn_cell_launch(emit, call, "store", &call->in[0], &call->state[0], &call->in[0],
                          &call->state[0]);
}

const struct qn_op qn_op_cell_store = {
    .name = "cell_store",
    .attr_size = sizeof(struct qn_cell_attr),
    .n_in = 1,
    .n_required = 1,
    .shape = shape,
    .state = {{"rows"}},
    .groups = {{.name = "store",
                .phase = QN_PHASE_UPDATE,
                .read = {{QN_IN(0)}, {QN_STATE(0)}},
                .write = {{QN_STATE(0)}},
                .variant = {{"any", NULL, qn_cell_cost, store}}}}};
