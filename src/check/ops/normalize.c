/* SPDX-License-Identifier: MIT */
#include "check/check.h"
#include "base/shape.h"
#include "op/elementwise.h"

extern const struct qn_op qn_op_normalize;
extern const struct qn_check_op qn_check_normalize;

static void reference(const struct qn_reference *r)
{
    const struct qn_shape *x = &r->call->in[0].shape;
    const double white = r->call->in[0].dtype == QN_U8 ? 255 : 1;
    int64_t plane = qn_shape_span(x, 2, 4);
    for (int64_t i = 0; i < qn_shape_count(x); i++) {
        int64_t channel = i / plane % x->dim[1];
        r->out[0][i] = (r->in[0][i] / white - r->in[1][channel]) / r->in[2][channel];
    }
}

#define IMAGES(...)                                                                                \
    {                                                                                              \
        .role = QN_ROLE_FIXED, .dtype = QN_U8, .rank = 4, .dim = {__VA_ARGS__},                    \
        .fill = QN_FILL_INTEGER, .a = 0, .b = 256                                                  \
    }
#define CHANNELS(c)                                                                                \
    {                                                                                              \
        .role = QN_ROLE_FIXED, .dtype = QN_F32, .rank = 1, .dim = {c}, .fill = QN_FILL_POSITIVE    \
    }

static const struct qn_normalize_attr usable = {true}, unusable = {false};

static const struct qn_check_case cases[] = {
    {"full vectors", .in = {IMAGES(2, 3, 8, 8), CHANNELS(3), CHANNELS(3)}, .attr = &usable},
    {"a tail", .in = {IMAGES(3, 2, 5, 7), CHANNELS(2), CHANNELS(2)}, .attr = &usable,
     .small = true},
    {"one pixel", .in = {IMAGES(5, 1, 1, 1), CHANNELS(1), CHANNELS(1)}, .attr = &usable},
    {"more rows than a range", .in = {IMAGES(220, 150, 1, 2), CHANNELS(150), CHANNELS(150)},
     .attr = &usable},
    {"images of floats",
     .in = {{.role = QN_ROLE_FIXED, .dtype = QN_F32, .rank = 4, .dim = {2, 3, 5, 6}},
            CHANNELS(3),
            CHANNELS(3)},
     .attr = &usable},
    {"several groups", .in = {IMAGES(2, 1, 28, 28), CHANNELS(1), CHANNELS(1)}, .attr = &usable},
    {0},
};

static const struct qn_check_case refused[] = {
    {"another number of channels", .in = {IMAGES(2, 3, 4, 4), CHANNELS(3), CHANNELS(1)},
     .attr = &usable},
    {"a deviation of 0", .in = {IMAGES(2, 3, 4, 4), CHANNELS(3), CHANNELS(3)}, .attr = &unusable},
    {"images of whole numbers",
     .in = {{.role = QN_ROLE_FIXED, .dtype = QN_I32, .rank = 4, .dim = {2, 3, 4, 4}},
            CHANNELS(3),
            CHANNELS(3)},
     .attr = &usable},
    {"rows",
     .in = {{.role = QN_ROLE_FIXED, .dtype = QN_U8, .rank = 2, .dim = {4, 4}},
            CHANNELS(4),
            CHANNELS(4)},
     .attr = &usable},
    {0},
};

const struct qn_check_op qn_check_normalize = {
    .op = &qn_op_normalize, .cases = cases, .reference = reference, .refused = refused};
