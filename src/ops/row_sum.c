/* SPDX-License-Identifier: MIT */
#include "ops/row_sum.h"

#include "base/shape.h"

qn_status qn_row_sum_shape(struct qn_shape_call *call, int first)
{
    const struct qn_operand *x = &call->in[0];
    if (!qn_is_float(x))
        return qn_shape_error(call, "the input must be of a float type");
    if (first < 1 || first >= x->shape.rank)
        return qn_shape_error(call, "dimension %d is not one of 1 .. %d", first, x->shape.rank - 1);
    qn_shape_set(&call->out[0], call->storage, first, x->shape.dim);
    return QN_OK;
}

void qn_row_sum_forward_cost(const struct qn_call *call, struct qn_cost *cost)
{
    qn_launch_cost(call, 0, 1, &call->in[0], cost);
}

void qn_row_sum_backward_cost(const struct qn_call *call, struct qn_cost *cost)
{
    qn_launch_cost(call, 1, 1, &call->din[0], cost);
}

/* A launch over `rows` rows: the first arguments are set, these are the rest. */
struct row_launch {
    struct qn_launch *launch;
    const struct qn_operand *large, *small;
    bool mean;
};

static void set_rows(const struct qn_call *call, const struct row_launch *r)
{
    int64_t rows = qn_operand_count(r->small), n = qn_operand_count(r->large) / rows;
    struct qn_walk walk = qn_walk_rows(call, n);
    int64_t span = qn_rows_per_team(&walk, n, rows), teams = walk.group / walk.lanes;
    struct qn_arg *arg = &r->launch->args[2];
    arg[0] = (struct qn_arg)QN_LONG(rows);
    arg[1] = (struct qn_arg)QN_LONG(n);
    arg[2] = (struct qn_arg)QN_INT(walk.lanes);
    arg[3] = (struct qn_arg)QN_INT(span);
    arg[4] = (struct qn_arg)QN_FLOAT(r->mean ? (float)(1.0 / (double)n) : 1.0f);
    r->launch->global[0] = qn_div_up(rows, span * teams) * walk.group;
    r->launch->local[0] = walk.group;
    qn_walk_options(r->launch, &walk);
    qn_launch_aligned(r->launch, call, walk.vector, n);
    qn_launch_type(r->launch, "X", r->large);
    qn_launch_type(r->launch, "Y", r->small);
}

static qn_status forward(struct qn_emit *emit, const struct qn_call *call, bool mean)
{
    struct qn_launch launch = {.program = "row_sum",
                               .kernel = "forward",
                               .args = {QN_BUF(&call->in[0]), QN_BUF(&call->out[0])}};
    set_rows(call, &(struct row_launch){&launch, &call->in[0], &call->out[0], mean});
    return qn_emit_launch(emit, &launch);
}

static qn_status backward(struct qn_emit *emit, const struct qn_call *call, bool mean)
{
    struct qn_launch launch = {.program = "row_sum",
                               .kernel = "backward",
                               .args = {QN_BUF(&call->dout[0]), QN_BUF(&call->din[0])}};
    set_rows(call, &(struct row_launch){&launch, &call->din[0], &call->dout[0], mean});
    launch.args[7] = (struct qn_arg)QN_FLOAT(call->beta_in[0]);
    return qn_emit_launch(emit, &launch);
}

qn_status qn_row_sum_forward(struct qn_emit *emit, const struct qn_call *call)
{
    return forward(emit, call, false);
}

qn_status qn_row_sum_backward(struct qn_emit *emit, const struct qn_call *call)
{
    return backward(emit, call, false);
}

qn_status qn_row_mean_forward(struct qn_emit *emit, const struct qn_call *call)
{
    return forward(emit, call, true);
}

qn_status qn_row_mean_backward(struct qn_emit *emit, const struct qn_call *call)
{
    return backward(emit, call, true);
}
