/* SPDX-License-Identifier: MIT */
#include "ops/dense.h"

#include "base/shape.h"
#include "ops/common.h"

qn_status qn_dense_shape(struct qn_shape_call *call)
{
    const struct qn_operand *x = &call->in[0], *weight = &call->in[1], *bias = &call->in[2];
    const int last = x->shape.rank - 1;
    if (!qn_is_float(x) || last < 0 || !qn_is_float(weight) || weight->shape.rank != 2)
        return qn_shape_error(call, "takes x (.., k) and a weight (n, k) of float types");
    const int64_t n = weight->shape.dim[0], k = weight->shape.dim[1];
    if (n < 1 || k < 1)
        return qn_shape_error(call, "a dimension of the weight is out of range");
    if (x->shape.dim[last] != k)
        return qn_shape_error(call, "the weight takes rows of %lld elements, but x has %lld",
                              (long long)k, (long long)x->shape.dim[last]);
    if (qn_present(bias) && !qn_is_row_of(bias, n))
        return qn_shape_error(call, "the bias must have %lld elements, one an output",
                              (long long)n);
    int64_t dim[QN_MAX_DIMS];
    for (int i = 0; i < last; i++)
        dim[i] = x->shape.dim[i];
    dim[last] = n;
    qn_shape_set(&call->out[0], call->storage, x->shape.rank, dim);
    return QN_OK;
}

static int64_t rows_of(const struct qn_operand *operand)
{
    return qn_shape_span(&operand->shape, 0, operand->shape.rank - 1);
}

static int64_t columns_of(const struct qn_operand *operand)
{
    return operand->shape.dim[operand->shape.rank - 1];
}

/* The gradient of x * w^T + b. */
static const struct qn_operand *gradient_of(const struct qn_call *call)
{
    return qn_present(&call->temp[0]) ? &call->temp[0] : &call->dout[0];
}

struct qn_matmul qn_dense_forward(const struct qn_call *call)
{
    const struct qn_operand *x = &call->in[0], *weight = &call->in[1], *bias = &call->in[2];
    return (struct qn_matmul){.m = rows_of(x),
                              .n = weight->shape.dim[0],
                              .k = weight->shape.dim[1],
                              .trans_b = true,
                              .a = x,
                              .b = weight,
                              .c = &call->out[0],
                              .bias = qn_present(bias) ? bias : NULL};
}

struct qn_matmul qn_dense_input_gradient(const struct qn_call *call)
{
    const struct qn_operand *dz = gradient_of(call), *weight = &call->in[1];
    return (struct qn_matmul){.m = rows_of(dz),
                              .n = weight->shape.dim[1],
                              .k = weight->shape.dim[0],
                              .a = dz,
                              .b = weight,
                              .c = &call->din[0],
                              .beta = call->beta_in[0]};
}

struct qn_matmul qn_dense_weight_gradient(const struct qn_call *call)
{
    const struct qn_operand *dz = gradient_of(call), *x = &call->in[0];
    return (struct qn_matmul){.m = columns_of(dz),
                              .n = columns_of(x),
                              .k = rows_of(dz),
                              .trans_a = true,
                              .a = dz,
                              .b = x,
                              .c = &call->din[1],
                              .beta = call->beta_in[1]};
}

static struct qn_column_sums bias_sums(const struct qn_call *call)
{
    const struct qn_operand *dz = gradient_of(call);
    return (struct qn_column_sums){.m = rows_of(dz),
                                   .n = columns_of(dz),
                                   .a = dz,
                                   .c = &call->din[2],
                                   .beta = call->beta_in[2]};
}

void qn_dense_bias_cost(const struct qn_call *call, struct qn_cost *cost)
{
    const struct qn_column_sums sums = bias_sums(call);
    qn_column_sums_cost(call, &sums, cost);
}

qn_status qn_dense_bias(struct qn_emit *emit, const struct qn_call *call)
{
    const struct qn_column_sums sums = bias_sums(call);
    return qn_column_sums_emit(emit, call, &sums);
}
