/* SPDX-License-Identifier: MIT
 *
 * What sum, mean and global average pooling share: the launches of cl_kernels/row_sum.cl. No
 * operator. The input is seen as (rows, n), where n is the product of the dimensions from `first`
 * on.
 */
#ifndef QN_OPS_ROW_SUM_H
#define QN_OPS_ROW_SUM_H

#include "ops/common.h"

/* Out 0 has the first `first` dimensions of the input and the storage type. */
qn_status qn_row_sum_shape(struct qn_shape_call *call, int first);

/* Costs of groups 0 (in 0 -> out 0) and 1 (dout 0 -> din 0) of an operator. */
void qn_row_sum_forward_cost(const struct qn_call *call, struct qn_cost *cost);
void qn_row_sum_backward_cost(const struct qn_call *call, struct qn_cost *cost);

/* Their launches: of the sum of each row, and of that divided by n. */
qn_status qn_row_sum_forward(struct qn_emit *emit, const struct qn_call *call);
qn_status qn_row_sum_backward(struct qn_emit *emit, const struct qn_call *call);
qn_status qn_row_mean_forward(struct qn_emit *emit, const struct qn_call *call);
qn_status qn_row_mean_backward(struct qn_emit *emit, const struct qn_call *call);

/* The groups of an operator; `emit` is qn_row_sum or qn_row_mean. */
/* clang-format off */
#define QN_ROW_SUM_GROUPS(emit)                                                                    \
    {{.name = "forward",                                                                           \
      .phase = QN_PHASE_TRAIN | QN_PHASE_EVAL,                                                     \
      .read = {{QN_IN(0)}},                                                                        \
      .write = {{QN_OUT(0)}},                                                                      \
      .variant = QN_BOTH_SHAPES(qn_fits_row_group, qn_row_sum_forward_cost, emit##_forward)},      \
     {.name = "input gradient",                                                                    \
      .phase = QN_PHASE_BACKWARD,                                                                  \
      .read = {{QN_DOUT(0)}},                                                                      \
      .write = {{QN_DIN(0)}},                                                                      \
      .variant = QN_BOTH_SHAPES(qn_fits_row_group, qn_row_sum_backward_cost, emit##_backward)}}
/* clang-format on */

#endif
