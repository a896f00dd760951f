/* SPDX-License-Identifier: MIT */
#include "check/check.h"

#include <math.h>

extern const struct qn_op qn_op_hardswish;
extern const struct qn_check_op qn_check_hardswish;

static void reference(const struct qn_reference *r)
{
    int64_t count = qn_operand_count(&r->call->in[0]);
    for (int64_t i = 0; i < count; i++) {
        const double x = r->in[0][i];
        r->out[0][i] = x <= -3 ? 0 : x >= 3 ? x : x * (x + 3) / 6;
    }
}

/* At the kinks, -3 and 3, the slope is that of the straight line beside them: 0 and 1. */
static void gradient(const struct qn_reference *r, const double *dout, double *din)
{
    int64_t count = qn_operand_count(&r->call->in[0]);
    for (int64_t i = 0; i < count; i++) {
        const double x = r->in[0][i];
        din[i] = dout[i] * (x <= -3 ? 0 : x >= 3 ? 1 : (2 * x + 3) / 6);
    }
}

/* The type of x, which may differ from that of activations. */
static void outputs(const struct qn_call *call, struct qn_operand out[QN_MAX_OUT])
{
    out[0].dtype = call->in[0].dtype;
}

/* Inside (-3, 3), also once rounded to bf16, whose numbers are 2^-6 apart there. */
#define CURVED(...)                                                                                \
    {                                                                                              \
        .rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .dim = {__VA_ARGS__},          \
        .fill = QN_FILL_UNIFORM, .a = -2.95, .b = 2.95                                             \
    }

#define VALUES(list, count)                                                                        \
    {                                                                                              \
        .role = QN_ROLE_FIXED, .dtype = QN_F32, .rank = 1, .dim = {(count)}, .values = (list)      \
    }

/* Repeated, so that each value stands in a vector of any width and in the tail behind the last one.
 */
#define KINKS -3, 3, -3.25, 3.25, -2.75, 2.75, -1.5
static const double kinks[] = {KINKS, KINKS, KINKS};
/* In a case of their own: the tolerance is relative to the largest element. */
#define SPECIALS 0, -0.0, INFINITY, -INFINITY, 3e38, -3e38, 90
static const double specials[] = {SPECIALS, SPECIALS, SPECIALS};

/* Sizes at which the last vector is full, is filled in part, or is the only one. */
static const struct qn_check_case cases[] = {
    {"full vectors", .in = {CURVED(4, 16)}},
    {"a tail", .in = {CURVED(3, 5, 9)}, .small = true},
    {"one element", .in = {CURVED(1)}},
    {"several groups", .in = {CURVED(7, 311)}},
    {"to the left", .in = {{.rank = 2, .dim = {3, 7}, .fill = QN_FILL_UNIFORM, .a = -9, .b = -4}}},
    {"to the right", .in = {{.rank = 2, .dim = {3, 7}, .fill = QN_FILL_UNIFORM, .a = 4, .b = 9}}},
    {"kinks", .in = {VALUES(kinks, 21)}, .gradient = gradient},
    {"not finite", .in = {VALUES(specials, 21)}, .gradient = gradient},
    {0},
};

static const struct qn_check_case refused[] = {
    {"integers", .in = {{.role = QN_ROLE_FIXED, .dtype = QN_I32, .rank = 1, .dim = {4}}}},
    {0},
};

const struct qn_check_op qn_check_hardswish = {.op = &qn_op_hardswish,
                                               .cases = cases,
                                               .reference = reference,
                                               .refused = refused,
                                               .outputs = outputs};
