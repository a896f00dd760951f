/* SPDX-License-Identifier: MIT
 *
 * The Euclidean norm of each chunk of a block of gradients (in 0; table in 1), without overflow.
 */
#include "ops/common.h"
#include "ops/update.h"

static qn_status shape(struct qn_shape_call *call)
{
    const struct qn_operand *gradients = &call->in[0];
    if (gradients->dtype != QN_F32 || gradients->shape.rank != 1 ||
        gradients->shape.dim[0] > INT32_MAX)
        return qn_shape_error(call, "gradients must be an f32 array");
    if (!qn_is_table(&call->in[1]))
        return qn_no_table(call);
    qn_shape_set(&call->out[0], QN_F32, 1, call->in[1].shape.dim);
    return QN_OK;
}

static void cost(const struct qn_call *call, struct qn_cost *result)
{
    qn_update_cost(call, 3, result);
}

static qn_status partial(struct qn_emit *emit, const struct qn_call *call)
{
    struct qn_launch launch = {
        .program = "gradient_norm",
        .kernel = "partial",
        .args = {QN_BUF(&call->in[0]), QN_BUF(&call->in[1]), QN_BUF(&call->out[0])}};
    return qn_update_launch(emit, call, &call->in[1], &launch);
}

const struct qn_op qn_op_gradient_norm_partial = {
    .name = "gradient_norm_partial",
    .attr_size = sizeof(struct qn_optimizer_attr),
    .n_in = 2,
    .n_required = 2,
    .n_out = 1,
    .shape = shape,
    .groups = {{.name = "norms of chunks",
                .phase = QN_PHASE_UPDATE,
                .read = {{QN_IN(0)}, {QN_IN(1)}},
                .write = {{QN_OUT(0)}},
                .variant = QN_BOTH_SHAPES(qn_fits_row_group, cost, partial)}}};
