/* SPDX-License-Identifier: MIT */
#include "ops/elementwise.h"

#include "op/elementwise.h"

#include <quern/ops.h>

#include <math.h>

static qn_status shape(struct qn_shape_call *call)
{
    const struct qn_scale_attr *attr = call->attr;
    if (!isfinite(attr->factor))
        return qn_shape_error(call, "factor %g is not finite", (double)attr->factor);
    return qn_elementwise_shape(call);
}

static qn_status forward(struct qn_emit *emit, const struct qn_call *call)
{
    const struct qn_scale_attr *attr = call->attr;
    return qn_elementwise_scale(emit, call,
                                &(struct qn_scaling){&call->in[0], &call->out[0], attr->factor, 0});
}

static void gradient_cost(const struct qn_call *call, struct qn_cost *cost)
{
    *cost = qn_elementwise_cost(2, &call->dout[0], &call->din[0], NULL);
}

static qn_status gradient(struct qn_emit *emit, const struct qn_call *call)
{
    const struct qn_scale_attr *attr = call->attr;
    return qn_elementwise_scale(
        emit, call,
        &(struct qn_scaling){&call->dout[0], &call->din[0], attr->factor, call->beta_in[0]});
}

static bool link(const struct qn_shape_call *call, struct qn_chain_link *link)
{
    const struct qn_scale_attr *attr = call->attr;
    link->op = QN_CHAIN_SCALE;
    link->value = attr->factor;
    return true;
}

const struct qn_op qn_op_scale = {
    .name = "scale",
    .attr_size = sizeof(struct qn_scale_attr),
    .n_in = 1,
    .n_required = 1,
    .n_out = 1,
    .batch = {QN_BATCH_MAY},
    .link = link,
    .shape = shape,
    .groups =
        {
            {.name = "forward",
             .phase = QN_PHASE_TRAIN | QN_PHASE_EVAL,
             .read = {{.ref = QN_IN(0)}},
             .write = {{.ref = QN_OUT(0), .in_place = QN_IN(0)}},
             .variant = {{"any", NULL, qn_elementwise_forward_cost, forward}}},
            {.name = "input gradient",
             .phase = QN_PHASE_BACKWARD,
             .read = {{.ref = QN_DOUT(0)}},
             .write = {{.ref = QN_DIN(0), .in_place = QN_DOUT(0)}},
             .variant = {{"any", NULL, gradient_cost, gradient}}},
        },
};

qn_tensor qn_scale(qn_graph *graph, qn_tensor x, double factor)
{
    const struct qn_scale_attr attr = {(float)factor};
    return qn_op_apply(graph, &qn_op_scale, &x, &attr);
}
