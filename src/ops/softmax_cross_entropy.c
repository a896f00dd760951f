/* SPDX-License-Identifier: MIT
 *
 * Cross entropy of the softmax of logits: PyTorch's definition, with label smoothing, class weights
 * and an ignored label. The classes of a label lie side by side, as a row, or are planes of pixels,
 * each layout with kernels of its own. A label that is no class counts as ignored; whoever brings
 * the data refuses it. The largest logit and the log of the sum are kept for the backward pass.
 */
#include "op/cross_entropy.h"
#include "base/shape.h"
#include "ops/common.h"
#include "ops/strip.h"

#include <quern/ops.h>

#include <string.h>

/* Vectors of a plane that a work-item of a CPU takes. */
enum { PLANE_VECTORS = 64 };

/* Logits (rows, classes, plane): a plane of 1 is rows of classes. */
struct sizes {
    int64_t rows, classes, plane;
};

static int class_dim(const struct qn_cross_entropy_attr *attr, const struct qn_shape *logits)
{
    return attr->class_dim ? attr->class_dim : logits->rank - 1;
}

static struct sizes sizes_of(const struct qn_call *call)
{
    const struct qn_shape *logits = &call->in[0].shape;
    const int dim = class_dim(call->attr, logits);
    return (struct sizes){qn_shape_span(logits, 0, dim), logits->dim[dim],
                          qn_shape_span(logits, dim + 1, logits->rank)};
}

/* The shape of the logits without dimension `dim`. */
static struct qn_shape shape_of_labels(const struct qn_shape *logits, int dim)
{
    struct qn_shape labels = *logits;
    labels.rank--;
    memmove(labels.dim + dim, logits->dim + dim + 1,
            (size_t)(labels.rank - dim) * sizeof *labels.dim);
    return labels;
}

static qn_status shape(struct qn_shape_call *call)
{
    const struct qn_cross_entropy_attr *attr = call->attr;
    const struct qn_operand *logits = &call->in[0], *labels = &call->in[1];
    const int rank = logits->shape.rank;
    if (!qn_is_float(logits) || rank < 2)
        return qn_shape_error(call, "cross entropy takes logits (.., c) of a float type");
    if (attr->class_dim < 0 || attr->class_dim >= rank)
        return qn_shape_error(call, "the classes cannot lie along dimension %d of %d",
                              attr->class_dim, rank);
    const int dim = class_dim(attr, &logits->shape);
    const int64_t classes = logits->shape.dim[dim];
    const struct qn_shape rows = shape_of_labels(&logits->shape, dim);
    if (classes < 1 || classes > INT32_MAX)
        return qn_shape_error(call, "%lld classes", (long long)classes);
    if ((labels->dtype != QN_U8 && labels->dtype != QN_I32) ||
        !qn_shape_equal(&labels->shape, &rows))
        return qn_shape_error(call, "labels must be u8 or i32, one for each %lld logits",
                              (long long)classes);
    if (qn_present(&call->in[2]) &&
        (call->in[2].dtype != QN_F32 || !qn_is_row_of(&call->in[2], classes)))
        return qn_shape_error(call, "there are %lld classes; weights must be as many, of f32",
                              (long long)classes);
    if (!(attr->smoothing >= 0 && attr->smoothing < 1))
        return qn_shape_error(call, "a label smoothing of %g is not in [0, 1)",
                              (double)attr->smoothing);
    qn_shape_set(&call->out[0], QN_F32, rank - 1, rows.dim);
    qn_shape_set(&call->saved[0], QN_F32, rank, logits->shape.dim);
    call->saved[0].shape.dim[dim] = 2;
    return QN_OK;
}

static bool counts(const struct qn_cross_entropy_attr *attr, int64_t label, int64_t classes)
{
    return label >= 0 && label < classes && !(attr->ignore && label == attr->ignored_label);
}

