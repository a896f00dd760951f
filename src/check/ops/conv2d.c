/* SPDX-License-Identifier: MIT */
#include "op/conv2d.h"
#include "check/check.h"
#include "check/uneven.h"

#include <string.h>

extern const struct qn_op qn_op_conv2d;

/* Taps [first, last) of one axis that meet the image, for the result's element at `at`. */
static void meet(const struct qn_conv2d_attr *a, int axis, int64_t at, int64_t size, int64_t taps,
                 int64_t *first, int64_t *last)
{
    int64_t start = at * a->stride[axis] - a->padding[axis];
    for (*first = 0; *first < taps && start + *first * a->dilation[axis] < 0; ++*first)
        ;
    for (*last = taps; *last > *first && start + (*last - 1) * a->dilation[axis] >= size; --*last)
        ;
}

/* The plane of image n that is input channel c of the channel group of output channel o; the
 * channels may be divided between two images. */
static const double *channel_at(const struct qn_reference *r, int64_t n, int64_t o, int64_t c)
{
    const struct qn_conv2d_attr *a = r->call->attr;
    const int64_t *x = r->call->in[0].shape.dim, *w = r->call->in[1].shape.dim;
    const int64_t *second = r->call->in[3].shape.dim;
    c += o / (w[0] / a->groups) * w[1];
    return c < x[1] ? r->in[0] + (n * x[1] + c) * x[2] * x[3]
                    : r->in[3] + (n * second[1] + c - x[1]) * x[2] * x[3];
}

/* One element of the result: a sum over channels and taps. */
static double element(const struct qn_reference *r, int64_t n, int64_t o, int64_t oy, int64_t ox)
{
    const struct qn_conv2d_attr *a = r->call->attr;
    const int64_t *x = r->call->in[0].shape.dim, *w = r->call->in[1].shape.dim;
    const int64_t y = oy * a->stride[0] - a->padding[0], z = ox * a->stride[1] - a->padding[1];
    int64_t top, bottom, left, right;
    double sum = r->in[2] ? r->in[2][o] : 0;
    meet(a, 0, oy, x[2], w[2], &top, &bottom);
    meet(a, 1, ox, x[3], w[3], &left, &right);
    for (int64_t c = 0; c < w[1]; c++) {
        const double *image = channel_at(r, n, o, c);
        for (int64_t i = top; i < bottom; i++) {
            const int64_t row = (y + i * a->dilation[0]) * x[3] + z;
            const double *weight = &r->in[1][((o * w[1] + c) * w[2] + i) * w[3]];
            for (int64_t j = left; j < right; j++)
                sum += image[row + j * a->dilation[1]] * weight[j];
        }
    }
    return sum;
}

static void reference(const struct qn_reference *r)
{
    const int64_t *y = r->call->out[0].shape.dim;
    for (int64_t n = 0; n < y[0]; n++)
        for (int64_t o = 0; o < y[1]; o++)
            for (int64_t i = 0; i < y[2] * y[3]; i++)
                r->out[0][(n * y[1] + o) * y[2] * y[3] + i] = element(r, n, o, i / y[3], i % y[3]);
}

/* Counts the places that the dilated kernel has along one side of the padded image. */
static int64_t places(const struct qn_conv2d_attr *a, int axis, int64_t size, int64_t taps)
{
    int64_t count = 0;
    for (int64_t last = (taps - 1) * a->dilation[axis]; last < size + 2 * a->padding[axis];
         last += a->stride[axis])
        count++;
    return count;
}

static void outputs(const struct qn_call *call, struct qn_operand out[QN_MAX_OUT])
{
    const int64_t *x = call->in[0].shape.dim, *w = call->in[1].shape.dim;
    out[0].shape.dim[1] = w[0];
    for (int i = 2; i < 4; i++)
        out[0].shape.dim[i] = places(call->attr, i - 2, x[i], w[i]);
}

static double flops(const struct qn_call *call, const char *group)
{
    const struct qn_conv2d_attr *attr = call->attr;
    const double results = (double)qn_operand_count(&call->out[0]);
    const int64_t *w = call->in[1].shape.dim;
    int64_t channels = w[1];
    if (strcmp(group, "bias gradient") == 0)
        return results;
    if (strcmp(group, "input gradient") == 0)
        channels = call->in[0].shape.dim[1] / attr->groups;
    if (strcmp(group, "second input gradient") == 0)
        channels = call->in[3].shape.dim[1];
    return 2 * results * (double)(channels * w[2] * w[3]);
}

