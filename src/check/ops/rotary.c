/* SPDX-License-Identifier: MIT */
#include "op/rotary.h"
#include "check/check.h"

#include <math.h>

extern const struct qn_op qn_op_rotary;
extern const struct qn_check_op qn_check_rotary;

static void reference(const struct qn_reference *r)
{
    const struct qn_rotary_attr *attr = r->call->attr;
    const int64_t *dim = r->call->in[0].shape.dim, size = dim[2] / attr->heads, n = size / 2;
    for (int64_t at = 0; at < dim[0] * dim[1] * attr->heads * n; at++) {
        const int64_t i = at % n, head = at / n % attr->heads, token = at / n / attr->heads;
        const double position = r->in[2] ? r->in[2][token] : (double)(token % dim[1]);
        const double angle = head < attr->heads - attr->still
                                 ? position * (r->in[1][i] + r->in[1][n + i]) * 2 * acos(-1)
                                 : 0;
        const double *x = r->in[0] + (token * attr->heads + head) * size;
        double *y = r->out[0] + (token * attr->heads + head) * size;
        y[i] = x[i] * cos(angle) - x[n + i] * sin(angle);
        y[n + i] = x[n + i] * cos(angle) + x[i] * sin(angle);
    }
}

#define ATTR(heads_, still_)                                                                       \
    &(const struct qn_rotary_attr)                                                                 \
    {                                                                                              \
        .heads = (heads_), .still = (still_), .base = 10000                                        \
    }
#define X(...)                                                                                     \
    {                                                                                              \
        .rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .dim = { __VA_ARGS__ }         \
    }
#define RATES(values_)                                                                             \
    {                                                                                              \
        .role = QN_ROLE_FIXED, .dtype = QN_F32, .rank = 1,                                         \
        .dim = {sizeof(values_) / sizeof(double)}, .values = (values_)                             \
    }
/* Rates of any size, for positions that do not make too many turns of them. */
#define ANY_RATES(n)                                                                               \
    {                                                                                              \
        .role = QN_ROLE_FIXED, .dtype = QN_F32, .rank = 1, .dim = {n}, .fill = QN_FILL_UNIFORM,    \
        .a = 0, .b = 0.01                                                                          \
    }
#define POSITIONS(from, to, ...)                                                                   \
    {                                                                                              \
        .role = QN_ROLE_FIXED, .dtype = QN_I32,                                                    \
        .rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .dim = {__VA_ARGS__},          \
        .fill = QN_FILL_INTEGER, .a = (from), .b = (to)                                            \
    }
#define NONE                                                                                       \
    {                                                                                              \
        .rank = -1                                                                                 \
    }

/* One radian a position, a tenth, a hundredth, a thousandth, then what they lose in f32. */
static const double radians[] = {
    0.15915493667125702,    0.01591549441218376,     0.0015915494877845049,  0.0001591549371369183,
    6.4206382432985265e-09, -1.0299422426029992e-10, -5.686555046291453e-11, 5.954976962929681e-12};
/* Quarter turns, exactly. */
static const double quarters[] = {0.25, 0};

static const struct qn_check_case cases[] = {
    {"small", {X(2, 3, 8), RATES(radians), NONE}, ATTR(1, 0), .small = true},
    {"heads", {X(2, 5, 24), RATES(radians), NONE}, ATTR(3, 0)},
    {"points beside vectors", {X(2, 7, 84), ANY_RATES(42), NONE}, ATTR(2, 0)},
    {"whole vectors", {X(2, 9, 128), ANY_RATES(64), NONE}, ATTR(2, 0)},
    {"heads left still", {X(2, 5, 32), RATES(radians), NONE}, ATTR(4, 1), .small = true},
    {"all heads left still", {X(2, 5, 16), RATES(radians), NONE}, ATTR(2, 2)},
    {"one token", {X(3, 1, 8), RATES(radians), POSITIONS(0, 64, 3, 1)}, ATTR(1, 0)},
    {"positions", {X(2, 5, 16), RATES(radians), POSITIONS(0, 64, 2, 5)}, ATTR(2, 0), .small = true},
    {"far positions", {X(4, 9, 16), RATES(radians), POSITIONS(8000, 8192, 4, 9)}, ATTR(2, 0)},
    {"very far positions",
     {X(4, 9, 16), RATES(radians), POSITIONS(1 << 23, 1 << 24, 4, 9)},
     ATTR(2, 0),
     .small = true},
    {"below 0", {X(4, 9, 16), RATES(radians), POSITIONS(-8192, 0, 4, 9)}, ATTR(2, 0)},
    {"quarter turns", {X(2, 9, 2), RATES(quarters), NONE}, ATTR(1, 0)},
    {"many rows", {X(3, 301, 8), RATES(radians), NONE}, ATTR(1, 0)},
    {"a long row", {X(1, 5, 4112), ANY_RATES(16), NONE}, ATTR(257, 0)},
    {0},
};

static const struct qn_check_case refused[] = {
    {"two dimensions", {X(4, 8), RATES(radians), NONE}, ATTR(1, 0)},
    {"no whole heads", {X(2, 3, 8), RATES(radians), NONE}, ATTR(3, 0)},
    {"heads of an odd size", {X(2, 3, 9), ANY_RATES(3), NONE}, ATTR(3, 0)},
    {"no head", {X(2, 3, 8), RATES(radians), NONE}, ATTR(0, 0)},
    {"more still than there are", {X(2, 3, 8), RATES(radians), NONE}, ATTR(1, 2)},
    {"still heads below 0", {X(2, 3, 8), RATES(radians), NONE}, ATTR(1, -1)},
    {"a base of 1",
     {X(2, 3, 8), RATES(radians), NONE},
     &(const struct qn_rotary_attr){.heads = 1, .base = 1}},
    {"an infinite base",
     {X(2, 3, 8), RATES(radians), NONE},
     &(const struct qn_rotary_attr){.heads = 1, .base = INFINITY}},
    {"rates of another size", {X(2, 3, 8), ANY_RATES(4), NONE}, ATTR(1, 0)},
    {"positions of another size", {X(2, 3, 8), RATES(radians), POSITIONS(0, 8, 2, 4)}, ATTR(1, 0)},
    {"positions by sample", {X(2, 3, 8), RATES(radians), POSITIONS(0, 8, 2)}, ATTR(1, 0)},
    {"positions that are no integers", {X(2, 3, 8), RATES(radians), X(2, 3)}, ATTR(1, 0)},
    {"too many positions", {X(1, (1 << 24) + 1, 2), ANY_RATES(2), NONE}, ATTR(1, 0)},
    {"integers", {POSITIONS(0, 8, 2, 3, 8), RATES(radians), NONE}, ATTR(1, 0)},
    {0},
};

const struct qn_check_op qn_check_rotary = {
    .op = &qn_op_rotary, .cases = cases, .reference = reference, .refused = refused};
