/* SPDX-License-Identifier: MIT
 *
 * What the operators of the update share (internal; bound by the planner): gradient_norm_partial,
 * gradient_norm, gradient_finite, sgd, adam, adamw. No operator.
 *
 * Parameters lie in blocks: f32 arrays with a table (chunks, 4) of i32. Row k is {first element,
 * elements (at most 4096), flags (bit 0: weight decay applies), 0} of chunk k; what lies between
 * chunks is padding and is not touched.
 */
#ifndef QN_OPS_UPDATE_H
#define QN_OPS_UPDATE_H

#include "op/op.h"
#include "op/optimizer.h"

bool qn_is_table(const struct qn_operand *operand);

/* The shape rule of an optimizer with inputs parameters, gradients and table: output 0 and so many
 * state arrays are like the parameters. */
qn_status qn_update_shape(struct qn_shape_call *call, int states);

/* The cost of group 0 over all parameters. */
void qn_update_cost(const struct qn_call *call, double flops_per_element, struct qn_cost *cost);

/* Launches one work-group per chunk of the table. */
qn_status qn_update_launch(struct qn_emit *emit, const struct qn_call *call, bool cpu,
                           const struct qn_operand *table, struct qn_launch *launch);

/* The shape rule of what looks at the norms of chunks, in 0, and its one work-group: the program
 * "gradient_norm", whose kernels take the norms, the control block, their number and the logarithms
 * of Adam's betas, and then what `launch` has further on. */
qn_status qn_update_norms_shape(struct qn_shape_call *call);
enum { QN_UPDATE_NORMS_ARGS = 5 };
qn_status qn_update_norms_launch(struct qn_emit *emit, const struct qn_call *call, bool cpu,
                                 struct qn_launch *launch);

/* Adam; `decoupled`: AdamW (Loshchilov and Hutter 2019). */
qn_status qn_update_adam(struct qn_emit *emit, const struct qn_call *call, bool cpu,
                         bool decoupled);

#endif
