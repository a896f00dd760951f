/* SPDX-License-Identifier: MIT */
#include "base/shape.h"
#include "check/check.h"
#include "op/elementwise.h"

extern const struct qn_op qn_op_transpose;
extern const struct qn_check_op qn_check_transpose;

/* Counts through the result, and finds each element in the argument. */
static void reference(const struct qn_reference *r)
{
    const struct qn_transpose_attr *attr = r->call->attr;
    const struct qn_shape *x = &r->call->in[0].shape;
    for (int64_t i = 0; i < qn_shape_count(x); i++) {
        int64_t rest = i, at = 0;
        for (int d = attr->rank - 1; d >= 0; d--) {
            const int axis = attr->axis[d];
            at += rest % x->dim[axis] * qn_shape_span(x, axis + 1, x->rank);
            rest /= x->dim[axis];
        }
        r->out[0][i] = r->in[0][at];
    }
}

static void outputs(const struct qn_call *call, struct qn_operand out[QN_MAX_OUT])
{
    const struct qn_transpose_attr *attr = call->attr;
    for (int d = 0; d < attr->rank; d++)
        out[0].shape.dim[d] = call->in[0].shape.dim[attr->axis[d]];
}

#define AXES(...)                                                                                  \
    &(const struct qn_transpose_attr)                                                              \
    {                                                                                              \
        .axis = {__VA_ARGS__}, .rank = sizeof((int[]){__VA_ARGS__}) / sizeof(int)                  \
    }
#define X(...)                                                                                     \
    {                                                                                              \
        {                                                                                          \
            .rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .dim = { __VA_ARGS__ }     \
        }                                                                                          \
    }

/* Whole squares and what is left beside and below them, of 4, 8, 16 and 32; rows that stay whole,
 * shorter and longer than a vector; more dimensions around than one; nothing to do. */
static const struct qn_check_case cases[] = {
    {"a square", .in = X(1, 32, 32), .attr = AXES(0, 2, 1)},
    {"one over a square", .in = X(33, 35), .attr = AXES(1, 0), .small = true},
    {"a matrix", .in = X(67, 37), .attr = AXES(1, 0)},
    {"a wide matrix", .in = X(1, 5, 263), .attr = AXES(0, 2, 1)},
    {"a tall matrix", .in = X(1, 1031, 18), .attr = AXES(0, 2, 1)},
    {"channels last", .in = X(2, 3, 7, 5), .attr = AXES(0, 2, 3, 1)},
    {"heads", .in = X(2, 7, 3, 20), .attr = AXES(0, 2, 1, 3), .small = true},
    {"short heads", .in = X(3, 5, 4, 2), .attr = AXES(0, 2, 1, 3)},
    {"long rows", .in = X(2, 3, 2, 700), .attr = AXES(0, 2, 1, 3)},
    {"many short rows", .in = X(1, 1500, 2, 3), .attr = AXES(0, 2, 1, 3)},
    {"keys", .in = X(2, 19, 3, 21), .attr = AXES(0, 2, 3, 1)},
    {"all reversed", .in = X(2, 3, 4, 5, 2, 3), .attr = AXES(5, 4, 3, 2, 1, 0)},
    {"rows among six", .in = X(2, 3, 2, 4, 2, 18), .attr = AXES(4, 3, 2, 1, 0, 5)},
    {"pairs change places", .in = X(2, 3, 4, 5, 2, 3), .attr = AXES(1, 0, 3, 2, 5, 4)},
    {"nothing moves", .in = X(3, 5, 9), .attr = AXES(0, 1, 2)},
    {"only ones move", .in = X(3, 1, 1, 35), .attr = AXES(0, 3, 1, 2)},
    {"one element", .in = X(1, 1), .attr = AXES(1, 0)},
    {0},
};

static const struct qn_transpose_attr moved = {.axis = {1, 0}, .rank = 2, .moves_batch = 1};

static const struct qn_check_case refused[] = {
    {"an axis twice", .in = X(2, 3, 4), .attr = AXES(0, 1, 1)},
    {"an axis too many", .in = X(2, 3), .attr = AXES(0, 1, 2)},
    {"an axis too few", .in = X(2, 3, 4), .attr = AXES(0, 1)},
    {"an axis that is not there", .in = X(2, 3), .attr = AXES(0, 2)},
    {"a negative axis", .in = X(2, 3), .attr = AXES(0, -1)},
    {"the batch", .in = X(2, 3), .attr = &moved},
    {"integers", .in = {{.role = QN_ROLE_FIXED, .dtype = QN_I32, .rank = 2, .dim = {4, 3}}},
     .attr = AXES(1, 0)},
    {0},
};

const struct qn_check_op qn_check_transpose = {.op = &qn_op_transpose,
                                               .cases = cases,
                                               .reference = reference,
                                               .refused = refused,
                                               .outputs = outputs};
