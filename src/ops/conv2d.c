/* SPDX-License-Identifier: MIT
 *
 * Convolution as an implicit matrix product: patches are packed inside the kernels, so each group
 * is one launch for the whole micro-batch. 3 x 3 taps of stride 1 go in Winograd's way, too. Groups
 * of one input channel have kernels of their own. The image may be two, so that what joins them is
 * never stored.
 */
#include "base/log.h"
#include "base/shape.h"
#include "ops/conv2d_product.h"

#include <quern/ops.h>

/* --- shapes --- */

/* The second image differs from the first in nothing but the channels. */
static qn_status check_second(struct qn_shape_call *call)
{
    const struct qn_conv2d_attr *attr = call->attr;
    const struct qn_operand *first = &call->in[0], *second = &call->in[3];
    struct qn_shape same = second->shape;
    char text[96], other[96];
    if (!qn_present(second))
        return QN_OK;
    same.dim[1] = first->shape.dim[1];
    if (second->dtype != first->dtype || !qn_shape_equal(&same, &first->shape))
        return qn_shape_error(
            call, "the channels of %s %s cannot follow those of %s %s",
            qn_dtype_name(second->dtype), qn_shape_text(&second->shape, text, sizeof text),
            qn_dtype_name(first->dtype), qn_shape_text(&first->shape, other, sizeof other));
    if (second->shape.dim[1] < 1 || second->shape.dim[1] > QN_CONV2D_LARGEST_IMAGE)
        return qn_shape_error(call, "a dimension is out of range");
    if (attr->groups > 1)
        return qn_shape_error(call, "%d groups of two images", attr->groups);
    return QN_OK;
}

static qn_status check_channels(struct qn_shape_call *call)
{
    const struct qn_conv2d_attr *attr = call->attr;
    const int64_t *w = call->in[1].shape.dim;
    const int64_t second = qn_present(&call->in[3]) ? call->in[3].shape.dim[1] : 0;
    const int64_t channels = call->in[0].shape.dim[1] + second;
    if (channels % attr->groups || w[0] % attr->groups)
        return qn_shape_error(call, "%d groups do not divide %lld input and %lld output channels",
                              attr->groups, (long long)channels, (long long)w[0]);
    if (w[1] != channels / attr->groups)
        return qn_shape_error(call,
                              "the weight takes %lld channels, but the image has %lld in %d "
                              "groups",
                              (long long)w[1], (long long)channels, attr->groups);
    return qn_conv2d_check_bias(call, w[0]);
}

static qn_status shape(struct qn_shape_call *call)
{
    const struct qn_conv2d_attr *attr = call->attr;
    const struct qn_shape *x = &call->in[0].shape, *w = &call->in[1].shape;
    if (!qn_is_float(&call->in[0]) || x->rank != 4 || !qn_is_float(&call->in[1]) || w->rank != 4)
        return qn_shape_error(call,
                              "conv2d takes an image (b, c, h, w) and a weight (o, c / groups, "
                              "kh, kw) of float types");
    QN_TRY(qn_conv2d_check(call, attr));
    QN_TRY(check_second(call));
    QN_TRY(check_channels(call));
    int64_t dim[4] = {x->dim[0], w->dim[0]};
    for (int i = 0; i < 2; i++) {
        dim[2 + i] = qn_conv2d_size(attr, i, x->dim[2 + i], w->dim[2 + i]);
        if (dim[2 + i] < 1)
            return qn_shape_error(call, "the kernel (%lld, %lld) is larger than the padded image",
                                  (long long)w->dim[2], (long long)w->dim[3]);
    }
    qn_shape_set(&call->out[0], call->storage, 4, dim);
    return QN_OK;
}

/* --- variants --- */

QN_CONV2D_VARIANT(forward, QN_CONV2D_FORWARD, qn_conv2d_forward(call), qn_conv2d_cost,
                  qn_conv2d_image)
QN_CONV2D_VARIANT(forward_winograd, QN_CONV2D_FORWARD, qn_conv2d_forward(call),
                  qn_conv2d_winograd_cost, qn_conv2d_winograd)
QN_CONV2D_VARIANT(forward_winograd_gpu, QN_CONV2D_FORWARD, qn_conv2d_forward(call),
                  qn_conv2d_winograd_gpu_cost, qn_conv2d_winograd_gpu)
QN_CONV2D_VARIANT(input, QN_CONV2D_INPUT, qn_conv2d_gradient(call, false), qn_conv2d_cost,
                  qn_conv2d_image)
