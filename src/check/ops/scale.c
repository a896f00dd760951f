/* SPDX-License-Identifier: MIT */
#include "check/check.h"
#include "op/elementwise.h"

#include <math.h>

extern const struct qn_op qn_op_scale;
extern const struct qn_check_op qn_check_scale;

static void reference(const struct qn_reference *r)
{
    const struct qn_scale_attr *attr = r->call->attr;
    int64_t count = qn_operand_count(&r->call->in[0]);
    for (int64_t i = 0; i < count; i++)
        r->out[0][i] = (double)attr->factor * r->in[0][i];
}

static const struct qn_scale_attr third = {1.0f / 3}, negative = {-2.5f}, infinite = {INFINITY};

/* Sizes at which the last vector is full, is filled in part, or is the only one. */
static const struct qn_check_case cases[] = {
    {
        "full vectors",
        .in = {{.rank = 2, .dim = {4, 16}, .fill = QN_FILL_NORMAL}},
        .attr = &third,
    },
    {"a tail", .in = {{.rank = 3, .dim = {3, 5, 9}, .fill = QN_FILL_NORMAL}}, .attr = &third,
     .small = true},
    {
        "one element",
        .in = {{.rank = 1, .dim = {1}, .fill = QN_FILL_NORMAL}},
        .attr = &third,
    },
    {
        "several groups",
        .in = {{.rank = 2, .dim = {7, 311}, .fill = QN_FILL_NORMAL}},
        .attr = &third,
    },
    {"a negative factor", .in = {{.rank = 2, .dim = {5, 7}}}, .attr = &negative},
    {0},
};

static const struct qn_check_case refused[] = {
    {"integers", .attr = &third,
     .in = {{.role = QN_ROLE_FIXED, .dtype = QN_I32, .rank = 1, .dim = {4}}}},
    {"an infinite factor", .in = {{.rank = 1, .dim = {4}}}, .attr = &infinite},
    {0},
};

const struct qn_check_op qn_check_scale = {
    .op = &qn_op_scale, .cases = cases, .reference = reference, .refused = refused};
