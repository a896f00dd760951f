/* SPDX-License-Identifier: MIT */
#include "check/check.h"
#include "op/elementwise.h"

extern const struct qn_op qn_op_leaky_relu;
extern const struct qn_check_op qn_check_leaky_relu;

static void reference(const struct qn_reference *r)
{
    const struct qn_leaky_relu_attr *attr = r->call->attr;
    int64_t count = qn_operand_count(&r->call->in[0]);
    for (int64_t i = 0; i < count; i++)
        r->out[0][i] = r->in[0][i] > 0 ? r->in[0][i] : (double)attr->slope * r->in[0][i];
}

static const struct qn_leaky_relu_attr tenth = {0.1f}, one = {1}, none = {0}, two = {2};

/* Sizes at which the last vector is full, is filled in part, or is the only one. */
static const struct qn_check_case cases[] = {
    {
        "full vectors",
        .in = {{.rank = 2, .dim = {4, 16}, .fill = QN_FILL_KINKLESS}},
        .attr = &tenth,
    },
    {"a tail", .in = {{.rank = 3, .dim = {3, 5, 9}, .fill = QN_FILL_KINKLESS}}, .attr = &tenth,
     .small = true},
    {
        "one element",
        .in = {{.rank = 1, .dim = {1}, .fill = QN_FILL_KINKLESS}},
        .attr = &tenth,
    },
    {
        "several groups",
        .in = {{.rank = 2, .dim = {7, 311}, .fill = QN_FILL_KINKLESS}},
        .attr = &tenth,
    },
    {"the identity", .in = {{.rank = 2, .dim = {5, 7}, .fill = QN_FILL_KINKLESS}}, .attr = &one},
    {0},
};

static const struct qn_check_case refused[] = {
    {"integers", .attr = &tenth,
     .in = {{.role = QN_ROLE_FIXED, .dtype = QN_I32, .rank = 1, .dim = {4}}}},
    {"no slope", .in = {{.rank = 1, .dim = {4}}}, .attr = &none},
    {"too steep", .in = {{.rank = 1, .dim = {4}}}, .attr = &two},
    {0},
};

const struct qn_check_op qn_check_leaky_relu = {
    .op = &qn_op_leaky_relu, .cases = cases, .reference = reference, .refused = refused};
