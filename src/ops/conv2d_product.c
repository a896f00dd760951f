/* SPDX-License-Identifier: MIT */
#include "ops/conv2d_product.h"

#include "base/log.h"
#include "base/shape.h"
#include "ops/matmul.h"

/* Work-groups for each compute unit that splits aim at. */
enum { GROUPS_PER_UNIT = 4 };

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

struct qn_conv2d_product qn_conv2d_geometry(const struct qn_conv2d_attr *attr,
                                            const struct qn_shape *image,
                                            const struct qn_shape *weight,
                                            const struct qn_shape *result, bool gradient)
{
    static const struct qn_operand none = {0};
    const struct qn_shape *source = gradient ? result : image, *plane = gradient ? image : result;
    const int64_t inputs = weight->dim[1], outputs = weight->dim[0] / attr->groups;
    struct qn_conv2d_product p = {.attr = attr,
                                  .gradient = gradient,
                                  .batch = image->dim[0],
                                  .groups = attr->groups,
                                  .depth = gradient ? outputs : inputs,
                                  .channels = gradient ? inputs : outputs,
                                  .front = gradient ? outputs : inputs,
                                  .inputs = inputs,
                                  .t = &none,
                                  .b = &none};
    for (int i = 0; i < 2; i++) {
        p.source[i] = source->dim[2 + i];
        p.kernel[i] = weight->dim[2 + i];
        p.plane[i] = plane->dim[2 + i];
    }
    return p;
}

static struct qn_conv2d_product product_of(const struct qn_call *call, bool gradient)
{
    return qn_conv2d_geometry(call->attr, &call->in[0].shape, &call->in[1].shape,
                              &call->out[0].shape, gradient);
}

static void set_sources(struct qn_conv2d_product *p, const struct qn_call *call)
{
    p->s = &call->in[0];
    p->t = &call->in[3];
    if (qn_present(p->t))
        p->front = call->in[0].shape.dim[1];
}

struct qn_conv2d_product qn_conv2d_forward(const struct qn_call *call)
{
    struct qn_conv2d_product p = product_of(call, false);
    set_sources(&p, call);
    p.w = &call->in[1];
    p.b = &call->in[2];
    p.d = &call->out[0];
    return p;
}

struct qn_conv2d_product qn_conv2d_gradient(const struct qn_call *call, bool second)
{
    const int image = second ? 3 : 0;
    struct qn_conv2d_product p = product_of(call, true);
    p.s = &call->dout[0];
    p.w = &call->in[1];
    p.d = &call->din[image];
    p.beta = call->beta_in[image];
    if (!qn_present(&call->in[3]))
        return p;
    p.input0 = second ? call->in[0].shape.dim[1] : 0;
    p.channels = call->in[image].shape.dim[1];
    return p;
}

struct qn_conv2d_product qn_conv2d_weights(const struct qn_call *call)
{
    struct qn_conv2d_product p = product_of(call, false);
    set_sources(&p, call);
    p.w = &call->din[1];
    p.d = &call->dout[0];
    p.beta = call->beta_in[1];
    return p;
}

int qn_conv2d_images(const struct qn_conv2d_product *p)
{
    return p->front < p->depth ? 2 : 1;
}

struct qn_conv2d_product qn_conv2d_image_weights(const struct qn_conv2d_product *p, int image)
{
    struct qn_conv2d_product own = *p;
    own.s = image ? p->t : p->s;
    own.input0 = image ? p->front : 0;
    own.front = own.depth = image ? p->depth - p->front : p->front;
    return own;
}

int64_t qn_conv2d_terms(const struct qn_conv2d_product *p)
{
    return p->depth * p->kernel[0] * p->kernel[1];
}

int64_t qn_conv2d_pixels(const struct qn_conv2d_product *p)
{
    return p->batch * p->plane[0] * p->plane[1];
}

/* Without padding a result meets its image alone. An image of at most `stride` elements for each of
 * its result meets that alone: the taps of one element of the result reach less than `stride` then,
 * so those of two do not overlap. */
bool qn_conv2d_is_inside(const struct qn_conv2d_product *p)
{
    for (int i = 0; i < 2; i++)
        if (p->attr->padding[i] > 0 ||
            (p->gradient && qn_div_up(p->plane[i], p->attr->stride[i]) > p->source[i]))
            return false;
    return true;
}

