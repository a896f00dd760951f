/* SPDX-License-Identifier: MIT
 *
 * What the elementwise operators share: shape rules, costs, and launches of cl_kernels/unary.cl,
 * binary.cl and scale.cl. The kernels are the same on every device, hence one variant, "any".
 */
#ifndef QN_OPS_ELEMENTWISE_H
#define QN_OPS_ELEMENTWISE_H

#include "ops/common.h"

enum { QN_ELEMENTWISE_LOCAL = 64 }; /* work-items of a work-group */

/* Output 0 has the shape and type of input 0, which must be of floating point. */
qn_status qn_elementwise_shape(struct qn_shape_call *call);
/* The same for two inputs of one shape; if their types differ the output has the storage type. */
qn_status qn_elementwise_shape2(struct qn_shape_call *call);

/* One launch over all of these operands, with `flops` operations an element of the first. NULL and
 * absent operands count nothing. */
struct qn_cost qn_elementwise_cost(double flops, const struct qn_operand *a,
                                   const struct qn_operand *b, const struct qn_operand *c);

/* y = f(x, parameter) */
struct qn_unary {
    const char *kernel;
    const struct qn_operand *x, *y;
    float parameter;
};
qn_status qn_elementwise_unary(struct qn_emit *emit, const struct qn_call *call,
                               const struct qn_unary *unary);

/* dx = beta * dx + f'(value) * dy, where value is the function's argument or result */
struct qn_unary_gradient {
    const char *kernel;
    const struct qn_operand *dy, *value, *dx;
    float parameter, beta;
};
qn_status qn_elementwise_gradient(struct qn_emit *emit, const struct qn_call *call,
                                  const struct qn_unary_gradient *gradient);

/* y = f(a, b), or beta * y + f(a, b) where the kernel can */
struct qn_binary {
    const char *kernel;
    const struct qn_operand *a, *b, *y;
    float beta;
};
qn_status qn_elementwise_binary(struct qn_emit *emit, const struct qn_call *call,
                                const struct qn_binary *binary);

/* y = beta * y + factor * x */
struct qn_scaling {
    const struct qn_operand *x, *y;
    float factor, beta;
};
qn_status qn_elementwise_scale(struct qn_emit *emit, const struct qn_call *call,
                               const struct qn_scaling *scaling);

/* Costs that several have: in 0 -> out 0, and dout 0 with in 0 or out 0 -> din 0. */
void qn_elementwise_forward_cost(const struct qn_call *call, struct qn_cost *cost);
void qn_elementwise_backward_cost(const struct qn_call *call, struct qn_cost *cost);

#endif
