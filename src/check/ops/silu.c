/* SPDX-License-Identifier: MIT */
#include "check/check.h"

#include <math.h>

extern const struct qn_op qn_op_silu;
extern const struct qn_check_op qn_check_silu;

/* At -inf its limit, 0, where the formula gives NaN. */
static void reference(const struct qn_reference *r)
{
    int64_t count = qn_operand_count(&r->call->in[0]);
    for (int64_t i = 0; i < count; i++) {
        const double x = r->in[0][i];
        r->out[0][i] = x == (double)-INFINITY ? 0 : x / (1 + exp(-x));
    }
}

/* The slope where x is 0, infinite or huge: 1/2 at 0, else 0 on the left and 1 on the right. */
static void gradient(const struct qn_reference *r, const double *dout, double *din)
{
    int64_t count = qn_operand_count(&r->call->in[0]);
    for (int64_t i = 0; i < count; i++)
        din[i] = dout[i] * (r->in[0][i] > 0 ? 1 : r->in[0][i] == 0 ? 0.5 : 0);
}

/* The type of x, which may differ from that of activations. */
static void outputs(const struct qn_call *call, struct qn_operand out[QN_MAX_OUT])
{
    out[0].dtype = call->in[0].dtype;
}

/* Repeated, so that each value stands in a vector of any width and in the tail behind the last one.
 */
#define SPECIALS 0, -0.0, INFINITY, -INFINITY, 3e38, -3e38, 90
static const double specials[] = {SPECIALS, SPECIALS, SPECIALS};

#define FAR(from, to)                                                                              \
    {                                                                                              \
        .role = QN_ROLE_FIXED, .dtype = QN_F32, .rank = 1, .dim = {77}, .fill = QN_FILL_UNIFORM,   \
        .a = (from), .b = (to)                                                                     \
    }

/* Sizes at which the last vector is full, is filled in part, or is the only one. Far to the left
 * results are small, and so is their tolerance. */
static const struct qn_check_case cases[] = {
    {"full vectors", .in = {{.rank = 2, .dim = {4, 16}, .a = 3}}},
    {"a tail", .in = {{.rank = 3, .dim = {3, 5, 9}, .a = 3}}, .small = true},
    {"one element", .in = {{.rank = 1, .dim = {1}}}},
    {"several groups", .in = {{.rank = 2, .dim = {7, 311}, .a = 3}}},
    {"to the left", .in = {FAR(-20, -19)}},
    {"far to the left", .in = {FAR(-84, -83.5)}},
    {"far to the right", .in = {FAR(3, 200)}},
    {"not finite",
     .in = {{.role = QN_ROLE_FIXED, .dtype = QN_F32, .rank = 1, .dim = {21}, .values = specials}},
     .gradient = gradient},
    {0},
};

static const struct qn_check_case refused[] = {
    {"integers", .in = {{.role = QN_ROLE_FIXED, .dtype = QN_I32, .rank = 1, .dim = {4}}}},
    {0},
};

const struct qn_check_op qn_check_silu = {.op = &qn_op_silu,
                                          .cases = cases,
                                          .reference = reference,
                                          .refused = refused,
                                          .outputs = outputs};
