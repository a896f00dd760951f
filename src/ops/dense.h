/* SPDX-License-Identifier: MIT
 *
 * What the operators share that are y = f(x * w^T + b), with inputs x, w, b. No operator. The
 * gradients follow from that of x * w^T + b: temporary 0 where f has a group of its own that makes
 * it, that of y otherwise.
 */
#ifndef QN_OPS_DENSE_H
#define QN_OPS_DENSE_H

#include "ops/matmul.h"

/* Shape and type of output 0. */
qn_status qn_dense_shape(struct qn_shape_call *call);

/* y without its epilogue; the gradients of x and of w. Every leading dimension counts as rows. */
struct qn_matmul qn_dense_forward(const struct qn_call *call);
struct qn_matmul qn_dense_input_gradient(const struct qn_call *call);
struct qn_matmul qn_dense_weight_gradient(const struct qn_call *call);

/* The gradient of b. */
void qn_dense_bias_cost(const struct qn_call *call, struct qn_cost *cost);
qn_status qn_dense_bias(struct qn_emit *emit, const struct qn_call *call);

/* The gradient groups of x, w and b, from the operand `dz`; QN_DENSE_VARIANTS defines what they
 * launch. */
#define QN_DENSE_VARIANTS                                                                          \
    QN_MATMUL_VARIANTS(qn_dense_input_gradient)                                                    \
    QN_MATMUL_VARIANTS(qn_dense_weight_gradient)
/* clang-format off */
#define QN_DENSE_GRADIENTS(dz)                                                                     \
    {.name = "input gradient",                                                                     \
     .phase = QN_PHASE_BACKWARD,                                                                   \
     .read = {{.ref = dz}, {.ref = QN_IN(1)}},                                                     \
     .write = {{.ref = QN_DIN(0)}},                                                                \
     .variant = QN_MATMUL_LIST(qn_dense_input_gradient)},                                          \
    {.name = "weight gradient",                                                                    \
     .phase = QN_PHASE_BACKWARD,                                                                   \
     .read = {{.ref = dz}, {.ref = QN_IN(0)}},                                                     \
     .write = {{.ref = QN_DIN(1)}},                                                                \
     .variant = QN_MATMUL_LIST(qn_dense_weight_gradient)},                                         \
    {.name = "bias gradient",                                                                      \
     .phase = QN_PHASE_BACKWARD,                                                                   \
     .read = {{.ref = dz}},                                                                        \
     .write = {{.ref = QN_DIN(2)}},                                                                \
     .variant = QN_BOTH_SHAPES(qn_fits_row_group, qn_dense_bias_cost, qn_dense_bias)}
/* clang-format on */

#endif
