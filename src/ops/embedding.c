/* SPDX-License-Identifier: MIT */
#include "ops/elementwise.h"

#include "base/log.h"
#include "base/shape.h"

#include <quern/ops.h>

/* Work-items on a GPU that share a column, each with its own rows of the table; vectors of a row
 * that a work-item on a CPU takes. */
enum { GPU_TURNS = 64, WIDE = 64 };

static qn_status shape(struct qn_shape_call *call)
{
    char text[96];
    const struct qn_operand *ids = &call->in[0], *table = &call->in[1];
    struct qn_shape out = ids->shape;
    if (ids->dtype != QN_U8 && ids->dtype != QN_I32)
        return qn_shape_error(call, "wants numbers of rows in u8 or i32, not %s",
                              qn_dtype_name(ids->dtype));
    if (!qn_is_float(table) || table->shape.rank != 2)
        return qn_shape_error(call, "wants a table (rows, n) of a float type, not %s %s",
                              qn_dtype_name(table->dtype),
                              qn_shape_text(&table->shape, text, sizeof text));
    if (table->shape.dim[0] > INT32_MAX)
        return qn_shape_error(call, "a table has at most 2^31 - 1 rows");
    if (out.rank == QN_MAX_DIMS)
        return qn_shape_error(call, "the result would have %d dimensions", out.rank + 1);
    out.dim[out.rank++] = table->shape.dim[1];
    qn_shape_set(&call->out[0], call->storage, out.rank, out.dim);
    return QN_OK;
}

/* The whole table counts as moved, since nobody knows how many of its rows are asked for. */
static void forward_cost(const struct qn_call *call, struct qn_cost *cost)
{
    *cost = qn_elementwise_cost(0, &call->in[0], &call->in[1], &call->out[0]);
}

static qn_status forward(struct qn_emit *emit, const struct qn_call *call)
{
    const struct qn_operand *ids = &call->in[0], *table = &call->in[1];
    int64_t count = qn_operand_count(ids), n = table->shape.dim[1];
    int64_t width = qn_vector_of(call);
    struct qn_launch launch = {
        .program = "embedding",
        .kernel = "look_up",
        .args = {QN_BUF(ids), QN_BUF(table), QN_BUF(&call->out[0]), QN_LONG(count), QN_LONG(n),
                 QN_INT(table->shape.dim[0])},
        .global = {qn_div_up(n, width), qn_row_range(count)},
        .local = {QN_ELEMENTWISE_LOCAL, 1},
    };
    qn_launch_type(&launch, "IDS", ids);
    qn_launch_type(&launch, "TABLE", table);
    qn_launch_type(&launch, "Y", &call->out[0]);
    qn_launch_vectors(&launch, call, n);
    return qn_emit_launch(emit, &launch);
}

/* Rows that are there stay as they are with a beta of 1. */
static bool begins(const struct qn_call *call)
{
    return call->beta_in[1] != 1;
}

static void backward_cost(const struct qn_call *call, struct qn_cost *cost)
{
    *cost = qn_elementwise_cost(1, &call->dout[0], &call->in[0], &call->din[1]);
    cost->launches = begins(call) ? 2 : 1;
}

/* Both kernels of the gradient are one program. */
static qn_status emit_gradient(struct qn_emit *emit, const struct qn_call *call,
                               struct qn_launch *launch, int64_t group)
{
    qn_launch_option(launch, "QN_GRADIENT", 1);
    qn_launch_option(launch, "QN_WG", group);
    qn_launch_type(launch, "IDS", &call->in[0]);
    qn_launch_type(launch, "DY", &call->dout[0]);
    qn_launch_type(launch, "D", &call->din[1]);
    qn_launch_vectors(launch, call, call->din[1].shape.dim[1]);
    return qn_emit_launch(emit, launch);
}

static qn_status begin(struct qn_emit *emit, const struct qn_call *call, int64_t group)
{
    int64_t count = qn_operand_count(&call->din[1]);
    struct qn_launch launch = {
        .program = "embedding",
        .kernel = "begin",
        .args = {QN_BUF(&call->din[1]), QN_LONG(count), QN_FLOAT(call->beta_in[1])},
        .global = {qn_div_up(count, qn_vector_of(call))},
        .local = {QN_ELEMENTWISE_LOCAL},
    };
    return emit_gradient(emit, call, &launch, group);
}

/* How the table is shared out: work-items along its columns, vectors of each, and work-items that
 * take its rows by turns. No choice changes a bit. */
struct share {
    int64_t columns, span, turns;
};

static struct share share_of(const struct qn_call *call)
{
    int64_t vectors = qn_div_up(call->din[1].shape.dim[1], qn_vector_of(call));
    int64_t wanted = 4 * (int64_t)call->facts->compute_units;
    if (!call->cpu)
        return (struct share){vectors, 1, GPU_TURNS};
    int64_t columns = qn_div_up(vectors, WIDE);
    return (struct share){columns, WIDE, qn_div_up(wanted, columns)};
}

static qn_status add_rows(struct qn_emit *emit, const struct qn_call *call)
{
    const struct qn_operand *ids = &call->in[0], *d = &call->din[1];
    struct share share = share_of(call);
    int64_t group = call->cpu ? 1 : QN_ELEMENTWISE_LOCAL;
    struct qn_launch launch = {
        .program = "embedding",
        .kernel = "add_rows",
        .args = {QN_BUF(ids), QN_BUF(&call->dout[0]), QN_BUF(d), QN_LONG(qn_operand_count(ids)),
                 QN_LONG(d->shape.dim[1]), QN_INT(d->shape.dim[0]), QN_INT(share.span)},
        .global = {share.columns, share.turns},
        .local = {group, 1},
    };
    if (begins(call))
        QN_TRY(begin(emit, call, group));
    return emit_gradient(emit, call, &launch, group);
}

const struct qn_op qn_op_embedding = {
    .name = "embedding",
    .n_in = 2,
    .n_required = 2,
    .n_out = 1,
    .batch = {QN_BATCH_MAY},
    .no_gradient = 1,
    .shape = shape,
    .groups =
        {
            {.name = "forward",
             .phase = QN_PHASE_TRAIN | QN_PHASE_EVAL,
             .read = {{.ref = QN_IN(0)}, {.ref = QN_IN(1)}},
             .write = {{.ref = QN_OUT(0)}},
             .variant = {{"any", NULL, forward_cost, forward}}},
            {.name = "table gradient",
             .phase = QN_PHASE_BACKWARD,
             .read = {{.ref = QN_DOUT(0)}, {.ref = QN_IN(0)}},
             .write = {{.ref = QN_DIN(1)}},
             .variant = QN_BOTH_SHAPES(NULL, backward_cost, add_rows)},
        },
};

qn_tensor qn_embedding(qn_graph *graph, qn_tensor ids, qn_tensor table)
{
    return qn_op_apply(graph, &qn_op_embedding, (const qn_tensor[]){ids, table}, NULL);
}
