/* SPDX-License-Identifier: MIT */
#include "op/conv2d.h"
#include "check/check.h"
#include "check/uneven.h"

#include <string.h>

extern const struct qn_op qn_op_conv_transpose2d;

/* Adds one channel of an image, through its taps, to one channel of what is made. */
static void spread(const struct qn_reference *r, const double *x, const double *w, double *y)
{
    const struct qn_conv_transpose2d_attr *attr = r->call->attr;
    const struct qn_conv2d_attr *a = &attr->conv;
    const int64_t *from = r->call->in[0].shape.dim, *taps = r->call->in[1].shape.dim;
    const int64_t *to = r->call->out[0].shape.dim;
    for (int64_t i = 0; i < from[2] * from[3]; i++) {
        const int64_t top = i / from[3] * a->stride[0] - a->padding[0];
        const int64_t left = i % from[3] * a->stride[1] - a->padding[1];
        for (int64_t t = 0; t < taps[2] * taps[3]; t++) {
            const int64_t row = top + t / taps[3] * a->dilation[0];
            const int64_t column = left + t % taps[3] * a->dilation[1];
            if (row >= 0 && row < to[2] && column >= 0 && column < to[3])
                y[row * to[3] + column] += x[i] * w[t];
        }
    }
}

static void reference(const struct qn_reference *r)
{
    const struct qn_conv_transpose2d_attr *attr = r->call->attr;
    const int64_t *x = r->call->in[0].shape.dim, *w = r->call->in[1].shape.dim;
    const int64_t *y = r->call->out[0].shape.dim;
    const int64_t each = x[1] / attr->conv.groups, pixels = y[2] * y[3], taps = w[2] * w[3];
    for (int64_t i = 0; i < y[0] * y[1] * pixels; i++)
        r->out[0][i] = r->in[2] ? r->in[2][i / pixels % y[1]] : 0;
    for (int64_t n = 0; n < x[0]; n++)
        for (int64_t c = 0; c < x[1]; c++)
            for (int64_t o = 0; o < w[1]; o++)
                spread(r, r->in[0] + (n * x[1] + c) * x[2] * x[3], r->in[1] + (c * w[1] + o) * taps,
                       r->out[0] + (n * y[1] + c / each * w[1] + o) * pixels);
}

/* The last element that a tap of an unpadded image reaches, less the padding on both sides. */
static void outputs(const struct qn_call *call, struct qn_operand out[QN_MAX_OUT])
{
    const struct qn_conv_transpose2d_attr *attr = call->attr;
    const struct qn_conv2d_attr *a = &attr->conv;
    const int64_t *x = call->in[0].shape.dim, *w = call->in[1].shape.dim;
    out[0].shape.dim[1] = w[1] * a->groups;
    for (int i = 0; i < 2; i++) {
        const int64_t last = (x[2 + i] - 1) * a->stride[i] + (w[2 + i] - 1) * a->dilation[i];
        out[0].shape.dim[2 + i] = last + 1 + attr->output_padding[i] - 2 * a->padding[i];
    }
}

static double flops(const struct qn_call *call, const char *group)
{
    const int64_t *w = call->in[1].shape.dim;
    return strcmp(group, "bias gradient") == 0
               ? (double)qn_operand_count(&call->out[0])
               : 2 * (double)qn_operand_count(&call->in[0]) * (double)(w[1] * w[2] * w[3]);
}

#define IMAGES(b, c, h, w)                                                                         \
    {                                                                                              \
        .rank = 4, .dim = {(b), (c), (h), (w) }                                                    \
    }
#define WEIGHT(c, o, h, w)                                                                         \
    {                                                                                              \
        .role = QN_ROLE_PARAMETER, .rank = 4, .dim = {(c), (o), (h), (w) }                         \
    }
#define BIAS(o)                                                                                    \
    {                                                                                              \
        .role = QN_ROLE_PARAMETER, .rank = 1, .dim = {(o) }                                        \
    }
#define NONE                                                                                       \
    {                                                                                              \
        .rank = -1                                                                                 \
    }
#define ATTR(...)                                                                                  \
    &(const struct qn_conv_transpose2d_attr)                                                       \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
/* stride, padding, output padding, dilation, the same both ways */
#define SQUARE(s, p, o, d, g) ATTR({{(s), (s)}, {(p), (p)}, {(d), (d)}, (g)}, {(o), (o)})

