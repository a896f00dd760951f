/* SPDX-License-Identifier: MIT */
#include "ops/elementwise.h"

#include "base/shape.h"
#include "op/elementwise.h"

#include <quern/ops.h>

static qn_status shape(struct qn_shape_call *call)
{
    const struct qn_dropout_attr *attr = call->attr;
    if (!(attr->rate >= 0 && attr->rate < 1))
        return qn_shape_error(call, "rate %g is not in [0, 1)", (double)attr->rate);
    if (call->in[0].shape.rank < 1)
        return qn_shape_error(call, "wants samples along dimension 0, not a scalar");
    return qn_elementwise_shape(call);
}

static void cost(const struct qn_operand *x, const struct qn_operand *y, struct qn_cost *result)
{
    *result = qn_elementwise_cost(20, x, y, NULL);
    result->bytes += sizeof(uint32_t) * 4;
}

static qn_status launch(struct qn_emit *emit, const struct qn_call *call,
                        const struct qn_operand *x, const struct qn_operand *y, float beta)
{
    const struct qn_dropout_attr *attr = call->attr;
    int64_t rows = x->shape.dim[0], count = qn_shape_span(&x->shape, 1, x->shape.rank);
    struct qn_launch l = {
        .program = "dropout",
        .kernel = "dropout",
        .args = {QN_BUF(x), QN_BUF(y), QN_BUF(&call->control), QN_LONG(rows), QN_LONG(count),
                 QN_INT(qn_rows_per_sample(x, call->batch)), QN_INT(call->node),
                 QN_FLOAT(attr->rate), QN_FLOAT(1 / (1 - attr->rate)), QN_FLOAT(beta)},
        .global = {qn_div_up(count, qn_vector_of(call)), qn_row_range(rows)},
        .local = {QN_ELEMENTWISE_LOCAL, 1},
    };
    qn_launch_type(&l, "X", x);
    qn_launch_type(&l, "Y", y);
    qn_launch_vectors(&l, call, count);
    return qn_emit_launch(emit, &l);
}

static void forward_cost(const struct qn_call *call, struct qn_cost *result)
{
    cost(&call->in[0], &call->out[0], result);
}

static qn_status forward(struct qn_emit *emit, const struct qn_call *call)
{
    return launch(emit, call, &call->in[0], &call->out[0], 0);
}

static qn_status copy(struct qn_emit *emit, const struct qn_call *call)
{
    return qn_elementwise_scale(emit, call,
                                &(struct qn_scaling){&call->in[0], &call->out[0], 1, 0});
}

static void backward_cost(const struct qn_call *call, struct qn_cost *result)
{
    cost(&call->dout[0], &call->din[0], result);
}

static qn_status backward(struct qn_emit *emit, const struct qn_call *call)
{
    return launch(emit, call, &call->dout[0], &call->din[0], call->beta_in[0]);
}

/* The backward pass draws the mask again: nothing is kept. */
const struct qn_op qn_op_dropout = {
    .name = "dropout",
    .attr_size = sizeof(struct qn_dropout_attr),
    .n_in = 1,
    .n_required = 1,
    .n_out = 1,
    .batch = {QN_BATCH_MUST},
    .shape = shape,
    .groups =
        {
            {.name = "forward",
             .phase = QN_PHASE_TRAIN,
             .read = {{.ref = QN_IN(0)}},
             .write = {{.ref = QN_OUT(0), .in_place = QN_IN(0)}},
             .variant = {{"any", NULL, forward_cost, forward}}},
            {.name = "evaluation",
             .phase = QN_PHASE_EVAL,
             .read = {{.ref = QN_IN(0)}},
             .write = {{.ref = QN_OUT(0), .in_place = QN_IN(0)}},
             .variant = {{"any", NULL, qn_elementwise_forward_cost, copy}}},
            {.name = "input gradient",
             .phase = QN_PHASE_BACKWARD,
             .read = {{.ref = QN_DOUT(0)}},
             .write = {{.ref = QN_DIN(0), .in_place = QN_DOUT(0)}},
             .variant = {{"any", NULL, backward_cost, backward}}},
        },
};

qn_tensor qn_dropout(qn_graph *graph, qn_tensor x, double rate)
{
    const struct qn_dropout_attr attr = {(float)rate};
    return qn_op_apply(graph, &qn_op_dropout, &x, &attr);
}
