/* SPDX-License-Identifier: MIT
 *
 * Softmax over the last dimension. A row of -inf alone gives zeros.
 */
#include "base/shape.h"
#include "ops/common.h"

#include <quern/ops.h>

static qn_status shape(struct qn_shape_call *call)
{
    const struct qn_operand *x = &call->in[0];
    if (!qn_is_float(x) || x->shape.rank < 2)
        return qn_shape_error(call, "softmax takes (b, .., n) of a float type");
    qn_shape_set(&call->out[0], call->storage, x->shape.rank, x->shape.dim);
    return QN_OK;
}

static void forward_cost(const struct qn_call *call, struct qn_cost *cost)
{
    qn_launch_cost(call, 0, 20, &call->in[0], cost);
}

static void backward_cost(const struct qn_call *call, struct qn_cost *cost)
{
    qn_launch_cost(call, 1, 4, &call->out[0], cost);
}

/* How the rows of `x` are launched. */
struct rows {
    int64_t rows, n, span;
    struct qn_walk walk;
};

static struct rows rows_of(const struct qn_call *call, const struct qn_operand *x)
{
    int64_t n = x->shape.dim[x->shape.rank - 1], rows = qn_operand_count(x) / n;
    struct qn_walk walk = qn_walk_rows(call, n);
    return (struct rows){rows, n, call->cpu ? qn_rows_per_team(&walk, n, rows) : 1, walk};
}

static qn_status launch_rows(struct qn_emit *emit, const struct qn_call *call, const struct rows *r,
                             struct qn_launch *launch)
{
    launch->program = "softmax";
    launch->global[0] = qn_div_up(r->rows, r->span) * r->walk.group;
    launch->local[0] = r->walk.group;
    qn_walk_options(launch, &r->walk);
    qn_launch_aligned(launch, call, r->walk.vector, r->n);
    return qn_emit_launch(emit, launch);
}

static qn_status emit_forward(struct qn_emit *emit, const struct qn_call *call)
{
    struct rows r = rows_of(call, &call->in[0]);
    struct qn_launch launch = {.kernel = "forward",
                               .args = {QN_BUF(&call->in[0]), QN_BUF(&call->out[0]),
                                        QN_LONG(r.rows), QN_LONG(r.n), QN_INT(r.span)}};
    qn_launch_type(&launch, "X", &call->in[0]);
    qn_launch_type(&launch, "Y", &call->out[0]);
    return launch_rows(emit, call, &r, &launch);
}

static qn_status emit_backward(struct qn_emit *emit, const struct qn_call *call)
{
    struct rows r = rows_of(call, &call->out[0]);
    struct qn_launch launch = {.kernel = "backward",
                               .args = {QN_BUF(&call->out[0]), QN_BUF(&call->dout[0]),
                                        QN_BUF(&call->din[0]), QN_LONG(r.rows), QN_LONG(r.n),
                                        QN_INT(r.span), QN_FLOAT(call->beta_in[0])}};
    qn_launch_type(&launch, "Y", &call->out[0]);
    qn_launch_type(&launch, "DY", &call->dout[0]);
    qn_launch_type(&launch, "DX", &call->din[0]);
    return launch_rows(emit, call, &r, &launch);
}

const struct qn_op qn_op_softmax = {
    .name = "softmax",
    .n_in = 1,
    .n_required = 1,
    .n_out = 1,
    .batch = {QN_BATCH_MAY},
    .shape = shape,
    .groups = {{.name = "forward",
                .phase = QN_PHASE_TRAIN | QN_PHASE_EVAL,
                .read = {{QN_IN(0)}},
                .write = {{QN_OUT(0), QN_IN(0)}},
                .variant = QN_BOTH_SHAPES(qn_fits_row_group, forward_cost, emit_forward)},
               {.name = "input gradient",
                .phase = QN_PHASE_BACKWARD,
                .read = {{QN_OUT(0)}, {QN_DOUT(0)}},
                .write = {{QN_DIN(0), QN_DOUT(0)}},
                .variant = QN_BOTH_SHAPES(qn_fits_row_group, backward_cost, emit_backward)}}};

qn_tensor qn_softmax(qn_graph *graph, qn_tensor x)
{
    return qn_op_apply(graph, &qn_op_softmax, &x, NULL);
}
