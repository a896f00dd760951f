/* SPDX-License-Identifier: MIT */
#include "base/shape.h"
#include "op/elementwise.h"
#include "ops/common.h"

#include <quern/ops.h>

#include <string.h>

/* Sides of the squares of a GPU, in cl_kernels/transpose.cl too; elements that a work-group takes
 * at least; dimensions around the two that matter. */
enum { TILE = 32, ENOUGH = 4096, OUTER = 4 };

static bool is_permutation(const struct qn_transpose_attr *attr)
{
    unsigned seen = 0;
    for (int i = 0; i < attr->rank; i++)
        if (attr->axis[i] >= 0 && attr->axis[i] < attr->rank)
            seen |= 1u << attr->axis[i];
    return seen == (1u << attr->rank) - 1;
}

static qn_status shape(struct qn_shape_call *call)
{
    const struct qn_transpose_attr *attr = call->attr;
    const struct qn_operand *x = &call->in[0];
    if (x->dtype != QN_F32 && x->dtype != QN_F16 && x->dtype != QN_BF16)
        return qn_shape_error(call, "wants numbers of floating point, not %s",
                              qn_dtype_name(x->dtype));
    if (attr->rank != x->shape.rank || !is_permutation(attr))
        return qn_shape_error(call, "the axes are no order of the %d dimensions", x->shape.rank);
    if (attr->moves_batch)
        return qn_shape_error(call, "the batch must stay in dimension 0");
    call->out[0] = *x;
    for (int i = 0; i < attr->rank; i++)
        call->out[0].shape.dim[i] = x->shape.dim[attr->axis[i]];
    return QN_OK;
}

static void forward_cost(const struct qn_call *call, struct qn_cost *cost)
{
    qn_launch_cost(call, 0, 1, &call->in[0], cost);
}

static void backward_cost(const struct qn_call *call, struct qn_cost *cost)
{
    qn_launch_cost(call, 1, 1, &call->din[0], cost);
}

/* One dimension of the result: its size, and the distance of neighbours in the argument and in the
 * result. */
struct way {
    int64_t size, from, to;
};

/* The dimensions in the order of the result. Those of size 1 are left out, neighbours that stay
 * neighbours are one. */
static int find_ways(const struct qn_shape *x, const int *axis, struct way way[QN_MAX_DIMS])
{
    int count = 0;
    for (int i = 0; i < x->rank; i++) {
        struct way next = {x->dim[axis[i]], qn_shape_span(x, axis[i] + 1, x->rank), 0};
        if (next.size == 1)
            continue;
        if (count > 0 && way[count - 1].from == next.from * next.size) {
            way[count - 1].size *= next.size;
            way[count - 1].from = next.from;
        } else {
            way[count++] = next;
        }
    }
    for (int64_t i = count, to = 1; i-- > 0; to *= way[i].size)
        way[i].to = to;
    return count;
}

/* What the kernels are told: n elements side by side in the argument, `rows` of them, what is
 * around these. */
struct layout {
    struct way n, rows, outer[OUTER];
    bool tiled; /* it is the rows that lie side by side in the result */
};

/* Removes one dimension from the list; without one (-1) it is of size 1. */
static struct way take(struct way *way, int *count, int which)
{
    if (which < 0)
        return (struct way){1, 0, 0};
    struct way taken = way[which];
    --*count;
    for (int i = which; i < *count; i++)
        way[i] = way[i + 1];
    return taken;
}

static struct layout layout_of(const struct qn_shape *x, const int *axis)
{
    struct way way[QN_MAX_DIMS];
    int count = find_ways(x, axis, way), last = count - 1, near = last;
    while (near >= 0 && way[near].from != 1)
        near--;
    struct layout layout = {.tiled = near != last};
    layout.n = take(way, &count, near);
    layout.rows = take(way, &count, count - 1);
    for (int i = 0; i < OUTER; i++)
        layout.outer[OUTER - 1 - i] = take(way, &count, count - 1);
    return layout;
}

/* y = beta * y + x in the order of `axis`. */
struct permutation {
    const struct qn_operand *x, *y;
    const int *axis;
    float beta;
};

static void set_operands(struct qn_launch *launch, const struct permutation *p,
                         const struct layout *layout)
{
    struct qn_arg *arg = launch->args;
    *arg++ = (struct qn_arg)QN_BUF(p->x);
    *arg++ = (struct qn_arg)QN_BUF(p->y);
    for (int i = 1; i < OUTER; i++)
        *arg++ = (struct qn_arg)QN_LONG(layout->outer[i].size);
    for (int i = 0; i < OUTER; i++)
        *arg++ = (struct qn_arg)QN_LONG(layout->outer[i].from);
    for (int i = 0; i < OUTER; i++)
        *arg++ = (struct qn_arg)QN_LONG(layout->outer[i].to);
    qn_launch_type(launch, "X", p->x);
    qn_launch_type(launch, "Y", p->y);
}

