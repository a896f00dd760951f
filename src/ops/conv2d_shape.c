/* SPDX-License-Identifier: MIT
 *
 * What the shape rules of conv2d and conv_transpose2d ask.
 */
#include "ops/conv2d_product.h"

#include "base/log.h"
#include "base/shape.h"

#include <limits.h>

static qn_status check_attributes(struct qn_shape_call *call, const struct qn_conv2d_attr *attr)
{
    for (int i = 0; i < 2; i++)
        if (attr->stride[i] < 1 || attr->dilation[i] < 1 || attr->padding[i] < 0 ||
            attr->stride[i] > QN_CONV2D_LARGEST_ATTRIBUTE ||
            attr->dilation[i] > QN_CONV2D_LARGEST_ATTRIBUTE ||
            attr->padding[i] > QN_CONV2D_LARGEST_ATTRIBUTE)
            return qn_shape_error(call, "stride %d, padding %d, dilation %d: out of range",
                                  attr->stride[i], attr->padding[i], attr->dilation[i]);
    if (attr->groups < 1)
        return qn_shape_error(call, "%d groups", attr->groups);
    return QN_OK;
}

/* The kernels count channels, rows, columns and terms in 32 bits, and elements of a tensor in 64.
 */
static qn_status check_sizes(struct qn_shape_call *call)
{
    const int64_t *x = call->in[0].shape.dim;
    const int64_t weights = qn_shape_count(&call->in[1].shape);
    for (int i = 0; i < 4; i++)
        if (x[i] < 1 || x[i] > QN_CONV2D_LARGEST_IMAGE || call->in[1].shape.dim[i] < 1)
            return qn_shape_error(call, "a dimension is out of range");
    if (weights < 0 || weights > INT_MAX)
        return qn_shape_error(call, "the weight is too large");
    return QN_OK;
}

qn_status qn_conv2d_check(struct qn_shape_call *call, const struct qn_conv2d_attr *attr)
{
    QN_TRY(check_attributes(call, attr));
    return check_sizes(call);
}

qn_status qn_conv2d_check_bias(struct qn_shape_call *call, int64_t channels)
{
    if (qn_present(&call->in[2]) && !qn_is_row_of(&call->in[2], channels))
        return qn_shape_error(call, "the bias must have %lld elements, one an output channel",
                              (long long)channels);
    return QN_OK;
}