static const struct qn_check_case cases[] = {
    {"small",
     {IMAGES(2, 4, 3, 4), WEIGHT(4, 1, 3, 2), BIAS(2)},
     ATTR({{2, 1}, {1, 0}, {1, 2}, 2}, {1, 0}),
     .small = true,
     .f32_only = true},
    {"small doubling",
     {IMAGES(1, 2, 3, 2), WEIGHT(2, 3, 2, 2), BIAS(3)},
     SQUARE(2, 0, 0, 1, 1),
     .small = true,
     .f32_only = true},
    {"doubling", {IMAGES(2, 5, 7, 9), WEIGHT(5, 6, 2, 2), BIAS(6)}, SQUARE(2, 0, 0, 1, 1)},
    {"doubling of 33 channels",
     {IMAGES(1, 64, 10, 11), WEIGHT(64, 33, 2, 2), BIAS(33)},
     SQUARE(2, 0, 0, 1, 1)},
    {"3x3", {IMAGES(2, 4, 11, 13), WEIGHT(4, 9, 3, 3), BIAS(9)}, SQUARE(1, 1, 0, 1, 1)},
    {"3x3 of stride 2", {IMAGES(2, 3, 9, 17), WEIGHT(3, 4, 3, 3), BIAS(4)}, SQUARE(2, 1, 1, 1, 1)},
    {"4x4 of stride 2", {IMAGES(2, 3, 8, 6), WEIGHT(3, 5, 4, 4), NONE}, SQUARE(2, 1, 0, 1, 1)},
    {"3x3 of stride 3", {IMAGES(1, 2, 5, 8), WEIGHT(2, 3, 3, 3), BIAS(3)}, SQUARE(3, 1, 2, 1, 1)},
    {"pointwise", {IMAGES(3, 5, 7, 9), WEIGHT(5, 6, 1, 1), BIAS(6)}, SQUARE(1, 0, 0, 1, 1)},
    {"pointwise of stride 2",
     {IMAGES(2, 7, 5, 4), WEIGHT(7, 5, 1, 1), BIAS(5)},
     SQUARE(2, 0, 1, 1, 1)},
    {"output padding below the dilation",
     {IMAGES(2, 3, 6, 5), WEIGHT(3, 4, 1, 1), BIAS(4)},
     ATTR({{1, 2}, {0, 0}, {3, 4}, 1}, {2, 3})},
    {"dilation 2", {IMAGES(2, 3, 10, 12), WEIGHT(3, 4, 3, 3), BIAS(4)}, SQUARE(1, 2, 0, 2, 1)},
    {"stride 2 and dilation 2",
     {IMAGES(1, 2, 6, 7), WEIGHT(2, 3, 3, 3), NONE},
     SQUARE(2, 1, 1, 2, 1)},
    {"dilation larger than the stride",
     {IMAGES(1, 2, 4, 9), WEIGHT(2, 3, 2, 2), BIAS(3)},
     SQUARE(3, 0, 0, 4, 1)},
    {"stride larger than the kernel",
     {IMAGES(2, 2, 3, 5), WEIGHT(2, 3, 2, 2), BIAS(3)},
     SQUARE(4, 0, 3, 1, 1)},
    {"stride larger than the image",
     {IMAGES(3, 2, 1, 1), WEIGHT(2, 3, 3, 3), BIAS(3)},
     SQUARE(7, 0, 5, 1, 1)},
    {"padding wider than the kernel",
     {IMAGES(1, 2, 7, 8), WEIGHT(2, 3, 2, 2), BIAS(3)},
     SQUARE(1, 3, 0, 1, 1)},
    {"asymmetric",
     {IMAGES(2, 3, 4, 11), WEIGHT(3, 4, 2, 5), BIAS(4)},
     ATTR({{3, 2}, {1, 4}, {2, 1}, 1}, {2, 1})},
    {"groups", {IMAGES(2, 6, 9, 7), WEIGHT(6, 3, 3, 3), BIAS(9)}, SQUARE(1, 1, 0, 1, 3)},
    {"groups of stride 2",
     {IMAGES(2, 8, 4, 5), WEIGHT(8, 3, 3, 3), BIAS(12)},
     SQUARE(2, 1, 1, 1, 4)},
    {"depthwise", {IMAGES(2, 7, 5, 6), WEIGHT(7, 1, 2, 2), BIAS(7)}, SQUARE(2, 0, 0, 1, 7)},
    {"one pixel in", {IMAGES(1, 4, 1, 1), WEIGHT(4, 3, 6, 5), BIAS(3)}, SQUARE(1, 0, 0, 1, 1)},
    {"65 pixels and channels",
     {IMAGES(5, 65, 13, 1), WEIGHT(65, 3, 1, 1), BIAS(3)},
     SQUARE(1, 0, 0, 1, 1)},
    {"one pixel over a tile",
     {IMAGES(1, 2, 1, 97), WEIGHT(2, 3, 2, 2), BIAS(3)},
     SQUARE(2, 0, 0, 1, 1)},
    {"one pixel short of a block",
     {IMAGES(1, 2, 1, 127), WEIGHT(2, 3, 1, 1), BIAS(3)},
     SQUARE(1, 0, 0, 1, 1)},
    {"73 terms and 129 channels",
     {IMAGES(1, 129, 3, 5), WEIGHT(129, 73, 1, 1), BIAS(73)},
     SQUARE(1, 0, 0, 1, 1)},
    {"97 terms", {IMAGES(2, 97, 5, 3), WEIGHT(97, 6, 1, 1), NONE}, SQUARE(1, 0, 0, 1, 1)},
    {"many parts", {IMAGES(5, 3, 13, 14), WEIGHT(3, 5, 2, 2), BIAS(5)}, SQUARE(2, 0, 0, 1, 1)},
    {"3x3 of 33 to 24 channels",
     {IMAGES(2, 33, 7, 9), WEIGHT(33, 24, 3, 3), BIAS(24)},
     ATTR({{1, 1}, {1, 2}, {1, 1}, 1}, {0, 0})},
    {"3x3 of stride 2 and 25 channels",
     {IMAGES(2, 26, 5, 7), WEIGHT(26, 25, 3, 3), BIAS(25)},
     SQUARE(2, 1, 1, 1, 1)},
    {"uneven weights",
     {IMAGES(2, QN_UNEVEN, 10, 10), QN_UNEVEN_WEIGHT, NONE},
     SQUARE(1, 0, 0, 1, 1)},
    {0},
};

