/* SPDX-License-Identifier: MIT */
#include "check/check.h"
#include "op/upsample2d.h"

#include <math.h>
#include <quern/ops.h>

extern const struct qn_op qn_op_upsample2d;
extern const struct qn_check_op qn_check_upsample2d;

/* Where output pixel d lies among the input pixels of its side. */
static double place_of(const struct qn_upsample2d_attr *attr, int64_t in, int64_t out, int64_t d)
{
    if (attr->mode == QN_UPSAMPLE_NEAREST)
        return (double)(d * in / out);
    if (attr->align_corners)
        return out > 1 ? (double)(d * (in - 1)) / (double)(out - 1) : 0;
    return fmax(((double)d + 0.5) * (double)in / (double)out - 0.5, 0);
}

/* The value at a place in a row of n elements. */
static double between(const double *row, int64_t n, double place)
{
    const int64_t before = (int64_t)place, behind = before + 1 < n ? before + 1 : before;
    const double share = place - (double)before;
    return row[before] * (1 - share) + row[behind] * share;
}

static void plane(const struct qn_reference *r, const double *x, double *y)
{
    const int64_t *in = r->call->in[0].shape.dim + 2, *out = r->call->out[0].shape.dim + 2;
    for (int64_t oy = 0; oy < out[0]; oy++)
        for (int64_t ox = 0; ox < out[1]; ox++) {
            const double down = place_of(r->call->attr, in[0], out[0], oy);
            const double across = place_of(r->call->attr, in[1], out[1], ox);
            const int64_t top = (int64_t)down, below = top + 1 < in[0] ? top + 1 : top;
            const double rows[2] = {between(x + top * in[1], in[1], across),
                                    between(x + below * in[1], in[1], across)};
            y[oy * out[1] + ox] = between(rows, 2, down - (double)top);
        }
}

static void reference(const struct qn_reference *r)
{
    const int64_t *in = r->call->in[0].shape.dim, *out = r->call->out[0].shape.dim;
    for (int64_t i = 0; i < in[0] * in[1]; i++)
        plane(r, r->in[0] + i * in[2] * in[3], r->out[0] + i * out[2] * out[3]);
}

static void outputs(const struct qn_call *call, struct qn_operand out[QN_MAX_OUT])
{
    const struct qn_upsample2d_attr *attr = call->attr;
    for (int i = 0; i < 2; i++)
        out[0].shape.dim[2 + i] =
            attr->size[i] ? attr->size[i] : attr->factor[i] * call->in[0].shape.dim[2 + i];
}

#define IMAGES(b, c, h, w)                                                                         \
    {                                                                                              \
        {                                                                                          \
            .rank = 4, .dim = {(b), (c), (h), (w) }                                                \
        }                                                                                          \
    }
#define ATTR(...)                                                                                  \
    &(const struct qn_upsample2d_attr)                                                             \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define TIMES(fh, fw) .factor = {(fh), (fw)}
#define SIZE(h, w) .size = {(h), (w)}
#define BILINEAR .mode = QN_UPSAMPLE_BILINEAR
#define CORNERS .mode = QN_UPSAMPLE_BILINEAR, .align_corners = 1

/* Factors and odd sizes, larger and smaller ones; rows shorter than a vector, longer than a block,
 * and of one column more than a block. */
