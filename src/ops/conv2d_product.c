/* SPDX-License-Identifier: MIT */
#include "ops/conv2d_product.h"

#include "base/log.h"
#include "base/shape.h"
#include "ops/matmul.h"

static const struct qn_conv2d_tile cpu_tiles[] = {
    {4, {4, 3}, {12, 1}, {6, 2}, {4, 3}},
    {8, {4, 3}, {12, 1}, {6, 2}, {4, 3}},
    {16, {8, 3}, {12, 1}, {12, 2}, {8, 3}},
};

int64_t qn_conv2d_size(const struct qn_conv2d_attr *attr, int axis, int64_t size, int64_t taps)
{
    int64_t span = size + 2 * (int64_t)attr->padding[axis] - attr->dilation[axis] * (taps - 1) - 1;
    return span < 0 ? 0 : span / attr->stride[axis] + 1;
}

struct qn_conv2d_product qn_conv2d_forward(const struct qn_call *call)
{
    const struct qn_conv2d_attr *attr = call->attr;
    const int64_t *x = call->in[0].shape.dim, *w = call->in[1].shape.dim;
    struct qn_conv2d_product p = {.attr = attr,
                                  .batch = x[0],
                                  .groups = attr->groups,
                                  .depth = w[1],
                                  .channels = w[0] / attr->groups};
    for (int i = 0; i < 2; i++) {
        p.source[i] = x[2 + i];
        p.kernel[i] = w[2 + i];
        p.plane[i] = qn_conv2d_size(attr, i, p.source[i], p.kernel[i]);
    }
    return p;
}

struct qn_conv2d_product qn_conv2d_gradient(const struct qn_call *call)
{
    const struct qn_conv2d_product f = qn_conv2d_forward(call);
    struct qn_conv2d_product p = f;
    p.depth = f.channels;
    p.channels = f.depth;
    for (int i = 0; i < 2; i++) {
        p.source[i] = f.plane[i];
        p.plane[i] = f.source[i];
    }
    return p;
}

int64_t qn_conv2d_terms(const struct qn_conv2d_product *p)
{
    return p->depth * p->kernel[0] * p->kernel[1];
}

int64_t qn_conv2d_pixels(const struct qn_conv2d_product *p)
{
    return p->batch * p->plane[0] * p->plane[1];
}

bool qn_conv2d_is_inside(const struct qn_conv2d_product *p, bool gradient)
{
    const bool padded = p->attr->padding[0] > 0 || p->attr->padding[1] > 0;
    return !padded && (!gradient || p->kernel[0] * p->kernel[1] == 1);
}

const struct qn_conv2d_tile *qn_conv2d_tile_of(const struct qn_facts *facts)
{
    const struct qn_conv2d_tile *tile = cpu_tiles;
    while (tile->vector < facts->vector_width && tile->vector < 16)
        tile++;
    return tile;
}

int64_t qn_conv2d_gpu_tile(int64_t size)
{
    return size > QN_CONV2D_SIDE ? QN_CONV2D_GPU_TILE : 1;
}

void qn_conv2d_cost(const struct qn_call *call, int group, struct qn_cost *cost)
{
    const struct qn_conv2d_product p = qn_conv2d_forward(call);
    cost->flops = 2.0 * (double)qn_conv2d_pixels(&p) * (double)(p.groups * p.channels) *
                  (double)qn_conv2d_terms(&p);
    cost->bytes = qn_group_bytes(call, group);
    cost->launches = 1;
}

void qn_conv2d_argument(struct qn_launch *launch, struct qn_arg arg)
{
    int i = 0;
    while (launch->args[i].kind != QN_ARG_END)
        i++;
    launch->args[i] = arg;
}

static void add_geometry(struct qn_launch *launch, const struct qn_conv2d_product *p)
{
    const struct qn_conv2d_attr *a = p->attr;
    const int64_t values[] = {p->batch,      p->groups,     p->depth,       p->channels,
                              p->source[0],  p->source[1],  p->plane[0],    p->plane[1],
                              p->kernel[0],  p->kernel[1],  a->stride[0],   a->stride[1],
                              a->padding[0], a->padding[1], a->dilation[0], a->dilation[1]};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        qn_conv2d_argument(launch, (struct qn_arg)QN_INT(values[i]));
}

