/* SPDX-License-Identifier: MIT
 *
 * The squared difference of two tensors, element by element, in f32.
 */
#include "base/shape.h"
#include "ops/elementwise.h"

#include <quern/ops.h>

static qn_status shape(struct qn_shape_call *call)
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

static void forward_cost(const struct qn_call *call, struct qn_cost *cost)
{
    cost_of(call, 0, cost);
}

static void gradient_a_cost(const struct qn_call *call, struct qn_cost *cost)
{
    cost_of(call, 1, cost);
}

static void gradient_b_cost(const struct qn_call *call, struct qn_cost *cost)
{
    cost_of(call, 2, cost);
}

static qn_status launch_elements(struct qn_emit *emit, const struct qn_call *call,
                                 struct qn_launch *launch)
{
    const int64_t width = qn_vector_width(call->facts);
    launch->program = "squared_error";
    launch->global[0] = qn_div_up(qn_operand_count(&call->in[0]), width);
    launch->local[0] = QN_ELEMENTWISE_LOCAL;
    qn_launch_option(launch, "QN_V", width);
    qn_launch_type(launch, "A", &call->in[0]);
    qn_launch_type(launch, "B", &call->in[1]);
    return qn_emit_launch(emit, launch);
}

static qn_status forward(struct qn_emit *emit, const struct qn_call *call)
{
    struct qn_launch launch = {.kernel = "forward",
                               .args = {QN_BUF(&call->in[0]), QN_BUF(&call->in[1]),
                                        QN_BUF(&call->out[0]),
                                        QN_LONG(qn_operand_count(&call->in[0]))}};
    return launch_elements(emit, call, &launch);
}

static qn_status gradient(struct qn_emit *emit, const struct qn_call *call, int input)
{
    struct qn_launch launch = {
        .kernel = "backward",
        .args = {QN_BUF(&call->in[0]), QN_BUF(&call->in[1]), QN_BUF(&call->dout[0]),
                 QN_BUF(&call->din[input]), QN_LONG(qn_operand_count(&call->in[0])),
                 QN_FLOAT(input == 0 ? 2.0f : -2.0f), QN_FLOAT(call->beta_in[input])}};
    qn_launch_type(&launch, "D", &call->din[input]);
    return launch_elements(emit, call, &launch);
}

static qn_status gradient_a(struct qn_emit *emit, const struct qn_call *call)
{
    return gradient(emit, call, 0);
}

static qn_status gradient_b(struct qn_emit *emit, const struct qn_call *call)
{
    return gradient(emit, call, 1);
}

const struct qn_op qn_op_squared_error = {
    .name = "squared_error",
    .n_in = 2,
    .n_required = 2,
    .n_out = 1,
    .batch = {QN_BATCH_MAY, QN_BATCH_MAY},
    .shape = shape,
    .groups = {{.name = "forward",
                .phase = QN_PHASE_TRAIN | QN_PHASE_EVAL,
                .read = {{QN_IN(0)}, {QN_IN(1)}},
                .write = {{QN_OUT(0), QN_IN(0)}},
                .variant = {{"any", NULL, forward_cost, forward}}},
               {.name = "gradient of a",
                .phase = QN_PHASE_BACKWARD,
                .read = {{QN_IN(0)}, {QN_IN(1)}, {QN_DOUT(0)}},
                .write = {{QN_DIN(0), QN_DOUT(0)}},
                .variant = {{"any", NULL, gradient_a_cost, gradient_a}}},
               {.name = "gradient of b",
                .phase = QN_PHASE_BACKWARD,
                .read = {{QN_IN(0)}, {QN_IN(1)}, {QN_DOUT(0)}},
                .write = {{QN_DIN(1), QN_DOUT(0)}},
                .variant = {{"any", NULL, gradient_b_cost, gradient_b}}}}};

qn_tensor qn_squared_error(qn_graph *graph, qn_tensor a, qn_tensor b)
{
    return qn_op_apply(graph, &qn_op_squared_error, (const qn_tensor[]){a, b}, NULL);
}
