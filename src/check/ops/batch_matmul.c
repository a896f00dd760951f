/* SPDX-License-Identifier: MIT */
#include "base/shape.h"
#include "check/check.h"
#include "op/matmul.h"

extern const struct qn_op qn_op_batch_matmul;
extern const struct qn_check_op qn_check_batch_matmul;

/* Dimension 0 or 1 of the last two. */
static int64_t size_of(const struct qn_operand *operand, int dimension)
{
    return operand->shape.dim[operand->shape.rank - 2 + dimension];
}

static void reference(const struct qn_reference *r)
{
    const struct qn_batch_matmul_attr *attr = r->call->attr;
    const struct qn_operand *a = &r->call->in[0], *y = &r->call->out[0];
    const int64_t m = size_of(y, 0), n = size_of(y, 1), k = size_of(a, !attr->transpose_a);
    const int64_t batch = qn_shape_span(&y->shape, 0, y->shape.rank - 2);
    const int64_t next_b = r->call->in[1].shape.rank < y->shape.rank ? 0 : k * n;
    for (int64_t p = 0; p < batch; p++)
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) {
                double sum = 0;
                for (int64_t l = 0; l < k; l++)
                    sum += r->in[0][p * m * k + (attr->transpose_a ? l * m + i : i * k + l)] *
                           r->in[1][p * next_b + (attr->transpose_b ? j * k + l : l * n + j)];
                r->out[0][(p * m + i) * n + j] = sum;
            }
}

static void outputs(const struct qn_call *call, struct qn_operand out[QN_MAX_OUT])
{
    const struct qn_batch_matmul_attr *attr = call->attr;
    const int last = out[0].shape.rank - 1;
    out[0].shape.dim[last - 1] = size_of(&call->in[0], attr->transpose_a);
    out[0].shape.dim[last] = size_of(&call->in[1], !attr->transpose_b);
}

static double flops(const struct qn_call *call, const char *group)
{
    const struct qn_batch_matmul_attr *attr = call->attr;
    (void)group;
    return 2 * (double)qn_operand_count(&call->out[0]) *
           (double)size_of(&call->in[0], !attr->transpose_a);
}

static const struct qn_batch_matmul_attr nn = {0, 0}, nt = {0, 1}, tn = {1, 0}, tt = {1, 1};

#define MATRIX(rows, columns)                                                                      \
    {                                                                                              \
        .rank = 2, .dim = { rows, columns }                                                        \
    }
#define MATRICES(batch, rows, columns)                                                             \
    {                                                                                              \
        .rank = 3, .dim = { batch, rows, columns }                                                 \
    }
#define HEADS(batch, heads, rows, columns)                                                         \
    {                                                                                              \
        .rank = 4, .dim = { batch, heads, rows, columns }                                          \
    }

static const struct qn_check_case cases[] = {
    {"one element", {MATRIX(1, 1), MATRIX(1, 1)}, .attr = &nn},
    {"one product", {MATRIX(17, 19), MATRIX(19, 33)}, .attr = &nn},
    {"one product, b transposed", {MATRIX(7, 20), MATRIX(35, 20)}, .attr = &nt},
    {"a batch", {MATRICES(3, 5, 7), MATRICES(3, 7, 11)}, .attr = &nn, .small = true},
    {"a batch, b transposed", {MATRICES(3, 6, 18), MATRICES(3, 9, 18)}, .attr = &nt},
    {"a batch, a transposed", {MATRICES(2, 19, 5), MATRICES(2, 19, 37)}, .attr = &tn},
    {"a batch, both transposed",
     {MATRICES(2, 10, 21), MATRICES(2, 13, 10)},
     .attr = &tt,
     .small = true,
     .f32_only = true},
    {"heads", {HEADS(2, 3, 9, 16), HEADS(2, 3, 13, 16)}, .attr = &nt},
    {"many small products", {MATRICES(37, 4, 3), MATRICES(37, 3, 2)}, .attr = &nn},
    {"one row", {MATRICES(4, 1, 21), MATRICES(4, 21, 18)}, .attr = &nn},
    {"one column", {MATRICES(4, 18, 21), MATRICES(4, 21, 1)}, .attr = &nn},
    {"one term", {MATRICES(4, 17, 1), MATRICES(4, 1, 18)}, .attr = &nn},
    {"full tiles", {MATRICES(2, 64, 16), MATRICES(2, 16, 64)}, .attr = &nn},
    {"one over a tile", {MATRICES(2, 65, 33), MATRICES(2, 33, 129)}, .attr = &nn},
    {"one over a tile, both transposed", {MATRICES(2, 33, 65), MATRICES(2, 129, 33)}, .attr = &tt},
    {"several large tiles", {MATRICES(2, 300, 3), MATRICES(2, 3, 270)}, .attr = &nn},
    {"one matrix for all", {MATRICES(3, 5, 7), MATRIX(7, 11)}, .attr = &nn, .small = true},
    {"one matrix for all, transposed", {MATRICES(3, 5, 7), MATRIX(11, 7)}, .attr = &nt},
    {"one matrix for all heads", {HEADS(2, 3, 9, 20), MATRIX(20, 18)}, .attr = &nn},
    {"one parameter for all, a long sum of rows",
     {MATRICES(9, 130, 21), {.role = QN_ROLE_PARAMETER, .rank = 2, .dim = {21, 6}}},
     .attr = &nn},
    {"a long sum of terms", {MATRICES(2, 5, 1100), MATRICES(2, 1100, 6)}, .attr = &nn},
    {0},
};

static const struct qn_check_case refused[] = {
    {"a row", {{.rank = 1, .dim = {4}}, {.rank = 1, .dim = {4}}}, .attr = &nn},
    {"two ranks", {HEADS(2, 2, 3, 4), MATRICES(2, 4, 5)}, .attr = &nn},
    {"two batches", {MATRICES(2, 3, 4), MATRICES(3, 4, 5)}, .attr = &nn},
    {"a matrix for all as the first", {MATRIX(3, 4), MATRICES(2, 4, 5)}, .attr = &nn},
    {"one matrix for all, the first transposed", {MATRICES(2, 4, 3), MATRIX(4, 5)}, .attr = &tn},
    {"one matrix of another length", {MATRICES(2, 3, 4), MATRIX(5, 4)}, .attr = &nn},
    {"two lengths", {MATRIX(3, 4), MATRIX(3, 4)}, .attr = &nn},
    {"two lengths, b transposed", {MATRIX(3, 4), MATRIX(4, 3)}, .attr = &nt},
    {"integers",
     {{.role = QN_ROLE_FIXED, .dtype = QN_I32, .rank = 2, .dim = {3, 4}}, MATRIX(4, 5)},
     .attr = &nn},
    {0},
};

const struct qn_check_op qn_check_batch_matmul = {.op = &qn_op_batch_matmul,
                                                  .cases = cases,
                                                  .reference = reference,
                                                  .refused = refused,
                                                  .outputs = outputs,
                                                  .flops = flops};
