/* SPDX-License-Identifier: MIT
 *
 * y = x * w^T + b. One product a group: every leading dimension of x counts as rows.
 */
#include "base/log.h"
#include "base/shape.h"
#include "ops/common.h"
#include "ops/matmul_units.h"

#include <quern/ops.h>

enum { FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT, BIAS_GRADIENT };

static qn_status shape(struct qn_shape_call *call)
{
    const struct qn_operand *x = &call->in[0], *weight = &call->in[1], *bias = &call->in[2];
    const int last = x->shape.rank - 1;
    if (!qn_is_float(x) || last < 0 || !qn_is_float(weight) || weight->shape.rank != 2)
        return qn_shape_error(call, "linear takes x (.., k) and a weight (n, k) of float types");
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

/* --- the products, from what each group reads --- */

static struct qn_matmul forward_product(const struct qn_call *call)
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

static struct qn_matmul input_product(const struct qn_call *call)
{
    const struct qn_operand *dy = &call->dout[0], *weight = &call->in[1];
    return (struct qn_matmul){.m = rows_of(dy),
                              .n = weight->shape.dim[1],
                              .k = weight->shape.dim[0],
                              .a = dy,
                              .b = weight,
                              .c = &call->din[0],
                              .beta = call->beta_in[0]};
}

static struct qn_matmul weight_product(const struct qn_call *call)
{
    const struct qn_operand *dy = &call->dout[0], *x = &call->in[0];
    return (struct qn_matmul){.m = columns_of(dy),
                              .n = columns_of(x),
                              .k = rows_of(dy),
                              .trans_a = true,
                              .a = dy,
                              .b = x,
                              .c = &call->din[1],
                              .beta = call->beta_in[1]};
}

static struct qn_column_sums bias_sums(const struct qn_call *call)
{
    const struct qn_operand *dy = &call->dout[0];
    return (struct qn_column_sums){.m = rows_of(dy),
                                   .n = columns_of(dy),
                                   .a = dy,
                                   .c = &call->din[2],
                                   .beta = call->beta_in[2]};
}

/* --- variants --- */

/* NAME_fits, NAME_cost and NAME_emit: one product of a group, one way. */
#define PRODUCT_VARIANT(name, product, group, way)                                                 \
    static bool name##_fits(const struct qn_call *call, const char **why)                          \
    {                                                                                              \
        const struct qn_matmul matmul = product(call);                                             \
        return qn_matmul_fits(call->facts, &matmul, way, why);                                     \
    }                                                                                              \
    static void name##_cost(const struct qn_call *call, struct qn_cost *cost)                      \
    {                                                                                              \
        const struct qn_matmul matmul = product(call);                                             \
        cost->bytes = qn_group_bytes(call, group);                                                 \
        qn_matmul_cost(call->facts, &matmul, way, cost);                                           \
    }                                                                                              \
    static qn_status name##_emit(struct qn_emit *emit, const struct qn_call *call)                 \
    {                                                                                              \
        const struct qn_matmul matmul = product(call);                                             \
        return qn_matmul_emit(emit, call, &matmul, way);                                           \
    }

PRODUCT_VARIANT(forward_cpu, forward_product, FORWARD, QN_MATMUL_CPU)
PRODUCT_VARIANT(forward_gpu, forward_product, FORWARD, QN_MATMUL_GPU)
PRODUCT_VARIANT(forward_blas, forward_product, FORWARD, QN_MATMUL_BLAS)
QN_MATMUL_UNITS(forward_units, forward_product)
PRODUCT_VARIANT(input_cpu, input_product, INPUT_GRADIENT, QN_MATMUL_CPU)
PRODUCT_VARIANT(input_gpu, input_product, INPUT_GRADIENT, QN_MATMUL_GPU)
PRODUCT_VARIANT(input_blas, input_product, INPUT_GRADIENT, QN_MATMUL_BLAS)
QN_MATMUL_UNITS(input_units, input_product)
PRODUCT_VARIANT(weight_cpu, weight_product, WEIGHT_GRADIENT, QN_MATMUL_CPU)
PRODUCT_VARIANT(weight_gpu, weight_product, WEIGHT_GRADIENT, QN_MATMUL_GPU)
PRODUCT_VARIANT(weight_blas, weight_product, WEIGHT_GRADIENT, QN_MATMUL_BLAS)
QN_MATMUL_UNITS(weight_units, weight_product)

#define PRODUCT_VARIANTS(group)                                                                    \
    {                                                                                              \
        {"cpu", group##_cpu_fits, group##_cpu_cost, group##_cpu_emit},                             \
            {"gpu", group##_gpu_fits, group##_gpu_cost, group##_gpu_emit},                         \
            QN_UNITS(group##_units),                                                               \
            {"clblast", group##_blas_fits, group##_blas_cost, group##_blas_emit},                  \
    }

static void bias_cost(const struct qn_call *call, bool cpu, struct qn_cost *cost)
{
    const struct qn_column_sums sums = bias_sums(call);
    cost->bytes = qn_group_bytes(call, BIAS_GRADIENT);
    qn_column_sums_cost(call->facts, &sums, cpu, cost);
}

static void bias_cost_cpu(const struct qn_call *call, struct qn_cost *cost)
{
    bias_cost(call, true, cost);
}

static void bias_cost_gpu(const struct qn_call *call, struct qn_cost *cost)
{
    bias_cost(call, false, cost);
}

static qn_status bias_cpu(struct qn_emit *emit, const struct qn_call *call)
{
    const struct qn_column_sums sums = bias_sums(call);
    return qn_column_sums_emit(emit, call, &sums, true);
}

static qn_status bias_gpu(struct qn_emit *emit, const struct qn_call *call)
{
    const struct qn_column_sums sums = bias_sums(call);
    return qn_column_sums_emit(emit, call, &sums, false);
}

const struct qn_op qn_op_linear = {
    .name = "linear",
    .n_in = 3,
    .n_required = 2,
    .n_out = 1,
    .shape = shape,
    .groups =
        {
            {.name = "forward",
             .phase = QN_PHASE_TRAIN | QN_PHASE_EVAL,
             .read = {{.ref = QN_IN(0)}, {.ref = QN_IN(1)}, {.ref = QN_IN(2)}},
             .write = {{.ref = QN_OUT(0)}},
             .variant = PRODUCT_VARIANTS(forward)},
            {.name = "input gradient",
             .phase = QN_PHASE_BACKWARD,
             .read = {{.ref = QN_DOUT(0)}, {.ref = QN_IN(1)}},
             .write = {{.ref = QN_DIN(0)}},
             .variant = PRODUCT_VARIANTS(input)},
            {.name = "weight gradient",
             .phase = QN_PHASE_BACKWARD,
             .read = {{.ref = QN_DOUT(0)}, {.ref = QN_IN(0)}},
             .write = {{.ref = QN_DIN(1)}},
             .variant = PRODUCT_VARIANTS(weight)},
            {.name = "bias gradient",
             .phase = QN_PHASE_BACKWARD,
             .read = {{.ref = QN_DOUT(0)}},
             .write = {{.ref = QN_DIN(2)}},
             .variant = {{"cpu", qn_fits_cpu, bias_cost_cpu, bias_cpu},
                         {"gpu", qn_fits_row_group, bias_cost_gpu, bias_gpu}}},
        },
};

qn_tensor qn_linear(qn_graph *graph, qn_tensor x, qn_tensor weight, qn_tensor bias)
{
    return qn_op_apply(graph, &qn_op_linear, (const qn_tensor[]){x, weight, bias}, NULL);
}