#define IMAGES(b, c, h, w)                                                                         \
    {                                                                                              \
        .rank = 4, .dim = {(b), (c), (h), (w) }                                                    \
    }
#define INTEGERS(b, c, h, w)                                                                       \
    {                                                                                              \
        .role = QN_ROLE_FIXED, .dtype = QN_U8, .rank = 4, .dim = {(b), (c), (h), (w) }             \
    }
#define WEIGHT(o, c, h, w)                                                                         \
    {                                                                                              \
        .role = QN_ROLE_PARAMETER, .rank = 4, .dim = {(o), (c), (h), (w) }                         \
    }
#define BIAS(o)                                                                                    \
    {                                                                                              \
        .role = QN_ROLE_PARAMETER, .rank = 1, .dim = {(o) }                                        \
    }
#define NONE                                                                                       \
    {                                                                                              \
        .rank = -1                                                                                 \
    }
/* Images, weight and bias; and the images whose channels follow those of the first. */
#define ONE(x, w, bias)                                                                            \
    {                                                                                              \
        x, w, bias, NONE                                                                           \
    }
#define TWO(a, b, w, bias)                                                                         \
    {                                                                                              \
        a, w, bias, b                                                                              \
    }
#define ATTR(...)                                                                                  \
    &(const struct qn_conv2d_attr)                                                                 \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
/* stride, padding, dilation, the same both ways */
#define SQUARE(s, p, d, g) ATTR({(s), (s)}, {(p), (p)}, {(d), (d)}, (g))

