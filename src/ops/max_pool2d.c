/* SPDX-License-Identifier: MIT
 *
 * Max pooling. The first of equal values wins; NaN wins over everything. The place of the winner
 * inside its window is kept, and the backward pass gathers: no order of additions is left open.
 */
#include "base/log.h"
#include "ops/common.h"
#include "ops/pool.h"

static qn_status shape(struct qn_shape_call *call)
{
    const struct qn_pool_attr *attr = call->attr;
    QN_TRY(qn_pool_shape(call));
    const int places = attr->size[0] * attr->size[1];
    qn_shape_set(&call->saved[0], places <= 256 ? QN_U8 : QN_I32, 4, call->out[0].shape.dim);
    return QN_OK;
}

/* Rows of a few vectors are walked in short ones. */
static int64_t vector_width(const struct qn_call *call, int64_t columns)
{
    int64_t width = qn_vector_width(call->facts);
    return columns < 4 * width ? 4 : width;
}

static qn_status emit_forward(struct qn_emit *emit, const struct qn_call *call)
{
    struct qn_pool_sizes s = qn_pool_sizes(&call->in[0], &call->out[0]);
    struct qn_launch launch = {.program = "max_pool2d",
                               .kernel = call->cpu ? "forward_cpu" : "forward_gpu",
                               .args = {QN_BUF(&call->in[0]), QN_BUF(&call->out[0]),
                                        QN_BUF(&call->saved[0]), QN_LONG(s.planes), QN_INT(s.h),
                                        QN_INT(s.w), QN_INT(s.oh), QN_INT(s.ow),
                                        QN_INT(qn_present(&call->saved[0]))}};
    int64_t span = qn_pool_range(&launch, call, s.planes, s.oh * s.ow);
    if (call->cpu)
        launch.args[9] = (struct qn_arg)QN_INT(span);
    qn_pool_options(&launch, call->attr);
    qn_launch_option(&launch, "QN_V", vector_width(call, s.ow));
    qn_launch_type(&launch, "X", &call->in[0]);
    qn_launch_type(&launch, "Y", &call->out[0]);
    qn_launch_type(&launch, "INDEX", &call->saved[0]);
    return qn_emit_launch(emit, &launch);
}

static qn_status emit_backward(struct qn_emit *emit, const struct qn_call *call)
{
    struct qn_pool_sizes s = qn_pool_sizes(&call->din[0], &call->dout[0]);
    struct qn_launch launch = {.program = "max_pool2d",
                               .kernel = call->cpu ? "backward_cpu" : "backward_gpu",
                               .args = {QN_BUF(&call->dout[0]), QN_BUF(&call->saved[0]),
                                        QN_BUF(&call->din[0]), QN_LONG(s.planes), QN_INT(s.h),
                                        QN_INT(s.w), QN_INT(s.oh), QN_INT(s.ow)}};
    int64_t span = qn_pool_range(&launch, call, s.planes, s.h * s.w);
    launch.args[8] =
        call->cpu ? (struct qn_arg)QN_INT(span) : (struct qn_arg)QN_FLOAT(call->beta_in[0]);
    if (call->cpu)
        launch.args[9] = (struct qn_arg)QN_FLOAT(call->beta_in[0]);
    qn_pool_options(&launch, call->attr);
    qn_launch_option(&launch, "QN_V", vector_width(call, s.ow));
    qn_launch_type(&launch, "DX", &call->din[0]);
    qn_launch_type(&launch, "DY", &call->dout[0]);
    qn_launch_type(&launch, "INDEX", &call->saved[0]);
    return qn_emit_launch(emit, &launch);
}

const struct qn_op qn_op_max_pool2d = {
    .name = "max_pool2d",
    .attr_size = sizeof(struct qn_pool_attr),
    .n_in = 1,
    .n_required = 1,
    .n_out = 1,
    .batch = {QN_BATCH_MAY},
    .shape = shape,
    .groups = {{.name = "forward",
                .phase = QN_PHASE_TRAIN | QN_PHASE_EVAL,
                .read = {{QN_IN(0)}},
                .write = {{QN_OUT(0)}, {QN_SAVED(0)}},
                .variant = QN_BOTH_SHAPES(NULL, qn_pool_forward_cost, emit_forward)},
               {.name = "input gradient",
                .phase = QN_PHASE_BACKWARD,
                .read = {{QN_DOUT(0)}, {QN_SAVED(0)}},
                .write = {{QN_DIN(0)}},
                .variant = QN_BOTH_SHAPES(NULL, qn_pool_backward_cost, emit_backward)}}};

qn_tensor qn_max_pool2d(qn_graph *graph, qn_tensor x, const qn_pool2d_params *params)
{
    const qn_pool2d_params none = {0};
    struct qn_pool_attr attr = qn_pool_attr_of(params ? params : &none);
    attr.exclude_padding = 0;
    return qn_op_apply(graph, &qn_op_max_pool2d, &x, &attr);
}
