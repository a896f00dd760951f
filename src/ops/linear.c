/* SPDX-License-Identifier: MIT
 *
 * y = x * w^T + b + residual. One product a group: every leading dimension of x counts as rows.
 */
#include "base/log.h"
#include "base/shape.h"
#include "ops/dense.h"
#include "ops/elementwise.h"

#include <quern/ops.h>

static qn_status shape(struct qn_shape_call *call)
{
    const struct qn_operand *residual = &call->in[3];
    QN_TRY(qn_dense_shape(call));
    if (qn_present(residual) &&
        (!qn_is_float(residual) || !qn_shape_equal(&residual->shape, &call->out[0].shape)))
        return qn_shape_error(call, "the residual must be of the output's shape");
    return QN_OK;
}

static struct qn_matmul forward(const struct qn_call *call)
{
    const struct qn_operand *residual = &call->in[3];
    struct qn_matmul product = qn_dense_forward(call);
    product.epilogue.residual = qn_present(residual) ? residual : NULL;
    return product;
}

static void residual_cost(const struct qn_call *call, struct qn_cost *cost)
{
    *cost = qn_elementwise_cost(1, &call->dout[0], &call->din[3], NULL);
}

static qn_status residual_gradient(struct qn_emit *emit, const struct qn_call *call)
{
    return qn_elementwise_scale(
        emit, call, &(struct qn_scaling){&call->dout[0], &call->din[3], 1, call->beta_in[3]});
}

QN_MATMUL_VARIANTS(forward)
QN_DENSE_VARIANTS

/* y does not take the place of the residual, which may be x itself. */
const struct qn_op qn_op_linear = {
    .name = "linear",
    .n_in = 4,
    .n_required = 2,
    .n_out = 1,
    .batch = {[0] = QN_BATCH_MAY, [3] = QN_BATCH_MAY}, /* x and the residual */
    .shape = shape,
    .groups =
        {
            {.name = "forward",
             .phase = QN_PHASE_TRAIN | QN_PHASE_EVAL,
             .read = {{.ref = QN_IN(0)}, {.ref = QN_IN(1)}, {.ref = QN_IN(2)}, {.ref = QN_IN(3)}},
             .write = {{.ref = QN_OUT(0)}},
             .variant = QN_MATMUL_LIST(forward)},
            QN_DENSE_GRADIENTS(QN_DOUT(0)),
            {.name = "residual gradient",
             .phase = QN_PHASE_BACKWARD,
             .read = {{.ref = QN_DOUT(0)}},
             .write = {{.ref = QN_DIN(3), .in_place = QN_DOUT(0)}},
             .variant = {{"any", NULL, residual_cost, residual_gradient}}},
        },
};

qn_tensor qn_linear(qn_graph *graph, qn_tensor x, qn_tensor weight, qn_tensor bias)
{
    return qn_op_apply(graph, &qn_op_linear, (const qn_tensor[]){x, weight, bias, {0}}, NULL);
}

qn_tensor qn_linear_residual(qn_graph *graph, qn_tensor x, qn_tensor weight, qn_tensor bias,
                             qn_tensor residual)
{
    return qn_op_apply(graph, &qn_op_linear, (const qn_tensor[]){x, weight, bias, residual}, NULL);
}
