/* SPDX-License-Identifier: MIT
 *
 * Transposed convolution: what it takes is the result of a convolution, and what it makes has the
 * place of the image. So it makes what the gradient of an image is, its own gradient of the input
 * is a convolution, and both are the products of conv2d.
 */
#include "base/log.h"
#include "ops/conv2d_product.h"

#include <quern/ops.h>

/* --- shapes --- */

static qn_status check_output_padding(struct qn_shape_call *call)
{
    const struct qn_conv_transpose2d_attr *attr = call->attr;
    for (int i = 0; i < 2; i++) {
        const int extra = attr->output_padding[i];
        if (extra < 0 || (extra >= attr->conv.stride[i] && extra >= attr->conv.dilation[i]))
            return qn_shape_error(call,
                                  "an output padding of %d is not below the stride of %d or the "
                                  "dilation of %d",
                                  extra, attr->conv.stride[i], attr->conv.dilation[i]);
    }
    return QN_OK;
}

static qn_status check_channels(struct qn_shape_call *call)
{
    const struct qn_conv_transpose2d_attr *attr = call->attr;
    const int64_t *x = call->in[0].shape.dim, *w = call->in[1].shape.dim;
    if (x[1] % attr->conv.groups)
        return qn_shape_error(call, "%d groups do not divide %lld input channels",
                              attr->conv.groups, (long long)x[1]);
    if (w[0] != x[1])
        return qn_shape_error(call, "the weight takes %lld channels, but the image has %lld",
                              (long long)w[0], (long long)x[1]);
    return qn_conv2d_check_bias(call, w[1] * attr->conv.groups);
}

static int64_t made_size(const struct qn_conv_transpose2d_attr *attr, int axis, int64_t size,
                         int64_t taps)
{
    const struct qn_conv2d_attr *conv = &attr->conv;
    return (size - 1) * conv->stride[axis] - 2 * (int64_t)conv->padding[axis] +
           conv->dilation[axis] * (taps - 1) + attr->output_padding[axis] + 1;
}

static qn_status shape(struct qn_shape_call *call)
{
    const struct qn_conv_transpose2d_attr *attr = call->attr;
    const struct qn_shape *x = &call->in[0].shape, *w = &call->in[1].shape;
    if (!qn_is_float(&call->in[0]) || x->rank != 4 || !qn_is_float(&call->in[1]) || w->rank != 4)
        return qn_shape_error(call,
                              "conv_transpose2d takes an image (b, c, h, w) and a weight (c, o / "
                              "groups, kh, kw) of float types");
    QN_TRY(qn_conv2d_check(call, &attr->conv));
    QN_TRY(check_output_padding(call));
    QN_TRY(check_channels(call));
    int64_t dim[4] = {x->dim[0], w->dim[1] * attr->conv.groups};
    for (int i = 0; i < 2; i++) {
        dim[2 + i] = made_size(attr, i, x->dim[2 + i], w->dim[2 + i]);
        if (dim[2 + i] < 1 || dim[2 + i] > QN_CONV2D_LARGEST_IMAGE)
            return qn_shape_error(call, "%lld elements along axis %d of the result",
                                  (long long)dim[2 + i], 2 + i);
    }
    qn_shape_set(&call->out[0], call->storage, 4, dim);
    return QN_OK;
}

/* --- products --- */

static struct qn_conv2d_product product_of(const struct qn_call *call, bool gradient)
{
    const struct qn_conv_transpose2d_attr *attr = call->attr;
    return qn_conv2d_geometry(&attr->conv, &call->out[0].shape, &call->in[1].shape,
                              &call->in[0].shape, gradient);
}

static struct qn_conv2d_product forward_product(const struct qn_call *call)
{
    struct qn_conv2d_product p = product_of(call, true);
    p.s = &call->in[0];
    p.w = &call->in[1];
    p.b = &call->in[2];
    p.d = &call->out[0];
    return p;
}

static struct qn_conv2d_product input_product(const struct qn_call *call)
{
    struct qn_conv2d_product p = product_of(call, false);
    p.s = &call->dout[0];
    p.w = &call->in[1];
    p.d = &call->din[0];
    p.beta = call->beta_in[0];
    return p;
}

static struct qn_conv2d_product weight_product(const struct qn_call *call)
{
    struct qn_conv2d_product p = product_of(call, false);
    p.s = &call->dout[0];
    p.w = &call->din[1];
    p.d = &call->in[0];
    p.beta = call->beta_in[1];
    return p;
}

/* --- variants --- */

