/* SPDX-License-Identifier: MIT */
#include "check/check.h"
#include "op/elementwise.h"

extern const struct qn_op qn_op_reshape;
extern const struct qn_check_op qn_check_reshape;

static const struct qn_reshape_attr flat = {{2, {QN_BATCH, 12}}, false},
                                    open = {{2, {8, 0}}, false},
                                    tokens = {{2, {3 * QN_BATCH, 4}}, false},
                                    wrong = {{2, {QN_BATCH, 7}}, false},
                                    too_open = {{2, {0, 0}}, false},
                                    late = {{2, {4, QN_BATCH}}, false},
                                    larger = {{2, {5, 5}}, false}, ranks = {{7, {1}}, false};

/* A dimension that is not a number takes what the others leave. */
static void outputs(const struct qn_call *call, struct qn_operand out[QN_MAX_OUT])
{
    const struct qn_reshape_attr *attr = call->attr;
    int64_t rest = qn_operand_count(&call->in[0]);
    out[0] = (struct qn_operand){.dtype = call->in[0].dtype, .shape = attr->wanted};
    for (int i = 0; i < attr->wanted.rank; i++)
        rest /= attr->wanted.dim[i] > 0 ? attr->wanted.dim[i] : 1;
    for (int i = 0; i < attr->wanted.rank; i++)
        if (attr->wanted.dim[i] <= 0)
            out[0].shape.dim[i] = rest;
}

static const struct qn_check_case cases[] = {
    {"flat", .in = {{.rank = 3, .dim = {2, 3, 4}}}, .attr = &flat, .small = true},
    {"an open dimension", .in = {{.rank = 3, .dim = {2, 3, 4}}}, .attr = &open},
    {"tokens", .in = {{.rank = 3, .dim = {2, 3, 4}}}, .attr = &tokens},
    {0},
};

static const struct qn_check_case refused[] = {
    {"no divisor", .in = {{.rank = 3, .dim = {2, 3, 4}}}, .attr = &wrong},
    {"two open dimensions", .in = {{.rank = 3, .dim = {2, 3, 4}}}, .attr = &too_open},
    {"the batch behind", .in = {{.rank = 3, .dim = {2, 3, 4}}}, .attr = &late},
    {"more elements", .in = {{.rank = 3, .dim = {2, 3, 4}}}, .attr = &larger},
    {"too many dimensions", .in = {{.rank = 3, .dim = {2, 3, 4}}}, .attr = &ranks},
    {0},
};

const struct qn_check_op qn_check_reshape = {
    .op = &qn_op_reshape, .cases = cases, .refused = refused, .outputs = outputs};