static const struct qn_check_case refused[] = {
    {"rank 3", {{.rank = 3, .dim = {2, 4, 4}}, WEIGHT(2, 3, 3, 3), NONE}, SQUARE(1, 1, 0, 1, 1)},
    {"weight of rank 3",
     {IMAGES(2, 2, 4, 4), {.rank = 3, .dim = {2, 3, 3}}, NONE},
     SQUARE(1, 1, 0, 1, 1)},
    {"other channels", {IMAGES(2, 3, 4, 4), WEIGHT(2, 3, 3, 3), NONE}, SQUARE(1, 1, 0, 1, 1)},
    {"channels not divided by groups",
     {IMAGES(2, 3, 4, 4), WEIGHT(3, 1, 3, 3), NONE},
     SQUARE(1, 1, 0, 1, 2)},
    {"bias of one group", {IMAGES(2, 4, 4, 4), WEIGHT(4, 3, 3, 3), BIAS(3)}, SQUARE(1, 1, 0, 1, 2)},
    {"more padding than there is to take",
     {IMAGES(2, 2, 3, 3), WEIGHT(2, 3, 1, 3), NONE},
     SQUARE(1, 2, 0, 1, 1)},
    {"output padding of the stride",
     {IMAGES(2, 2, 4, 4), WEIGHT(2, 3, 3, 3), NONE},
     SQUARE(2, 1, 2, 2, 1)},
    {"negative output padding",
     {IMAGES(2, 2, 4, 4), WEIGHT(2, 3, 3, 3), NONE},
     SQUARE(2, 1, -1, 1, 1)},
    {"a result that is too large",
     {IMAGES(1, 1, 1 << 16, 1), WEIGHT(1, 1, 1, 1), NONE},
     ATTR({{1 << 14, 1}, {0, 0}, {1, 1}, 1}, {0, 0})},
    {"stride of 0", {IMAGES(2, 2, 4, 4), WEIGHT(2, 3, 3, 3), NONE}, SQUARE(0, 1, 0, 1, 1)},
    {"integers",
     {{.role = QN_ROLE_FIXED, .dtype = QN_U8, .rank = 4, .dim = {2, 2, 4, 4}},
      WEIGHT(2, 3, 3, 3),
      NONE},
     SQUARE(1, 1, 0, 1, 1)},
    {0},
};

const struct qn_check_op qn_check_conv_transpose2d = {.op = &qn_op_conv_transpose2d,
                                                      .cases = cases,
                                                      .reference = reference,
                                                      .refused = refused,
                                                      .outputs = outputs,
                                                      .flops = flops};
