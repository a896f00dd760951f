/* SPDX-License-Identifier: MIT */
#include "check/check.h"

#include <math.h>

extern const struct qn_op qn_op_softmax;
extern const struct qn_check_op qn_check_softmax;

static void softmax_row(const double *x, int64_t n, double *y)
{
    double top = -3e38, sum = 0;
    for (int64_t i = 0; i < n; i++)
        top = fmax(top, x[i]);
    for (int64_t i = 0; i < n; i++)
        sum += exp(x[i] - top);
    for (int64_t i = 0; i < n; i++)
        y[i] = sum > 0 ? exp(x[i] - top) / sum : 0;
}

static void reference(const struct qn_reference *r)
{
    const struct qn_shape *x = &r->call->in[0].shape;
    const int64_t n = x->dim[x->rank - 1], rows = qn_operand_count(&r->call->in[0]) / n;
    for (int64_t row = 0; row < rows; row++)
        softmax_row(r->in[0] + row * n, n, r->out[0] + row * n);
}

/* From the definition: dx = y * (dy - sum of y * dy). */
static void gradient(const struct qn_reference *r, const double *dout, double *din)
{
    const struct qn_shape *x = &r->call->in[0].shape;
    const int64_t n = x->dim[x->rank - 1], rows = qn_operand_count(&r->call->in[0]) / n;
    for (int64_t row = 0; row < rows; row++) {
        double *dx = din + row * n, sum = 0;
        softmax_row(r->in[0] + row * n, n, dx);
        for (int64_t i = 0; i < n; i++)
            sum += dx[i] * dout[row * n + i];
        for (int64_t i = 0; i < n; i++)
            dx[i] *= dout[row * n + i] - sum;
    }
}

/* Masked elements, in vectors of 4 and in the tail; and a row where all are. */
#define NO -INFINITY
static const double masked[] = {NO, NO, NO, NO, NO, NO,   NO, /**/
                                1,  NO, 2,  NO, NO, 0.5,  NO, /**/
                                NO, NO, NO, NO, NO, -0.5, NO};

/* Without that one in the maximum of its lane, 0, its exponential is no number; those of larger
 * ones may have a false sign, which the quotient hides. */
static const double first_is_far[1024] = {88.7, 1, 2}, last_is_far[1024] = {1, 2, [1023] = 88.7};

static const struct qn_check_case cases[] = {
    {"the first is far above", {{.rank = 2, .dim = {1, 1024}, .values = first_is_far}}},
    {"the last is far above", {{.rank = 2, .dim = {1, 1024}, .values = last_is_far}}},
    {"masked", {{.rank = 2, .dim = {3, 7}, .values = masked}}, .small = true, .gradient = gradient},
    {"ten classes", {{.rank = 2, .dim = {7, 10}}}, .small = true},
    {"rank 4", {{.rank = 4, .dim = {2, 3, 5, 37}}}},
    {"rows of one", {{.rank = 2, .dim = {5, 1}}}},
    {"one row", {{.rank = 2, .dim = {1, 131}}}},
    {"long rows", {{.rank = 2, .dim = {3, 1031}, .a = 3}}},
    {"many short rows", {{.rank = 3, .dim = {13, 101, 3}}}},
    {"far from 0", {{.rank = 2, .dim = {5, 33}, .a = 2, .b = -60}}, .small = true},
    {0},
};

static const struct qn_check_case refused[] = {
    {"over the batch", {{.rank = 1, .dim = {8}}}},
    {"integers", {{.role = QN_ROLE_FIXED, .dtype = QN_I32, .rank = 2, .dim = {3, 4}}}},
    {0},
};

const struct qn_check_op qn_check_softmax = {
    .op = &qn_op_softmax, .cases = cases, .reference = reference, .refused = refused};
