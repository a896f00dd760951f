/* SPDX-License-Identifier: MIT */
#include "check/check.h"
#include "op/chain.h"

#include <math.h>
#include <string.h>

extern const struct qn_op qn_op_chain;
extern const struct qn_check_op qn_check_chain;

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double apply(const struct qn_chain_link *step, double a, double b)
{
    switch ((qn_chain_op)step->op) {
    case QN_CHAIN_RELU:
        return a <= 0 ? 0 : a;
    case QN_CHAIN_LEAKY_RELU:
        return a > 0 ? a : (double)step->value * a;
    case QN_CHAIN_SIGMOID:
        return sigmoid(a);
    case QN_CHAIN_TANH:
        return tanh(a);
    case QN_CHAIN_GELU:
        return 0.5 * a * erfc(-sqrt(0.5) * a);
    case QN_CHAIN_GELU_TANH:
        return a * sigmoid(2 * sqrt(2 / acos(-1)) * (a + 0.044715 * a * a * a));
    case QN_CHAIN_SILU:
        return a * sigmoid(a);
    case QN_CHAIN_HARDSWISH:
        return a <= -3 ? 0 : a >= 3 ? a : a * (a + 3) / 6;
    case QN_CHAIN_SCALE:
        return (double)step->value * a;
    case QN_CHAIN_ADD:
        return a + b;
    case QN_CHAIN_MULTIPLY:
        return a * b;
    }
    return NAN;
}

static void reference(const struct qn_reference *r)
{
    const struct qn_chain_attr *attr = r->call->attr;
    const int64_t columns = qn_operand_count(&r->call->in[QN_CHAIN_BIAS]);
    double value[QN_CHAIN_STEP + QN_CHAIN_STEPS] = {0};
    for (int64_t i = 0; i < qn_operand_count(&r->call->in[0]); i++) {
        for (int j = 0; j < QN_CHAIN_INPUTS; j++)
            if (r->in[j])
                value[j] = r->in[j][j == QN_CHAIN_BIAS ? i % columns : i];
        for (int k = 0; k < attr->count; k++)
            value[QN_CHAIN_STEP + k] =
                apply(&attr->step[k], value[attr->step[k].a], value[attr->step[k].b]);
        r->out[0][i] = value[QN_CHAIN_STEP + attr->count - 1];
    }
}

static double flops(const struct qn_call *call, const char *group)
{
    const struct qn_chain_attr *attr = call->attr;
    if (strcmp(group, "bias gradient") == 0)
        return (double)qn_operand_count(&call->temp[0]);
    if (strcmp(group, "forward") == 0)
        return (double)attr->count * (double)qn_operand_count(&call->out[0]);
    return 3 * (double)attr->count * (double)qn_operand_count(&call->dout[0]);
}

#define STEPS(n, ...)                                                                              \
    &(const struct qn_chain_attr)                                                                  \
    {                                                                                              \
        .step = {__VA_ARGS__}, .count = (n)                                                        \
    }
#define S(k) (QN_CHAIN_STEP + (k))
#define BIAS QN_CHAIN_BIAS
#define NONE                                                                                       \
    {                                                                                              \
        .rank = -1                                                                                 \
    }
#define X(...)                                                                                     \
    {                                                                                              \
        .rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .dim = { __VA_ARGS__ }         \
    }
/* Whole numbers, and fractions to add: no sum is near a kink. */
#define WHOLE(...)                                                                                 \
    {                                                                                              \
        .rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .dim = {__VA_ARGS__},          \
        .fill = QN_FILL_INTEGER, .a = -4, .b = 4                                                   \
    }
#define FRACTION(...)                                                                              \
    {                                                                                              \
        .rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .dim = {__VA_ARGS__},          \
        .fill = QN_FILL_UNIFORM, .a = 0.25, .b = 0.75                                              \
    }
