/* SPDX-License-Identifier: MIT */
#include "ops/elementwise.h"

#include "base/log.h"
#include "base/shape.h"
#include "ops/strip.h"

#include <quern/ops.h>

static qn_status shape(struct qn_shape_call *call)
{
    char x[96], bias[96];
    const struct qn_operand *in = call->in;
    if (in[0].shape.rank < 2 || !qn_is_row_of(&in[1], in[0].shape.dim[1]))
        return qn_shape_error(call, "wants x (b, c, ...) and bias (c), not %s and %s",
                              qn_shape_text(&in[0].shape, x, sizeof x),
                              qn_shape_text(&in[1].shape, bias, sizeof bias));
    return qn_elementwise_shape(call);
}

/* x (samples, channels, plane) */
struct sizes {
    int64_t samples, channels, plane;
};

static struct sizes sizes_of(const struct qn_operand *x)
{
    return (struct sizes){x->shape.dim[0], x->shape.dim[1],
                          qn_shape_span(&x->shape, 2, x->shape.rank)};
}

static qn_status forward(struct qn_emit *emit, const struct qn_call *call)
{
    struct sizes size = sizes_of(&call->in[0]);
    bool planes = size.plane > 1;
    int64_t width = qn_vector_of(call);
    int64_t rows = planes ? size.samples * size.channels : size.samples;
    int64_t n = planes ? size.plane : size.channels;
    struct qn_launch launch = {
        .program = "bias",
        .kernel = planes ? "bias_planes" : "bias_rows",
        .args = {QN_BUF(&call->in[0]), QN_BUF(&call->in[1]), QN_BUF(&call->out[0]), QN_LONG(rows),
                 QN_LONG(n)},
        .global = {qn_div_up(n, width), qn_row_range(rows)},
        .local = {QN_ELEMENTWISE_LOCAL, 1},
    };
    if (planes)
        launch.args[5] = (struct qn_arg)QN_LONG(size.channels);
    qn_launch_type(&launch, "X", &call->in[0]);
    qn_launch_type(&launch, "BIAS", &call->in[1]);
    qn_launch_type(&launch, "Y", &call->out[0]);
    qn_launch_vectors(&launch, call, n);
    return qn_emit_launch(emit, &launch);
}

static void input_cost(const struct qn_call *call, struct qn_cost *cost)
{
    *cost = qn_elementwise_cost(1, &call->dout[0], &call->din[0], NULL);
}

static qn_status input_gradient(struct qn_emit *emit, const struct qn_call *call)
{
    return qn_elementwise_scale(
        emit, call, &(struct qn_scaling){&call->dout[0], &call->din[0], 1, call->beta_in[0]});
}

/* Rows are summed in two steps, the results of the first in scratch. */
static void bias_cost(const struct qn_call *call, struct qn_cost *cost)
{
    struct sizes size = sizes_of(&call->dout[0]);
    *cost = qn_elementwise_cost(1, &call->dout[0], &call->din[1], NULL);
    if (size.plane == 1) {
        cost->scratch = qn_strip_blocks(size.samples) * size.channels * (int64_t)sizeof(float);
        cost->launches = 2;
    }
}

static qn_status rows_gradient(struct qn_emit *emit, const struct qn_call *call)
{
    struct sizes size = sizes_of(&call->dout[0]);
    struct qn_operand rows = call->dout[0], part = call->scratch;
    qn_shape_set(&rows, rows.dtype, 2, (const int64_t[]){size.samples, size.channels});
    qn_shape_set(&part, QN_F32, 2, (const int64_t[]){qn_strip_blocks(size.samples), size.channels});
    QN_TRY(qn_strip_sum_blocks(emit, call, &rows, &part));
    return qn_strip_sum(emit, call, &part, &call->din[1], call->beta_in[1]);
}

static qn_status planes_gradient(struct qn_emit *emit, const struct qn_call *call)
{
    const int64_t group = call->cpu ? 1 : QN_ROW_GROUP;
    struct sizes size = sizes_of(&call->dout[0]);
    struct qn_launch launch = {
        .program = "bias",
        .kernel = "bias_planes_gradient",
        .args = {QN_BUF(&call->dout[0]), QN_BUF(&call->din[1]), QN_LONG(size.plane),
                 QN_LONG(size.channels), QN_LONG(size.samples), QN_FLOAT(call->beta_in[1])},
        .global = {size.channels * group},
        .local = {group},
    };
    qn_launch_option(&launch, "QN_GRADIENT", 1);
    qn_launch_option(&launch, "QN_WG", group);
    qn_launch_type(&launch, "DY", &call->dout[0]);
    qn_launch_type(&launch, "DB", &call->din[1]);
    qn_launch_vectors(&launch, call, size.plane);
    return qn_emit_launch(emit, &launch);
}

static qn_status bias_gradient(struct qn_emit *emit, const struct qn_call *call)
{
    return sizes_of(&call->dout[0]).plane > 1 ? planes_gradient(emit, call)
                                              : rows_gradient(emit, call);
}

/* The bias of a chain lies along the last dimension. */
static bool link(const struct qn_shape_call *call, struct qn_chain_link *link)
{
    link->op = QN_CHAIN_ADD;
    return call->in[0].shape.rank == 2;
}

const struct qn_op qn_op_bias = {
    .name = "bias",
    .n_in = 2,
    .n_required = 2,
    .n_out = 1,
    .batch = {QN_BATCH_MAY},
    .link = link,
    .shape = shape,
    .groups =
        {
            {.name = "forward",
             .phase = QN_PHASE_TRAIN | QN_PHASE_EVAL,
             .read = {{.ref = QN_IN(0)}, {.ref = QN_IN(1)}},
             .write = {{.ref = QN_OUT(0), .in_place = QN_IN(0)}},
             .variant = {{"any", NULL, qn_elementwise_forward_cost, forward}}},
            {.name = "input gradient",
             .phase = QN_PHASE_BACKWARD,
             .read = {{.ref = QN_DOUT(0)}},
             .write = {{.ref = QN_DIN(0), .in_place = QN_DOUT(0)}},
             .variant = {{"any", NULL, input_cost, input_gradient}}},
            {.name = "bias gradient",
             .phase = QN_PHASE_BACKWARD,
             .read = {{.ref = QN_DOUT(0)}},
             .write = {{.ref = QN_DIN(1)}},
             .variant = QN_BOTH_SHAPES(qn_fits_row_group, bias_cost, bias_gradient)},
        },
};

qn_tensor qn_bias(qn_graph *graph, qn_tensor x, qn_tensor bias)
{
    return qn_op_apply(graph, &qn_op_bias, (const qn_tensor[]){x, bias}, NULL);
}
