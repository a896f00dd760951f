/* SPDX-License-Identifier: MIT
 *
 * Cross entropy of the softmax of logits, by row: PyTorch's definition, with label smoothing, class
 * weights and an ignored label. A label that is no class counts as ignored; whoever brings the data
 * refuses it. The row's largest logit and the log of its sum are kept for the backward pass.
 */
#include "op/cross_entropy.h"
#include "base/shape.h"
#include "ops/common.h"

#include <quern/ops.h>

static bool are_labels_of(const struct qn_operand *labels, const struct qn_operand *logits)
{
    struct qn_shape rows = logits->shape;
    rows.rank--;
    return (labels->dtype == QN_U8 || labels->dtype == QN_I32) &&
           qn_shape_equal(&labels->shape, &rows);
}

static qn_status shape(struct qn_shape_call *call)
{
    const struct qn_cross_entropy_attr *attr = call->attr;
    const struct qn_operand *logits = &call->in[0], *labels = &call->in[1];
    const int rank = logits->shape.rank;
    if (!qn_is_float(logits) || rank < 2)
        return qn_shape_error(call, "cross entropy takes logits (.., c) of a float type");
    const int64_t classes = logits->shape.dim[rank - 1];
    if (classes < 1 || classes > INT32_MAX)
        return qn_shape_error(call, "%lld classes", (long long)classes);
    if (!are_labels_of(labels, logits))
        return qn_shape_error(call, "labels must be u8 or i32, one a row of logits");
    if (qn_present(&call->in[2]) &&
        (call->in[2].dtype != QN_F32 || !qn_is_row_of(&call->in[2], classes)))
        return qn_shape_error(call, "there are %lld classes; weights must be as many, of f32",
                              (long long)classes);
    if (!(attr->smoothing >= 0 && attr->smoothing < 1))
        return qn_shape_error(call, "a label smoothing of %g is not in [0, 1)",
                              (double)attr->smoothing);
    qn_shape_set(&call->out[0], QN_F32, rank - 1, logits->shape.dim);
    qn_shape_set(&call->saved[0], QN_F32, rank, logits->shape.dim);
    call->saved[0].shape.dim[rank - 1] = 2;
    return QN_OK;
}

static bool counts(const struct qn_cross_entropy_attr *attr, int64_t label, int64_t classes)
{
    return label >= 0 && label < classes && !(attr->ignore && label == attr->ignored_label);
}

static double loss_weight(const struct qn_call *call, const void *const *host)
{
    const int64_t rows = qn_operand_count(&call->in[1]);
    const int64_t classes = call->in[0].shape.dim[call->in[0].shape.rank - 1];
    const bool bytes = call->in[1].dtype == QN_U8, weighted = qn_present(&call->in[2]);
    double sum = 0;
    for (int64_t row = 0; row < rows; row++) {
        int64_t label = bytes ? ((const uint8_t *)host[1])[row] : ((const int32_t *)host[1])[row];
        if (counts(call->attr, label, classes))
            sum += weighted ? (double)((const float *)host[2])[label] : 1;
    }
    return sum;
}

static void forward_cost(const struct qn_call *call, struct qn_cost *cost)
{
    cost->flops = 12 * (double)qn_operand_count(&call->in[0]);
    cost->bytes = qn_group_bytes(call, 0);
    cost->launches = 1;
}

static void backward_cost(const struct qn_call *call, struct qn_cost *cost)
{
    cost->flops = 14 * (double)qn_operand_count(&call->in[0]);
    cost->bytes = qn_group_bytes(call, 1);
    cost->launches = 1;
}

static qn_status launch_rows(struct qn_emit *emit, const struct qn_call *call, bool cpu,
                             struct qn_launch *launch)
{
    const int64_t rows = qn_operand_count(&call->in[1]);
    struct qn_walk walk = qn_walk_rows(call->facts, cpu, qn_operand_count(&call->in[0]) / rows);
    launch->program = "softmax_cross_entropy";
    launch->global[0] = rows * walk.group;
    launch->local[0] = walk.group;
    qn_walk_options(launch, &walk);
    qn_launch_type(launch, "X", &call->in[0]);
    qn_launch_type(launch, "LABEL", &call->in[1]);
    return qn_emit_launch(emit, launch);
}

static int64_t classes_of(const struct qn_call *call)
{
    return call->in[0].shape.dim[call->in[0].shape.rank - 1];
}

