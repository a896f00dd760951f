/* SPDX-License-Identifier: MIT
 *
 * What cell_store and cell_load share (cl_kernels/cell.cl). No operator.
 */
#ifndef QN_OPS_CELL_H
#define QN_OPS_CELL_H

#include "op/cell.h"
#include "op/op.h"

/* Whether rows like these, of one shape but for dimension 0, may go into or come from a cell. */
qn_status qn_cell_shape(struct qn_shape_call *call);
void qn_cell_cost(const struct qn_call *call, struct qn_cost *cost);
/* Launches `kernel`, which moves every row of `rows`, from the first to the second operand. */
qn_status qn_cell_launch(struct qn_emit *emit, const struct qn_call *call, const char *kernel,
                         const struct qn_operand *from, const struct qn_operand *to,
                         const struct qn_operand *rows, const struct qn_operand *cell);

#endif