struct qn_launch qn_conv2d_image_launch(const struct qn_call *call,
                                        const struct qn_conv2d_product *p, bool gradient)
{
    const struct qn_operand *source = gradient ? &call->dout[0] : &call->in[0];
    const struct qn_operand *made = gradient ? &call->din[0] : &call->out[0];
    struct qn_launch launch = {.args = {QN_BUF(source), QN_BUF(&call->in[1]), QN_BUF(&call->in[2]),
                                        QN_BUF(made), QN_INT(!gradient && qn_present(&call->in[2])),
                                        QN_FLOAT(gradient ? call->beta_in[0] : 0)}};
    add_geometry(&launch, p);
    qn_launch_option(&launch, "QN_GRADIENT", gradient);
    qn_launch_type(&launch, "S", source);
    qn_launch_type(&launch, "W", &call->in[1]);
    qn_launch_type(&launch, "B", &call->in[2]);
    qn_launch_type(&launch, "D", made);
    return launch;
}

struct qn_launch qn_conv2d_weight_launch(const struct qn_call *call,
                                         const struct qn_conv2d_product *p,
                                         const struct qn_operand *made, float beta)
{
    struct qn_launch launch = {
        .args = {QN_BUF(&call->in[0]), QN_BUF(&call->dout[0]), QN_BUF(made), QN_FLOAT(beta)}};
    add_geometry(&launch, p);
    qn_launch_type(&launch, "S", &call->in[0]);
    qn_launch_type(&launch, "D", &call->dout[0]);
    qn_launch_type(&launch, "W", made);
    return launch;
}

/* --- the split of a long sum --- */

static int64_t copy_bytes(const struct qn_call *call)
{
    return qn_shape_count(&call->in[1].shape) * (int64_t)sizeof(float);
}

struct qn_conv2d_split qn_conv2d_split(const struct qn_call *call, const struct qn_conv2d_sum *sum)
{
    const int64_t aim = (int64_t)QN_CONV2D_GROUPS_PER_UNIT * call->facts->compute_units;
    const int64_t copies = sum->scratch / copy_bytes(call), most = sum->length / sum->least;
    int64_t parts = qn_div_up(aim, sum->groups);
    parts = parts < copies ? parts : copies;
    parts = parts < most ? parts : most;
    if (parts < 2)
        return (struct qn_conv2d_split){1, sum->length};
    const int64_t terms = qn_round_up(qn_div_up(sum->length, parts), sum->block);
    return (struct qn_conv2d_split){qn_div_up(sum->length, terms), terms};
}

void qn_conv2d_split_cost(const struct qn_call *call, const struct qn_conv2d_split *split,
                          struct qn_cost *cost)
{
    qn_conv2d_cost(call, QN_CONV2D_WEIGHT, cost);
    if (split->parts == 1)
        return;
    cost->launches = 2;
    cost->scratch = split->parts * copy_bytes(call);
    cost->bytes += 2 * (double)cost->scratch;
}

struct qn_launch qn_conv2d_split_launch(const struct qn_call *call,
                                        const struct qn_conv2d_product *p,
                                        const struct qn_conv2d_split *split)
{
    const bool copies = split->parts > 1;
    struct qn_launch launch = qn_conv2d_weight_launch(
        call, p, copies ? &call->scratch : &call->din[1], copies ? 0 : call->beta_in[1]);
    launch.kernel = "conv2d_weight";
    launch.global[2] = split->parts;
    qn_conv2d_argument(&launch, (struct qn_arg)QN_LONG(split->terms));
    return launch;
}

qn_status qn_conv2d_split_emit(struct qn_emit *emit, const struct qn_call *call,
                               const struct qn_launch *launch, const struct qn_conv2d_split *split)
{
    QN_TRY(qn_emit_launch(emit, launch));
    return qn_add_parts(emit, call,
                        &(struct qn_parts){split->parts, qn_shape_count(&call->in[1].shape),
                                           &call->din[1], call->beta_in[1]});
}
