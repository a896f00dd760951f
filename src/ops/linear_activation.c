/* SPDX-License-Identifier: MIT
 *
 * y = activation(x * w^T + b), for activations whose derivative follows from y: it is multiplied
 * into the gradient once, and the rest is as in linear.
 */
#include "base/log.h"
#include "op/matmul.h"
#include "ops/dense.h"
#include "ops/elementwise.h"

#include <quern/ops.h>

/* Kernels of unary.cl, by qn_activation. */
static const char *const gradient_kernels[] = {
    [QN_ACTIVATION_RELU] = "relu_gradient",
    [QN_ACTIVATION_LEAKY_RELU] = "leaky_relu_gradient",
    [QN_ACTIVATION_SIGMOID] = "sigmoid_gradient",
    [QN_ACTIVATION_TANH] = "tanh_gradient",
};

static qn_status shape(struct qn_shape_call *call)
{
    const struct qn_linear_activation_attr *attr = call->attr;
    if (attr->activation <= QN_ACTIVATION_NONE || attr->activation > QN_ACTIVATION_TANH)
        return qn_shape_error(call, "there is no activation %d", (int)attr->activation);
    if (attr->activation == QN_ACTIVATION_LEAKY_RELU && !(attr->slope > 0 && attr->slope <= 1))
        return qn_shape_error(call, "slope %g is not in (0, 1]", (double)attr->slope);
    QN_TRY(qn_dense_shape(call));
    call->temp[0] = call->out[0];
    return QN_OK;
}

static struct qn_matmul forward(const struct qn_call *call)
{
    const struct qn_linear_activation_attr *attr = call->attr;
    struct qn_matmul product = qn_dense_forward(call);
    product.epilogue.activation = (qn_activation)attr->activation;
    product.epilogue.slope = attr->slope;
    return product;
}

static void activation_cost(const struct qn_call *call, struct qn_cost *cost)
{
    *cost = qn_elementwise_cost(3, &call->dout[0], &call->out[0], &call->temp[0]);
}

static qn_status activation_gradient(struct qn_emit *emit, const struct qn_call *call)
{
    const struct qn_linear_activation_attr *attr = call->attr;
    return qn_elementwise_gradient(
        emit, call,
        &(struct qn_unary_gradient){.kernel = gradient_kernels[attr->activation],
                                    .dy = &call->dout[0],
                                    .value = &call->out[0],
                                    .dx = &call->temp[0],
                                    .parameter = attr->slope});
}

QN_MATMUL_OWN_VARIANTS(forward)
QN_DENSE_VARIANTS

const struct qn_op qn_op_linear_activation = {
    .name = "linear_activation",
    .attr_size = sizeof(struct qn_linear_activation_attr),
    .n_in = 3,
    .n_required = 2,
    .n_out = 1,
    .batch = {QN_BATCH_MAY},
    .shape = shape,
    .groups =
        {
            {.name = "forward",
             .phase = QN_PHASE_TRAIN | QN_PHASE_EVAL,
             .read = {{.ref = QN_IN(0)}, {.ref = QN_IN(1)}, {.ref = QN_IN(2)}},
             .write = {{.ref = QN_OUT(0)}},
             .variant = QN_MATMUL_OWN_LIST(forward)},
            {.name = "activation gradient",
             .phase = QN_PHASE_BACKWARD,
             .read = {{.ref = QN_DOUT(0)}, {.ref = QN_OUT(0)}},
             .write = {{.ref = QN_TEMP(0), .in_place = QN_DOUT(0)}},
             .variant = {{"any", NULL, activation_cost, activation_gradient}}},
            QN_DENSE_GRADIENTS(QN_TEMP(0)),
        },
};

qn_tensor qn_linear_activation(qn_graph *graph, qn_tensor x, qn_tensor weight, qn_tensor bias,
                               const qn_linear_activation_params *params)
{
    const qn_linear_activation_params none = {0};
    const qn_linear_activation_params *p = params ? params : &none;
    const struct qn_linear_activation_attr attr = {(int32_t)p->activation, (float)p->slope};
    return qn_op_apply(graph, &qn_op_linear_activation, (const qn_tensor[]){x, weight, bias},
                       &attr);
}
