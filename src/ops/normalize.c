/* SPDX-License-Identifier: MIT */
#include "ops/elementwise.h"

#include "base/shape.h"
#include "op/elementwise.h"

#include <quern/ops.h>

#include <math.h>
#include <stdlib.h>

static bool is_vector(const struct qn_operand *operand, int64_t count)
{
    return operand->dtype == QN_F32 && operand->shape.rank == 1 && operand->shape.dim[0] == count;
}

static qn_status shape(struct qn_shape_call *call)
{
    char text[96];
    const struct qn_normalize_attr *attr = call->attr;
    const struct qn_operand *in = call->in;
    if ((in[0].dtype != QN_U8 && in[0].dtype != QN_F32) || in[0].shape.rank != 4)
        return qn_shape_error(call, "wants images u8 or f32 (b, c, h, w), not %s %s",
                              qn_dtype_name(in[0].dtype),
                              qn_shape_text(&in[0].shape, text, sizeof text));
    if (!attr->usable)
        return qn_shape_error(call, "a mean is not finite or a deviation not above 0");
    if (!is_vector(&in[1], in[0].shape.dim[1]) || !is_vector(&in[2], in[0].shape.dim[1]))
        return qn_shape_error(call, "wants one f32 mean and deviation a channel");
    qn_shape_set(&call->out[0], call->storage, 4, in[0].shape.dim);
    return QN_OK;
}

static void cost(const struct qn_call *call, struct qn_cost *result)
{
    *result = qn_elementwise_cost(3, &call->in[0], &call->in[1], &call->out[0]);
    result->bytes += (double)qn_operand_bytes(&call->in[2]);
}

static qn_status forward(struct qn_emit *emit, const struct qn_call *call)
{
    const struct qn_shape *images = &call->in[0].shape;
    int64_t rows = qn_shape_span(images, 0, 2), plane = qn_shape_span(images, 2, 4);
    int64_t width = qn_vector_width(call->facts);
    struct qn_launch launch = {
        .program = "normalize",
        .kernel = "normalize_images",
        .args = {QN_BUF(&call->in[0]), QN_BUF(&call->in[1]), QN_BUF(&call->in[2]),
                 QN_BUF(&call->out[0]), QN_LONG(rows), QN_LONG(plane), QN_LONG(images->dim[1])},
        .global = {qn_div_up(plane, width), qn_row_range(rows)},
        .local = {QN_ELEMENTWISE_LOCAL, 1},
    };
    qn_launch_type(&launch, "X", &call->in[0]);
    qn_launch_type(&launch, "MEAN", &call->in[1]);
    qn_launch_type(&launch, "DEVIATION", &call->in[2]);
    qn_launch_type(&launch, "Y", &call->out[0]);
    qn_launch_option(&launch, "QN_V", width);
    qn_launch_option(&launch, "QN_WHITE", call->in[0].dtype == QN_U8 ? 255 : 1);
    return qn_emit_launch(emit, &launch);
}

const struct qn_op qn_op_normalize = {
    .name = "normalize",
    .attr_size = sizeof(struct qn_normalize_attr),
    .n_in = 3,
    .n_required = 3,
    .n_out = 1,
    .batch = {QN_BATCH_MAY},
    .no_gradient = 7,
    .shape = shape,
    .groups =
        {
            {.name = "forward",
             .phase = QN_PHASE_TRAIN | QN_PHASE_EVAL,
             .read = {{.ref = QN_IN(0)}, {.ref = QN_IN(1)}, {.ref = QN_IN(2)}},
             .write = {{.ref = QN_OUT(0)}},
             .variant = {{"any", NULL, cost, forward}}},
        },
};

/* `given`, or the same value for all channels. */
static qn_tensor constant(qn_graph *graph, const char *name, const float *given, float value,
                          int64_t count)
{
    float *values = calloc((size_t)count, sizeof *values);
    for (int64_t i = 0; values && i < count; i++)
        values[i] = given ? given[i] : value;
    qn_tensor tensor = values ? qn_op_constant(graph, name, values, count) : (qn_tensor){0};
    free(values);
    return tensor;
}

static bool is_usable(const float *mean, const float *deviation, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if ((mean && !isfinite(mean[i])) ||
            (deviation && !(isfinite(deviation[i]) && deviation[i] > 0)))
            return false;
    return true;
}

qn_tensor qn_normalize(qn_graph *graph, qn_tensor images, const float *mean, const float *deviation)
{
    qn_shape shape_of_images = qn_shape_of(graph, images);
    int64_t channels = shape_of_images.rank == 4 ? shape_of_images.dim[1] : 1;
    channels = channels > 0 ? channels : 1;
    const struct qn_normalize_attr attr = {is_usable(mean, deviation, channels)};
    const qn_tensor in[3] = {images, constant(graph, "mean", mean, 0, channels),
                             constant(graph, "deviation", deviation, 1, channels)};
    return qn_op_apply(graph, &qn_op_normalize, in, &attr);
}
