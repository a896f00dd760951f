/* SPDX-License-Identifier: MIT */
#include "base/shape.h"
#include "check/check.h"
#include "op/part.h"

extern const struct qn_op qn_op_slice;
extern const struct qn_check_op qn_check_slice;

/* Counts through the argument and keeps what lies in the slice. */
static void reference(const struct qn_reference *r)
{
    const struct qn_slice_attr *attr = r->call->attr;
    const struct qn_shape *x = &r->call->in[0].shape;
    const int64_t beside = qn_shape_span(x, (int)attr->axis + 1, x->rank);
    double *to = r->out[0];
    for (int64_t i = 0; i < qn_shape_count(x); i++) {
        const int64_t place = i / beside % x->dim[attr->axis];
        if (place >= attr->start && place < attr->start + attr->length)
            *to++ = r->in[0][i];
    }
}

static void outputs(const struct qn_call *call, struct qn_operand out[QN_MAX_OUT])
{
    const struct qn_slice_attr *attr = call->attr;
    out[0].shape.dim[attr->axis] = attr->length;
}

#define SLICE(axis_, start_, length_)                                                              \
    &(const struct qn_slice_attr)                                                                  \
    {                                                                                              \
        .axis = (axis_), .start = (start_), .length = (length_)                                    \
    }
#define X(...)                                                                                     \
    {                                                                                              \
        {                                                                                          \
            .rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .dim = { __VA_ARGS__ }     \
        }                                                                                          \
    }

/* At the beginning, in the middle, at the end; shorter than a vector, whole vectors and with a
 * rest, edges inside a piece and at the ends of pieces. */
static const struct qn_check_case cases[] = {
    {"the first channels", X(2, 5, 3, 4), SLICE(1, 0, 2)},
    {"channels between", X(2, 5, 3, 7), SLICE(1, 1, 3), .small = true},
    {"the last channel", X(2, 5, 3, 4), SLICE(1, 4, 1)},
    {"all", X(2, 5, 3), SLICE(1, 0, 5)},
    {"columns", X(2, 3, 45), SLICE(2, 9, 21), .small = true},
    {"one column", X(5, 7, 9), SLICE(2, 3, 1)},
    {"first of rows", X(3, 6, 5), SLICE(1, 0, 1)},
    {"long blocks", X(2, 5, 61, 101), SLICE(1, 1, 3)},
    {"a block of two pieces", X(1, 5, 4096), SLICE(1, 2, 2)},
    {"many short blocks", X(41, 103, 5), SLICE(2, 1, 3)},
    {0},
};

static const struct qn_check_case refused[] = {
    {"along the batch", X(5, 3), SLICE(0, 1, 2)},
    {"an axis that is not there", X(5, 3), SLICE(2, 0, 1)},
    {"before the first", X(5, 3), SLICE(1, -1, 2)},
    {"behind the last", X(5, 3), SLICE(1, 2, 2)},
    {"nothing", X(5, 3), SLICE(1, 1, 0)},
    {"a negative length", X(5, 3), SLICE(1, 1, INT64_MIN)},
    {"beyond counting", X(5, 3), SLICE(1, INT64_MAX, INT64_MAX)},
    {"integers",
     {{.role = QN_ROLE_FIXED, .dtype = QN_I32, .rank = 2, .dim = {4, 3}}},
     SLICE(1, 0, 1)},
    {0},
};

const struct qn_check_op qn_check_slice = {.op = &qn_op_slice,
                                           .cases = cases,
                                           .reference = reference,
                                           .refused = refused,
                                           .outputs = outputs};
