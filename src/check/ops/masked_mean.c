/* SPDX-License-Identifier: MIT */
#include "check/check.h"

#include <math.h>

extern const struct qn_op qn_op_masked_mean;
extern const struct qn_check_op qn_check_masked_mean;

static void reference(const struct qn_reference *r)
{
    const int64_t *dim = r->call->in[0].shape.dim, tokens = dim[1], n = dim[2];
    for (int64_t at = 0; at < dim[0] * n; at++) {
        const int64_t row = at / n;
        const double length =
            r->in[1] ? fmin(fmax(r->in[1][row], 0), (double)tokens) : (double)tokens;
        r->out[0][at] = 0;
        for (int64_t token = 0; token < (int64_t)length; token++)
            r->out[0][at] += r->in[0][(row * tokens + token) * n + at % n] / length;
    }
}

static void outputs(const struct qn_call *call, struct qn_operand out[QN_MAX_OUT])
{
    const int64_t *dim = call->in[0].shape.dim;
    out[0].shape = (struct qn_shape){2, {dim[0], dim[2]}};
}

#define X(...)                                                                                     \
    {                                                                                              \
        .rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .dim = { __VA_ARGS__ }         \
    }
#define LENGTHS(from, to, ...)                                                                     \
    {                                                                                              \
        .role = QN_ROLE_FIXED, .dtype = QN_I32,                                                    \
        .rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .dim = {__VA_ARGS__},          \
        .fill = QN_FILL_INTEGER, .a = (from), .b = (to)                                            \
    }
#define THESE(count, values_)                                                                      \
    {                                                                                              \
        .role = QN_ROLE_FIXED, .dtype = QN_I32, .rank = 1, .dim = {count}, .values = (values_)     \
    }
#define NONE                                                                                       \
    {                                                                                              \
        .rank = -1                                                                                 \
    }

/* No token, one, all, and numbers that are no lengths. */
static const double odd[] = {0, 1, 6, -1, 7, 2147483647, -2147483647};
/* Around a block of tokens. */
static const double long_[] = {63, 64, 65, 131};

static const struct qn_check_case cases[] = {
    {"small", {X(3, 4, 5), LENGTHS(1, 5, 3)}, .small = true},
    {"without lengths", {X(3, 4, 5), NONE}, .small = true},
    {"odd lengths", {X(7, 6, 19), THESE(7, odd)}},
    {"no token at all", {X(2, 3, 17), LENGTHS(0, 1, 2)}},
    {"long rows", {X(4, 131, 7), THESE(4, long_)}},
    {"whole vectors", {X(3, 9, 64), LENGTHS(1, 10, 3)}},
    {"several strips", {X(2, 5, 600), LENGTHS(1, 6, 2)}},
    {"one token", {X(5, 1, 8), LENGTHS(0, 2, 5)}},
    {"one element each", {X(67, 3, 1), LENGTHS(1, 4, 67)}},
    {0},
};

static const struct qn_check_case refused[] = {
    {"two dimensions", {X(3, 4), NONE}},
    {"four dimensions", {X(3, 4, 5, 6), NONE}},
    {"lengths of another size", {X(3, 4, 5), LENGTHS(1, 4, 4)}},
    {"lengths by token", {X(3, 4, 5), LENGTHS(1, 4, 3, 4)}},
    {"lengths that are no integers", {X(3, 4, 5), X(3)}},
    {"integers", {LENGTHS(1, 4, 3, 4, 5), NONE}},
    {0},
};

const struct qn_check_op qn_check_masked_mean = {.op = &qn_op_masked_mean,
                                                 .cases = cases,
                                                 .reference = reference,
                                                 .refused = refused,
                                                 .outputs = outputs};