static const struct qn_check_case cases[] = {
    {"small", ONE(IMAGES(2, 2, 5, 6), WEIGHT(2, 1, 3, 2), BIAS(2)), ATTR({2, 1}, {1, 0}, {1, 2}, 2),
     .small = true},
    {"small square", ONE(IMAGES(2, 2, 4, 3), WEIGHT(3, 2, 3, 3), BIAS(3)), SQUARE(1, 1, 1, 1),
     .small = true, .f32_only = true},
    {"small strided", ONE(IMAGES(2, 2, 5, 6), WEIGHT(2, 1, 3, 2), BIAS(2)),
     ATTR({2, 3}, {1, 0}, {1, 2}, 2)},
    {"pointwise", ONE(IMAGES(3, 5, 7, 9), WEIGHT(6, 5, 1, 1), BIAS(6)), SQUARE(1, 0, 1, 1)},
    {"pointwise of stride 2", ONE(IMAGES(2, 7, 9, 8), WEIGHT(5, 7, 1, 1), BIAS(5)),
     SQUARE(2, 0, 1, 1)},
    {"3x3", ONE(IMAGES(2, 4, 11, 13), WEIGHT(9, 4, 3, 3), BIAS(9)), SQUARE(1, 1, 1, 1)},
    {"3x3 of one channel", ONE(IMAGES(3, 1, 28, 28), WEIGHT(17, 1, 3, 3), NONE),
     SQUARE(1, 1, 1, 1)},
    {"3x3 of stride 2", ONE(IMAGES(2, 3, 17, 36), WEIGHT(4, 3, 3, 3), BIAS(4)), SQUARE(2, 1, 1, 1)},
    {"3x3 of stride 3", ONE(IMAGES(1, 2, 14, 23), WEIGHT(3, 2, 3, 3), BIAS(3)), SQUARE(3, 1, 1, 1)},
    {"dilation 2", ONE(IMAGES(2, 3, 12, 14), WEIGHT(4, 3, 3, 3), BIAS(4)), SQUARE(1, 2, 2, 1)},
    {"stride 2 and dilation 2", ONE(IMAGES(1, 2, 13, 15), WEIGHT(3, 2, 3, 3), NONE),
     SQUARE(2, 1, 2, 1)},
    {"dilation larger than the stride", ONE(IMAGES(1, 2, 11, 12), WEIGHT(3, 2, 2, 2), BIAS(3)),
     SQUARE(3, 0, 4, 1)},
    {"stride larger than the kernel", ONE(IMAGES(2, 2, 11, 12), WEIGHT(3, 2, 2, 2), BIAS(3)),
     SQUARE(4, 0, 1, 1)},
    {"stride larger than the image", ONE(IMAGES(3, 2, 4, 5), WEIGHT(2, 2, 3, 3), BIAS(2)),
     SQUARE(7, 0, 1, 1)},
    {"asymmetric", ONE(IMAGES(2, 3, 10, 21), WEIGHT(4, 3, 2, 5), BIAS(4)),
     ATTR({3, 2}, {1, 4}, {2, 1}, 1)},
    {"groups", ONE(IMAGES(2, 6, 9, 7), WEIGHT(9, 2, 3, 3), BIAS(9)), SQUARE(1, 1, 1, 3)},
    {"groups of stride 2", ONE(IMAGES(2, 8, 8, 9), WEIGHT(12, 2, 3, 3), BIAS(12)),
     SQUARE(2, 1, 1, 4)},
    {"depthwise", ONE(IMAGES(2, 7, 10, 11), WEIGHT(7, 1, 3, 3), BIAS(7)), SQUARE(1, 1, 1, 7)},
    {"depthwise of two each", ONE(IMAGES(2, 5, 9, 9), WEIGHT(10, 1, 3, 3), NONE),
     SQUARE(2, 1, 1, 5)},
    {"depthwise in bands", ONE(IMAGES(1, 2, 90, 33), WEIGHT(2, 1, 3, 3), BIAS(2)),
     SQUARE(1, 1, 1, 2)},
    {"depthwise of stride 2 in bands", ONE(IMAGES(2, 2, 130, 40), WEIGHT(2, 1, 3, 3), NONE),
     SQUARE(2, 1, 1, 2)},
    {"depthwise of stride 3", ONE(IMAGES(2, 3, 14, 25), WEIGHT(3, 1, 3, 3), BIAS(3)),
     SQUARE(3, 1, 1, 3)},
    {"depthwise of 5x5 and dilation 2", ONE(IMAGES(2, 3, 13, 15), WEIGHT(3, 1, 5, 5), BIAS(3)),
     SQUARE(1, 4, 2, 3)},
    {"depthwise asymmetric of two each", ONE(IMAGES(2, 4, 12, 21), WEIGHT(8, 1, 2, 5), BIAS(8)),
     ATTR({3, 2}, {1, 3}, {2, 1}, 4)},
    {"depthwise of rows that are not met", ONE(IMAGES(2, 3, 11, 37), WEIGHT(3, 1, 2, 2), NONE),
     SQUARE(5, 0, 1, 3)},
    {"depthwise with padding wider than the kernel",
     ONE(IMAGES(1, 2, 5, 6), WEIGHT(2, 1, 3, 3), BIAS(2)), SQUARE(1, 3, 1, 2)},
    {"depthwise of long rows", ONE(IMAGES(1, 2, 3, 3100), WEIGHT(2, 1, 3, 3), BIAS(2)),
     SQUARE(1, 1, 1, 2)},
    {"depthwise of 9x9", ONE(IMAGES(1, 2, 11, 12), WEIGHT(2, 1, 9, 9), BIAS(2)),
     SQUARE(1, 4, 1, 2)},
    {"depthwise of one pixel", ONE(IMAGES(3, 4, 1, 1), WEIGHT(4, 1, 3, 3), BIAS(4)),
     SQUARE(1, 1, 1, 4)},
    {"padding wider than the kernel", ONE(IMAGES(1, 2, 4, 4), WEIGHT(3, 2, 2, 2), BIAS(3)),
     SQUARE(1, 3, 1, 1)},
    {"border that no tap meets", ONE(IMAGES(2, 2, 8, 10), WEIGHT(3, 2, 3, 3), BIAS(3)),
     SQUARE(4, 0, 1, 1)},
    {"one pixel out", ONE(IMAGES(5, 3, 6, 5), WEIGHT(4, 3, 6, 5), BIAS(4)), SQUARE(1, 0, 1, 1)},
    {"one pixel out of one image", ONE(IMAGES(1, 3, 6, 5), WEIGHT(4, 3, 6, 5), BIAS(4)),
     SQUARE(1, 0, 1, 1)},
    {"one pixel in", ONE(IMAGES(7, 5, 1, 1), WEIGHT(3, 5, 1, 1), BIAS(3)), SQUARE(1, 0, 1, 1)},
    {"kernel of 11 x 13", ONE(IMAGES(1, 2, 16, 18), WEIGHT(3, 2, 11, 13), BIAS(3)),
     SQUARE(1, 5, 1, 1)},
    {"64 pixels and channels", ONE(IMAGES(1, 4, 8, 8), WEIGHT(64, 4, 1, 1), BIAS(64)),
     SQUARE(1, 0, 1, 1)},
    {"65 pixels and channels", ONE(IMAGES(5, 3, 13, 1), WEIGHT(65, 3, 1, 1), BIAS(65)),
     SQUARE(1, 0, 1, 1)},
    {"one pixel over the tiles", ONE(IMAGES(1, 2, 1, 577), WEIGHT(3, 2, 1, 1), BIAS(3)),
     SQUARE(1, 0, 1, 1)},
    {"one pixel short of a block", ONE(IMAGES(1, 2, 1, 127), WEIGHT(3, 2, 1, 1), BIAS(3)),
     SQUARE(1, 0, 1, 1)},
    {"97 terms", ONE(IMAGES(2, 97, 5, 3), WEIGHT(6, 97, 1, 1), NONE), SQUARE(1, 0, 1, 1)},
    {"73 terms and 129 channels", ONE(IMAGES(1, 73, 3, 5), WEIGHT(129, 73, 1, 1), BIAS(129)),
     SQUARE(1, 0, 1, 1)},
    {"129 pixels and channels", ONE(IMAGES(1, 65, 3, 43), WEIGHT(129, 65, 1, 1), BIAS(129)),
     SQUARE(1, 0, 1, 1)},
    {"3x3 of 135 pixels and 65 channels", ONE(IMAGES(1, 67, 9, 15), WEIGHT(65, 67, 3, 3), BIAS(65)),
     SQUARE(1, 1, 1, 1)},
    {"3x3 of stride 2 and 65 channels", ONE(IMAGES(2, 65, 17, 18), WEIGHT(65, 65, 3, 3), NONE),
     SQUARE(2, 1, 1, 1)},
    {"many parts", ONE(IMAGES(5, 3, 13, 14), WEIGHT(5, 3, 3, 3), BIAS(5)), SQUARE(1, 1, 1, 1)},
    {"32 channels", ONE(IMAGES(2, 32, 9, 9), WEIGHT(64, 32, 3, 3), NONE), SQUARE(1, 1, 1, 1)},
    {"small of 16 channels", ONE(IMAGES(1, 16, 3, 2), WEIGHT(16, 16, 3, 3), BIAS(16)),
     SQUARE(1, 1, 1, 1), .small = true, .only = "winograd"},
    {"17 channels of 16", ONE(IMAGES(2, 16, 7, 9), WEIGHT(17, 16, 3, 3), BIAS(17)),
     SQUARE(1, 1, 1, 1)},
    {"49 tiles of 2 x 2", ONE(IMAGES(1, 16, 14, 14), WEIGHT(16, 16, 3, 3), BIAS(16)),
     SQUARE(1, 1, 1, 1)},
    {"162 tiles of 2 x 2", ONE(IMAGES(2, 25, 17, 18), WEIGHT(18, 25, 3, 3), BIAS(18)),
     SQUARE(1, 1, 1, 1)},
    {"rows of 37 without padding", ONE(IMAGES(1, 16, 5, 37), WEIGHT(16, 16, 3, 3), NONE),
     SQUARE(1, 0, 1, 1)},
    {"65 channels of 67", ONE(IMAGES(1, 67, 4, 5), WEIGHT(65, 67, 3, 3), BIAS(65)),
     SQUARE(1, 0, 1, 1)},
    {"3x3 with much padding", ONE(IMAGES(2, 16, 5, 4), WEIGHT(16, 16, 3, 3), BIAS(16)),
     ATTR({1, 1}, {3, 2}, {1, 1}, 1)},
    {"3x3 with more padding across", ONE(IMAGES(2, 16, 5, 4), WEIGHT(16, 16, 3, 3), NONE),
     ATTR({1, 1}, {2, 3}, {1, 1}, 1)},
    {"3x3 on planes of 7 x 7", ONE(IMAGES(2, 16, 7, 7), WEIGHT(18, 16, 3, 3), NONE),
     SQUARE(1, 1, 1, 1)},
    {"lines that end before a piece's padding",
     ONE(IMAGES(1, 24, 2, 15), WEIGHT(24, 24, 3, 3), NONE), SQUARE(1, 2, 1, 1)},
    {"3x3 on one pixel", ONE(IMAGES(3, 18, 1, 1), WEIGHT(21, 18, 3, 3), NONE), SQUARE(1, 1, 1, 1)},
    {"978 channels of 272 in turns", ONE(IMAGES(1, 272, 2, 3), WEIGHT(978, 272, 3, 3), NONE),
     SQUARE(1, 1, 1, 1)},
    {"small of two images",
     TWO(IMAGES(2, 1, 3, 4), IMAGES(2, 2, 3, 4), WEIGHT(2, 3, 2, 3), BIAS(2)),
     ATTR({1, 2}, {1, 1}, {1, 1}, 1), .small = true, .f32_only = true},
    {"small of two images of 17 channels",
     TWO(IMAGES(1, 9, 3, 2), IMAGES(1, 8, 3, 2), WEIGHT(16, 17, 3, 3), NONE), SQUARE(1, 1, 1, 1),
     .small = true, .f32_only = true, .only = "winograd"},
    {"two images", TWO(IMAGES(3, 5, 7, 9), IMAGES(3, 4, 7, 9), WEIGHT(6, 9, 3, 3), BIAS(6)),
     SQUARE(1, 1, 1, 1)},
    {"two images by one pixel",
     TWO(IMAGES(2, 1, 5, 8), IMAGES(2, 11, 5, 8), WEIGHT(19, 12, 1, 1), BIAS(19)),
     SQUARE(1, 0, 1, 1)},
    {"two images of stride 2 and dilation 3",
     TWO(IMAGES(2, 3, 11, 12), IMAGES(2, 2, 11, 12), WEIGHT(5, 5, 2, 3), NONE), SQUARE(2, 1, 3, 1)},
    {"two images of many terms",
     TWO(IMAGES(1, 97, 5, 4), IMAGES(1, 33, 5, 4), WEIGHT(6, 130, 2, 2), BIAS(6)),
     SQUARE(1, 0, 1, 1)},
    {"two images in many parts",
     TWO(IMAGES(5, 1, 13, 14), IMAGES(5, 33, 13, 14), WEIGHT(5, 34, 3, 3), BIAS(5)),
     SQUARE(1, 1, 1, 1)},
    {"24 pixels and 35 channels", ONE(IMAGES(3, 35, 4, 6), WEIGHT(65, 35, 1, 1), BIAS(65)),
     SQUARE(1, 0, 1, 1)},
    {"two images of 65 and 67 channels",
     TWO(IMAGES(2, 65, 4, 5), IMAGES(2, 67, 4, 5), WEIGHT(66, 132, 3, 3), BIAS(66)),
     SQUARE(1, 1, 1, 1)},
    {"two images of 16 channels in parts",
     TWO(IMAGES(2, 16, 17, 18), IMAGES(2, 16, 17, 18), WEIGHT(17, 32, 3, 3), NONE),
     SQUARE(1, 1, 1, 1)},
    {"one channel behind 16",
     TWO(IMAGES(2, 16, 6, 5), IMAGES(2, 1, 6, 5), WEIGHT(17, 17, 3, 3), NONE), SQUARE(1, 1, 1, 1)},
    {"lines of 16", ONE(IMAGES(1, 25, 3, 16), WEIGHT(24, 25, 3, 3), NONE), SQUARE(1, 1, 1, 1)},
    {"lines of 12 and of 6", ONE(IMAGES(2, 24, 5, 12), WEIGHT(25, 24, 3, 3), NONE),
     SQUARE(2, 1, 1, 1)},
    {"lines of 20", ONE(IMAGES(1, 24, 3, 20), WEIGHT(24, 24, 3, 3), NONE), SQUARE(1, 1, 1, 1)},
    {"lines of 10", ONE(IMAGES(2, 24, 3, 10), WEIGHT(24, 24, 3, 3), NONE), SQUARE(1, 1, 1, 1)},
    {"100 pixels and 24 channels", ONE(IMAGES(2, 24, 10, 10), WEIGHT(25, 24, 1, 1), NONE),
     SQUARE(1, 0, 1, 1)},
    {"one channel behind 24",
     TWO(IMAGES(2, 24, 3, 4), IMAGES(2, 1, 3, 4), WEIGHT(24, 25, 1, 1), NONE), SQUARE(1, 0, 1, 1)},
    {"large", ONE(IMAGES(1, 64, 20, 20), WEIGHT(33, 64, 3, 3), NONE), SQUARE(2, 1, 1, 1)},
    {"uneven weights", ONE(IMAGES(2, QN_UNEVEN, 3, 4), QN_UNEVEN_WEIGHT, NONE), SQUARE(1, 0, 1, 1)},
    {0},
};

