/* SPDX-License-Identifier: MIT */
#include "ops/elementwise.h"

#include "op/elementwise.h"

#include <quern/ops.h>

/* A positive slope keeps the sign, so that the result tells the side of 0 as the argument does. */
static qn_status shape(struct qn_shape_call *call)
{
    const struct qn_leaky_relu_attr *attr = call->attr;
    if (!(attr->slope > 0 && attr->slope <= 1))
        return qn_shape_error(call, "slope %g is not in (0, 1]", (double)attr->slope);
    return qn_elementwise_shape(call);
}

static qn_status forward(struct qn_emit *emit, const struct qn_call *call)
{
    const struct qn_leaky_relu_attr *attr = call->attr;
    return qn_elementwise_unary(emit, call,
                                &(struct qn_unary){.kernel = "leaky_relu_forward",
                                                   .x = &call->in[0],
                                                   .y = &call->out[0],
                                                   .parameter = attr->slope});
}

static qn_status backward(struct qn_emit *emit, const struct qn_call *call)
{
    const struct qn_leaky_relu_attr *attr = call->attr;
    return qn_elementwise_gradient(emit, call,
                                   &(struct qn_unary_gradient){.kernel = "leaky_relu_gradient",
                                                               .dy = &call->dout[0],
                                                               .value = qn_present(&call->in[0])
                                                                            ? &call->in[0]
                                                                            : &call->out[0],
                                                               .dx = &call->din[0],
                                                               .parameter = attr->slope,
                                                               .beta = call->beta_in[0]});
}

static bool link(const struct qn_shape_call *call, struct qn_chain_link *link)
{
    const struct qn_leaky_relu_attr *attr = call->attr;
    link->op = QN_CHAIN_LEAKY_RELU;
    link->value = attr->slope;
    return true;
}

const struct qn_op qn_op_leaky_relu = {
    .name = "leaky_relu",
    .attr_size = sizeof(struct qn_leaky_relu_attr),
    .n_in = 1,
    .n_required = 1,
    .n_out = 1,
    .batch = {QN_BATCH_MAY},
    .link = link,
    .shape = shape,
    .groups = QN_UNARY_GROUPS(forward, backward, {.ref = QN_IN(0), .or_ = QN_OUT(0)}),
};

qn_tensor qn_leaky_relu(qn_graph *graph, qn_tensor x, double slope)
{
    const struct qn_leaky_relu_attr attr = {(float)slope};
    return qn_op_apply(graph, &qn_op_leaky_relu, &x, &attr);
}
