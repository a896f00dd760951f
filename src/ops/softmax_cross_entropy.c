/* SPDX-License-Identifier: MIT
 *
 * Cross entropy of the softmax of logits: PyTorch's definition, with label smoothing, class weights
 * and an ignored label. The classes of a label lie side by side, as a row, or are planes of pixels,
 * each layout with kernels of its own. A label that is no class counts as ignored; whoever brings
 * the data refuses it. The largest logit and the log of the sum are kept for the backward pass.
 */
#include "ops/cross_entropy.h"

#include "base/log.h"
#include "base/shape.h"
#include "ops/common.h"
#include "ops/strip.h"

#include <string.h>

enum { LOGITS, LABELS, WEIGHTS };

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
    const struct qn_operand *logits = &call->in[LOGITS];
    const int rank = logits->shape.rank;
    if (!qn_is_float(logits) || rank < 2)
        return qn_shape_error(call, "cross entropy takes logits (.., c) of a float type");
    if (attr->class_dim < 0 || attr->class_dim >= rank)
        return qn_shape_error(call, "the classes cannot lie along dimension %d of %d",
                              attr->class_dim, rank);
    const int dim = class_dim(attr, &logits->shape);
    const struct qn_shape rows = shape_of_labels(&logits->shape, dim);
    QN_TRY(qn_cross_entropy_shape(call, &rows, logits->shape.dim[dim], LABELS));
    qn_shape_set(&call->saved[0], QN_F32, rank, logits->shape.dim);
    call->saved[0].shape.dim[dim] = 2;
    return QN_OK;
}

static double loss_weight(const struct qn_call *call, const void *const *host)
{
    return qn_cross_entropy_weight(call, host, sizes_of(call).classes, LABELS);
}

static void forward_cost(const struct qn_call *call, struct qn_cost *cost)
{
    qn_launch_cost(call, 0, QN_CROSS_ENTROPY_FORWARD, &call->in[0], cost);
}

static void backward_cost(const struct qn_call *call, struct qn_cost *cost)
{
    qn_launch_cost(call, 1, QN_CROSS_ENTROPY_BACKWARD, &call->in[0], cost);
}

/* The logits where they are rows of classes. */
static struct qn_cross_entropy_rows rows_of(const struct qn_call *call, const struct sizes *size)
{
    return (struct qn_cross_entropy_rows){.logits = &call->in[LOGITS],
                                          .rows = size->rows,
                                          .n = size->classes,
                                          .classes = size->classes,
                                          .labels = LABELS};
}

static qn_status emit_planes(struct qn_emit *emit, const struct qn_call *call,
                             const struct sizes *size, struct qn_launch *launch)
{
    launch->program = "softmax_cross_entropy_planes";
    qn_strip_range(launch, call, &(struct qn_strip){size->rows, size->plane, 1, PLANE_VECTORS});
    qn_launch_type(launch, "X", &call->in[LOGITS]);
    qn_launch_type(launch, "LABEL", &call->in[LABELS]);
    return qn_emit_launch(emit, launch);
}

static qn_status forward_planes(struct qn_emit *emit, const struct qn_call *call,
                                const struct sizes *size)
{
    const struct qn_cross_entropy_attr *attr = call->attr;
    const struct qn_operand *in = call->in;
    struct qn_launch launch = {
        .kernel = "forward",
        .args = {QN_BUF(&in[LOGITS]), QN_BUF(&in[LABELS]), QN_BUF(&in[WEIGHTS]),
                 QN_BUF(&call->out[0]), QN_BUF(&call->saved[0]), QN_LONG(size->classes),
                 QN_INT(qn_present(&in[WEIGHTS])), QN_FLOAT(attr->smoothing), QN_INT(attr->ignore),
                 QN_INT(attr->ignored_label), QN_INT(qn_present(&call->saved[0])),
                 QN_LONG(size->rows), QN_LONG(size->plane)}};
    return emit_planes(emit, call, size, &launch);
}