#define ROW(c)                                                                                     \
    {                                                                                              \
        .role = QN_ROLE_PARAMETER, .rank = 1, .dim = {(c)}, .fill = QN_FILL_UNIFORM, .a = 0.25,    \
        .b = 0.75                                                                                  \
    }
#define ONE(x)                                                                                     \
    {                                                                                              \
        x, NONE, NONE, NONE, NONE, NONE                                                            \
    }
#define TWO(x, y)                                                                                  \
    {                                                                                              \
        x, y, NONE, NONE, NONE, NONE                                                               \
    }
#define BIASED(x, row)                                                                             \
    {                                                                                              \
        x, NONE, NONE, NONE, NONE, row                                                             \
    }

#define BIAS_GELU STEPS(2, {QN_CHAIN_ADD, 0, BIAS, 0}, {QN_CHAIN_GELU, S(0), 0, 0})
#define BIAS_RELU STEPS(2, {QN_CHAIN_ADD, 0, BIAS, 0}, {QN_CHAIN_RELU, S(0), 0, 0})
#define ADD_RELU STEPS(2, {QN_CHAIN_ADD, 0, 1, 0}, {QN_CHAIN_RELU, S(0), 0, 0})

/* Every operation; whole vectors and what is left beside them, one strip and several; one block of
 * rows and several; values that are read twice; gradients from all inputs, from some, from the
 * result. */
static const struct qn_check_case cases[] = {
    {"bias + GELU", .in = BIASED(X(5, 19), ROW(19)), .attr = BIAS_GELU, .small = true},
    {"bias + GELU, tokens", .in = BIASED(X(3, 50, 32), ROW(32)), .attr = BIAS_GELU},
    {"bias + GELU, wide", .in = BIASED(X(3, 4131), ROW(4131)), .attr = BIAS_GELU},
    {"bias + GELU, narrow", .in = BIASED(X(129, 3), ROW(3)), .attr = BIAS_GELU},
    {"bias + GELU by tanh", .in = BIASED(X(64, 17), ROW(17)),
     .attr = STEPS(2, {QN_CHAIN_ADD, 0, BIAS, 0}, {QN_CHAIN_GELU_TANH, S(0), 0, 0})},
    {"bias + ReLU", .in = BIASED(WHOLE(70, 21), ROW(21)), .attr = BIAS_RELU, .small = true},
    {"add + ReLU", .in = TWO(WHOLE(3, 5, 9), FRACTION(3, 5, 9)), .attr = ADD_RELU, .small = true},
    {"add + ReLU, several strips", .in = TWO(WHOLE(7, 1311), FRACTION(7, 1311)), .attr = ADD_RELU},
    {"add + leaky ReLU", .in = TWO(WHOLE(4, 16), FRACTION(4, 16)),
     .attr = STEPS(2, {QN_CHAIN_ADD, 1, 0, 0}, {QN_CHAIN_LEAKY_RELU, S(0), 0, 0.125f})},
    {"add + hardswish", .in = TWO(FRACTION(5, 19), FRACTION(5, 19)), .small = true,
     .attr = STEPS(2, {QN_CHAIN_ADD, 0, 1, 0}, {QN_CHAIN_HARDSWISH, S(0), 0, 0})},
    {"hardswish on both sides", .in = ONE(FRACTION(7, 33)),
     .attr = STEPS(5, {QN_CHAIN_SCALE, 0, 0, -16}, {QN_CHAIN_HARDSWISH, S(0), 0, 0},
                   {QN_CHAIN_SCALE, 0, 0, 16}, {QN_CHAIN_HARDSWISH, S(2), 0, 0},
                   {QN_CHAIN_ADD, S(1), S(3), 0})},
    {"a gate", .in = TWO(X(6, 37), X(6, 37)),
     .attr = STEPS(2, {QN_CHAIN_SILU, 0, 0, 0}, {QN_CHAIN_MULTIPLY, S(0), 1, 0}), .small = true},
    {"one input and the result", .in = TWO(FRACTION(6, 37), FRACTION(6, 37)),
     .attr = STEPS(3, {QN_CHAIN_GELU, 0, 0, 0}, {QN_CHAIN_ADD, S(0), 1, 0},
                   {QN_CHAIN_SIGMOID, S(1), 0, 0}),
     .small = true},
    {"a square", .in = ONE(X(5, 7)), .attr = STEPS(1, {QN_CHAIN_MULTIPLY, 0, 0, 0})},
    {"a step read twice", .in = ONE(X(5, 7)),
     .attr = STEPS(3, {QN_CHAIN_TANH, 0, 0, 0}, {QN_CHAIN_SIGMOID, S(0), 0, 0},
                   {QN_CHAIN_MULTIPLY, S(0), S(1), 0})},
    {"a bias as a factor", .in = BIASED(X(9, 18), ROW(18)),
     .attr = STEPS(2, {QN_CHAIN_MULTIPLY, 0, BIAS, 0}, {QN_CHAIN_SCALE, S(0), 0, -0.75f})},
    {"all there is", .in = {X(67, 35), X(67, 35), X(67, 35), X(67, 35), X(67, 35), ROW(35)},
     .attr = STEPS(8, {QN_CHAIN_ADD, 0, BIAS, 0}, {QN_CHAIN_SIGMOID, S(0), 0, 0},
                   {QN_CHAIN_MULTIPLY, S(1), 1, 0}, {QN_CHAIN_ADD, S(2), 2, 0},
                   {QN_CHAIN_TANH, S(3), 0, 0}, {QN_CHAIN_MULTIPLY, S(4), 3, 0},
                   {QN_CHAIN_SCALE, S(5), 0, 0.5f}, {QN_CHAIN_ADD, S(6), 4, 0})},
    {0},
};