static const struct qn_check_case refused[] = {
    {"rank 3", {{.rank = 3, .dim = {2, 4, 4}}, WEIGHT(3, 2, 3, 3), NONE, NONE}, SQUARE(1, 1, 1, 1)},
    {"weight of rank 3",
     {IMAGES(2, 2, 4, 4), {.rank = 3, .dim = {3, 2, 3}}, NONE, NONE},
     SQUARE(1, 1, 1, 1)},
    {"other channels", ONE(IMAGES(2, 3, 4, 4), WEIGHT(3, 2, 3, 3), NONE), SQUARE(1, 1, 1, 1)},
    {"channels not divided by groups", ONE(IMAGES(2, 3, 4, 4), WEIGHT(4, 1, 3, 3), NONE),
     SQUARE(1, 1, 1, 2)},
    {"output channels not divided by groups", ONE(IMAGES(2, 4, 4, 4), WEIGHT(3, 2, 3, 3), NONE),
     SQUARE(1, 1, 1, 2)},
    {"kernel larger than the padded image", ONE(IMAGES(2, 2, 4, 4), WEIGHT(3, 2, 3, 7), NONE),
     SQUARE(1, 1, 1, 1)},
    {"dilated kernel larger than the image", ONE(IMAGES(2, 2, 6, 6), WEIGHT(3, 2, 3, 3), NONE),
     SQUARE(1, 0, 3, 1)},
    {"bias of another size", ONE(IMAGES(2, 2, 4, 4), WEIGHT(3, 2, 3, 3), BIAS(2)),
     SQUARE(1, 1, 1, 1)},
    {"stride of 0", ONE(IMAGES(2, 2, 4, 4), WEIGHT(3, 2, 3, 3), NONE), SQUARE(0, 1, 1, 1)},
    {"negative padding", ONE(IMAGES(2, 2, 4, 4), WEIGHT(3, 2, 3, 3), NONE), SQUARE(1, -1, 1, 1)},
    {"dilation of 0", ONE(IMAGES(2, 2, 4, 4), WEIGHT(3, 2, 3, 3), NONE), SQUARE(1, 1, 0, 1)},
    {"no groups", ONE(IMAGES(2, 2, 4, 4), WEIGHT(3, 2, 3, 3), NONE), SQUARE(1, 1, 1, 0)},
    {"second image of another size",
     TWO(IMAGES(2, 2, 4, 4), IMAGES(2, 1, 4, 3), WEIGHT(3, 3, 3, 3), NONE), SQUARE(1, 1, 1, 1)},
    {"second image of another batch",
     TWO(IMAGES(2, 2, 4, 4), IMAGES(1, 1, 4, 4), WEIGHT(3, 3, 3, 3), NONE), SQUARE(1, 1, 1, 1)},
    {"second image of another type",
     TWO(IMAGES(2, 2, 4, 4), INTEGERS(2, 1, 4, 4), WEIGHT(3, 3, 3, 3), NONE), SQUARE(1, 1, 1, 1)},
    {"second image that the weight does not know",
     TWO(IMAGES(2, 2, 4, 4), IMAGES(2, 1, 4, 4), WEIGHT(3, 2, 3, 3), NONE), SQUARE(1, 1, 1, 1)},
    {"two images in groups", TWO(IMAGES(2, 2, 4, 4), IMAGES(2, 2, 4, 4), WEIGHT(4, 2, 3, 3), NONE),
     SQUARE(1, 1, 1, 2)},
    {"integers", ONE(INTEGERS(2, 2, 4, 4), WEIGHT(3, 2, 3, 3), NONE), SQUARE(1, 1, 1, 1)},
    {0},
};

const struct qn_check_op qn_check_conv2d = {.op = &qn_op_conv2d,
                                            .cases = cases,
                                            .reference = reference,
                                            .refused = refused,
                                            .outputs = outputs,
                                            .flops = flops};
