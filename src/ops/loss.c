/* SPDX-License-Identifier: MIT
 *
 * The end of a graph (internal; made by qn_loss): adds the sum of rows * weights to control.loss,
 * and starts the backward pass with control.loss_seed * control.loss_scale * weights.
 */
#include "op/loss.h"
#include "base/shape.h"
#include "op/control.h"
#include "ops/elementwise.h"

static qn_status shape(struct qn_shape_call *call)
{
    const struct qn_loss_attr *attr = call->attr;
    if (!qn_is_float(&call->in[0]))
        return qn_shape_error(call, "a loss must be of a float type");
    if (qn_present(&call->in[1]) &&
        (call->in[1].dtype != QN_F32 || !qn_shape_equal(&call->in[1].shape, &call->in[0].shape)))
        return qn_shape_error(call, "weights must be f32, of the loss's shape");
    if (attr->index < 0 || attr->index >= QN_MAX_LOSSES)
        return qn_shape_error(call, "there are at most %d losses", QN_MAX_LOSSES);
    return QN_OK;
}

/* The sum of the weights. */
static double loss_weight(const struct qn_call *call, const void *const *host)
{
    const int64_t count = qn_operand_count(&call->in[0]);
    if (!qn_present(&call->in[1]))
        return (double)count;
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += (double)((const float *)host[1])[i];
    return sum;
}

static void sum_cost(const struct qn_call *call, struct qn_cost *cost)
{
    qn_launch_cost(call, 0, 2, &call->in[0], cost);
}

static void seed_cost(const struct qn_call *call, struct qn_cost *cost)
{
    qn_launch_cost(call, 1, 2, &call->in[0], cost);
}

static qn_status emit_sum(struct qn_emit *emit, const struct qn_call *call)
{
    const struct qn_loss_attr *attr = call->attr;
    const int64_t count = qn_operand_count(&call->in[0]);
    struct qn_walk walk = qn_walk_rows(call, count);
    struct qn_launch launch = {.program = "loss",
                               .kernel = "sum",
                               .args = {QN_BUF(&call->in[0]), QN_BUF(&call->in[1]),
                                        QN_BUF(&call->control), QN_LONG(count),
                                        QN_INT(qn_present(&call->in[1])), QN_INT(attr->index)},
                               .global = {walk.group},
                               .local = {walk.group}};
    qn_walk_options(&launch, &walk);
    qn_launch_aligned(&launch, call, walk.vector, 0);
    qn_launch_type(&launch, "X", &call->in[0]);
    qn_launch_type(&launch, "W", &call->in[1]);
    return qn_emit_launch(emit, &launch);
}

static qn_status seed(struct qn_emit *emit, const struct qn_call *call)
{
    const struct qn_loss_attr *attr = call->attr;
    const int64_t count = qn_operand_count(&call->din[0]);
    const int64_t width = qn_vector_of(call);
    struct qn_launch launch = {.program = "loss",
                               .kernel = "seed",
                               .args = {QN_BUF(&call->in[1]), QN_BUF(&call->control),
                                        QN_BUF(&call->din[0]), QN_LONG(count),
                                        QN_INT(qn_present(&call->in[1])), QN_INT(attr->index),
                                        QN_FLOAT(call->beta_in[0])},
                               .global = {qn_div_up(count, width)},
                               .local = {QN_ELEMENTWISE_LOCAL}};
    qn_launch_vectors(&launch, call, 0);
    qn_launch_type(&launch, "W", &call->in[1]);
    qn_launch_type(&launch, "DX", &call->din[0]);
    return qn_emit_launch(emit, &launch);
}

const struct qn_op qn_op_loss = {
    .name = "loss",
    .attr_size = sizeof(struct qn_loss_attr),
    .n_in = 2,
    .n_required = 1,
    .batch = {QN_BATCH_MAY, QN_BATCH_MAY},
    .no_gradient = 1u << 1,
    .shape = shape,
    .loss_weight = loss_weight,
    .weight_inputs = 1u << 1,
    .groups = {{.name = "sum",
                .phase = QN_PHASE_TRAIN,
                .read = {{QN_IN(0)}, {QN_IN(1)}},
                .once = true,
                .variant = QN_BOTH_SHAPES(qn_fits_row_group, sum_cost, emit_sum)},
               {.name = "seed",
                .phase = QN_PHASE_BACKWARD,
                .read = {{QN_IN(1)}},
                .write = {{QN_DIN(0)}},
                .variant = {{"any", NULL, seed_cost, seed}}}}};
