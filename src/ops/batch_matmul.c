/* SPDX-License-Identifier: MIT
 *
 * y (.., m, n) = a (.., m, k) * b (.., k, n), where the dimensions before the last two are the same
 * and count the products. Either may be stored with its last two dimensions swapped; so is then its
 * gradient. One matrix b may serve all products: they are one then, with the rows of all, and so
 * are the sums of the gradient of b.
 */
#include "base/shape.h"
#include "op/matmul.h"
#include "ops/common.h"
#include "ops/matmul.h"

#include <quern/ops.h>

/* Dimension 0 or 1 of the last two. */
static int64_t size_of(const struct qn_operand *operand, int dimension)
{
    return operand->shape.dim[operand->shape.rank - 2 + dimension];
}

static bool is_shared(const struct qn_operand *a, const struct qn_operand *b)
{
    return b->shape.rank == 2 && a->shape.rank > 2;
}

/* Rows of a matrix, or of all of them together. */
static int64_t rows_of(const struct qn_operand *operand, bool together)
{
    const int first = together ? 0 : operand->shape.rank - 2;
    return qn_shape_span(&operand->shape, first, operand->shape.rank - 1);
}

static bool same_batch(const struct qn_shape *a, const struct qn_shape *b)
{
    for (int i = 0; i < a->rank - 2; i++)
        if (a->dim[i] != b->dim[i])
            return false;
    return true;
}

static qn_status shape(struct qn_shape_call *call)
{
    const struct qn_batch_matmul_attr *attr = call->attr;
    const struct qn_operand *a = &call->in[0], *b = &call->in[1];
    const int rank = a->shape.rank;
    const bool shared = is_shared(a, b);
    if (!qn_is_float(a) || !qn_is_float(b) || rank < 2 || (b->shape.rank != rank && !shared))
        return qn_shape_error(call, "takes two tensors of float types and of one rank, at least 2, "
                                    "or a matrix as the second");
    if (shared && attr->transpose_a)
        return qn_shape_error(call, "one matrix for all products takes rows that are stored as "
                                    "rows, not transposed");
    if (!shared && !same_batch(&a->shape, &b->shape))
        return qn_shape_error(call, "the dimensions before the last two differ");
    if (size_of(a, !attr->transpose_a) != size_of(b, attr->transpose_b))
        return qn_shape_error(call, "rows of %lld elements meet columns of %lld",
                              (long long)size_of(a, !attr->transpose_a),
                              (long long)size_of(b, attr->transpose_b));
    int64_t dim[QN_MAX_DIMS];
    for (int i = 0; i < rank - 2; i++)
        dim[i] = a->shape.dim[i];
    dim[rank - 2] = size_of(a, attr->transpose_a);
    dim[rank - 1] = size_of(b, !attr->transpose_b);
    for (int i = 0; i < rank; i++)
        if (dim[i] < 1 || a->shape.dim[i] < 1)
            return qn_shape_error(call, "a dimension is out of range");
    qn_shape_set(&call->out[0], call->storage, rank, dim);
    return QN_OK;
}

/* What a (m, k) * b (k, n) -> c (m, n) needs beside its operands and the way they are stored. */
static struct qn_matmul product_of(const struct qn_call *call, const struct qn_matmul *how)
{
    const bool shared = is_shared(&call->in[0], &call->in[1]);
    const struct qn_shape *c = &how->c->shape;
    struct qn_matmul product = *how;
    product.batch = shared ? 1 : qn_shape_span(c, 0, c->rank - 2);
    product.m = rows_of(how->c, shared);
    product.n = size_of(how->c, 1);
    product.k = how->trans_a ? rows_of(how->a, shared) : size_of(how->a, 1);
    return product;
}

static struct qn_matmul forward(const struct qn_call *call)
{
    const struct qn_batch_matmul_attr *attr = call->attr;
    return product_of(call, &(struct qn_matmul){.a = &call->in[0],
                                                .b = &call->in[1],
                                                .c = &call->out[0],
                                                .trans_a = attr->transpose_a,
                                                .trans_b = attr->transpose_b});
}

/* dy * b^T, or b * dy^T where a is stored transposed. */
static struct qn_matmul gradient_of_a(const struct qn_call *call)
{
    const struct qn_batch_matmul_attr *attr = call->attr;
    const struct qn_operand *dy = &call->dout[0], *b = &call->in[1];
    return product_of(call, &(struct qn_matmul){.a = attr->transpose_a ? b : dy,
                                                .b = attr->transpose_a ? dy : b,
                                                .c = &call->din[0],
                                                .trans_a = attr->transpose_a && attr->transpose_b,
                                                .trans_b = attr->transpose_a || !attr->transpose_b,
                                                .beta = call->beta_in[0]});
}

/* a^T * dy, or dy^T * a where b is stored transposed. */
static struct qn_matmul gradient_of_b(const struct qn_call *call)
{
    const struct qn_batch_matmul_attr *attr = call->attr;
    const struct qn_operand *dy = &call->dout[0], *a = &call->in[0];
    return product_of(call, &(struct qn_matmul){.a = attr->transpose_b ? dy : a,
                                                .b = attr->transpose_b ? a : dy,
                                                .c = &call->din[1],
                                                .trans_a = attr->transpose_b || !attr->transpose_a,
                                                .trans_b = attr->transpose_b && attr->transpose_a,
                                                .beta = call->beta_in[1]});
}

QN_MATMUL_VARIANTS(forward)
QN_MATMUL_VARIANTS(gradient_of_a)
QN_MATMUL_VARIANTS(gradient_of_b)

const struct qn_op qn_op_batch_matmul = {
    .name = "batch_matmul",
    .attr_size = sizeof(struct qn_batch_matmul_attr),
    .n_in = 2,
    .n_required = 2,
    .n_out = 1,
    .batch = {QN_BATCH_MAY, QN_BATCH_MAY},
    .shape = shape,
    .groups =
        {
            {.name = "forward",
             .phase = QN_PHASE_TRAIN | QN_PHASE_EVAL,
             .read = {{.ref = QN_IN(0)}, {.ref = QN_IN(1)}},
             .write = {{.ref = QN_OUT(0)}},
             .variant = QN_MATMUL_LIST(forward)},
            {.name = "gradient of a",
             .phase = QN_PHASE_BACKWARD,
             .read = {{.ref = QN_DOUT(0)}, {.ref = QN_IN(1)}},
             .write = {{.ref = QN_DIN(0)}},
             .variant = QN_MATMUL_LIST(gradient_of_a)},
            {.name = "gradient of b",
             .phase = QN_PHASE_BACKWARD,
             .read = {{.ref = QN_DOUT(0)}, {.ref = QN_IN(0)}},
             .write = {{.ref = QN_DIN(1)}},
             .variant = QN_MATMUL_LIST(gradient_of_b)},
        },
};

qn_tensor qn_batch_matmul(qn_graph *graph, qn_tensor a, qn_tensor b,
                          const qn_batch_matmul_params *params)
{
    const struct qn_batch_matmul_attr attr = {params && params->transpose_a,
                                              params && params->transpose_b};
    return qn_op_apply(graph, &qn_op_batch_matmul, (const qn_tensor[]){a, b}, &attr);
}
