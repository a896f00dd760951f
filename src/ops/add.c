/* SPDX-License-Identifier: MIT */
#include "ops/elementwise.h"

#include <quern/ops.h>

static void forward_cost(const struct qn_call *call, struct qn_cost *cost)
{
    *cost = qn_elementwise_cost(1, &call->in[0], &call->in[1], &call->out[0]);
}

static qn_status forward(struct qn_emit *emit, const struct qn_call *call)
{
    return qn_elementwise_binary(
        emit, call, &(struct qn_binary){"add", &call->in[0], &call->in[1], &call->out[0], 0});
}

static void gradient_cost(const struct qn_call *call, struct qn_cost *cost, int input)
{
    *cost = qn_elementwise_cost(1, &call->dout[0], &call->din[input], NULL);
}

static qn_status gradient(struct qn_emit *emit, const struct qn_call *call, int input)
{
    return qn_elementwise_scale(
        emit, call,
        &(struct qn_scaling){&call->dout[0], &call->din[input], 1, call->beta_in[input]});
}

static void cost_a(const struct qn_call *call, struct qn_cost *cost)
{
    gradient_cost(call, cost, 0);
}

static void cost_b(const struct qn_call *call, struct qn_cost *cost)
{
    gradient_cost(call, cost, 1);
}

static qn_status gradient_a(struct qn_emit *emit, const struct qn_call *call)
{
    return gradient(emit, call, 0);
}

static qn_status gradient_b(struct qn_emit *emit, const struct qn_call *call)
{
    return gradient(emit, call, 1);
}

static bool link(const struct qn_shape_call *call, struct qn_chain_link *link)
{
    (void)call;
    link->op = QN_CHAIN_ADD;
    return true;
}

const struct qn_op qn_op_add = {
    .name = "add",
    .n_in = 2,
    .n_required = 2,
    .n_out = 1,
    .batch = {QN_BATCH_MAY, QN_BATCH_MAY},
    .link = link,
    .shape = qn_elementwise_shape2,
    .groups =
        {
            {.name = "forward",
             .phase = QN_PHASE_TRAIN | QN_PHASE_EVAL,
             .read = {{.ref = QN_IN(0)}, {.ref = QN_IN(1)}},
             .write = {{.ref = QN_OUT(0), .in_place = QN_IN(0)}},
             .variant = {{"any", NULL, forward_cost, forward}}},
            {.name = "gradient of a",
             .phase = QN_PHASE_BACKWARD,
             .read = {{.ref = QN_DOUT(0)}},
             .write = {{.ref = QN_DIN(0), .in_place = QN_DOUT(0)}},
             .variant = {{"any", NULL, cost_a, gradient_a}}},
            {.name = "gradient of b",
             .phase = QN_PHASE_BACKWARD,
             .read = {{.ref = QN_DOUT(0)}},
             .write = {{.ref = QN_DIN(1), .in_place = QN_DOUT(0)}},
             .variant = {{"any", NULL, cost_b, gradient_b}}},
        },
};

qn_tensor qn_add(qn_graph *graph, qn_tensor a, qn_tensor b)
{
    return qn_op_apply(graph, &qn_op_add, (const qn_tensor[]){a, b}, NULL);
}
