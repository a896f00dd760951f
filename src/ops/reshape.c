/* SPDX-License-Identifier: MIT */
#include "base/shape.h"
#include "op/elementwise.h"
#include "op/op.h"

#include <quern/ops.h>

#include <string.h>

/* Elements of a shape that may begin with a multiple of the batch: as many, negative. 0 when they
 * cannot be counted. */
static int64_t signed_count(const struct qn_shape *shape)
{
    int64_t rest = qn_shape_span(shape, 1, shape->rank);
    int64_t first = shape->rank > 0 ? shape->dim[0] : 1;
    int64_t count = qn_mul(first < 0 ? -first : first, rest);
    if (count < 0)
        return 0;
    return first < 0 ? -count : count;
}

/* Fills in dimension `open` so that the shape has `count` elements. */
static bool fill_in(struct qn_shape *shape, int open, int64_t count)
{
    shape->dim[open] = 1;
    int64_t others = signed_count(shape);
    if (others == 0 || count % others != 0)
        return false;
    shape->dim[open] = count / others;
    return open == 0 ? shape->dim[0] != 0 : shape->dim[open] > 0;
}

static int open_dimension(const struct qn_shape *wanted)
{
    for (int i = 0; i < wanted->rank; i++)
        if (wanted->dim[i] == 0)
            return i;
    return -1;
}

static bool is_sound(const struct qn_shape *wanted)
{
    int open = 0;
    if (wanted->rank < 0 || wanted->rank > QN_MAX_DIMS)
        return false;
    for (int i = 0; i < wanted->rank; i++) {
        open += wanted->dim[i] == 0;
        if (wanted->dim[i] < 0 && (i > 0 || wanted->dim[i] == INT64_MIN))
            return false;
    }
    return open <= 1;
}

static struct qn_shape shape_of(const struct qn_reshape_attr *attr)
{
    struct qn_shape wanted = {.rank = attr->rank};
    memcpy(wanted.dim, attr->dim, sizeof wanted.dim);
    return wanted;
}

static qn_status shape(struct qn_shape_call *call)
{
    char from[96], to[96];
    const struct qn_reshape_attr *attr = call->attr;
    const struct qn_shape *in = &call->in[0].shape;
    const struct qn_shape wanted = shape_of(attr);
    struct qn_shape out = wanted;
    int64_t count = signed_count(in);
    bool ok = is_sound(&wanted) && !attr->refused;
    int open = ok ? open_dimension(&out) : -1;
    /* at a concrete batch the multiple of it is what is left */
    if (ok && out.rank > 0 && out.dim[0] < 0 && count > 0)
        ok = open < 0 && fill_in(&out, 0, count);
    else if (ok && open >= 0)
        ok = fill_in(&out, open, count);
    if (!ok && (wanted.rank < 0 || wanted.rank > QN_MAX_DIMS))
        return qn_shape_error(call, "cannot have %d dimensions", wanted.rank);
    if (!ok || signed_count(&out) != count)
        return qn_shape_error(call, "cannot give %s the shape %s",
                              qn_shape_text(in, from, sizeof from),
                              qn_shape_text(&wanted, to, sizeof to));
    qn_shape_set(&call->out[0], call->in[0].dtype, out.rank, out.dim);
    return QN_OK;
}

const struct qn_op qn_op_reshape = {
    .name = "reshape",
    .attr_size = sizeof(struct qn_reshape_attr),
    .n_in = 1,
    .n_required = 1,
    .n_out = 1,
    .batch = {QN_BATCH_MAY},
    .view = true,
    .shape = shape,
};

/* Works out the open dimension while the batch is still a symbol, and compares as long as it is.
 * False: the numbers of elements differ. */
static bool close_shape(const qn_shape *in, qn_shape *wanted)
{
    qn_shape out = *wanted;
    int open = open_dimension(&out);
    bool same =
        open >= 0 ? fill_in(&out, open, signed_count(in)) : signed_count(&out) == signed_count(in);
    if (same)
        *wanted = out;
    return same;
}

qn_tensor qn_reshape(qn_graph *graph, qn_tensor x, int rank, const int64_t *dim)
{
    qn_shape in = qn_shape_of(graph, x), wanted = {.rank = dim || !rank ? rank : -1};
    if (dim && rank > 0 && rank <= QN_MAX_DIMS)
        memcpy(wanted.dim, dim, (size_t)rank * sizeof *dim);
    struct qn_reshape_attr attr = {.rank = wanted.rank};
    attr.refused = is_sound(&wanted) && !close_shape(&in, &wanted);
    memcpy(attr.dim, wanted.dim, sizeof attr.dim);
    return qn_op_apply(graph, &qn_op_reshape, &x, &attr);
}

qn_tensor qn_flatten(qn_graph *graph, qn_tensor x)
{
    qn_shape shape_of_x = qn_shape_of(graph, x);
    return qn_reshape(graph, x, 2, (const int64_t[]){shape_of_x.rank ? shape_of_x.dim[0] : 0, 0});
}
