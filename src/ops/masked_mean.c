/* SPDX-License-Identifier: MIT
 *
 * The mean over the tokens of a row that are no padding.
 */
#include "ops/common.h"
#include "ops/strip.h"

#include <quern/ops.h>

enum { X, LENGTHS };
enum { FORWARD, BACKWARD };

/* CPU shape: vectors of which a work-item keeps the sums; rows of a work-item that writes dx. */
enum { WIDE = 16, BLOCK = 16 };

static qn_status shape(struct qn_shape_call *call)
{
    const struct qn_operand *x = &call->in[X], *lengths = &call->in[LENGTHS];
    if (!qn_is_float(x) || x->shape.rank != 3)
        return qn_shape_error(call, "masked mean takes x (b, t, n) of a float type");
    if (qn_present(lengths) && (lengths->dtype != QN_I32 || lengths->shape.rank != 1 ||
                                lengths->shape.dim[0] != x->shape.dim[0]))
        return qn_shape_error(call, "lengths are i32 (b), one for each row of x");
    const int64_t *dim = x->shape.dim;
    qn_shape_set(&call->out[0], call->storage, 2, (const int64_t[]){dim[0], dim[2]});
    return QN_OK;
}

static void forward_cost(const struct qn_call *call, struct qn_cost *cost)
{
    qn_launch_cost(call, FORWARD, 1, &call->in[X], cost);
}

static void backward_cost(const struct qn_call *call, struct qn_cost *cost)
{
    qn_launch_cost(call, BACKWARD, 1, &call->din[X], cost);
}

static qn_status forward(struct qn_emit *emit, const struct qn_call *call)
{
    const int64_t *dim = call->in[X].shape.dim;
    struct qn_launch launch = {.program = "masked_mean",
                               .kernel = "forward",
                               .args = {QN_BUF(&call->in[X]), QN_BUF(&call->in[LENGTHS]),
                                        QN_BUF(&call->out[0]), QN_LONG(dim[0]), QN_LONG(dim[1]),
                                        QN_LONG(dim[2]), QN_INT(qn_present(&call->in[LENGTHS]))}};
    qn_strip_range(&launch, call, &(struct qn_strip){dim[0], dim[2], 1, WIDE});
    qn_launch_type(&launch, "X", &call->in[X]);
    qn_launch_type(&launch, "Y", &call->out[0]);
    return qn_emit_launch(emit, &launch);
}

static qn_status backward(struct qn_emit *emit, const struct qn_call *call)
{
    const int64_t *dim = call->din[X].shape.dim, rows = dim[0] * dim[1];
    struct qn_launch launch = {.program = "masked_mean",
                               .kernel = "backward",
                               .args = {QN_BUF(&call->dout[0]), QN_BUF(&call->in[LENGTHS]),
                                        QN_BUF(&call->din[X]), QN_LONG(rows), QN_LONG(dim[1]),
                                        QN_LONG(dim[2]), QN_INT(qn_present(&call->in[LENGTHS])),
                                        QN_FLOAT(call->beta_in[X])}};
    qn_strip_range(&launch, call, &(struct qn_strip){rows, dim[2], call->cpu ? BLOCK : 1, WIDE});
    qn_launch_type(&launch, "X", &call->din[X]);
    qn_launch_type(&launch, "Y", &call->dout[0]);
    return qn_emit_launch(emit, &launch);
}

const struct qn_op qn_op_masked_mean = {
    .name = "masked_mean",
    .n_in = 2,
    .n_required = 1,
    .n_out = 1,
    .batch = {QN_BATCH_MAY, QN_BATCH_MAY},
    .no_gradient = 1u << LENGTHS,
    .shape = shape,
    .groups =
        {
            [FORWARD] = {.name = "forward",
                         .phase = QN_PHASE_TRAIN | QN_PHASE_EVAL,
                         .read = {{QN_IN(X)}, {QN_IN(LENGTHS)}},
                         .write = {{QN_OUT(0)}},
                         .variant = QN_BOTH_SHAPES(NULL, forward_cost, forward)},
            [BACKWARD] = {.name = "input gradient",
                          .phase = QN_PHASE_BACKWARD,
                          .read = {{QN_DOUT(0)}, {QN_IN(LENGTHS)}},
                          .write = {{QN_DIN(X)}},
                          .variant = QN_BOTH_SHAPES(NULL, backward_cost, backward)},
        },
};

qn_tensor qn_masked_mean(qn_graph *graph, qn_tensor x, qn_tensor lengths)
{
    return qn_op_apply(graph, &qn_op_masked_mean, (const qn_tensor[]){x, lengths}, NULL);
}
