/* SPDX-License-Identifier: MIT */
#include "check/check.h"
#include "op/elementwise.h"

#include <math.h>
#include <quern/ops.h>

extern const struct qn_op qn_op_gelu;
extern const struct qn_check_op qn_check_gelu;

static double exact(double x)
{
    return 0.5 * x * erfc(-sqrt(0.5) * x);
}

/* x (1 + tanh(z)) / 2, written so that it keeps its digits where z is far below 0. */
static double by_tanh(double x)
{
    const double z = sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x);
    return x / (1 + exp(-2 * z));
}

/* At -inf their limit, 0, where the formulas give NaN. */
static void reference(const struct qn_reference *r)
{
    const struct qn_gelu_attr *attr = r->call->attr;
    int64_t count = qn_operand_count(&r->call->in[0]);
    for (int64_t i = 0; i < count; i++) {
        const double x = r->in[0][i];
        r->out[0][i] = x == (double)-INFINITY        ? 0
                       : attr->form == QN_GELU_EXACT ? exact(x)
                                                     : by_tanh(x);
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

static const struct qn_gelu_attr precise = {QN_GELU_EXACT}, tanh_form = {QN_GELU_TANH},
                                 unknown = {2};

/* Repeated, so that each value stands in a vector of any width and in the tail behind the last one.
 */
#define SPECIALS 0, -0.0, INFINITY, -INFINITY, 3e38, -3e38, 40
static const double specials[] = {SPECIALS, SPECIALS, SPECIALS};

#define FAR(from, to)                                                                              \
    {                                                                                              \
        .role = QN_ROLE_FIXED, .dtype = QN_F32, .rank = 1, .dim = {77}, .fill = QN_FILL_UNIFORM,   \
        .a = (from), .b = (to)                                                                     \
    }

/* Sizes at which the last vector is full, is filled in part, or is the only one. Far to the left
 * results are small, and so is their tolerance. */
static const struct qn_check_case cases[] = {
    {"full vectors", .in = {{.rank = 2, .dim = {4, 16}, .a = 2}}, .attr = &precise},
    {"a tail", .in = {{.rank = 3, .dim = {3, 5, 9}, .a = 2}}, .attr = &precise, .small = true},
    {"one element", .in = {{.rank = 1, .dim = {1}}}, .attr = &precise},
    {"several groups", .in = {{.rank = 2, .dim = {7, 311}, .a = 2}}, .attr = &precise},
    {"to the left", .in = {FAR(-5, -4.5)}, .attr = &precise},
    {"far to the left", .in = {FAR(-12.5, -12)}, .attr = &precise},
    {"far to the right", .in = {FAR(3, 200)}, .attr = &precise},
    {"not finite",
     .in = {{.role = QN_ROLE_FIXED, .dtype = QN_F32, .rank = 1, .dim = {21}, .values = specials}},
     .attr = &precise, .gradient = gradient},
    {"tanh, full vectors", .in = {{.rank = 2, .dim = {4, 16}, .a = 2}}, .attr = &tanh_form},
    {"tanh, a tail", .in = {{.rank = 3, .dim = {3, 5, 9}, .a = 2}}, .attr = &tanh_form,
     .small = true},
    {"tanh, to the left", .in = {FAR(-5, -4.5)}, .attr = &tanh_form},
    {"tanh, far to the right", .in = {FAR(3, 200)}, .attr = &tanh_form},
    {"tanh, not finite",
     .in = {{.role = QN_ROLE_FIXED, .dtype = QN_F32, .rank = 1, .dim = {21}, .values = specials}},
     .attr = &tanh_form, .gradient = gradient},
    {0},
};

static const struct qn_check_case refused[] = {
    {"integers", .in = {{.role = QN_ROLE_FIXED, .dtype = QN_I32, .rank = 1, .dim = {4}}},
     .attr = &precise},
    {"no such form", .in = {{.rank = 1, .dim = {4}}}, .attr = &unknown},
    {0},
};

const struct qn_check_op qn_check_gelu = {.op = &qn_op_gelu,
                                          .cases = cases,
                                          .reference = reference,
                                          .refused = refused,
                                          .outputs = outputs};
