/* SPDX-License-Identifier: MIT */
#include "ops/elementwise.h"

#include "base/shape.h"

qn_status qn_elementwise_shape(struct qn_shape_call *call)
{
    if (!qn_is_float(&call->in[0]))
        return qn_shape_error(call, "wants numbers of floating point, not %s",
                              qn_dtype_name(call->in[0].dtype));
    call->out[0] = call->in[0];
    return QN_OK;
}

qn_status qn_elementwise_shape2(struct qn_shape_call *call)
{
    char a[96], b[96];
    const struct qn_operand *in = call->in;
    for (int i = 0; i < 2; i++)
        if (!qn_is_float(&in[i]))
            return qn_shape_error(call, "wants numbers of floating point, not %s",
                                  qn_dtype_name(in[i].dtype));
    if (!qn_shape_equal(&in[0].shape, &in[1].shape))
        return qn_shape_error(call, "wants two tensors of one shape, not %s and %s",
                              qn_shape_text(&in[0].shape, a, sizeof a),
                              qn_shape_text(&in[1].shape, b, sizeof b));
    call->out[0] = in[0];
    if (in[0].dtype != in[1].dtype)
        call->out[0].dtype = call->storage;
    return QN_OK;
}

static double bytes_of(const struct qn_operand *operand)
{
    return operand ? (double)qn_operand_bytes(operand) : 0;
}

struct qn_cost qn_elementwise_cost(double flops, const struct qn_operand *a,
                                   const struct qn_operand *b, const struct qn_operand *c)
{
    return (struct qn_cost){.flops = flops * (double)qn_operand_count(a),
                            .bytes = bytes_of(a) + bytes_of(b) + bytes_of(c),
                            .launches = 1};
}

void qn_elementwise_forward_cost(const struct qn_call *call, struct qn_cost *cost)
{
    *cost = qn_elementwise_cost(1, &call->in[0], &call->in[1], &call->out[0]);
}

void qn_elementwise_backward_cost(const struct qn_call *call, struct qn_cost *cost)
{
    const struct qn_operand *value = qn_present(&call->out[0]) ? &call->out[0] : &call->in[0];
    *cost = qn_elementwise_cost(3, &call->dout[0], value, &call->din[0]);
}

static int64_t work_items(const struct qn_call *call, int64_t count)
{
    return qn_div_up(count, qn_vector_of(call));
}

static qn_status emit_vectors(struct qn_emit *emit, const struct qn_call *call,
                              struct qn_launch *launch)
{
    qn_launch_vectors(launch, call, 0);
    return qn_emit_launch(emit, launch);
}

qn_status qn_elementwise_unary(struct qn_emit *emit, const struct qn_call *call,
                               const struct qn_unary *u)
{
    int64_t count = qn_operand_count(u->x);
    struct qn_launch launch = {
        .program = "unary",
        .kernel = u->kernel,
        .args = {QN_BUF(u->x), QN_BUF(u->y), QN_LONG(count), QN_FLOAT(u->parameter)},
        .global = {work_items(call, count)},
        .local = {QN_ELEMENTWISE_LOCAL},
    };
    qn_launch_type(&launch, "X", u->x);
    qn_launch_type(&launch, "Y", u->y);
    return emit_vectors(emit, call, &launch);
}

qn_status qn_elementwise_gradient(struct qn_emit *emit, const struct qn_call *call,
                                  const struct qn_unary_gradient *g)
{
    int64_t count = qn_operand_count(g->dy);
    struct qn_launch launch = {
        .program = "unary",
        .kernel = g->kernel,
        .args = {QN_BUF(g->dy), QN_BUF(g->value), QN_BUF(g->dx), QN_LONG(count),
                 QN_FLOAT(g->parameter), QN_FLOAT(g->beta)},
        .global = {work_items(call, count)},
        .local = {QN_ELEMENTWISE_LOCAL},
    };
    qn_launch_option(&launch, "QN_GRADIENT", 1);
    qn_launch_type(&launch, "DY", g->dy);
    qn_launch_type(&launch, "V", g->value);
    qn_launch_type(&launch, "DX", g->dx);
    return emit_vectors(emit, call, &launch);
}

qn_status qn_elementwise_binary(struct qn_emit *emit, const struct qn_call *call,
                                const struct qn_binary *b)
{
    int64_t count = qn_operand_count(b->a);
    struct qn_launch launch = {
        .program = "binary",
        .kernel = b->kernel,
        .args = {QN_BUF(b->a), QN_BUF(b->b), QN_BUF(b->y), QN_LONG(count), QN_FLOAT(b->beta)},
        .global = {work_items(call, count)},
        .local = {QN_ELEMENTWISE_LOCAL},
    };
    qn_launch_type(&launch, "A", b->a);
    qn_launch_type(&launch, "B", b->b);
    qn_launch_type(&launch, "Y", b->y);
    return emit_vectors(emit, call, &launch);
}

qn_status qn_elementwise_scale(struct qn_emit *emit, const struct qn_call *call,
                               const struct qn_scaling *s)
{
    int64_t count = qn_operand_count(s->x);
    struct qn_launch launch = {
        .program = "scale",
        .kernel = "scale",
        .args = {QN_BUF(s->x), QN_BUF(s->y), QN_LONG(count), QN_FLOAT(s->factor),
                 QN_FLOAT(s->beta)},
        .global = {work_items(call, count)},
        .local = {QN_ELEMENTWISE_LOCAL},
    };
    qn_launch_type(&launch, "X", s->x);
    qn_launch_type(&launch, "Y", s->y);
    return emit_vectors(emit, call, &launch);
}