static double loss_weight(const struct qn_call *call, const void *const *host)
{
    const int64_t rows = qn_operand_count(&call->in[1]), classes = sizes_of(call).classes;
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

static void shape_rows(struct qn_launch *launch, const struct qn_call *call,
                       const struct sizes *size, bool cpu)
{
    const struct qn_walk walk = qn_walk_rows(call->facts, cpu, size->classes);
    launch->program = "softmax_cross_entropy";
    launch->global[0] = size->rows * walk.group;
    launch->local[0] = walk.group;
    qn_walk_options(launch, &walk);
}

static void shape_planes(struct qn_launch *launch, const struct qn_call *call,
                         const struct sizes *size, bool cpu)
{
    launch->program = "softmax_cross_entropy_planes";
    qn_strip_range(launch, call->facts,
                   &(struct qn_strip){size->rows, size->plane, 1, PLANE_VECTORS, cpu});
}

static qn_status emit_launch(struct qn_emit *emit, const struct qn_call *call, bool cpu,
                             struct qn_launch *launch)
{
    const struct sizes size = sizes_of(call);
    if (size.plane == 1)
        shape_rows(launch, call, &size, cpu);
    else
        shape_planes(launch, call, &size, cpu);
    qn_launch_type(launch, "X", &call->in[0]);
    qn_launch_type(launch, "LABEL", &call->in[1]);
    return qn_emit_launch(emit, launch);
}

/* An argument of the kernels of planes, which those of rows lack. */
static struct qn_arg of_planes(const struct sizes *size, int64_t value)
{
    return size->plane == 1 ? (struct qn_arg){0} : (struct qn_arg)QN_LONG(value);
}

static qn_status emit_forward(struct qn_emit *emit, const struct qn_call *call, bool cpu)
{
    const struct qn_cross_entropy_attr *attr = call->attr;
    const struct sizes size = sizes_of(call);
    struct qn_launch launch = {
        .kernel = "forward",
        .args = {QN_BUF(&call->in[0]), QN_BUF(&call->in[1]), QN_BUF(&call->in[2]),
                 QN_BUF(&call->out[0]), QN_BUF(&call->saved[0]), QN_LONG(size.classes),
                 QN_INT(qn_present(&call->in[2])), QN_FLOAT(attr->smoothing), QN_INT(attr->ignore),
                 QN_INT(attr->ignored_label), QN_INT(qn_present(&call->saved[0])),
                 of_planes(&size, size.rows), of_planes(&size, size.plane)}};
    return emit_launch(emit, call, cpu, &launch);
}

static qn_status emit_backward(struct qn_emit *emit, const struct qn_call *call, bool cpu)
{
    const struct qn_cross_entropy_attr *attr = call->attr;
    const struct sizes size = sizes_of(call);
    struct qn_launch launch = {
        .kernel = "backward",
        .args = {QN_BUF(&call->in[0]), QN_BUF(&call->in[1]), QN_BUF(&call->in[2]),
                 QN_BUF(&call->dout[0]), QN_BUF(&call->saved[0]), QN_BUF(&call->din[0]),
                 QN_LONG(size.classes), QN_INT(qn_present(&call->in[2])), QN_FLOAT(attr->smoothing),
                 QN_INT(attr->ignore), QN_INT(attr->ignored_label), QN_FLOAT(call->beta_in[0]),
                 of_planes(&size, size.rows), of_planes(&size, size.plane)}};
    qn_launch_type(&launch, "DX", &call->din[0]);
    return emit_launch(emit, call, cpu, &launch);
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

static qn_tensor class_weights(qn_graph *graph, qn_tensor logits,
                               const struct qn_cross_entropy_attr *attr, const float *values)
{
    const struct qn_shape shape_ = qn_shape_of(graph, logits);
    const int dim = class_dim(attr, &shape_);
    if (!values || dim < 0 || dim >= shape_.rank || shape_.dim[dim] < 1)
        return (qn_tensor){0};
    return qn_op_constant(graph, "class_weights", values, shape_.dim[dim]);
}

qn_tensor qn_softmax_cross_entropy(qn_graph *graph, qn_tensor logits, qn_tensor labels,
                                   const qn_cross_entropy_params *params)
{
    const qn_cross_entropy_params none = {0};
    params = params ? params : &none;
    const struct qn_cross_entropy_attr attr = {.smoothing = (float)params->label_smoothing,
                                               .ignore = params->ignore,
                                               .ignored_label = params->ignore_label,
                                               .class_dim = params->class_dim};
    const qn_tensor in[] = {logits, labels,
                            class_weights(graph, logits, &attr, params->class_weights)};
    return qn_op_apply(graph, &qn_op_softmax_cross_entropy, in, &attr);
}
