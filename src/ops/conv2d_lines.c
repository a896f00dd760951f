/* SPDX-License-Identifier: MIT */
#include "ops/conv2d_units.h"

#include "base/shape.h"

/* Lines and rows are counted in 32 bits. */
enum { MOST_LINES = 1 << 29 };

static struct qn_conv2d_axis forward_axis(const struct qn_conv2d_product *p, int i)
{
    const struct qn_conv2d_attr *a = p->attr;
    const int64_t span = a->dilation[i] * (p->kernel[i] - 1);
    return (struct qn_conv2d_axis){p->plane[i],
                                   p->kernel[i],
                                   a->stride[i],
                                   p->kernel[i] > 1 ? a->stride[i] : 1,
                                   span / a->stride[i],
                                   -a->padding[i],
                                   a->stride[i] * (p->plane[i] - 1) + span - a->padding[i]};
}

static int64_t common_divisor(int64_t a, int64_t b)
{
    return b == 0 ? a : common_divisor(b, a % b);
}

/* Integer division that rounds down; of negative numbers, too. */
static int64_t floor_of(int64_t value, int64_t divisor)
{
    return value < 0 ? -qn_div_up(-value, divisor) : value / divisor;
}

/* Taps of a residue are tap_step apart, and what they meet of neighbouring taps `move`. */
static struct qn_conv2d_axis gradient_axis(const struct qn_conv2d_product *p, int i)
{
    const struct qn_conv2d_attr *a = p->attr;
    const int64_t stride = a->stride[i], last = p->kernel[i] - 1;
    const int64_t common = common_divisor(stride, a->dilation[i]), tap_step = stride / common;
    return (struct qn_conv2d_axis){qn_div_up(p->plane[i], stride),
                                   last / tap_step + 1,
                                   1,
                                   1,
                                   last / tap_step * (a->dilation[i] / common),
                                   -floor_of(last * a->dilation[i] - a->padding[i], stride),
                                   floor_of(p->plane[i] - 1 + a->padding[i], stride)};
}

struct qn_conv2d_axis qn_conv2d_axis_of(const struct qn_conv2d_product *p, int i)
{
    return p->gradient ? gradient_axis(p, i) : forward_axis(p, i);
}

int64_t qn_conv2d_period(const struct qn_conv2d_product *p)
{
    const struct qn_conv2d_axis v = qn_conv2d_axis_of(p, 0);
    const int64_t own = v.highest + 1 - v.lowest;
    const int64_t below = v.highest + 1, above = p->source[0] - v.lowest;
    const int64_t shared = below > above ? below : above;
    const int64_t lines = qn_div_up(own < shared ? own : shared, v.step);
    return lines > v.count ? lines : v.count;
}

bool qn_conv2d_has_many_lines(const struct qn_conv2d_product *p)
{
    return p->batch * qn_conv2d_period(p) * qn_conv2d_axis_of(p, 0).step > MOST_LINES ||
           p->plane[1] > QN_CONV2D_LARGEST_IMAGE;
}

bool qn_conv2d_is_pointwise(const struct qn_conv2d_product *p)
{
    bool pointwise = true;
    for (int i = 0; i < 2; i++)
        pointwise =
            pointwise && p->kernel[i] == 1 && p->attr->stride[i] == 1 && p->attr->padding[i] == 0;
    return pointwise;
}

struct qn_conv2d_product qn_conv2d_lines(const struct qn_conv2d_product *p)
{
    struct qn_conv2d_product lines = *p;
    if (!qn_conv2d_is_pointwise(p))
        return lines;
    lines.source[1] = lines.plane[1] = p->plane[0] * p->plane[1];
    lines.source[0] = lines.plane[0] = 1;
    return lines;
}

bool qn_conv2d_has_units(const struct qn_facts *facts, const struct qn_conv2d_product *p)
{
    return facts->matrix_units & (p->s->dtype == QN_F16 ? QN_MATRIX_F16 : QN_MATRIX_BF16);
}
