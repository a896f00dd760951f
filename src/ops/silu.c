/* SPDX-License-Identifier: MIT */
#include "ops/elementwise.h"

#include <quern/ops.h>

static qn_status forward(struct qn_emit *emit, const struct qn_call *call)
{
    return qn_elementwise_unary(
        emit, call, &(struct qn_unary){.kernel = "silu", .x = &call->in[0], .y = &call->out[0]});
}

static qn_status backward(struct qn_emit *emit, const struct qn_call *call)
{
    return qn_elementwise_gradient(emit, call,
                                   &(struct qn_unary_gradient){.kernel = "silu_gradient",
                                                               .dy = &call->dout[0],
                                                               .value = &call->in[0],
                                                               .dx = &call->din[0],
                                                               .beta = call->beta_in[0]});
}

const struct qn_op qn_op_silu = {
    .name = "silu",
    .n_in = 1,
    .n_required = 1,
    .n_out = 1,
    .shape = qn_elementwise_shape,
    .groups =
        {
            {.name = "forward",
             .phase = QN_PHASE_TRAIN | QN_PHASE_EVAL,
             .read = {{.ref = QN_IN(0)}},
             .write = {{.ref = QN_OUT(0), .in_place = QN_IN(0)}},
             .variant = {{"any", NULL, qn_elementwise_forward_cost, forward}}},
            {.name = "input gradient",
             .phase = QN_PHASE_BACKWARD,
             .read = {{.ref = QN_DOUT(0)}, {.ref = QN_IN(0)}},
             .write = {{.ref = QN_DIN(0), .in_place = QN_DOUT(0)}},
             .variant = {{"any", NULL, qn_elementwise_backward_cost, backward}}},
        },
};

qn_tensor qn_silu(qn_graph *graph, qn_tensor x)
{
    return qn_op_apply(graph, &qn_op_silu, &x, NULL);
}
