/* SPDX-License-Identifier: MIT */
#include "check/check.h"

#include <math.h>

extern const struct qn_op qn_op_sigmoid;
extern const struct qn_check_op qn_check_sigmoid;

static void reference(const struct qn_reference *r)
{
    int64_t count = qn_operand_count(&r->call->in[0]);
    for (int64_t i = 0; i < count; i++)
        r->out[0][i] = 1 / (1 + exp(-r->in[0][i]));
}

/* Sizes at which the last vector is full, is filled in part, or is the only one. */
static const struct qn_check_case cases[] = {
    {
        "full vectors",
        .in = {{.rank = 2, .dim = {4, 16}, .fill = QN_FILL_NORMAL}},
    },
    {"a tail", .in = {{.rank = 3, .dim = {3, 5, 9}, .fill = QN_FILL_NORMAL}}, .small = true},
    {
        "one element",
        .in = {{.rank = 1, .dim = {1}, .fill = QN_FILL_NORMAL}},
    },
    {
        "several groups",
        .in = {{.rank = 2, .dim = {7, 311}, .fill = QN_FILL_NORMAL}},
    },
    {"far out", .in = {{.rank = 1, .dim = {77}, .fill = QN_FILL_UNIFORM, .a = -200, .b = 200}}},
    {0},
};

static const struct qn_check_case refused[] = {
    {"integers", .in = {{.role = QN_ROLE_FIXED, .dtype = QN_I32, .rank = 1, .dim = {4}}}},
    {0},
};

const struct qn_check_op qn_check_sigmoid = {
    .op = &qn_op_sigmoid, .cases = cases, .reference = reference, .refused = refused};