static qn_status emit_forward(struct qn_emit *emit, const struct qn_call *call, bool cpu)
{
    const struct qn_cross_entropy_attr *attr = call->attr;
    struct qn_launch launch = {
        .kernel = "forward",
        .args = {QN_BUF(&call->in[0]), QN_BUF(&call->in[1]), QN_BUF(&call->in[2]),
                 QN_BUF(&call->out[0]), QN_BUF(&call->saved[0]), QN_LONG(classes_of(call)),
                 QN_INT(qn_present(&call->in[2])), QN_FLOAT(attr->smoothing), QN_INT(attr->ignore),
                 QN_INT(attr->ignored_label), QN_INT(qn_present(&call->saved[0]))}};
    return launch_rows(emit, call, cpu, &launch);
}

static qn_status emit_backward(struct qn_emit *emit, const struct qn_call *call, bool cpu)
{
    const struct qn_cross_entropy_attr *attr = call->attr;
    struct qn_launch launch = {.kernel = "backward",
                               .args = {QN_BUF(&call->in[0]), QN_BUF(&call->in[1]),
                                        QN_BUF(&call->in[2]), QN_BUF(&call->dout[0]),
                                        QN_BUF(&call->saved[0]), QN_BUF(&call->din[0]),
                                        QN_LONG(classes_of(call)), QN_INT(qn_present(&call->in[2])),
                                        QN_FLOAT(attr->smoothing), QN_INT(attr->ignore),
                                        QN_INT(attr->ignored_label), QN_FLOAT(call->beta_in[0])}};
    qn_launch_type(&launch, "DX", &call->din[0]);
    return launch_rows(emit, call, cpu, &launch);
}

static qn_status forward_cpu(struct qn_emit *emit, const struct qn_call *call)
{
    return emit_forward(emit, call, true);
}

static qn_status forward_gpu(struct qn_emit *emit, const struct qn_call *call)
{
    return emit_forward(emit, call, false);
}

static qn_status backward_cpu(struct qn_emit *emit, const struct qn_call *call)
{
    return emit_backward(emit, call, true);
}

static qn_status backward_gpu(struct qn_emit *emit, const struct qn_call *call)
{
    return emit_backward(emit, call, false);
}

const struct qn_op qn_op_softmax_cross_entropy = {
    .name = "softmax_cross_entropy",
    .attr_size = sizeof(struct qn_cross_entropy_attr),
    .n_in = 3,
    .n_required = 2,
    .n_out = 1,
    .no_gradient = 1u << 1 | 1u << 2,
    .shape = shape,
    .loss_weight = loss_weight,
    .weight_inputs = 1u << 1 | 1u << 2,
    .groups = {{.name = "forward",
                .phase = QN_PHASE_TRAIN | QN_PHASE_EVAL,
                .read = {{QN_IN(0)}, {QN_IN(1)}, {QN_IN(2)}},
                .write = {{QN_OUT(0)}, {QN_SAVED(0)}},
                .variant = {{"cpu", qn_fits_cpu, forward_cost, forward_cpu},
                            {"gpu", qn_fits_row_group, forward_cost, forward_gpu}}},
               {.name = "input gradient",
                .phase = QN_PHASE_BACKWARD,
                .read = {{QN_IN(0)}, {QN_IN(1)}, {QN_IN(2)}, {QN_DOUT(0)}, {QN_SAVED(0)}},
                .write = {{QN_DIN(0), QN_IN(0)}},
                .variant = {{"cpu", qn_fits_cpu, backward_cost, backward_cpu},
                            {"gpu", qn_fits_row_group, backward_cost, backward_gpu}}}}};

static qn_tensor class_weights(qn_graph *graph, qn_tensor logits, const float *values)
{
    const struct qn_shape shape_ = qn_shape_of(graph, logits);
    if (!values || shape_.rank < 1 || shape_.dim[shape_.rank - 1] < 1)
        return (qn_tensor){0};
    return qn_op_constant(graph, "class_weights", values, shape_.dim[shape_.rank - 1]);
}

qn_tensor qn_softmax_cross_entropy(qn_graph *graph, qn_tensor logits, qn_tensor labels,
                                   const qn_cross_entropy_params *params)
{
    const qn_cross_entropy_params none = {0};
    params = params ? params : &none;
    const struct qn_cross_entropy_attr attr = {.smoothing = (float)params->label_smoothing,
                                               .ignore = params->ignore,
                                               .ignored_label = params->ignore_label};
    const qn_tensor in[] = {logits, labels, class_weights(graph, logits, params->class_weights)};
    return qn_op_apply(graph, &qn_op_softmax_cross_entropy, in, &attr);
}
