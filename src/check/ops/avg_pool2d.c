/* SPDX-License-Identifier: MIT */
#include "check/pool.h"

extern const struct qn_op qn_op_avg_pool2d;
extern const struct qn_check_op qn_check_avg_pool2d;

static double window_mean(const double *x, const int64_t size[2], const struct qn_pool_attr *attr,
                          int64_t oy, int64_t ox)
{
    double sum = 0;
    int inside = 0;
    for (int64_t iy = oy * attr->stride[0] - attr->padding[0], ky = 0; ky < attr->size[0]; ky++)
        for (int64_t ix = ox * attr->stride[1] - attr->padding[1], kx = 0; kx < attr->size[1];
             kx++) {
            const int64_t y = iy + ky, x_ = ix + kx;
            if (y < 0 || y >= size[0] || x_ < 0 || x_ >= size[1])
                continue;
            sum += x[y * size[1] + x_];
            inside++;
        }
    return sum / (attr->exclude_padding ? inside : attr->size[0] * attr->size[1]);
}

static void reference(const struct qn_reference *r)
{
    const int64_t *in = r->call->in[0].shape.dim, *out = r->call->out[0].shape.dim;
    for (int64_t plane = 0; plane < in[0] * in[1]; plane++)
        for (int64_t oy = 0; oy < out[2]; oy++)
            for (int64_t ox = 0; ox < out[3]; ox++)
                r->out[0][(plane * out[2] + oy) * out[3] + ox] =
                    window_mean(r->in[0] + plane * in[2] * in[3], in + 2, r->call->attr, oy, ox);
}

#define IMAGES(b, c, h, w)                                                                         \
    {                                                                                              \
        {                                                                                          \
            .rank = 4, .dim = {(b), (c), (h), (w) }                                                \
        }                                                                                          \
    }
#define WINDOW(kh, kw, sh, sw, ph, pw, exclude)                                                    \
    &(const struct qn_pool_attr)                                                                   \
    {                                                                                              \
        .size = {(kh), (kw)}, .stride = {(sh), (sw)}, .padding = {(ph), (pw)},                     \
        .exclude_padding = (exclude)                                                               \
    }

static const struct qn_check_case cases[] = {
    {"halves", IMAGES(2, 3, 6, 8), WINDOW(2, 2, 2, 2, 0, 0, 0), .small = true},
    {"halves of odd sizes", IMAGES(3, 2, 7, 13), WINDOW(2, 2, 2, 2, 0, 0, 0)},
    {"overlapping, padded", IMAGES(2, 3, 11, 9), WINDOW(3, 3, 2, 2, 1, 1, 0)},
    {"padding excluded", IMAGES(2, 3, 11, 9), WINDOW(3, 3, 2, 2, 1, 1, 1), .small = true},
    {"stride 1, padding excluded", IMAGES(2, 2, 5, 41), WINDOW(3, 3, 1, 1, 1, 1, 1)},
    {"two different directions", IMAGES(2, 2, 10, 12), WINDOW(2, 3, 1, 2, 1, 0, 1)},
    {"gaps between windows", IMAGES(2, 3, 11, 10), WINDOW(2, 2, 3, 4, 0, 0, 0)},
    {"one window", IMAGES(2, 5, 7, 5), WINDOW(7, 5, 1, 1, 0, 0, 0)},
    {"one element", IMAGES(1, 1, 1, 1), WINDOW(1, 1, 1, 1, 0, 0, 1)},
    {"window larger than the image", IMAGES(2, 2, 2, 3), WINDOW(4, 4, 1, 1, 2, 2, 1)},
    {"several work-groups", IMAGES(3, 41, 6, 7), WINDOW(2, 2, 2, 2, 1, 1, 1)},
    {0},
};

static const struct qn_check_case refused[] = {
    {"rank 3", {{.rank = 3, .dim = {2, 5, 5}}}, WINDOW(2, 2, 2, 2, 0, 0, 0)},
    {"integers",
     {{.role = QN_ROLE_FIXED, .dtype = QN_U8, .rank = 4, .dim = {1, 1, 4, 4}}},
     WINDOW(2, 2, 2, 2, 0, 0, 0)},
    {"window too large", IMAGES(1, 1, 4, 4), WINDOW(2, 5, 1, 1, 0, 0, 0)},
    {"window beyond counting", IMAGES(1, 1, 65536, 65536), WINDOW(65536, 65536, 1, 1, 0, 0, 0)},
    {"too much padding", IMAGES(1, 1, 4, 4), WINDOW(3, 3, 1, 1, 1, 2, 0)},
    {0},
};

const struct qn_check_op qn_check_avg_pool2d = {.op = &qn_op_avg_pool2d,
                                                .cases = cases,
                                                .reference = reference,
                                                .refused = refused,
                                                .outputs = qn_check_pool_outputs,
                                                .flops = qn_check_pool_flops};
