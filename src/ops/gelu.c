/* SPDX-License-Identifier: MIT */
#include "ops/elementwise.h"

#include "op/elementwise.h"

#include <quern/ops.h>

static bool is_exact(const struct qn_call *call)
{
    const struct qn_gelu_attr *attr = call->attr;
    return attr->form == QN_GELU_EXACT;
}

static qn_status shape(struct qn_shape_call *call)
{
    const struct qn_gelu_attr *attr = call->attr;
    if (attr->form != QN_GELU_EXACT && attr->form != QN_GELU_TANH)
        return qn_shape_error(call, "form %d is neither exact nor tanh", attr->form);
    return qn_elementwise_shape(call);
}

static qn_status forward(struct qn_emit *emit, const struct qn_call *call)
{
    return qn_elementwise_unary(
        emit, call,
        &(struct qn_unary){.kernel = is_exact(call) ? "gelu_forward" : "gelu_tanh_forward",
                           .x = &call->in[0],
                           .y = &call->out[0]});
}

static qn_status backward(struct qn_emit *emit, const struct qn_call *call)
{
    return qn_elementwise_gradient(emit, call,
                                   &(struct qn_unary_gradient){.kernel = is_exact(call)
                                                                             ? "gelu_gradient"
                                                                             : "gelu_tanh_gradient",
                                                               .dy = &call->dout[0],
                                                               .value = &call->in[0],
                                                               .dx = &call->din[0],
                                                               .beta = call->beta_in[0]});
}

static bool link(const struct qn_shape_call *call, struct qn_chain_link *link)
{
    const struct qn_gelu_attr *attr = call->attr;
    link->op = attr->form == QN_GELU_EXACT ? QN_CHAIN_GELU : QN_CHAIN_GELU_TANH;
    return true;
}

const struct qn_op qn_op_gelu = {
    .name = "gelu",
    .attr_size = sizeof(struct qn_gelu_attr),
    .n_in = 1,
    .n_required = 1,
    .n_out = 1,
    .batch = {QN_BATCH_MAY},
    .link = link,
    .shape = shape,
    .groups = QN_UNARY_GROUPS(forward, backward, {.ref = QN_IN(0)}),
};

qn_tensor qn_gelu(qn_graph *graph, qn_tensor x, qn_gelu_form form)
{
    const struct qn_gelu_attr attr = {(int)form};
    return qn_op_apply(graph, &qn_op_gelu, &x, &attr);
}
