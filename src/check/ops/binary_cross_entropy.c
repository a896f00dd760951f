/* SPDX-License-Identifier: MIT */
#include "check/pair.h"

#include <math.h>

extern const struct qn_op qn_op_binary_cross_entropy;
extern const struct qn_check_op qn_check_binary_cross_entropy;

/* log(1 + exp(x)) */
static double softplus(double x)
{
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

static void reference(const struct qn_reference *r)
{
    for (int64_t i = 0; i < qn_operand_count(&r->call->out[0]); i++)
        r->out[0][i] =
            r->in[1][i] * softplus(-r->in[0][i]) + (1 - r->in[1][i]) * softplus(r->in[0][i]);
}

/* Logits from -`far` to `far`. */
#define TARGETS(far, ...)                                                                          \
    {                                                                                              \
        {.rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t),                               \
         .dim = {__VA_ARGS__},                                                                     \
         .fill = QN_FILL_UNIFORM,                                                                  \
         .a = -(far),                                                                              \
         .b = (far)},                                                                              \
        {                                                                                          \
            .rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .dim = {__VA_ARGS__},      \
            .fill = QN_FILL_UNIFORM, .a = 0, .b = 1                                                \
        }                                                                                          \
    }

/* Labels are 0 or 1; where the logit is far on the label's side next to nothing is lost. */
static const double logits[21] = {0, 0,  30, 30, -30, -30, 12, 12, -12, -12, 5,
                                  5, -5, -5, 2,  1,   1,   -1, -1, 80,  -80};
static const double labels[21] = {0, 1, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0.5, 1, 1, 0, 1, 0};

static const struct qn_check_case cases[] = {
    {"matrix", TARGETS(4, 3, 7), .small = true},
    {"one element", TARGETS(4, 1)},
    {"full vectors", TARGETS(4, 4, 16)},
    {"rank 4", TARGETS(4, 2, 3, 5, 7)},
    {"several work-groups", TARGETS(4, 5, 911)},
    {"far out", TARGETS(200, 7, 11)}, /* exp(200) is no f32 */
    {"labels",
     {{.rank = 1, .dim = {21}, .values = logits}, {.rank = 1, .dim = {21}, .values = labels}},
     .small = true},
    {"f32 targets",
     {{.rank = 2, .dim = {5, 7}},
      {.role = QN_ROLE_FIXED,
       .dtype = QN_F32,
       .rank = 2,
       .dim = {5, 7},
       .fill = QN_FILL_UNIFORM,
       .a = 0,
       .b = 1}},
     .small = true},
    {0},
};

const struct qn_check_op qn_check_binary_cross_entropy = {.op = &qn_op_binary_cross_entropy,
                                                          .cases = cases,
                                                          .reference = reference,
                                                          .refused = qn_pair_refused,
                                                          .outputs = qn_pair_outputs};