QN_CONV2D_VARIANT(forward, QN_CONV2D_FORWARD, forward_product(call), qn_conv2d_cost,
                  qn_conv2d_image)
QN_CONV2D_VARIANT(input, QN_CONV2D_INPUT, input_product(call), qn_conv2d_cost, qn_conv2d_image)
QN_CONV2D_VARIANT(weight, QN_CONV2D_WEIGHT, weight_product(call), qn_conv2d_weight_cost,
                  qn_conv2d_weight)

QN_CONV2D_UNITS_VARIANT(forward_units, QN_CONV2D_FORWARD, forward_product(call), qn_conv2d_units)
QN_CONV2D_UNITS_VARIANT(input_units, QN_CONV2D_INPUT, input_product(call), qn_conv2d_units)
QN_CONV2D_UNITS_VARIANT(weight_units, QN_CONV2D_WEIGHT, weight_product(call),
                        qn_conv2d_weight_units)

const struct qn_op qn_op_conv_transpose2d = {
    .name = "conv_transpose2d",
    .attr_size = sizeof(struct qn_conv_transpose2d_attr),
    .n_in = 3,
    .n_required = 2,
    .n_out = 1,
    .batch = {QN_BATCH_MAY},
    .shape = shape,
    .groups = {
        [QN_CONV2D_FORWARD] = {.name = "forward",
                               .phase = QN_PHASE_TRAIN | QN_PHASE_EVAL,
                               .read = {{QN_IN(0)}, {QN_IN(1)}, {QN_IN(2)}},
                               .write = {{QN_OUT(0)}},
                               .variant = {{"cpu", qn_conv2d_fits_cpu, forward_cost, forward,
                                            qn_conv2d_image_settings, .cpu = true},
                                           {"gpu", qn_conv2d_fits_gpu, forward_cost, forward,
                                            qn_conv2d_gpu_settings},
                                           {"units", forward_units_fits, forward_units_cost,
                                            forward_units, qn_conv2d_units_settings}}},
        [QN_CONV2D_INPUT] = {.name = "input gradient",
                             .phase = QN_PHASE_BACKWARD,
                             .read = {{QN_DOUT(0)}, {QN_IN(1)}},
                             .write = {{QN_DIN(0)}},
                             .variant = {{"cpu", qn_conv2d_fits_cpu, input_cost, input,
                                          qn_conv2d_image_settings, .cpu = true},
                                         {"gpu", qn_conv2d_fits_gpu, input_cost, input,
                                          qn_conv2d_gpu_settings},
                                         {"units", input_units_fits, input_units_cost, input_units,
                                          qn_conv2d_units_settings}}},
        [QN_CONV2D_WEIGHT] =
            {.name = "weight gradient",
             .phase = QN_PHASE_BACKWARD,
             .read = {{QN_DOUT(0)}, {QN_IN(0)}},
             .write = {{QN_DIN(1)}},
             .variant = {{"cpu", qn_conv2d_fits_cpu, weight_cost, weight, .cpu = true},
                         {"gpu", qn_conv2d_fits_gpu, weight_cost, weight, qn_conv2d_gpu_settings},
                         {"units", weight_units_fits, weight_units_cost, weight_units,
                          qn_conv2d_weight_units_settings}}},
        [QN_CONV2D_BIAS] = {.name = "bias gradient",
                            .phase = QN_PHASE_BACKWARD,
                            .read = {{QN_DOUT(0)}},
                            .write = {{QN_DIN(2)}},
                            .variant = QN_BOTH_SHAPES(qn_fits_row_group, qn_conv2d_bias_cost,
                                                      qn_conv2d_bias)},
    }};

qn_tensor qn_conv_transpose2d(qn_graph *graph, qn_tensor x, qn_tensor weight, qn_tensor bias,
                              const qn_conv_transpose2d_params *params)
{
    const qn_conv_transpose2d_params none = {0};
    params = params ? params : &none;
    struct qn_conv_transpose2d_attr attr = {.conv.groups = params->groups ? params->groups : 1};
    for (int i = 0; i < 2; i++) {
        attr.conv.stride[i] = params->stride[i] ? params->stride[i] : 1;
        attr.conv.padding[i] = params->padding[i];
        attr.conv.dilation[i] = params->dilation[i] ? params->dilation[i] : 1;
        attr.output_padding[i] = params->output_padding[i];
    }
    return qn_op_apply(graph, &qn_op_conv_transpose2d, (const qn_tensor[]){x, weight, bias}, &attr);
}
