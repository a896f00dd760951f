/* SPDX-License-Identifier: MIT */
#include "check/check.h"
#include "op/elementwise.h"

extern const struct qn_op qn_op_reshape;
extern const struct qn_check_op qn_check_reshape;

static const struct qn_reshape_attr flat = {{QN_BATCH, 12}, 2, 0}, open = {{8, 0}, 2, 0},
                                    tokens = {{3 * QN_BATCH, 4}, 2, 0},
                                    wrong = {{QN_BATCH, 7}, 2, 0}, too_open = {{0, 0}, 2, 0},
                                    late = {{4, QN_BATCH}, 2, 0}, larger = {{5, 5}, 2, 0},
                                    ranks = {{1}, 7, 0};

/* A dimension that is not a number takes what the others leave. */
static void outputs(const struct qn_call *call, struct qn_operand out[QN_MAX_OUT])
{
    const struct qn_reshape_attr *attr = call->attr;
    int64_t rest = qn_operand_count(&call->in[0]);
    out[0].dtype = call->in[0].dtype;
    out[0].shape = (struct qn_shape){.rank = attr->rank};
    for (int i = 0; i < attr->rank; i++)
        rest /= attr->dim[i] > 0 ? attr->dim[i] : 1;
    for (int i = 0; i < attr->rank; i++)
        out[0].shape.dim[i] = attr->dim[i] > 0 ? attr->dim[i] : rest;
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