static qn_status backward_planes(struct qn_emit *emit, const struct qn_call *call,
                                 const struct sizes *size)
{
    const struct qn_cross_entropy_attr *attr = call->attr;
    const struct qn_operand *in = call->in;
    struct qn_launch launch = {
        .kernel = "backward",
        .args = {QN_BUF(&in[LOGITS]), QN_BUF(&in[LABELS]), QN_BUF(&in[WEIGHTS]),
                 QN_BUF(&call->dout[0]), QN_BUF(&call->saved[0]), QN_BUF(&call->din[LOGITS]),
                 QN_LONG(size->classes), QN_INT(qn_present(&in[WEIGHTS])),
                 QN_FLOAT(attr->smoothing), QN_INT(attr->ignore), QN_INT(attr->ignored_label),
                 QN_FLOAT(call->beta_in[LOGITS]), QN_LONG(size->rows), QN_LONG(size->plane)}};
    qn_launch_type(&launch, "DX", &call->din[LOGITS]);
    return emit_planes(emit, call, size, &launch);
}

static qn_status emit_forward(struct qn_emit *emit, const struct qn_call *call)
{
    const struct sizes size = sizes_of(call);
    const struct qn_cross_entropy_rows rows = rows_of(call, &size);
    return size.plane == 1 ? qn_cross_entropy_forward(emit, call, &rows)
                           : forward_planes(emit, call, &size);
}

static qn_status emit_backward(struct qn_emit *emit, const struct qn_call *call)
{
    const struct sizes size = sizes_of(call);
    const struct qn_cross_entropy_rows rows = rows_of(call, &size);
    return size.plane == 1 ? qn_cross_entropy_backward(emit, call, &rows, &call->din[LOGITS],
                                                       call->beta_in[LOGITS])
                           : backward_planes(emit, call, &size);
}

const struct qn_op qn_op_softmax_cross_entropy = {
    .name = "softmax_cross_entropy",
    .attr_size = sizeof(struct qn_cross_entropy_attr),
    .n_in = 3,
    .n_required = 2,
    .n_out = 1,
    .batch = {QN_BATCH_MAY, QN_BATCH_MAY},
    .no_gradient = 1u << 1 | 1u << 2,
    .shape = shape,
    .loss_weight = loss_weight,
    .weight_inputs = 1u << 1 | 1u << 2,
    .groups = {{.name = "forward",
                .phase = QN_PHASE_TRAIN | QN_PHASE_EVAL,
                .read = {{QN_IN(0)}, {QN_IN(1)}, {QN_IN(2)}},
                .write = {{QN_OUT(0)}, {QN_SAVED(0)}},
                .variant = QN_BOTH_SHAPES(qn_fits_row_group, forward_cost, emit_forward)},
               {.name = "input gradient",
                .phase = QN_PHASE_BACKWARD,
                .read = {{QN_IN(0)}, {QN_IN(1)}, {QN_IN(2)}, {QN_DOUT(0)}, {QN_SAVED(0)}},
                .write = {{QN_DIN(0), QN_IN(0)}},
                .variant = QN_BOTH_SHAPES(qn_fits_row_group, backward_cost, emit_backward)}}};

static int64_t classes_of(const qn_graph *graph, qn_tensor logits,
                          const struct qn_cross_entropy_attr *attr)
{
    const struct qn_shape shape_ = qn_shape_of(graph, logits);
    const int dim = class_dim(attr, &shape_);
    return dim >= 0 && dim < shape_.rank ? shape_.dim[dim] : 0;
}

qn_tensor qn_softmax_cross_entropy(qn_graph *graph, qn_tensor logits, qn_tensor labels,
                                   const qn_cross_entropy_params *params)
{
    const struct qn_cross_entropy_attr attr = qn_cross_entropy_attr_of(params);
    const qn_tensor in[] = {
        logits, labels, qn_cross_entropy_weights(graph, params, classes_of(graph, logits, &attr))};
    return qn_op_apply(graph, &qn_op_softmax_cross_entropy, in, &attr);
}
