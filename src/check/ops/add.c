/* SPDX-License-Identifier: MIT */
#include "check/check.h"

extern const struct qn_op qn_op_add;
extern const struct qn_check_op qn_check_add;

static void reference(const struct qn_reference *r)
{
    int64_t count = qn_operand_count(&r->call->in[0]);
    for (int64_t i = 0; i < count; i++)
        r->out[0][i] = r->in[0][i] + r->in[1][i];
}

/* Sizes at which the last vector is full, is filled in part, or is the only one. */
static const struct qn_check_case cases[] = {
    {"full vectors", .in = {{.rank = 2, .dim = {4, 16}}, {.rank = 2, .dim = {4, 16}}}},
    {"a tail", .in = {{.rank = 3, .dim = {3, 5, 9}}, {.rank = 3, .dim = {3, 5, 9}}}, .small = true},
    {"one element", .in = {{.rank = 1, .dim = {1}}, {.rank = 1, .dim = {1}}}},
    {"several groups", .in = {{.rank = 2, .dim = {7, 311}}, {.rank = 2, .dim = {7, 311}}}},
    {"with a parameter",
     .in = {{.rank = 2, .dim = {3, 7}}, {.role = QN_ROLE_PARAMETER, .rank = 2, .dim = {3, 7}}}},
    {0},
};

static const struct qn_check_case refused[] = {
    {"other sizes", .in = {{.rank = 2, .dim = {4, 5}}, {.rank = 2, .dim = {5, 4}}}},
    {"other ranks", .in = {{.rank = 2, .dim = {4, 1}}, {.rank = 1, .dim = {4}}}},
    {"integers", .in = {{.rank = 1, .dim = {4}},
                        {.role = QN_ROLE_FIXED, .dtype = QN_I32, .rank = 1, .dim = {4}}}},
    {0},
};

const struct qn_check_op qn_check_add = {
    .op = &qn_op_add, .cases = cases, .reference = reference, .refused = refused};
