/* SPDX-License-Identifier: MIT */
#include "check/pool.h"

#include <math.h>

extern const struct qn_op qn_op_max_pool2d;
extern const struct qn_check_op qn_check_max_pool2d;

/* The first of equal values wins, the last NaN over everything. */
static bool stays(double best, double v)
{
    return isnan(best) ? !isnan(v) : best >= v;
}

/* The element of the plane x that wins the window at (oy, ox). */
static int64_t winner(const double *x, const int64_t size[2], const struct qn_pool_attr *attr,
                      int64_t oy, int64_t ox)
{
    int64_t best = -1;
    for (int64_t iy = oy * attr->stride[0] - attr->padding[0], ky = 0; ky < attr->size[0]; ky++)
        for (int64_t ix = ox * attr->stride[1] - attr->padding[1], kx = 0; kx < attr->size[1];
             kx++) {
            const int64_t y = iy + ky, x_ = ix + kx;
            if (y < 0 || y >= size[0] || x_ < 0 || x_ >= size[1])
                continue;
            const int64_t at = y * size[1] + x_;
            if (best < 0 || !stays(x[best], x[at]))
                best = at;
        }
    return best;
}

/* The winner of output element i among all input elements. */
static int64_t winner_of(const struct qn_reference *r, int64_t i)
{
    const int64_t *in = r->call->in[0].shape.dim, *out = r->call->out[0].shape.dim;
    const int64_t row = i / out[3], plane = row / out[2], first = plane * in[2] * in[3];
    return first + winner(r->in[0] + first, in + 2, r->call->attr, row % out[2], i % out[3]);
}

static void reference(const struct qn_reference *r)
{
    for (int64_t i = 0; i < qn_operand_count(&r->call->out[0]); i++)
        r->out[0][i] = r->in[0][winner_of(r, i)];
}

static void gradient(const struct qn_reference *r, const double *dout, double *din)
{
    for (int64_t i = 0; i < qn_operand_count(&r->call->in[0]); i++)
        din[i] = 0;
    for (int64_t i = 0; i < qn_operand_count(&r->call->out[0]); i++)
        din[winner_of(r, i)] += dout[i];
}

/* Windows of 2 x 2 with ties, with one NaN in each place, with two, and without anything above
 * -inf; enough of them for vectors of 4 and a tail. */
#define NO -INFINITY
static const double specials[] = {
    1, 1, NAN, 2, 2,        NAN, 2,   3, 2, 3,   NAN, 1,   NO, NO, 0, 0,    1,   NAN, 3,   2, /**/
    1, 1, 3,   1, INFINITY, 1,   NAN, 1, 1, NAN, 2,   NAN, NO, NO, 0, -0.0, NAN, 2,   NAN, 2};

#define DISTINCT(b, c, h, w)                                                                       \
    {                                                                                              \
        {                                                                                          \
            .rank = 4, .dim = {(b), (c), (h), (w)}, .fill = QN_FILL_DISTINCT                       \
        }                                                                                          \
    }
#define WINDOW(kh, kw, sh, sw, ph, pw)                                                             \
    &(const struct qn_pool_attr)                                                                   \
    {                                                                                              \
        .size = {(kh), (kw)}, .stride = {(sh), (sw)}, .padding = {(ph), (pw) }                     \
    }

static const struct qn_check_case cases[] = {
    {"halves", DISTINCT(2, 3, 6, 8), WINDOW(2, 2, 2, 2, 0, 0), .small = true},
    {"halves of odd sizes", DISTINCT(3, 2, 7, 13), WINDOW(2, 2, 2, 2, 0, 0)},
    {"overlapping, padded", DISTINCT(2, 3, 11, 9), WINDOW(3, 3, 2, 2, 1, 1), .small = true},
    {"stride 1", DISTINCT(2, 2, 5, 41), WINDOW(3, 3, 1, 1, 1, 1)},
    {"two different directions", DISTINCT(2, 2, 10, 12), WINDOW(2, 3, 1, 2, 1, 0)},
    {"gaps between windows", DISTINCT(2, 3, 11, 10), WINDOW(2, 2, 3, 4, 0, 0)},
    {"one window", DISTINCT(2, 5, 7, 5), WINDOW(7, 5, 1, 1, 0, 0)},
    {"one element", DISTINCT(1, 1, 1, 1), WINDOW(1, 1, 1, 1, 0, 0)},
    {"window larger than the image", DISTINCT(2, 2, 2, 3), WINDOW(4, 4, 1, 1, 2, 2)},
    {"window of more than 256", DISTINCT(1, 2, 19, 20), WINDOW(17, 17, 1, 2, 3, 8)},
    {"several work-groups", DISTINCT(3, 41, 6, 7), WINDOW(2, 2, 2, 2, 1, 1)},
    {"ties and NaN",
     {{.rank = 4, .dim = {1, 1, 2, 20}, .values = specials}},
     WINDOW(2, 2, 2, 2, 0, 0),
     .small = true,
     .gradient = gradient},
    {"one column more than a vector", DISTINCT(1, 2, 6, 5), WINDOW(2, 2, 1, 1, 0, 0)},
    {"one column less than two vectors", DISTINCT(1, 2, 5, 7), WINDOW(1, 1, 2, 2, 0, 0)},
    {"wide", DISTINCT(1, 2, 4, 139), WINDOW(2, 2, 2, 2, 0, 0)},
    {0},
};

static const struct qn_check_case refused[] = {
    {"rank 3", {{.rank = 3, .dim = {2, 5, 5}}}, WINDOW(2, 2, 2, 2, 0, 0)},
    {"integers",
     {{.role = QN_ROLE_FIXED, .dtype = QN_U8, .rank = 4, .dim = {1, 1, 4, 4}}},
     WINDOW(2, 2, 2, 2, 0, 0)},
    {"window too large", DISTINCT(1, 1, 4, 4), WINDOW(5, 2, 1, 1, 0, 0)},
    {"window beyond counting", DISTINCT(1, 1, 65536, 65536), WINDOW(65536, 65536, 1, 1, 0, 0)},
    {"too much padding", DISTINCT(1, 1, 4, 4), WINDOW(3, 3, 1, 1, 2, 1)},
    {"negative padding", DISTINCT(1, 1, 4, 4), WINDOW(3, 3, 1, 1, -1, 0)},
    {"no window", DISTINCT(1, 1, 4, 4), WINDOW(0, 2, 1, 1, 0, 0)},
    {"no stride", DISTINCT(1, 1, 4, 4), WINDOW(2, 2, 1, 0, 0, 0)},
    {0},
};

const struct qn_check_op qn_check_max_pool2d = {.op = &qn_op_max_pool2d,
                                                .cases = cases,
                                                .reference = reference,
                                                .refused = refused,
                                                .outputs = qn_check_pool_outputs,
                                                .flops = qn_check_pool_flops};
