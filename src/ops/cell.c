/* SPDX-License-Identifier: MIT */
#include "ops/cell.h"

#include "ops/common.h"
#include "ops/elementwise.h"

qn_status qn_cell_shape(struct qn_shape_call *call)
{
    const struct qn_cell_attr *attr = call->attr;
    if (call->in[0].shape.rank < 1)
        return qn_shape_error(call, "a cell holds rows, not a single number");
    if (call->in[0].dtype == QN_U8)
        return qn_shape_error(call, "cells hold elements of two or four bytes");
    if (attr->rows < 1 || attr->slot < 0)
        return qn_shape_error(call, "a cell has at least one row");
    return QN_OK;
}

void qn_cell_cost(const struct qn_call *call, struct qn_cost *cost)
{
    const struct qn_operand *rows = qn_present(&call->out[0]) ? &call->out[0] : &call->in[0];
    cost->bytes = 2 * (double)qn_operand_bytes(rows);
    cost->launches = 1;
}

qn_status qn_cell_launch(struct qn_emit *emit, const struct qn_call *call, const char *kernel,
                         const struct qn_operand *from, const struct qn_operand *to,
                         const struct qn_operand *rows, const struct qn_operand *cell)
{
    const struct qn_cell_attr *attr = call->attr;
    const int64_t count = qn_operand_count(rows), row = count / rows->shape.dim[0];
    struct qn_launch launch = {.program = "cell",
                               .kernel = kernel,
                               .args = {QN_BUF(from), QN_BUF(&call->control), QN_BUF(to),
                                        QN_LONG(count), QN_LONG(row), QN_LONG(cell->shape.dim[0]),
                                        QN_INT(attr->slot),
                                        QN_LONG(rows->shape.dim[0] / call->batch)},
                               .global = {count},
                               .local = {QN_ELEMENTWISE_LOCAL}};
    qn_launch_option(&launch, "QN_BYTES", qn_dtype_size(rows->dtype));
    return qn_emit_launch(emit, &launch);
}
