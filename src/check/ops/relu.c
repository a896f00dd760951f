/* SPDX-License-Identifier: MIT */
#include "check/check.h"

#include <math.h>

extern const struct qn_op qn_op_relu;
extern const struct qn_check_op qn_check_relu;

static void reference(const struct qn_reference *r)
{
    int64_t count = qn_operand_count(&r->call->in[0]);
    for (int64_t i = 0; i < count; i++)
        r->out[0][i] = r->in[0][i] <= 0 ? 0 : r->in[0][i];
}

/* The derivative at 0 is 0, and so it is at NaN. */
static void gradient(const struct qn_reference *r, const double *dout, double *din)
{
    int64_t count = qn_operand_count(&r->call->in[0]);
    for (int64_t i = 0; i < count; i++)
        din[i] = r->in[0][i] > 0 ? dout[i] : 0;
}

/* Repeated, so that each value stands in a vector of any width and in the tail behind the last one.
 */
#define SPECIALS 0, -0.0, NAN, INFINITY, -INFINITY, 0.5, -0.5
static const double specials[] = {SPECIALS, SPECIALS, SPECIALS};

/* Sizes at which the last vector is full, is filled in part, or is the only one. */
static const struct qn_check_case cases[] = {
    {
        "full vectors",
        .in = {{.rank = 2, .dim = {4, 16}, .fill = QN_FILL_KINKLESS}},
    },
    {"a tail", .in = {{.rank = 3, .dim = {3, 5, 9}, .fill = QN_FILL_KINKLESS}}, .small = true},
    {
        "one element",
        .in = {{.rank = 1, .dim = {1}, .fill = QN_FILL_KINKLESS}},
    },
    {"zeros and NaN", .in = {{.rank = 1, .dim = {21}, .values = specials}}, .small = true,
     .gradient = gradient},
    {
        "several groups",
        .in = {{.rank = 2, .dim = {7, 311}, .fill = QN_FILL_KINKLESS}},
    },
    {0},
};

static const struct qn_check_case refused[] = {
    {"integers", .in = {{.role = QN_ROLE_FIXED, .dtype = QN_I32, .rank = 1, .dim = {4}}}},
    {0},
};

const struct qn_check_op qn_check_relu = {
    .op = &qn_op_relu, .cases = cases, .reference = reference, .refused = refused};
