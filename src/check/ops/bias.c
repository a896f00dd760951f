/* SPDX-License-Identifier: MIT */
#include "check/check.h"
#include "base/shape.h"

extern const struct qn_op qn_op_bias;
extern const struct qn_check_op qn_check_bias;

static void reference(const struct qn_reference *r)
{
    const struct qn_shape *x = &r->call->in[0].shape;
    int64_t count = qn_shape_count(x), plane = qn_shape_span(x, 2, x->rank);
    for (int64_t i = 0; i < count; i++)
        r->out[0][i] = r->in[0][i] + r->in[1][i / plane % x->dim[1]];
}

#define BIAS(c)                                                                                    \
    {                                                                                              \
        .role = QN_ROLE_PARAMETER, .rank = 1, .dim = { c }                                         \
    }

/* Planes and rows; more samples than the work-items of a group, channels that are no multiple of a
 * vector. */
static const struct qn_check_case cases[] = {
    {"planes", .in = {{.rank = 4, .dim = {3, 5, 7, 6}}, BIAS(5)}, .small = true},
    {"one pixel planes", .in = {{.rank = 4, .dim = {5, 3, 1, 1}}, BIAS(3)}},
    {"full planes", .in = {{.rank = 4, .dim = {2, 3, 8, 8}}, BIAS(3)}},
    {"many samples", .in = {{.rank = 3, .dim = {150, 2, 5}}, BIAS(2)}},
    {"rows", .in = {{.rank = 2, .dim = {5, 19}}, BIAS(19)}, .small = true},
    {"full rows", .in = {{.rank = 2, .dim = {3, 32}}, BIAS(32)}},
    {"narrow rows", .in = {{.rank = 2, .dim = {6, 3}}, BIAS(3)}},
    {"more planes than a range", .in = {{.rank = 3, .dim = {220, 150, 2}}, BIAS(150)}},
    {"more rows than a range", .in = {{.rank = 2, .dim = {33000, 1}}, BIAS(1)}},
    {"wide rows", .in = {{.rank = 2, .dim = {3, 4131}}, BIAS(4131)}},
    {"full blocks", .in = {{.rank = 2, .dim = {128, 17}}, BIAS(17)}},
    {"many rows", .in = {{.rank = 2, .dim = {300, 9}}, BIAS(9)}},
    {0},
};

static const struct qn_check_case refused[] = {
    {"another number of channels", .in = {{.rank = 2, .dim = {4, 5}}, BIAS(4)}},
    {"no channels", .in = {{.rank = 1, .dim = {4}}, BIAS(4)}},
    {"a matrix for a bias",
     .in = {{.rank = 2, .dim = {4, 5}}, {.role = QN_ROLE_PARAMETER, .rank = 2, .dim = {5, 1}}}},
    {0},
};

const struct qn_check_op qn_check_bias = {
    .op = &qn_op_bias, .cases = cases, .reference = reference, .refused = refused};