QN_CONV2D_VARIANT(input_winograd, QN_CONV2D_INPUT, qn_conv2d_gradient(call, false),
                  qn_conv2d_winograd_cost, qn_conv2d_winograd)
QN_CONV2D_VARIANT(input_winograd_gpu, QN_CONV2D_INPUT, qn_conv2d_gradient(call, false),
                  qn_conv2d_winograd_gpu_cost, qn_conv2d_winograd_gpu)
QN_CONV2D_VARIANT(second, QN_CONV2D_SECOND, qn_conv2d_gradient(call, true), qn_conv2d_cost,
                  qn_conv2d_image)
QN_CONV2D_VARIANT(second_winograd, QN_CONV2D_SECOND, qn_conv2d_gradient(call, true),
                  qn_conv2d_winograd_cost, qn_conv2d_winograd)
QN_CONV2D_VARIANT(second_winograd_gpu, QN_CONV2D_SECOND, qn_conv2d_gradient(call, true),
                  qn_conv2d_winograd_gpu_cost, qn_conv2d_winograd_gpu)

QN_CONV2D_VARIANT(weight, QN_CONV2D_WEIGHT, qn_conv2d_weights(call), qn_conv2d_weight_cost,
                  qn_conv2d_weight)

QN_CONV2D_UNITS_VARIANT(forward_units, QN_CONV2D_FORWARD, qn_conv2d_forward(call), qn_conv2d_units)
QN_CONV2D_UNITS_VARIANT(input_units, QN_CONV2D_INPUT, qn_conv2d_gradient(call, false),
                        qn_conv2d_units)
QN_CONV2D_UNITS_VARIANT(second_units, QN_CONV2D_SECOND, qn_conv2d_gradient(call, true),
                        qn_conv2d_units)
QN_CONV2D_UNITS_VARIANT(weight_units, QN_CONV2D_WEIGHT, qn_conv2d_weights(call),
                        qn_conv2d_weight_units)

static void depthwise_weight_cost(const struct qn_call *call, struct qn_cost *cost)
{
    const struct qn_conv2d_product p = qn_conv2d_weights(call);
    qn_conv2d_cost(call, &p, QN_CONV2D_WEIGHT, cost);
}

