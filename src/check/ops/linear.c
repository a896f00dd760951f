/* SPDX-License-Identifier: MIT */
#include "base/shape.h"
#include "check/check.h"

#include <string.h>

extern const struct qn_op qn_op_linear;
extern const struct qn_check_op qn_check_linear;

static void reference(const struct qn_reference *r)
{
    const struct qn_shape *x = &r->call->in[0].shape, *weight = &r->call->in[1].shape;
    const int64_t m = qn_shape_span(x, 0, x->rank - 1), n = weight->dim[0], k = weight->dim[1];
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = r->in[2] ? r->in[2][j] : 0;
            for (int64_t l = 0; l < k; l++)
                sum += r->in[0][i * k + l] * r->in[1][j * k + l];
            r->out[0][i * n + j] = sum + (r->in[3] ? r->in[3][i * n + j] : 0);
        }
}

static void outputs(const struct qn_call *call, struct qn_operand out[QN_MAX_OUT])
{
    out[0].shape.dim[out[0].shape.rank - 1] = call->in[1].shape.dim[0];
}

static double flops(const struct qn_call *call, const char *group)
{
    const double results = (double)qn_operand_count(&call->out[0]);
    if (strcmp(group, "bias gradient") == 0 || strcmp(group, "residual gradient") == 0)
        return results;
    return 2 * results * (double)call->in[1].shape.dim[1];
}

#define ROWS(m, k)                                                                                 \
    {                                                                                              \
        .rank = 2, .dim = { m, k }                                                                 \
    }
#define WEIGHT(n, k)                                                                               \
    {                                                                                              \
        .role = QN_ROLE_PARAMETER, .rank = 2, .dim = { n, k }                                      \
    }
#define BIAS(n)                                                                                    \
    {                                                                                              \
        .role = QN_ROLE_PARAMETER, .rank = 1, .dim = { n }                                         \
    }
#define NONE                                                                                       \
    {                                                                                              \
        .rank = -1                                                                                 \
    }
#define PRODUCT(m, n, k)                                                                           \
    {                                                                                              \
        ROWS(m, k), WEIGHT(n, k), BIAS(n), NONE                                                    \
    }
#define RESIDUAL(m, n, k)                                                                          \
    {                                                                                              \
        ROWS(m, k), WEIGHT(n, k), BIAS(n), ROWS(m, n)                                              \
    }

/* Tiles of the kernels are 64 to 256 wide, register tiles 8 x 32, blocks of k 256 long, 384 for
 * nine to sixteen rows; sums over more than 1024 elements with few results are split. */
static const struct qn_check_case cases[] = {
    {"one element", PRODUCT(1, 1, 1)},
    {"odd sizes", PRODUCT(3, 5, 7), .small = true, .f32_only = true},
    {"one over a vector", PRODUCT(17, 33, 19)},
    {"no bias", {ROWS(6, 9), WEIGHT(10, 9), NONE, NONE}, .small = true, .f32_only = true},
    {"one row", PRODUCT(1, 37, 50)},
    {"one column", PRODUCT(37, 1, 50)},
    {"one term", PRODUCT(21, 22, 1)},
    {"full tiles", PRODUCT(64, 64, 32)},
    {"one over a tile", PRODUCT(65, 129, 33)},
    {"whole vectors", PRODUCT(40, 40, 72)},
    {"primes", PRODUCT(131, 67, 271)},
    {"a last layer", PRODUCT(128, 10, 256)},
    {"rank 1", {{.rank = 1, .dim = {23}}, WEIGHT(11, 23), BIAS(11), NONE}},
    {"rank 3", {{.rank = 3, .dim = {3, 7, 20}}, WEIGHT(18, 20), BIAS(18), NONE}},
    {"rank 3, no bias", {{.rank = 3, .dim = {2, 5, 31}}, WEIGHT(40, 31), NONE, NONE}},
    {"whole tiles of 128 and edges", PRODUCT(136, 144, 152)},
    {"several large tiles", PRODUCT(300, 520, 5)},
    {"several blocks", PRODUCT(35, 290, 520)},
    {"a long sum of terms", PRODUCT(5, 18, 2070)},
    {"a long sum of outputs", PRODUCT(6, 2061, 17)},
    {"a long sum of rows", PRODUCT(4113, 5, 3)},
    {"few rows", PRODUCT(13, 600, 520)},
    {"few outputs", PRODUCT(600, 13, 150)},
    {"few terms", PRODUCT(150, 600, 13)},
    {"a residual", RESIDUAL(9, 21, 13), .small = true},
    {"a residual alone", {ROWS(8, 16), WEIGHT(16, 16), NONE, ROWS(8, 16)}},
    {"a residual, rank 3",
     {{.rank = 3, .dim = {2, 9, 12}}, WEIGHT(67, 12), BIAS(67), {.rank = 3, .dim = {2, 9, 67}}}},
    {"a residual after a long sum", RESIDUAL(5, 19, 2070)},
    {"a residual, few outputs", RESIDUAL(37, 6, 20)},
    {0},
};

static const struct qn_check_case refused[] = {
    {"a scalar", {{.rank = 0}, WEIGHT(2, 3), NONE, NONE}},
    {"rows of another length", {ROWS(4, 5), WEIGHT(2, 3), NONE, NONE}},
    {"a weight of rank 1",
     {ROWS(4, 3), {.role = QN_ROLE_PARAMETER, .rank = 1, .dim = {3}}, NONE, NONE}},
    {"a bias of another length", {ROWS(4, 3), WEIGHT(2, 3), BIAS(3), NONE}},
    {"a bias of rank 2",
     {ROWS(4, 3), WEIGHT(2, 3), {.role = QN_ROLE_PARAMETER, .rank = 2, .dim = {1, 2}}, NONE}},
    {"integer rows",
     {{.role = QN_ROLE_FIXED, .dtype = QN_I32, .rank = 2, .dim = {4, 3}},
      WEIGHT(2, 3),
      NONE,
      NONE}},
    {"an integer weight",
     {ROWS(4, 3), {.role = QN_ROLE_FIXED, .dtype = QN_U8, .rank = 2, .dim = {2, 3}}, NONE, NONE}},
    {"a residual of another shape", {ROWS(4, 3), WEIGHT(2, 3), BIAS(2), ROWS(2, 4)}},
    {"a residual of integers",
     {ROWS(4, 3),
      WEIGHT(2, 3),
      BIAS(2),
      {.role = QN_ROLE_FIXED, .dtype = QN_I32, .rank = 2, .dim = {4, 2}}}},
    {0},
};

const struct qn_check_op qn_check_linear = {.op = &qn_op_linear,
                                            .cases = cases,
                                            .reference = reference,
                                            .refused = refused,
                                            .outputs = outputs,
                                            .flops = flops};
