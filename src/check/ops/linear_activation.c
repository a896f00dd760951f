/* SPDX-License-Identifier: MIT */
#include "base/shape.h"
#include "check/check.h"
#include "op/matmul.h"

#include <math.h>
#include <quern/ops.h>
#include <string.h>

extern const struct qn_op qn_op_linear_activation;
extern const struct qn_check_op qn_check_linear_activation;

static double activate(const struct qn_linear_activation_attr *attr, double z)
{
    switch (attr->activation) {
    case QN_ACTIVATION_RELU:
        return z > 0 ? z : 0;
    case QN_ACTIVATION_LEAKY_RELU:
        return z > 0 ? z : (double)attr->slope * z;
    case QN_ACTIVATION_SIGMOID:
        return 1 / (1 + exp(-z));
    default:
        return tanh(z);
    }
}

static void reference(const struct qn_reference *r)
{
    const struct qn_shape *x = &r->call->in[0].shape, *weight = &r->call->in[1].shape;
    const int64_t m = qn_shape_span(x, 0, x->rank - 1), n = weight->dim[0], k = weight->dim[1];
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = r->in[2] ? r->in[2][j] : 0;
            for (int64_t l = 0; l < k; l++)
                sum += r->in[0][i * k + l] * r->in[1][j * k + l];
            r->out[0][i * n + j] = activate(r->call->attr, sum);
        }
}

static void outputs(const struct qn_call *call, struct qn_operand out[QN_MAX_OUT])
{
    out[0].shape.dim[out[0].shape.rank - 1] = call->in[1].shape.dim[0];
}

static double flops(const struct qn_call *call, const char *group)
{
    const double results = (double)qn_operand_count(&call->out[0]);
    if (strcmp(group, "bias gradient") == 0)
        return results;
    if (strcmp(group, "activation gradient") == 0)
        return 3 * results;
    return 2 * results * (double)call->in[1].shape.dim[1];
}

static const struct qn_linear_activation_attr relu = {QN_ACTIVATION_RELU, 0};
static const struct qn_linear_activation_attr leaky = {QN_ACTIVATION_LEAKY_RELU, 0.25f};
static const struct qn_linear_activation_attr sigmoid = {QN_ACTIVATION_SIGMOID, 0};
static const struct qn_linear_activation_attr tanh_ = {QN_ACTIVATION_TANH, 0};
static const struct qn_linear_activation_attr none = {QN_ACTIVATION_NONE, 0};
static const struct qn_linear_activation_attr unknown = {QN_ACTIVATION_TANH + 1, 0};
static const struct qn_linear_activation_attr flat = {QN_ACTIVATION_LEAKY_RELU, 0};

/* Biases that keep sums of small terms away from 0, where relu has its kink. */
#define SIGNS8 3, -3, -4, 3, 4, 3, -3, -4
static const double signs[] = {SIGNS8, SIGNS8, SIGNS8, SIGNS8, SIGNS8, SIGNS8, SIGNS8, SIGNS8,
                               SIGNS8, SIGNS8, SIGNS8, SIGNS8, SIGNS8, SIGNS8, SIGNS8, SIGNS8};

#define ROWS(m, k)                                                                                 \
    {                                                                                              \
        .rank = 2, .dim = {m, k}, .a = 0.3                                                         \
    }
#define WEIGHT(n, k)                                                                               \
    {                                                                                              \
        .role = QN_ROLE_PARAMETER, .rank = 2, .dim = {n, k}, .a = 0.3                              \
    }
#define BIAS(n)                                                                                    \
    {                                                                                              \
        .role = QN_ROLE_PARAMETER, .rank = 1, .dim = { n }                                         \
    }
#define BENT(n)                                                                                    \
    {                                                                                              \
        .role = QN_ROLE_PARAMETER, .rank = 1, .dim = {n}, .values = signs                          \
    }
#define NONE                                                                                       \
    {                                                                                              \
        .rank = -1                                                                                 \
    }

static const struct qn_check_case cases[] = {
    {"relu", {ROWS(5, 7), WEIGHT(11, 7), BENT(11)}, .attr = &relu, .small = true},
    {"relu, full vectors", {ROWS(16, 16), WEIGHT(32, 16), BENT(32)}, .attr = &relu},
    {"relu, full tiles", {ROWS(64, 16), WEIGHT(64, 16), BENT(64)}, .attr = &relu},
    {"relu, one over a tile", {ROWS(65, 20), WEIGHT(65, 20), BENT(65)}, .attr = &relu},
    {"relu, rank 3",
     {{.rank = 3, .dim = {3, 6, 10}, .a = 0.3}, WEIGHT(18, 10), BENT(18)},
     .attr = &relu},
    {"relu, one row", {ROWS(1, 17), WEIGHT(33, 17), BENT(33)}, .attr = &relu},
    {"relu, one column", {ROWS(33, 17), WEIGHT(1, 17), BENT(1)}, .attr = &relu},
    {"relu, one row and one term", {ROWS(1, 1), WEIGHT(22, 1), BENT(22)}, .attr = &relu},
    {"relu, one term", {ROWS(21, 1), WEIGHT(22, 1), BENT(22)}, .attr = &relu},
    {"leaky relu",
     {ROWS(6, 9), WEIGHT(21, 9), BENT(21)},
     .attr = &leaky,
     .small = true,
     .f32_only = true},
    {"leaky relu after a long sum",
     {{.rank = 2, .dim = {4, 1100}, .a = 0.1}, WEIGHT(18, 1100), BENT(18)},
     .attr = &leaky},
    {"sigmoid", {ROWS(6, 9), WEIGHT(21, 9), BIAS(21)}, .attr = &sigmoid},
    {"sigmoid, no bias", {ROWS(17, 20), WEIGHT(18, 20), NONE}, .attr = &sigmoid},
    {"tanh", {ROWS(6, 9), WEIGHT(21, 9), BIAS(21)}, .attr = &tanh_},
    {"tanh, no bias", {ROWS(17, 20), WEIGHT(18, 20), NONE}, .attr = &tanh_},
    {0},
};

static const struct qn_check_case refused[] = {
    {"no activation", {ROWS(5, 7), WEIGHT(11, 7), BIAS(11)}, .attr = &none},
    {"an unknown activation", {ROWS(5, 7), WEIGHT(11, 7), BIAS(11)}, .attr = &unknown},
    {"no slope", {ROWS(5, 7), WEIGHT(11, 7), BIAS(11)}, .attr = &flat},
    {"rows of another length", {ROWS(4, 5), WEIGHT(2, 3), NONE}, .attr = &relu},
    {0},
};

const struct qn_check_op qn_check_linear_activation = {.op = &qn_op_linear_activation,
                                                       .cases = cases,
                                                       .reference = reference,
                                                       .refused = refused,
                                                       .outputs = outputs,
                                                       .flops = flops};
