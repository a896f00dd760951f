/* SPDX-License-Identifier: MIT
 *
 * What losses of two tensors of one shape share, element by element, in f32: the shape rule, the
 * costs, and the launches of cl_kernels/pair_loss.cl. No operator.
 */
#ifndef QN_OPS_PAIR_LOSS_H
#define QN_OPS_PAIR_LOSS_H

#include "op/op.h"

#include <quern/ops.h>

/* Output 0 is f32, of the shape of both inputs, which must be of floating point. */
qn_status qn_pair_loss_shape(struct qn_shape_call *call);
/* Of the groups 0 to 2 of an operator: forward, gradient of a, gradient of b. */
void qn_pair_loss_forward_cost(const struct qn_call *call, struct qn_cost *cost);
void qn_pair_loss_a_cost(const struct qn_call *call, struct qn_cost *cost);
void qn_pair_loss_b_cost(const struct qn_call *call, struct qn_cost *cost);
/* The kernel of the forward pass, and of the gradient of one input. */
qn_status qn_pair_loss_forward(struct qn_emit *emit, const struct qn_call *call,
                               const char *kernel);
qn_status qn_pair_loss_gradient(struct qn_emit *emit, const struct qn_call *call,
                                const char *kernel, int input);

/* All of the operator `name`: kernels NAME_forward, NAME_a and NAME_b, and qn_NAME. */
#define QN_PAIR_LOSS(name_)                                                                        \
    static qn_status forward(struct qn_emit *emit, const struct qn_call *call)                     \
    {                                                                                              \
        return qn_pair_loss_forward(emit, call, #name_ "_forward");                                \
    }                                                                                              \
    static qn_status gradient_a(struct qn_emit *emit, const struct qn_call *call)                  \
    {                                                                                              \
        return qn_pair_loss_gradient(emit, call, #name_ "_a", 0);                                  \
    }                                                                                              \
    static qn_status gradient_b(struct qn_emit *emit, const struct qn_call *call)                  \
    {                                                                                              \
        return qn_pair_loss_gradient(emit, call, #name_ "_b", 1);                                  \
    }                                                                                              \
    const struct qn_op qn_op_##name_ = {                                                           \
        .name = #name_,                                                                            \
        .n_in = 2,                                                                                 \
        .n_required = 2,                                                                           \
        .n_out = 1,                                                                                \
        .batch = {QN_BATCH_MAY, QN_BATCH_MAY},                                                     \
        .shape = qn_pair_loss_shape,                                                               \
        .groups = {{.name = "forward",                                                             \
                    .phase = QN_PHASE_TRAIN | QN_PHASE_EVAL,                                       \
                    .read = {{QN_IN(0)}, {QN_IN(1)}},                                              \
                    .write = {{QN_OUT(0), QN_IN(0)}},                                              \
                    .variant = {{"any", NULL, qn_pair_loss_forward_cost, forward}}},               \
                   {.name = "gradient of a",                                                       \
                    .phase = QN_PHASE_BACKWARD,                                                    \
                    .read = {{QN_IN(0)}, {QN_IN(1)}, {QN_DOUT(0)}},                                \
                    .write = {{QN_DIN(0), QN_DOUT(0)}},                                            \
                    .variant = {{"any", NULL, qn_pair_loss_a_cost, gradient_a}}},                  \
                   {.name = "gradient of b",                                                       \
                    .phase = QN_PHASE_BACKWARD,                                                    \
                    .read = {{QN_IN(0)}, {QN_IN(1)}, {QN_DOUT(0)}},                                \
                    .write = {{QN_DIN(1), QN_DOUT(0)}},                                            \
                    .variant = {{"any", NULL, qn_pair_loss_b_cost, gradient_b}}}}};                \
    qn_tensor qn_##name_(qn_graph *graph, qn_tensor a, qn_tensor b)                                \
    {                                                                                              \
        return qn_op_apply(graph, &qn_op_##name_, (const qn_tensor[]){a, b}, NULL);                \
    }

#endif