const struct qn_op qn_op_conv2d = {
    .name = "conv2d",
    .attr_size = sizeof(struct qn_conv2d_attr),
    .n_in = 4,
    .n_required = 2,
    .n_out = 1,
    .batch = {[0] = QN_BATCH_MAY, [3] = QN_BATCH_MAY}, /* the images */
    .shape = shape,
    .groups = {
        [QN_CONV2D_FORWARD] = {.name = "forward",
                               .phase = QN_PHASE_TRAIN | QN_PHASE_EVAL,
                               .read = {{QN_IN(0)}, {QN_IN(1)}, {QN_IN(2)}, {QN_IN(3)}},
                               .write = {{QN_OUT(0)}},
                               .variant = {{"depthwise", qn_conv2d_depthwise_fits_cpu, forward_cost,
                                            qn_conv2d_depthwise_forward, .cpu = true},
                                           {"winograd", qn_conv2d_winograd_fits,
                                            forward_winograd_cost, forward_winograd, .cpu = true},
                                           {"cpu", qn_conv2d_fits_cpu, forward_cost, forward,
                                            qn_conv2d_image_settings, .cpu = true},
                                           {"depthwise-gpu", qn_conv2d_depthwise_fits_gpu,
                                            forward_cost, qn_conv2d_depthwise_forward},
                                           {"gpu", qn_conv2d_fits_gpu, forward_cost, forward,
                                            qn_conv2d_gpu_settings},
                                           {"winograd-gpu", qn_conv2d_winograd_fits_gpu,
                                            forward_winograd_gpu_cost, forward_winograd_gpu},
                                           {"units", forward_units_fits, forward_units_cost,
                                            forward_units, qn_conv2d_units_settings}}},
        [QN_CONV2D_INPUT] = {.name = "input gradient",
                             .phase = QN_PHASE_BACKWARD,
                             .read = {{QN_DOUT(0)}, {QN_IN(1)}},
                             .write = {{QN_DIN(0)}},
                             .variant = {{"depthwise", qn_conv2d_depthwise_fits_cpu, input_cost,
                                          qn_conv2d_depthwise_input, .cpu = true},
                                         {"winograd", qn_conv2d_winograd_fits, input_winograd_cost,
                                          input_winograd, .cpu = true},
                                         {"cpu", qn_conv2d_fits_cpu, input_cost, input,
                                          qn_conv2d_image_settings, .cpu = true},
                                         {"depthwise-gpu", qn_conv2d_depthwise_fits_gpu, input_cost,
                                          qn_conv2d_depthwise_input},
                                         {"gpu", qn_conv2d_fits_gpu, input_cost, input,
                                          qn_conv2d_gpu_settings},
                                         {"winograd-gpu", qn_conv2d_winograd_fits_gpu,
                                          input_winograd_gpu_cost, input_winograd_gpu},
                                         {"units", input_units_fits, input_units_cost, input_units,
                                          qn_conv2d_units_settings}}},
        [QN_CONV2D_WEIGHT] =
            {.name = "weight gradient",
             .phase = QN_PHASE_BACKWARD,
             .read = {{QN_DOUT(0)}, {QN_IN(0)}, {QN_IN(3)}},
             .write = {{QN_DIN(1)}},
             .variant = {{"depthwise", qn_conv2d_depthwise_fits_cpu, depthwise_weight_cost,
                          qn_conv2d_depthwise_weight, .cpu = true},
                         {"winograd", qn_conv2d_winograd_weight_fits,
                          qn_conv2d_winograd_weight_cost, qn_conv2d_winograd_weight, .cpu = true},
                         {"cpu", qn_conv2d_fits_cpu, weight_cost, weight, .cpu = true},
                         {"depthwise-gpu", qn_conv2d_depthwise_fits_gpu, depthwise_weight_cost,
                          qn_conv2d_depthwise_weight},
                         {"gpu", qn_conv2d_fits_gpu, weight_cost, weight, qn_conv2d_gpu_settings},
                         {"winograd-gpu", qn_conv2d_winograd_fits_gpu,
                          qn_conv2d_winograd_weight_cost, qn_conv2d_winograd_weight},
                         {"units", weight_units_fits, weight_units_cost, weight_units,
                          qn_conv2d_weight_units_settings}}},
        [QN_CONV2D_BIAS] = {.name = "bias gradient",
                            .phase = QN_PHASE_BACKWARD,
                            .read = {{QN_DOUT(0)}},
                            .write = {{QN_DIN(2)}},
                            .variant = QN_BOTH_SHAPES(qn_fits_row_group, qn_conv2d_bias_cost,
                                                      qn_conv2d_bias)},
        [QN_CONV2D_SECOND] = {.name = "second input gradient",
                              .phase = QN_PHASE_BACKWARD,
                              .read = {{QN_DOUT(0)}, {QN_IN(1)}},
                              .write = {{QN_DIN(3)}},
                              .variant = {{"winograd", qn_conv2d_winograd_fits,
                                           second_winograd_cost, second_winograd, .cpu = true},
                                          {"cpu", qn_conv2d_fits_cpu, second_cost, second,
                                           qn_conv2d_image_settings, .cpu = true},
                                          {"gpu", qn_conv2d_fits_gpu, second_cost, second,
                                           qn_conv2d_gpu_settings},
                                          {"winograd-gpu", qn_conv2d_winograd_fits_gpu,
                                           second_winograd_gpu_cost, second_winograd_gpu},
                                          {"units", second_units_fits, second_units_cost,
                                           second_units, qn_conv2d_units_settings}}},
    }};

/* --- public functions --- */

static qn_tensor apply(qn_graph *graph, const qn_tensor *in, const qn_conv2d_params *params)
{
    const qn_conv2d_params none = {0};
    params = params ? params : &none;
    struct qn_conv2d_attr attr = {.groups = params->groups ? params->groups : 1};
    for (int i = 0; i < 2; i++) {
        attr.stride[i] = params->stride[i] ? params->stride[i] : 1;
        attr.padding[i] = params->padding[i];
        attr.dilation[i] = params->dilation[i] ? params->dilation[i] : 1;
    }
    return qn_op_apply(graph, &qn_op_conv2d, in, &attr);
}

qn_tensor qn_conv2d(qn_graph *graph, qn_tensor x, qn_tensor weight, qn_tensor bias,
                    const qn_conv2d_params *params)
{
    return apply(graph, (const qn_tensor[]){x, weight, bias, {0}}, params);
}

qn_tensor qn_conv2d_concat(qn_graph *graph, qn_tensor a, qn_tensor b, qn_tensor weight,
                           qn_tensor bias, const qn_conv2d_params *params)
{
    return apply(graph, (const qn_tensor[]){a, weight, bias, b}, params);
}
