/* SPDX-License-Identifier: MIT
 *
 * What the elementwise operators share: shape rules, costs, and launches of cl_kernels/unary.cl,
 * binary.cl and scale.cl. The kernels are the same on every device, hence one variant, "any".
 */
#ifndef QN_OPS_ELEMENTWISE_H
#define QN_OPS_ELEMENTWISE_H

#include "op/chain.h"
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

/* Costs that several have: in 0 and, where there is one, in 1 -> out 0; dout 0 with in 0 or out 0
 * -> din 0. */
void qn_elementwise_forward_cost(const struct qn_call *call, struct qn_cost *cost);
void qn_elementwise_backward_cost(const struct qn_call *call, struct qn_cost *cost);

/* The groups of y = f(x): `forward` and `backward` launch them, and the gradient reads dy and the
 * struct qn_read that comes last. */
/* clang-format off */
#define QN_UNARY_GROUPS(forward, backward, ...)                                                    \
    {{.name = "forward",                                                                           \
      .phase = QN_PHASE_TRAIN | QN_PHASE_EVAL,                                                     \
      .read = {{.ref = QN_IN(0)}},                                                                 \
      .write = {{.ref = QN_OUT(0), .in_place = QN_IN(0)}},                                         \
      .variant = {{"any", NULL, qn_elementwise_forward_cost, forward}}},                           \
     {.name = "input gradient",                                                                    \
      .phase = QN_PHASE_BACKWARD,                                                                  \
      .read = {{.ref = QN_DOUT(0)}, __VA_ARGS__},                                                  \
      .write = {{.ref = QN_DIN(0), .in_place = QN_DOUT(0)}},                                       \
      .variant = {{"any", NULL, qn_elementwise_backward_cost, backward}}}}
/* clang-format on */

/* All of the operator `name` without attributes: kernels NAME_forward and NAME_gradient of
 * unary.cl, and qn_NAME. `step` is its enum qn_chain_op, `value` the operand that the read names.
 */
#define QN_UNARY_OPERATOR(name_, step_, value_, ...)                                               \
    static bool link(const struct qn_shape_call *call, struct qn_chain_link *step)                 \
    {                                                                                              \
        (void)call;                                                                                \
        step->op = (step_);                                                                        \
        return true;                                                                               \
    }                                                                                              \
    static qn_status forward(struct qn_emit *emit, const struct qn_call *call)                     \
    {                                                                                              \
        return qn_elementwise_unary(emit, call,                                                    \
                                    &(struct qn_unary){.kernel = #name_ "_forward",                \
                                                       .x = &call->in[0],                          \
                                                       .y = &call->out[0]});                       \
    }                                                                                              \
    static qn_status backward(struct qn_emit *emit, const struct qn_call *call)                    \
    {                                                                                              \
        return qn_elementwise_gradient(emit, call,                                                 \
                                       &(struct qn_unary_gradient){.kernel = #name_ "_gradient",   \
                                                                   .dy = &call->dout[0],           \
                                                                   .value = (value_),              \
                                                                   .dx = &call->din[0],            \
                                                                   .beta = call->beta_in[0]});     \
    }                                                                                              \
    const struct qn_op qn_op_##name_ = {.name = #name_,                                            \
                                        .n_in = 1,                                                 \
                                        .n_required = 1,                                           \
                                        .n_out = 1,                                                \
                                        .batch = {QN_BATCH_MAY},                                   \
                                        .shape = qn_elementwise_shape,                             \
                                        .link = link,                                              \
                                        .groups =                                                  \
                                            QN_UNARY_GROUPS(forward, backward, __VA_ARGS__)};      \
    qn_tensor qn_##name_(qn_graph *graph, qn_tensor x)                                             \
    {                                                                                              \
        return qn_op_apply(graph, &qn_op_##name_, &x, NULL);                                       \
    }

/* All of the operator `name` of two tensors of one shape: a kernel of binary.cl with that name, and
 * qn_NAME. `step` is its enum qn_chain_op; `gradient_cost` and `gradient` are functions for the
 * gradient of one input, which reads dy and `with_a`, or `with_b`: an input, or {0}. */
#define QN_BINARY_OPERATOR(name_, step_, with_a_, with_b_)                                         \
    static bool link(const struct qn_shape_call *call, struct qn_chain_link *step)                 \
    {                                                                                              \
        (void)call;                                                                                \
        step->op = (step_);                                                                        \
        return true;                                                                               \
    }                                                                                              \
    static qn_status forward(struct qn_emit *emit, const struct qn_call *call)                     \
    {                                                                                              \
        return qn_elementwise_binary(                                                              \
            emit, call,                                                                            \
            &(struct qn_binary){#name_, &call->in[0], &call->in[1], &call->out[0], 0});            \
    }                                                                                              \
    static void cost_a(const struct qn_call *call, struct qn_cost *cost)                           \
    {                                                                                              \
        gradient_cost(call, 0, cost);                                                              \
    }                                                                                              \
    static void cost_b(const struct qn_call *call, struct qn_cost *cost)                           \
    {                                                                                              \
        gradient_cost(call, 1, cost);                                                              \
    }                                                                                              \
    static qn_status gradient_a(struct qn_emit *emit, const struct qn_call *call)                  \
    {                                                                                              \
        return gradient(emit, call, 0);                                                            \
    }                                                                                              \
    static qn_status gradient_b(struct qn_emit *emit, const struct qn_call *call)                  \
    {                                                                                              \
        return gradient(emit, call, 1);                                                            \
    }                                                                                              \
    const struct qn_op qn_op_##name_ = {                                                           \
        .name = #name_,                                                                            \
        .n_in = 2,                                                                                 \
        .n_required = 2,                                                                           \
        .n_out = 1,                                                                                \
        .batch = {QN_BATCH_MAY, QN_BATCH_MAY},                                                     \
        .link = link,                                                                              \
        .shape = qn_elementwise_shape2,                                                            \
        .groups = {{.name = "forward",                                                             \
                    .phase = QN_PHASE_TRAIN | QN_PHASE_EVAL,                                       \
                    .read = {{.ref = QN_IN(0)}, {.ref = QN_IN(1)}},                                \
                    .write = {{.ref = QN_OUT(0), .in_place = QN_IN(0)}},                           \
                    .variant = {{"any", NULL, qn_elementwise_forward_cost, forward}}},             \
                   {.name = "gradient of a",                                                       \
                    .phase = QN_PHASE_BACKWARD,                                                    \
                    .read = {{.ref = QN_DOUT(0)}, {.ref = with_a_}},                               \
                    .write = {{.ref = QN_DIN(0), .in_place = QN_DOUT(0)}},                         \
                    .variant = {{"any", NULL, cost_a, gradient_a}}},                               \
                   {.name = "gradient of b",                                                       \
                    .phase = QN_PHASE_BACKWARD,                                                    \
                    .read = {{.ref = QN_DOUT(0)}, {.ref = with_b_}},                               \
                    .write = {{.ref = QN_DIN(1), .in_place = QN_DOUT(0)}},                         \
                    .variant = {{"any", NULL, cost_b, gradient_b}}}}};                             \
    qn_tensor qn_##name_(qn_graph *graph, qn_tensor a, qn_tensor b)                                \
    {                                                                                              \
        return qn_op_apply(graph, &qn_op_##name_, (const qn_tensor[]){a, b}, NULL);                \
    }

#endif
