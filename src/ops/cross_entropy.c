/* SPDX-License-Identifier: MIT */
#include "ops/cross_entropy.h"

#include "base/shape.h"
#include "ops/common.h"

struct qn_cross_entropy_attr qn_cross_entropy_attr_of(const qn_cross_entropy_params *params)
{
    if (!params)
        return (struct qn_cross_entropy_attr){0};
    return (struct qn_cross_entropy_attr){.smoothing = (float)params->label_smoothing,
                                          .ignore = params->ignore,
                                          .ignored_label = params->ignore_label,
                                          .class_dim = params->class_dim};
}

qn_tensor qn_cross_entropy_weights(qn_graph *graph, const qn_cross_entropy_params *params,
                                   int64_t classes)
{
    if (!params || !params->class_weights || classes < 1)
        return (qn_tensor){0};
    return qn_op_constant(graph, "class_weights", params->class_weights, classes);
}

qn_status qn_cross_entropy_shape(struct qn_shape_call *call, const struct qn_shape *rows,
                                 int64_t classes, int labels)
{
    const struct qn_cross_entropy_attr *attr = call->attr;
    const struct qn_operand *label = &call->in[labels], *weights = &call->in[labels + 1];
    if (classes < 1 || classes > INT32_MAX)
        return qn_shape_error(call, "%lld classes", (long long)classes);
    if ((label->dtype != QN_U8 && label->dtype != QN_I32) || !qn_shape_equal(&label->shape, rows))
        return qn_shape_error(call, "labels must be u8 or i32, one for each %lld logits",
                              (long long)classes);
    if (qn_present(weights) && (weights->dtype != QN_F32 || !qn_is_row_of(weights, classes)))
        return qn_shape_error(call, "there are %lld classes; weights must be as many, of f32",
                              (long long)classes);
    if (!(attr->smoothing >= 0 && attr->smoothing < 1))
        return qn_shape_error(call, "a label smoothing of %g is not in [0, 1)",
                              (double)attr->smoothing);
    qn_shape_set(&call->out[0], QN_F32, rows->rank, rows->dim);
    return QN_OK;
}

static bool counts(const struct qn_cross_entropy_attr *attr, int64_t label, int64_t classes)
{
    return label >= 0 && label < classes && !(attr->ignore && label == attr->ignored_label);
}

double qn_cross_entropy_weight(const struct qn_call *call, const void *const *host, int64_t classes,
                               int labels)
{
    const int64_t rows = qn_operand_count(&call->in[labels]);
    const bool bytes = call->in[labels].dtype == QN_U8;
    const void *label_of = host[labels];
    const float *weights = qn_present(&call->in[labels + 1]) ? host[labels + 1] : NULL;
    double sum = 0;
    for (int64_t row = 0; row < rows; row++) {
        int64_t label = bytes ? ((const uint8_t *)label_of)[row] : ((const int32_t *)label_of)[row];
        if (counts(call->attr, label, classes))
            sum += weights ? (double)weights[label] : 1;
    }
    return sum;
}

static qn_status emit_rows(struct qn_emit *emit, const struct qn_call *call,
                           const struct qn_cross_entropy_rows *rows, struct qn_launch *launch)
{
    const struct qn_walk walk = qn_walk_rows(call, rows->n);
    launch->program = "softmax_cross_entropy";
    launch->global[0] = rows->rows * walk.group;
    launch->local[0] = walk.group;
    qn_walk_options(launch, &walk);
    qn_launch_aligned(launch, call, walk.vector, rows->n | rows->first);
    qn_launch_type(launch, "X", rows->logits);
    qn_launch_type(launch, "LABEL", &call->in[rows->labels]);
    return qn_emit_launch(emit, launch);
}

qn_status qn_cross_entropy_forward(struct qn_emit *emit, const struct qn_call *call,
                                   const struct qn_cross_entropy_rows *rows)
{
    const struct qn_cross_entropy_attr *attr = call->attr;
    const struct qn_operand *label = &call->in[rows->labels], *weights = label + 1;
    struct qn_launch launch = {
        .kernel = "forward",
        .args = {QN_BUF(rows->logits), QN_BUF(label), QN_BUF(weights), QN_BUF(&call->out[0]),
                 QN_BUF(&call->saved[0]), QN_LONG(rows->n), QN_INT(qn_present(weights)),
                 QN_FLOAT(attr->smoothing), QN_INT(attr->ignore), QN_INT(attr->ignored_label),
                 QN_INT(qn_present(&call->saved[0]))}};
    return emit_rows(emit, call, rows, &launch);
}

qn_status qn_cross_entropy_forward_part(struct qn_emit *emit, const struct qn_call *call,
                                        const struct qn_cross_entropy_rows *rows,
                                        const struct qn_operand *known)
{
    const struct qn_cross_entropy_attr *attr = call->attr;
    const struct qn_operand *label = &call->in[rows->labels], *weights = label + 1;
    struct qn_launch launch = {
        .kernel = "forward_part",
        .args = {QN_BUF(rows->logits), QN_BUF(label), QN_BUF(weights), QN_BUF(known),
                 QN_BUF(&call->out[0]), QN_BUF(&call->saved[0]), QN_LONG(rows->n),
                 QN_LONG(rows->first), QN_LONG(rows->classes), QN_INT(qn_present(weights)),
                 QN_FLOAT(attr->smoothing), QN_INT(attr->ignore), QN_INT(attr->ignored_label),
                 QN_INT(qn_present(&call->saved[0]))}};
    return emit_rows(emit, call, rows, &launch);
}

qn_status qn_cross_entropy_backward(struct qn_emit *emit, const struct qn_call *call,
                                    const struct qn_cross_entropy_rows *rows,
                                    const struct qn_operand *d, float beta)
{
    const struct qn_cross_entropy_attr *attr = call->attr;
    const struct qn_operand *label = &call->in[rows->labels], *weights = label + 1;
    struct qn_launch launch = {
        .kernel = "backward",
        .args = {QN_BUF(rows->logits), QN_BUF(label), QN_BUF(weights), QN_BUF(&call->dout[0]),
                 QN_BUF(&call->saved[0]), QN_BUF(d), QN_LONG(rows->n), QN_LONG(rows->first),
                 QN_LONG(rows->classes), QN_INT(qn_present(weights)), QN_FLOAT(attr->smoothing),
                 QN_INT(attr->ignore), QN_INT(attr->ignored_label), QN_FLOAT(beta)}};
    qn_launch_type(&launch, "DX", d);
    return emit_rows(emit, call, rows, &launch);
}
