/* SPDX-License-Identifier: MIT */
#include "base/shape.h"
#include "check/check.h"
#include "op/row_norm.h"

#include <math.h>

extern const struct qn_op qn_op_rms_norm;
extern const struct qn_check_op qn_check_rms_norm;

static void reference(const struct qn_reference *r)
{
    const struct qn_rms_norm_attr *attr = r->call->attr;
    const struct qn_shape *shape = &r->call->in[0].shape;
    const int64_t n = shape->dim[shape->rank - 1];
    for (int64_t first = 0; first < qn_shape_count(shape); first += n) {
        const double *x = r->in[0] + first;
        double squares = 0;
        for (int64_t i = 0; i < n; i++)
            squares += x[i] * x[i];
        const double deviation = sqrt(squares / (double)n + (double)attr->eps);
        for (int64_t i = 0; i < n; i++)
            r->out[0][first + i] = x[i] / deviation * (r->in[1] ? r->in[1][i] : 1);
    }
}

#define X(...)                                                                                     \
    {                                                                                              \
        .rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .dim = { __VA_ARGS__ }         \
    }
#define FILL(a_, b_, ...)                                                                          \
    {                                                                                              \
        .rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .dim = {__VA_ARGS__},          \
        .a = (a_), .b = (b_)                                                                       \
    }
#define VALUES(values_, ...)                                                                       \
    {                                                                                              \
        .rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .dim = {__VA_ARGS__},          \
        .values = (values_)                                                                        \
    }
#define P(n)                                                                                       \
    {                                                                                              \
        .role = QN_ROLE_PARAMETER, .rank = 1, .dim = {n}, .fill = QN_FILL_POSITIVE                 \
    }
#define NONE                                                                                       \
    {                                                                                              \
        .rank = -1                                                                                 \
    }
#define EPS(eps_)                                                                                  \
    &(const struct qn_rms_norm_attr)                                                               \
    {                                                                                              \
        .eps = (eps_)                                                                              \
    }

/* The first block of a row is all that is not 0, then all that is. */
static const double late[2 * 4099] = {[4096] = 3, [4098] = -5, [8000] = 1, [8197] = 2};
static const double early[2 * 4099] = {[0] = 3, [100] = -5, [4099] = 1, [8194] = -2};

/* With an eps of 0.5 its place shows: in the root, beside the mean. */
static const struct qn_check_case cases[] = {
    {"small", {X(3, 7), P(7)}, EPS(1e-6f), .small = true},
    {"a vector and one", {X(5, 2, 17), P(17)}, EPS(1e-6f)},
    {"one under a vector", {X(7, 31), P(31)}, EPS(1e-6f)},
    {"rows of one", {X(5, 1), P(1)}, EPS(0.5f), .small = true},
    {"whole vectors", {X(5, 48), P(48)}, EPS(1e-6f)},
    {"one row", {X(1, 131), P(131)}, EPS(1e-6f)},
    {"no weight", {X(6, 37), NONE}, EPS(1e-6f), .small = true},
    {"a large eps", {X(6, 37), P(37)}, EPS(0.5f)},
    {"far from 0", {FILL(1, 1000, 7, 37), P(37)}, EPS(1e-6f)},
    {"huge", {FILL(16384, 0, 7, 37), P(37)}, EPS(1e-6f), .difference = 0.1},
    {"many short rows", {X(541, 3), P(3)}, EPS(1e-6f)},
    {"parts and a short one", {X(307, 19), P(19)}, EPS(1e-6f)},
    {"a block and a few", {X(2, 4099), P(4099)}, EPS(1e-6f)},
    {"late", {VALUES(late, 2, 4099), P(4099)}, EPS(1e-6f)},
    {"early", {VALUES(early, 2, 4099), P(4099)}, EPS(1e-6f)},
    {0},
};

static const struct qn_check_case refused[] = {
    {"over the batch", {X(8), NONE}, EPS(1e-6f)},
    {"weight of another size", {X(4, 8), P(7)}, EPS(1e-6f)},
    {"weight of another rank", {X(4, 3, 8), X(3, 8)}, EPS(1e-6f)},
    {"integers",
     {{.role = QN_ROLE_FIXED, .dtype = QN_I32, .rank = 2, .dim = {4, 3}}, NONE},
     EPS(1e-6f)},
    {"eps of 0", {X(4, 8), NONE}, EPS(0)},
    {0},
};

const struct qn_check_op qn_check_rms_norm = {
    .op = &qn_op_rms_norm, .cases = cases, .reference = reference, .refused = refused};
