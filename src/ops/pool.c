/* SPDX-License-Identifier: MIT */
#include "ops/pool.h"

#include "base/shape.h"
#include "ops/common.h"

enum { ELEMENTS_PER_WORK_ITEM = 4096 };
/* Elements of a window: their number, and a place among them, pass through f32 and int. */
enum { LARGEST_WINDOW = 1 << 24 };

static bool usable(const struct qn_pool_attr *attr, int d)
{
    return attr->size[d] >= 1 && attr->stride[d] >= 1 && attr->padding[d] >= 0 &&
           attr->padding[d] <= attr->size[d] / 2;
}

qn_status qn_pool_shape(struct qn_shape_call *call)
{
    const struct qn_pool_attr *attr = call->attr;
    const struct qn_operand *x = &call->in[0];
    if (!qn_is_float(x) || x->shape.rank != 4)
        return qn_shape_error(call, "pooling takes (b, c, h, w) of a float type");
    struct qn_shape out = x->shape;
    for (int d = 0; d < 2; d++) {
        if (!usable(attr, d))
            return qn_shape_error(call, "a window of %d, stride %d, padding %d (at most half)",
                                  attr->size[d], attr->stride[d], attr->padding[d]);
        int64_t room = x->shape.dim[2 + d] + 2 * (int64_t)attr->padding[d] - attr->size[d];
        if (room < 0)
            return qn_shape_error(call, "a window of %d does not fit into %lld elements",
                                  attr->size[d], (long long)x->shape.dim[2 + d]);
        out.dim[2 + d] = room / attr->stride[d] + 1;
    }
    if ((int64_t)attr->size[0] * attr->size[1] > LARGEST_WINDOW)
        return qn_shape_error(call, "a window of %d x %d has too many elements", attr->size[0],
                              attr->size[1]);
    qn_shape_set(&call->out[0], call->storage, 4, out.dim);
    return QN_OK;
}

struct qn_pool_sizes qn_pool_sizes(const struct qn_operand *large, const struct qn_operand *small)
{
    return (struct qn_pool_sizes){.planes = qn_shape_span(&large->shape, 0, 2),
                                  .h = large->shape.dim[2],
                                  .w = large->shape.dim[3],
                                  .oh = small->shape.dim[2],
                                  .ow = small->shape.dim[3]};
}

void qn_pool_options(struct qn_launch *launch, const struct qn_pool_attr *attr)
{
    qn_launch_option(launch, "QN_KH", attr->size[0]);
    qn_launch_option(launch, "QN_KW", attr->size[1]);
    qn_launch_option(launch, "QN_SH", attr->stride[0]);
    qn_launch_option(launch, "QN_SW", attr->stride[1]);
    qn_launch_option(launch, "QN_PH", attr->padding[0]);
    qn_launch_option(launch, "QN_PW", attr->padding[1]);
}

int64_t qn_pool_range(struct qn_launch *launch, const struct qn_call *call, int64_t planes,
                      int64_t size)
{
    int64_t span = size < ELEMENTS_PER_WORK_ITEM ? ELEMENTS_PER_WORK_ITEM / size : 1;
    launch->local[0] = call->cpu ? 1 : 64;
    launch->global[0] = call->cpu ? qn_div_up(planes, span) : planes * size;
    return span;
}

static void cost_of(const struct qn_call *call, int group, const struct qn_operand *small,
                    struct qn_cost *cost)
{
    const struct qn_pool_attr *attr = call->attr;
    qn_launch_cost(call, group, (double)attr->size[0] * attr->size[1], small, cost);
}

void qn_pool_forward_cost(const struct qn_call *call, struct qn_cost *cost)
{
    cost_of(call, 0, &call->out[0], cost);
}

void qn_pool_backward_cost(const struct qn_call *call, struct qn_cost *cost)
{
    cost_of(call, 1, &call->dout[0], cost);
}

struct qn_pool_attr qn_pool_attr_of(const qn_pool2d_params *params)
{
    struct qn_pool_attr attr = {.exclude_padding = params->exclude_padding};
    for (int d = 0; d < 2; d++) {
        attr.size[d] = params->size[d];
        attr.stride[d] = params->stride[d] ? params->stride[d] : params->size[d];
        attr.padding[d] = params->padding[d];
    }
    return attr;
}
