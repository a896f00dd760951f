/* SPDX-License-Identifier: MIT */
#include "ops/strip.h"

#include "base/shape.h"
#include "ops/common.h"

enum { GPU_GROUP = 64 };

int64_t qn_strip_blocks(int64_t rows)
{
    return qn_div_up(rows, QN_SUM_BLOCK);
}

static int64_t span_of(const struct qn_call *call, const struct qn_strip *strip)
{
    return call->cpu ? strip->wide : 1;
}

int64_t qn_strip_items(const struct qn_call *call, const struct qn_strip *strip)
{
    const int64_t width = qn_vector_of(call);
    return qn_div_up(strip->n / width, span_of(call, strip)) + strip->n % width;
}

void qn_strip_range(struct qn_launch *launch, const struct qn_call *call,
                    const struct qn_strip *strip)
{
    int64_t span = span_of(call, strip);
    int64_t group = call->cpu ? 1 : GPU_GROUP;
    launch->global[0] = qn_strip_items(call, strip);
    launch->global[1] = qn_row_range(qn_div_up(strip->rows, strip->block));
    launch->local[0] = group;
    launch->local[1] = 1;
    qn_launch_option(launch, "QN_WG", group);
    qn_launch_option(launch, "QN_BLOCK", strip->block);
    qn_launch_option(launch, "QN_SPAN", span);
    qn_launch_vectors(launch, call, strip->n);
}

qn_status qn_strip_sum_blocks(struct qn_emit *emit, const struct qn_call *call,
                              const struct qn_operand *x, const struct qn_operand *part)
{
    int64_t n = x->shape.dim[x->shape.rank - 1], rows = qn_operand_count(x) / n;
    struct qn_launch launch = {
        .program = "column_sum",
        .kernel = "sum_blocks",
        .args = {QN_BUF(x), QN_BUF(part), QN_LONG(rows), QN_LONG(n)},
    };
    qn_strip_range(&launch, call, &(struct qn_strip){rows, n, QN_SUM_BLOCK, QN_SUM_WIDE});
    qn_launch_type(&launch, "X", x);
    return qn_emit_launch(emit, &launch);
}

qn_status qn_strip_sum(struct qn_emit *emit, const struct qn_call *call,
                       const struct qn_operand *part, const struct qn_operand *y, float beta)
{
    int64_t n = qn_operand_count(y), width = qn_vector_of(call);
    int64_t group = call->cpu ? 1 : QN_ROW_GROUP;
    struct qn_launch launch = {
        .program = "column_sum",
        .kernel = "sum_columns",
        .args = {QN_BUF(part), QN_BUF(y), QN_LONG(n), QN_LONG(qn_operand_count(part) / n),
                 QN_FLOAT(beta)},
        .global = {(n / width + n % width) * group},
        .local = {group},
    };
    qn_launch_option(&launch, "QN_WG", group);
    qn_launch_type(&launch, "X", part);
    qn_launch_type(&launch, "Y", y);
    qn_launch_vectors(&launch, call, n);
    return qn_emit_launch(emit, &launch);
}
