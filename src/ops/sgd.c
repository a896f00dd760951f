/* SPDX-License-Identifier: MIT
 *
 * Stochastic gradient descent as PyTorch has it, without dampening: momentum, Nesterov's momentum,
 * weight decay added to the gradient. Without momentum there is no state.
 */
#include "ops/common.h"
#include "ops/update.h"

static qn_status shape(struct qn_shape_call *call)
{
    const struct qn_optimizer_attr *attr = call->attr;
    return qn_update_shape(call, attr->momentum != 0);
}

static void cost(const struct qn_call *call, struct qn_cost *result)
{
    qn_update_cost(call, 7, result);
}

static qn_status step(struct qn_emit *emit, const struct qn_call *call)
{
    const struct qn_optimizer_attr *attr = call->attr;
    struct qn_launch launch = {.program = "update",
                               .kernel = "sgd",
                               .args = {QN_BUF(&call->in[0]), QN_BUF(&call->in[1]),
                                        QN_BUF(&call->in[2]), QN_BUF(&call->control),
                                        QN_BUF(&call->state[0]), QN_BUF(&call->out[0]),
                                        QN_FLOAT((float)attr->momentum), QN_INT(attr->nesterov)}};
    return qn_update_launch(emit, call, &call->in[2], &launch);
}

const struct qn_op qn_op_sgd = {
    .name = "sgd",
    .attr_size = sizeof(struct qn_optimizer_attr),
    .n_in = 3,
    .n_required = 3,
    .n_out = 1,
    .shape = shape,
    .optimizer = true,
    .state = {{"momentum_buffer"}},
    .groups = {{.name = "step",
                .phase = QN_PHASE_UPDATE,
                .read = {{QN_IN(0)}, {QN_IN(1)}, {QN_IN(2)}, {QN_STATE(0)}},
                .write = {{QN_OUT(0), QN_IN(0)}, {QN_STATE(0)}},
                .variant = QN_BOTH_SHAPES(qn_fits_row_group, cost, step)}}};
