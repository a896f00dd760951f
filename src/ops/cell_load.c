/* SPDX-License-Identifier: MIT
 *
 * The rows of a micro-step out of a cell (in 0), beginning at the row that the control block says
 * and going round at its end.
 */
#include "ops/cell.h"

static qn_status shape(struct qn_shape_call *call)
{
    const struct qn_cell_attr *attr = call->attr;
    struct qn_shape rows = call->in[0].shape;
    const qn_status status = qn_cell_shape(call);
    if (status != QN_OK)
        return status;
    if (attr->rows > rows.dim[0])
        return qn_shape_error(call, "a micro-step has more rows than the cell");
    rows.dim[0] = attr->rows;
    qn_shape_set(&call->out[0], call->in[0].dtype, rows.rank, rows.dim);
    return QN_OK;
}

static qn_status load(struct qn_emit *emit, const struct qn_call *call)
{
    return qn_cell_launch(emit, call, "load", &call->in[0], &call->out[0], &call->out[0],
                          &call->in[0]);
}

const struct qn_op qn_op_cell_load = {.name = "cell_load",
                                      .attr_size = sizeof(struct qn_cell_attr),
                                      .n_in = 1,
                                      .n_required = 1,
                                      .n_out = 1,
                                      .shape = shape,
                                      .groups = {{.name = "load",
                                                  .phase = QN_PHASE_UPDATE,
                                                  .read = {{QN_IN(0)}},
                                                  .write = {{QN_OUT(0)}},
                                                  .variant = {{"any", NULL, qn_cell_cost, load}}}}};
