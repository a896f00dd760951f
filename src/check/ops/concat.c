/* SPDX-License-Identifier: MIT */
#include "base/shape.h"
#include "check/check.h"
#include "op/part.h"

extern const struct qn_op qn_op_concat;
extern const struct qn_check_op qn_check_concat;

/* Copies one block of each tensor in turn: that is their order in the result. */
static void reference(const struct qn_reference *r)
{
    const struct qn_concat_attr *attr = r->call->attr;
    const int64_t blocks = qn_shape_span(&r->call->in[0].shape, 0, attr->axis);
    double *to = r->out[0];
    for (int64_t block = 0; block < blocks; block++)
        for (int i = 0; i < attr->count; i++) {
            const int64_t n = qn_operand_count(&r->call->in[i]) / blocks;
            for (int64_t k = 0; k < n; k++)
                *to++ = r->in[i][block * n + k];
        }
}

static void outputs(const struct qn_call *call, struct qn_operand out[QN_MAX_OUT])
{
    const struct qn_concat_attr *attr = call->attr;
    for (int i = 1; i < QN_MAX_IN; i++)
        if (qn_present(&call->in[i]))
            out[0].shape.dim[attr->axis] += call->in[i].shape.dim[attr->axis];
}

#define JOIN(axis_, count_)                                                                        \
    &(const struct qn_concat_attr)                                                                 \
    {                                                                                              \
        .axis = (axis_), .count = (count_)                                                         \
    }
#define X(...)                                                                                     \
    {                                                                                              \
        .rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .dim = { __VA_ARGS__ }         \
    }
#define NONE                                                                                       \
    {                                                                                              \
        .rank = -1                                                                                 \
    }
#define TWO(a, b)                                                                                  \
    {                                                                                              \
        a, b, NONE, NONE, NONE, NONE                                                               \
    }

/* Blocks shorter than a vector, of whole vectors and with a rest, longer than a piece, and many. */
static const struct qn_check_case cases[] = {
    {"channels", TWO(X(2, 3, 5, 4), X(2, 2, 5, 4)), JOIN(1, 2), .small = true},
    {"last dimension", TWO(X(3, 5, 3), X(3, 5, 7)), JOIN(2, 2), .small = true},
    {"columns of ones", TWO(X(7, 1), X(7, 1)), JOIN(1, 2)},
    {"whole vectors", TWO(X(3, 16), X(3, 32)), JOIN(1, 2)},
    {"six", {X(2, 1, 9), X(2, 4, 9), X(2, 2, 9), X(2, 1, 9), X(2, 3, 9), X(2, 5, 9)}, JOIN(1, 6)},
    {"long blocks", TWO(X(2, 3, 61, 101), X(2, 1, 61, 101)), JOIN(1, 2)},
    {"many short blocks", TWO(X(41, 103, 3), X(41, 103, 2)), JOIN(2, 2)},
    {"one sample", {X(1, 2, 3), X(1, 2, 3), X(1, 5, 3), NONE, NONE, NONE}, JOIN(1, 3)},
    {0},
};

#define INTEGERS(...)                                                                              \
    {                                                                                              \
        .role = QN_ROLE_FIXED, .dtype = QN_I32,                                                    \
        .rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .dim = {                       \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

static const struct qn_check_case refused[] = {
    {"along the batch", TWO(X(2, 3), X(2, 3)), JOIN(0, 2)},
    {"a negative axis", TWO(X(2, 3), X(2, 3)), JOIN(-1, 2)},
    {"an axis that is not there", TWO(X(2, 3), X(2, 3)), JOIN(2, 2)},
    {"other sizes beside", TWO(X(2, 3, 4), X(2, 3, 5)), JOIN(1, 2)},
    {"another batch", TWO(X(2, 3), X(3, 3)), JOIN(1, 2)},
    {"other ranks", TWO(X(2, 3), X(2, 3, 1)), JOIN(1, 2)},
    {"seven", {X(2, 1), X(2, 1), X(2, 1), X(2, 1), X(2, 1), X(2, 1)}, JOIN(1, 7)},
    {"one", TWO(X(2, 3), X(2, 3)), JOIN(1, 1)},
    {"one of three is none", {X(2, 3), X(2, 3), NONE, X(2, 3), NONE, NONE}, JOIN(1, 3)},
    {"integers", TWO(INTEGERS(2, 3), INTEGERS(2, 3)), JOIN(1, 2)},
    {"two types", TWO(X(2, 3), INTEGERS(2, 3)), JOIN(1, 2)},
    {"beyond counting", TWO(X(1, INT64_MAX - 1), X(1, INT64_MAX - 1)), JOIN(1, 2)},
    {0},
};

const struct qn_check_op qn_check_concat = {.op = &qn_op_concat,
                                            .cases = cases,
                                            .reference = reference,
                                            .refused = refused,
                                            .outputs = outputs};