enum { FIRST_ARG = 2 + 3 * OUTER - 1 }; /* behind those */

static qn_status emit_copy(struct qn_emit *emit, const struct qn_call *call,
                           const struct permutation *p, const struct layout *layout, int64_t outer)
{
    struct qn_walk walk = qn_walk_rows(call, layout->n.size);
    int64_t span = qn_div_up(ENOUGH, layout->n.size);
    struct qn_launch launch = {
        .program = "transpose",
        .kernel = "copy_rows",
        .global = {outer * qn_div_up(layout->rows.size, span) * walk.group},
        .local = {walk.group},
    };
    const struct qn_arg rest[] = {QN_LONG(layout->rows.size),
                                  QN_LONG(layout->rows.from),
                                  QN_LONG(layout->rows.to),
                                  QN_LONG(layout->n.size),
                                  QN_LONG(span),
                                  QN_INT(walk.lanes),
                                  QN_FLOAT(p->beta)};
    memcpy(launch.args + FIRST_ARG, rest, sizeof rest);
    set_operands(&launch, p, layout);
    qn_walk_options(&launch, &walk);
    return qn_emit_launch(emit, &launch);
}

static qn_status emit_tiles(struct qn_emit *emit, const struct qn_call *call,
                            const struct permutation *p, const struct layout *layout, int64_t outer)
{
    struct qn_walk walk = qn_walk_rows(call, layout->n.size);
    int64_t width = call->cpu ? 4 * walk.vector : TILE, span = call->cpu ? 4 * walk.vector : TILE;
    int64_t strips = outer * qn_div_up(layout->rows.size, span);
    struct qn_launch launch = {
        .program = "transpose",
        .kernel = "transpose_tiles",
        .global = {strips * qn_div_up(layout->n.size, width) * walk.group},
        .local = {walk.group},
    };
    const struct qn_arg rest[] = {QN_LONG(layout->rows.size),
                                  QN_LONG(layout->rows.from),
                                  QN_LONG(layout->n.size),
                                  QN_LONG(layout->n.to),
                                  QN_LONG(span),
                                  QN_FLOAT(p->beta)};
    memcpy(launch.args + FIRST_ARG, rest, sizeof rest);
    set_operands(&launch, p, layout);
    qn_walk_options(&launch, &walk);
    return qn_emit_launch(emit, &launch);
}

static qn_status permute(struct qn_emit *emit, const struct qn_call *call,
                         const struct permutation *p)
{
    const struct layout layout = layout_of(&p->x->shape, p->axis);
    int64_t outer = 1;
    for (int i = 0; i < OUTER; i++)
        outer *= layout.outer[i].size;
    return layout.tiled ? emit_tiles(emit, call, p, &layout, outer)
                        : emit_copy(emit, call, p, &layout, outer);
}

static qn_status forward(struct qn_emit *emit, const struct qn_call *call)
{
    const struct qn_transpose_attr *attr = call->attr;
    return permute(emit, call, &(struct permutation){&call->in[0], &call->out[0], attr->axis, 0});
}

static qn_status backward(struct qn_emit *emit, const struct qn_call *call)
{
    const struct qn_transpose_attr *attr = call->attr;
    int inverse[QN_MAX_DIMS] = {0};
    for (int i = 0; i < attr->rank; i++)
        inverse[attr->axis[i]] = i;
    return permute(emit, call,
                   &(struct permutation){&call->dout[0], &call->din[0], inverse, call->beta_in[0]});
}

const struct qn_op qn_op_transpose = {
    .name = "transpose",
    .attr_size = sizeof(struct qn_transpose_attr),
    .n_in = 1,
    .n_required = 1,
    .n_out = 1,
    .batch = {QN_BATCH_MAY},
    .shape = shape,
    .groups =
        {
            {.name = "forward",
             .phase = QN_PHASE_TRAIN | QN_PHASE_EVAL,
             .read = {{.ref = QN_IN(0)}},
             .write = {{.ref = QN_OUT(0)}},
             .variant = QN_BOTH_SHAPES(qn_fits_row_group, forward_cost, forward)},
            {.name = "input gradient",
             .phase = QN_PHASE_BACKWARD,
             .read = {{.ref = QN_DOUT(0)}},
             .write = {{.ref = QN_DIN(0)}},
             .variant = QN_BOTH_SHAPES(qn_fits_row_group, backward_cost, backward)},
        },
};

qn_tensor qn_transpose(qn_graph *graph, qn_tensor x, int rank, const int *axes)
{
    qn_shape in = qn_shape_of(graph, x);
    struct qn_transpose_attr attr = {.rank = rank};
    if (axes && rank > 0 && rank <= QN_MAX_DIMS)
        memcpy(attr.axis, axes, (size_t)rank * sizeof *axes);
    attr.moves_batch = in.rank > 0 && in.dim[0] < 0 && attr.axis[0] != 0;
    return qn_op_apply(graph, &qn_op_transpose, &x, &attr);
}
