/* SPDX-License-Identifier: MIT */
#include "check/check.h"
#include "op/elementwise.h"

#include <math.h>
#include <quern/ops.h>

extern const struct qn_op qn_op_gated;
extern const struct qn_check_op qn_check_gated;

static double silu(double x)
{
    return x / (1 + exp(-x));
}

static double gelu(double x)
{
    return 0.5 * x * erfc(-sqrt(0.5) * x);
}

/* x (1 + tanh(z)) / 2, written so that it keeps its digits where z is far below 0. */
static double gelu_tanh(double x)
{
    const double z = sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x);
    return x / (1 + exp(-2 * z));
}

static double (*const functions[])(double) = {
    [QN_GATE_SILU] = silu, [QN_GATE_GELU] = gelu, [QN_GATE_GELU_TANH] = gelu_tanh};

static void reference(const struct qn_reference *r)
{
    const struct qn_gated_attr *attr = r->call->attr;
    for (int64_t i = 0; i < qn_operand_count(&r->call->in[0]); i++)
        r->out[0][i] = functions[attr->form](r->in[0][i]) * r->in[1][i];
}

#define FORM(form_)                                                                                \
    &(const struct qn_gated_attr)                                                                  \
    {                                                                                              \
        .form = (form_)                                                                            \
    }
#define SIZE(...) .rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .dim = {__VA_ARGS__}
/* A gate and what it opens. */
#define BOTH(...)                                                                                  \
    {                                                                                              \
        {SIZE(__VA_ARGS__), .a = 2},                                                               \
        {                                                                                          \
            SIZE(__VA_ARGS__)                                                                      \
        }                                                                                          \
    }
#define FROM_TO(from, to)                                                                          \
    {                                                                                              \
        {SIZE(77), .fill = QN_FILL_UNIFORM, .a = (from), .b = (to)},                               \
        {                                                                                          \
            SIZE(77)                                                                               \
        }                                                                                          \
    }

/* Sizes at which the last vector is full, is filled in part, or is the only one. */
static const struct qn_check_case cases[] = {
    {"SwiGLU, full vectors", .in = BOTH(4, 16), .attr = FORM(QN_GATE_SILU)},
    {"SwiGLU, a tail", .in = BOTH(3, 5, 9), .attr = FORM(QN_GATE_SILU), .small = true},
    {"SwiGLU, one element", .in = BOTH(1), .attr = FORM(QN_GATE_SILU)},
    {"SwiGLU, several groups", .in = BOTH(7, 311), .attr = FORM(QN_GATE_SILU)},
    {"SwiGLU, to the left", .in = FROM_TO(-9, -8), .attr = FORM(QN_GATE_SILU)},
    {"SwiGLU, open wide", .in = FROM_TO(30, 200), .attr = FORM(QN_GATE_SILU)},
    {"SwiGLU, with a parameter", .attr = FORM(QN_GATE_SILU),
     .in = {{SIZE(3, 7)}, {.role = QN_ROLE_PARAMETER, SIZE(3, 7)}}},
    {"SwiGLU, the gate a parameter", .attr = FORM(QN_GATE_SILU),
     .in = {{.role = QN_ROLE_PARAMETER, SIZE(3, 7)}, {SIZE(3, 7)}}},
    {"GEGLU, full vectors", .in = BOTH(4, 16), .attr = FORM(QN_GATE_GELU)},
    {"GEGLU, a tail", .in = BOTH(3, 5, 9), .attr = FORM(QN_GATE_GELU), .small = true},
    {"GEGLU, to the left", .in = FROM_TO(-4, -3.5), .attr = FORM(QN_GATE_GELU)},
    {"GEGLU by tanh, full vectors", .in = BOTH(4, 16), .attr = FORM(QN_GATE_GELU_TANH)},
    {"GEGLU by tanh, a tail", .in = BOTH(3, 5, 9), .attr = FORM(QN_GATE_GELU_TANH), .small = true},
    {0},
};

static const struct qn_check_case refused[] = {
    {"other sizes", .in = {{SIZE(4, 5)}, {SIZE(5, 4)}}, .attr = FORM(QN_GATE_SILU)},
    {"other ranks", .in = {{SIZE(4, 1)}, {SIZE(4)}}, .attr = FORM(QN_GATE_SILU)},
    {"integers", .attr = FORM(QN_GATE_SILU),
     .in = {{SIZE(4)}, {.role = QN_ROLE_FIXED, .dtype = QN_I32, SIZE(4)}}},
    {"no such form", .in = BOTH(4, 5), .attr = FORM(3)},
    {"a form below 0", .in = BOTH(4, 5), .attr = FORM(-1)},
    {0},
};

const struct qn_check_op qn_check_gated = {
    .op = &qn_op_gated, .cases = cases, .reference = reference, .refused = refused};
