/* SPDX-License-Identifier: MIT */
#include "ops/pair_loss.h"

#include "base/shape.h"
#include "ops/elementwise.h"

qn_status qn_pair_loss_shape(struct qn_shape_call *call)
{
    const struct qn_operand *a = &call->in[0], *b = &call->in[1];
    if (!qn_is_float(a) || !qn_is_float(b))
        return qn_shape_error(call, "both must be of a float type");
    if (!qn_shape_equal(&a->shape, &b->shape))
        return qn_shape_error(call, "the two must be of one shape");
    qn_shape_set(&call->out[0], QN_F32, a->shape.rank, a->shape.dim);
    return QN_OK;
}

static void cost_of(const struct qn_call *call, int group, struct qn_cost *cost)
{
    qn_launch_cost(call, group, 3, &call->in[0], cost);
}

void qn_pair_loss_forward_cost(const struct qn_call *call, struct qn_cost *cost)
{
    cost_of(call, 0, cost);
}

void qn_pair_loss_a_cost(const struct qn_call *call, struct qn_cost *cost)
{
    cost_of(call, 1, cost);
}

void qn_pair_loss_b_cost(const struct qn_call *call, struct qn_cost *cost)
{
    cost_of(call, 2, cost);
}

static qn_status launch_elements(struct qn_emit *emit, const struct qn_call *call,
                                 struct qn_launch *launch)
{
    const int64_t width = qn_vector_width(call->facts);
    launch->program = "pair_loss";
    launch->global[0] = qn_div_up(qn_operand_count(&call->in[0]), width);
    launch->local[0] = QN_ELEMENTWISE_LOCAL;
    qn_launch_option(launch, "QN_V", width);
    qn_launch_type(launch, "A", &call->in[0]);
    qn_launch_type(launch, "B", &call->in[1]);
    return qn_emit_launch(emit, launch);
}

qn_status qn_pair_loss_forward(struct qn_emit *emit, const struct qn_call *call, const char *kernel)
{
    struct qn_launch launch = {.kernel = kernel,
                               .args = {QN_BUF(&call->in[0]), QN_BUF(&call->in[1]),
                                        QN_BUF(&call->out[0]),
                                        QN_LONG(qn_operand_count(&call->in[0]))}};
    return launch_elements(emit, call, &launch);
}

qn_status qn_pair_loss_gradient(struct qn_emit *emit, const struct qn_call *call,
                                const char *kernel, int input)
{
    struct qn_launch launch = {.kernel = kernel,
                               .args = {QN_BUF(&call->in[0]), QN_BUF(&call->in[1]),
                                        QN_BUF(&call->dout[0]), QN_BUF(&call->din[input]),
                                        QN_LONG(qn_operand_count(&call->in[0])),
                                        QN_FLOAT(call->beta_in[input])}};
    qn_launch_type(&launch, "D", &call->din[input]);
    return launch_elements(emit, call, &launch);
}