static const struct qn_check_case cases[] = {
    {"nearest, twice", IMAGES(2, 3, 4, 5), ATTR(TIMES(2, 2)), .small = true},
    {"nearest, two factors", IMAGES(2, 2, 3, 19), ATTR(TIMES(3, 5))},
    {"nearest, a size", IMAGES(2, 2, 5, 7), ATTR(SIZE(8, 11))},
    {"nearest, smaller", IMAGES(1, 3, 11, 13), ATTR(SIZE(4, 5))},
    {"nearest, wide", IMAGES(1, 1, 2, 257), ATTR(SIZE(3, 513))},
    {"twice", IMAGES(2, 3, 4, 5), ATTR(TIMES(2, 2), BILINEAR), .small = true},
    {"two factors", IMAGES(2, 2, 3, 19), ATTR(TIMES(5, 3), BILINEAR)},
    {"a size", IMAGES(2, 2, 5, 7), ATTR(SIZE(8, 11), BILINEAR)},
    {"smaller", IMAGES(1, 3, 11, 13), ATTR(SIZE(4, 5), BILINEAR)},
    {"much smaller", IMAGES(1, 2, 6, 1100), ATTR(SIZE(1, 2), BILINEAR)},
    {"wide", IMAGES(1, 2, 2, 256), ATTR(SIZE(3, 513), BILINEAR)},
    {"a side each", IMAGES(2, 2, 4, 6), ATTR(.factor = {3, 0}, .size = {0, 4}, BILINEAR)},
    {"the same size", IMAGES(2, 2, 3, 5), ATTR(TIMES(1, 1), BILINEAR)},
    {"one pixel", IMAGES(3, 2, 1, 1), ATTR(SIZE(3, 5), BILINEAR)},
    {"corners, twice", IMAGES(2, 3, 4, 5), ATTR(TIMES(2, 2), CORNERS), .small = true},
    {"corners, a size", IMAGES(2, 2, 5, 7), ATTR(SIZE(8, 19), CORNERS)},
    {"corners, smaller", IMAGES(1, 3, 11, 13), ATTR(SIZE(6, 4), CORNERS)},
    {"corners, to one pixel", IMAGES(2, 2, 3, 5), ATTR(SIZE(1, 1), CORNERS)},
    {"corners, from one pixel", IMAGES(2, 2, 1, 1), ATTR(SIZE(3, 5), CORNERS)},
    {"corners, wide", IMAGES(1, 2, 3, 129), ATTR(SIZE(2, 513), CORNERS)},
    {"many planes", IMAGES(7, 41, 3, 4), ATTR(TIMES(2, 2), BILINEAR)},
    {0},
};

static const struct qn_check_case refused[] = {
    {"rank 3", {{.rank = 3, .dim = {2, 5, 5}}}, ATTR(TIMES(2, 2))},
    {"integers",
     {{.role = QN_ROLE_FIXED, .dtype = QN_U8, .rank = 4, .dim = {1, 1, 4, 4}}},
     ATTR(TIMES(2, 2))},
    {"factor and size", IMAGES(1, 1, 4, 4), ATTR(TIMES(2, 2), SIZE(8, 0))},
    {"neither", IMAGES(1, 1, 4, 4), ATTR(TIMES(2, 0))},
    {"a negative factor", IMAGES(1, 1, 4, 4), ATTR(TIMES(-2, 2))},
    {"a negative size", IMAGES(1, 1, 4, 4), ATTR(SIZE(8, -8))},
    {"another mode", IMAGES(1, 1, 4, 4), ATTR(TIMES(2, 2), .mode = 2)},
    {"corners of nearest", IMAGES(1, 1, 4, 4), ATTR(TIMES(2, 2), .align_corners = 1)},
    {"a long side", IMAGES(1, 1, 1, INT64_C(1) << 31), ATTR(SIZE(1, 1))},
    {"far places", IMAGES(1, 1, 1, 100003), ATTR(SIZE(1, 100019), BILINEAR)},
    {"a factor beyond counting", IMAGES(1, 1, 1, INT64_C(1) << 40), ATTR(TIMES(1, 1 << 30))},
    {"a large plane", IMAGES(1, 1, 65536, 65536), ATTR(TIMES(1, 1))},
    {0},
};

const struct qn_check_op qn_check_upsample2d = {.op = &qn_op_upsample2d,
                                                .cases = cases,
                                                .reference = reference,
                                                .refused = refused,
                                                .outputs = outputs};
