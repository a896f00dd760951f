/* SPDX-License-Identifier: MIT
 *
 * What the operators of the update share (internal; bound by the planner): gradient_norm_partial,
 * gradient_norm, gradient_finite and the optimizers. No operator.
 *
 * Parameters lie in blocks: arrays of f32, f16 or bf16 with a table of i32, a row for each chunk
 * (struct qn_chunk); what lies between chunks is padding and is not touched.
 */
#ifndef QN_OPS_UPDATE_H
#define QN_OPS_UPDATE_H

#include "op/op.h"
#include "op/optimizer.h"
#include "ops/common.h"

/* Whether the operand is such a table; qn_no_table: the reason why not. */
bool qn_is_table(const struct qn_operand *operand);
qn_status qn_no_table(struct qn_shape_call *call);

/* The shape rule of an optimizer with inputs parameters, gradients and table: output 0 and so many
 * state arrays are like the parameters. qn_update_inputs: of any shape, and without states. */
qn_status qn_update_shape(struct qn_shape_call *call, int states);
qn_status qn_update_inputs(struct qn_shape_call *call);

/* The cost of group 0 over all parameters. */
void qn_update_cost(const struct qn_call *call, double flops_per_element, struct qn_cost *cost);

/* Launches one work-group per chunk of the table. Chunks begin at whole units of alignment in f32
 * (plan/lowering/blocks.c). */
qn_status qn_update_launch(struct qn_emit *emit, const struct qn_call *call,
                           const struct qn_operand *table, struct qn_launch *launch);

/* The shape rule of what looks at the norms of chunks, in 0, and its one work-group: the program
 * "gradient_norm", whose kernels take the norms, the control block, their number and the logarithms
 * of Adam's betas, and then what `launch` has further on. */
qn_status qn_update_norms_shape(struct qn_shape_call *call);
enum { QN_UPDATE_NORMS_ARGS = 5 };
qn_status qn_update_norms_launch(struct qn_emit *emit, const struct qn_call *call,
                                 struct qn_launch *launch);

/* What adam and adamw share: moments of the gradient and of its square; `decoupled`: weight decay
 * shrinks the parameter before the step, else it is added to the gradient. */
qn_status qn_update_adam_shape(struct qn_shape_call *call);
void qn_update_adam_cost(const struct qn_call *call, struct qn_cost *cost);
qn_status qn_update_adam(struct qn_emit *emit, const struct qn_call *call, bool decoupled);

/* All of the operator `name_`. */
#define QN_ADAM_OPERATOR(name_, decoupled_)                                                        \
    static qn_status step(struct qn_emit *emit, const struct qn_call *call)                        \
    {                                                                                              \
        return qn_update_adam(emit, call, (decoupled_));                                           \
    }                                                                                              \
    const struct qn_op qn_op_##name_ = {                                                           \
        .name = #name_,                                                                            \
        .attr_size = sizeof(struct qn_optimizer_attr),                                             \
        .n_in = 3,                                                                                 \
        .n_required = 3,                                                                           \
        .n_out = 1,                                                                                \
        .shape = qn_update_adam_shape,                                                             \
        .optimizer = true,                                                                         \
        .state = {{"exp_avg"}, {"exp_avg_sq"}},                                                    \
        .groups = {{.name = "step",                                                                \
                    .phase = QN_PHASE_UPDATE,                                                      \
                    .read = {{QN_IN(0)}, {QN_IN(1)}, {QN_IN(2)}, {QN_STATE(0)}, {QN_STATE(1)}},    \
                    .write = {{QN_OUT(0), QN_IN(0)}, {QN_STATE(0)}, {QN_STATE(1)}},                \
                    .variant = QN_BOTH_SHAPES(qn_fits_row_group, qn_update_adam_cost, step)}}}

#endif