bool qn_conv2d_is_short(const struct qn_conv2d_product *p, int64_t vector)
{
    int64_t size[2];
    for (int i = 0; i < 2; i++)
        size[i] = qn_div_up(p->plane[i], p->gradient ? p->attr->stride[i] : 1);
    const bool steps = !p->gradient && (p->attr->stride[0] > 1 || p->attr->stride[1] > 1);
    const int64_t run = steps || size[1] != p->source[1] ? size[1] : size[0] * size[1];
    return run <= 2 * vector;
}

const struct qn_conv2d_tile *qn_conv2d_tile_of(const struct qn_facts *facts)
{
    const struct qn_conv2d_tile *tile = cpu_tiles;
    while (tile->vector < facts->vector_width && tile->vector < 16)
        tile++;
    return tile;
}

void qn_conv2d_cost(const struct qn_call *call, const struct qn_conv2d_product *p, int group,
                    struct qn_cost *cost)
{
    const int64_t *result = p->gradient ? p->source : p->plane;
    cost->flops = 2.0 * (double)(p->batch * result[0] * result[1]) *
                  (double)(p->groups * p->channels) * (double)qn_conv2d_terms(p);
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

void qn_conv2d_inputs(struct qn_launch *launch, const struct qn_conv2d_product *p)
{
    qn_conv2d_argument(launch, (struct qn_arg)QN_INT(p->inputs));
    qn_conv2d_argument(launch, (struct qn_arg)QN_INT(p->input0));
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

struct qn_launch qn_conv2d_image_launch(const struct qn_conv2d_product *p)
{
    struct qn_launch launch = {.args = {QN_BUF(p->s), QN_BUF(p->w), QN_BUF(p->b), QN_BUF(p->d),
                                        QN_INT(qn_present(p->b)), QN_FLOAT(p->beta)}};
    add_geometry(&launch, p);
    qn_launch_option(&launch, "QN_GRADIENT", p->gradient);
    qn_launch_type(&launch, "S", p->s);
    qn_launch_type(&launch, "W", p->w);
    qn_launch_type(&launch, "B", p->b);
    qn_launch_type(&launch, "D", p->d);
    return launch;
}

struct qn_launch qn_conv2d_weight_launch(const struct qn_conv2d_product *p,
                                         const struct qn_operand *made, float beta)
{
    struct qn_launch launch = {.args = {QN_BUF(p->s), QN_BUF(p->d), QN_BUF(made), QN_FLOAT(beta)}};
    add_geometry(&launch, p);
    qn_launch_type(&launch, "S", p->s);
    qn_launch_type(&launch, "D", p->d);
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
    const int64_t aim = (int64_t)GROUPS_PER_UNIT * call->facts->compute_units;
    const int64_t copies = sum->scratch / copy_bytes(call), most = sum->length / sum->least;
    int64_t parts = qn_div_up(aim, sum->groups);
    parts = parts < copies ? parts : copies;
    parts = parts < most ? parts : most;
    if (parts < 2)
        return (struct qn_conv2d_split){1, sum->length};
    const int64_t terms = qn_round_up(qn_div_up(sum->length, parts), sum->block);
    return (struct qn_conv2d_split){qn_div_up(sum->length, terms), terms};
}

void qn_conv2d_split_cost(const struct qn_call *call, const struct qn_conv2d_product *p, int group,
                          const struct qn_conv2d_split *split, struct qn_cost *cost)
{
    qn_conv2d_cost(call, p, group, cost);
    cost->launches = qn_conv2d_images(p);
    if (split->parts == 1)
        return;
    cost->launches++;
    cost->scratch = split->parts * copy_bytes(call);
    cost->bytes += 2 * (double)cost->scratch;
}

struct qn_launch qn_conv2d_split_launch(const struct qn_call *call,
                                        const struct qn_conv2d_product *p,
                                        const struct qn_conv2d_split *split)
{
    const bool copies = split->parts > 1;
    struct qn_launch launch =
        qn_conv2d_weight_launch(p, copies ? &call->scratch : p->w, copies ? 0 : p->beta);
    launch.kernel = "conv2d_weight";
    launch.global[2] = split->parts;
    qn_conv2d_argument(&launch, (struct qn_arg)QN_LONG(split->terms));
    qn_conv2d_inputs(&launch, p);
    return launch;
}

qn_status qn_conv2d_split_add(struct qn_emit *emit, const struct qn_call *call,
                              const struct qn_conv2d_split *split)
{
    return qn_add_parts(emit, call,
                        &(struct qn_parts){split->parts, qn_shape_count(&call->in[1].shape),
                                           &call->din[1], call->beta_in[1]});
}