static const struct qn_check_case refused[] = {
    {"no step", .in = ONE(X(2, 3)), .attr = STEPS(0, {0, 0, 0, 0})},
    {"too many steps", .in = ONE(X(2, 3)), .attr = STEPS(9, {QN_CHAIN_RELU, 0, 0, 0})},
    {"no such operation", .in = ONE(X(2, 3)), .attr = STEPS(1, {QN_CHAIN_OPERATIONS, 0, 0, 0})},
    {"a later step", .in = ONE(X(2, 3)), .attr = STEPS(1, {QN_CHAIN_RELU, S(0), 0, 0})},
    {"an input that is not there", .in = ONE(X(2, 3)), .attr = STEPS(1, {QN_CHAIN_ADD, 0, 1, 0})},
    {"no bias", .in = ONE(X(2, 3)), .attr = BIAS_RELU},
    {"no value at all", .in = ONE(X(2, 3)), .attr = STEPS(1, {QN_CHAIN_RELU, 6, 0, 0})},
    {"a slope of 0", .in = ONE(X(2, 3)), .attr = STEPS(1, {QN_CHAIN_LEAKY_RELU, 0, 0, 0})},
    {"an infinite factor", .in = ONE(X(2, 3)), .attr = STEPS(1, {QN_CHAIN_SCALE, 0, 0, INFINITY})},
    {"another shape", .in = TWO(X(2, 3), X(3, 2)), .attr = ADD_RELU},
    {"a gap", .in = {X(2, 3), NONE, X(2, 3), NONE, NONE, NONE},
     .attr = STEPS(1, {QN_CHAIN_RELU, 0, 0, 0})},
    {"a bias of another size", .in = BIASED(X(2, 3), ROW(2)), .attr = BIAS_RELU},
    {"integers", .attr = STEPS(1, {QN_CHAIN_RELU, 0, 0, 0}),
     .in = {{.role = QN_ROLE_FIXED, .dtype = QN_I32, .rank = 1, .dim = {4}},
            NONE,
            NONE,
            NONE,
            NONE,
            NONE}},
    {0},
};

const struct qn_check_op qn_check_chain = {
    .op = &qn_op_chain, .cases = cases, .reference = reference, .refused = refused, .flops = flops};
