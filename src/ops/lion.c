/* SPDX-License-Identifier: MIT
 *
 * Lion (Chen et al. 2023, arXiv:2302.06675): the step is the sign of a mixture of gradient and
 * momentum, sign(beta1 * m + (1 - beta1) * g), and weight decay is decoupled.
 */
#include "ops/common.h"
#include "ops/update.h"

static qn_status shape(struct qn_shape_call *call)
{
    return qn_update_shape(call, 1);
}

static void cost(const struct qn_call *call, struct qn_cost *result)
{
    qn_update_cost(call, 12, result);
}

static qn_status step(struct qn_emit *emit, const struct qn_call *call)
{
    const struct qn_optimizer_attr *attr = call->attr;
    struct qn_launch launch = {
        .program = "update",
        .kernel = "lion",
        .args = {QN_BUF(&call->in[0]), QN_BUF(&call->in[1]), QN_BUF(&call->in[2]),
                 QN_BUF(&call->control), QN_BUF(&call->state[0]), QN_BUF(&call->out[0]),
                 QN_FLOAT((float)attr->beta1), QN_FLOAT((float)attr->beta2),
                 QN_FLOAT((float)(1 - attr->beta1)), QN_FLOAT((float)(1 - attr->beta2))}};
    return qn_update_launch(emit, call, &call->in[2], &launch);
}

static const struct qn_optimizer_attr defaults = {.beta1 = 0.9, .beta2 = 0.99};

const struct qn_op qn_op_lion = {
    .name = "lion",
    .attr_size = sizeof(struct qn_optimizer_attr),
    .n_in = 3,
    .n_required = 3,
    .n_out = 1,
    .shape = shape,
    .optimizer = true,
    .defaults = &defaults,
    .state = {{"exp_avg"}},
    .groups = {{.name = "step",
                .phase = QN_PHASE_UPDATE,
                .read = {{QN_IN(0)}, {QN_IN(1)}, {QN_IN(2)}, {QN_STATE(0)}},
                .write = {{QN_OUT(0), QN_IN(0)}, {QN_STATE(0)}},
                .variant = QN_BOTH_SHAPES(qn_fits_row_group, cost, step)}}};
