/* SPDX-License-Identifier: MIT */
#include "op/cached_attention.h"
#include "check/check.h"

#include <math.h>

extern const struct qn_op qn_op_cached_attention;
extern const struct qn_check_op qn_check_cached_attention;

enum { MOST_KEYS = 512 };

static double dot(const double *a, const double *b, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

/* One query over the first `seen` keys, whose values are `values` elements behind them. */
static void attend(const double *q, const double *keys, int64_t values, int64_t pitch, int64_t seen,
                   int64_t size, double *out)
{
    double score[MOST_KEYS], top = -INFINITY, sum = 0;
    for (int64_t j = 0; j < seen; j++) {
        score[j] = dot(q, keys + j * pitch, size) / sqrt((double)size);
        top = fmax(top, score[j]);
    }
    for (int64_t j = 0; j < seen; j++)
        sum += exp(score[j] - top);
    for (int64_t d = 0; d < size; d++)
        out[d] = 0;
    for (int64_t j = 0; j < seen; j++)
        for (int64_t d = 0; d < size; d++)
            out[d] += exp(score[j] - top) / sum * keys[j * pitch + values + d];
}

static void reference(const struct qn_reference *r)
{
    const struct qn_cached_attention_attr *attr = r->call->attr;
    const int64_t *q = r->call->in[0].shape.dim, size = q[2] / attr->heads;
    const int64_t keys = r->call->in[1].shape.dim[0], values = attr->kv_heads * size;
    for (int64_t token = 0; token < q[0] * q[1]; token++) {
        const double position = r->in[2][token];
        const int64_t seen = (int64_t)fmin(fmax(position, -1) + 1, (double)keys);
        for (int64_t h = 0; h < attr->heads; h++) {
            const int64_t at = token * q[2] + h * size;
            const int64_t kv_head = h * attr->kv_heads / attr->heads;
            attend(r->in[0] + at, r->in[1] + kv_head * size, values, 2 * values, seen, size,
                   r->out[0] + at);
        }
    }
}

static double flops(const struct qn_call *call, const char *group)
{
    const int64_t *q = call->in[0].shape.dim;
    (void)group;
    return 4.0 * (double)(q[0] * q[1] * q[2]) * (double)call->in[1].shape.dim[0];
}

#define ATTR(heads_, kv_heads_)                                                                    \
    &(const struct qn_cached_attention_attr)                                                       \
    {                                                                                              \
        .heads = (heads_), .kv_heads = (kv_heads_)                                                 \
    }
#define X(...)                                                                                     \
    {                                                                                              \
        .rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .dim = { __VA_ARGS__ }         \
    }
#define LARGE(...)                                                                                 \
    {                                                                                              \
        .rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .dim = {__VA_ARGS__}, .a = 30  \
    }
#define AT(from, to, ...)                                                                          \
    {                                                                                              \
        .role = QN_ROLE_FIXED, .dtype = QN_I32,                                                    \
        .rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .dim = {__VA_ARGS__},          \
        .fill = QN_FILL_INTEGER, .a = (from), .b = (to)                                            \
    }
#define THESE(count, values_)                                                                      \
    {                                                                                              \
        .role = QN_ROLE_FIXED, .dtype = QN_I32, .rank = 2, .dim = {count, 1}, .values = (values_)  \
    }

/* The first row, the last, and numbers that are no rows. */
static const double odd[] = {0, 36, 37, -1, -2147483647, 2147483647, 18};
/* Around the tiles of both shapes. */
static const double tiles[] = {30, 31, 32, 33, 126, 127, 128, 129};
/* The last tile has one key. */
static const double one_more[] = {128};
/* A chunk of a prompt. */
static const double chunk[] = {5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21};

static const struct qn_check_case cases[] = {
    {"one token", {X(1, 1, 16), X(9, 32), AT(4, 5, 1, 1)}, ATTR(2, 2), .small = true},
    {"grouped heads", {X(2, 1, 32), X(7, 16), AT(0, 7, 2, 1)}, ATTR(4, 1), .small = true},
    {"odd positions", {X(7, 1, 48), X(37, 32), THESE(7, odd)}, ATTR(3, 1)},
    {"around tiles", {X(8, 1, 64), X(131, 128), THESE(8, tiles)}, ATTR(1, 1)},
    {"a tile of one key", {X(1, 1, 64), X(131, 128), THESE(1, one_more)}, ATTR(1, 1)},
    {"a chunk", {X(17, 1, 96), X(64, 64), THESE(17, chunk)}, ATTR(12, 4)},
    {"several tokens a sample", {X(2, 3, 40), X(20, 80), AT(0, 20, 2, 3)}, ATTR(1, 1)},
    {"heads of 24", {X(3, 1, 72), X(50, 48), AT(0, 50, 3, 1)}, ATTR(3, 1)},
    {"heads of 128", {X(3, 1, 256), X(300, 256), AT(200, 300, 3, 1)}, ATTR(2, 1)},
    {"large scores", {LARGE(4, 1, 32), X(40, 64), AT(0, 40, 4, 1)}, ATTR(2, 2)},
    {"scores far apart",
     {{.rank = 3, .dim = {8, 1, 32}, .a = 3000}, X(40, 64), AT(20, 40, 8, 1)},
     ATTR(2, 2)},
    {0},
};

static const struct qn_check_case refused[] = {
    {"heads that are not shared", {X(2, 1, 48), X(7, 64), AT(0, 7, 2, 1)}, ATTR(3, 2)},
    {"no head", {X(2, 1, 48), X(7, 64), AT(0, 7, 2, 1)}, ATTR(0, 1)},
    {"heads of 12", {X(2, 1, 24), X(7, 48), AT(0, 7, 2, 1)}, ATTR(2, 2)},
    {"heads of 136", {X(2, 1, 136), X(7, 272), AT(0, 7, 2, 1)}, ATTR(1, 1)},
    {"two dimensions", {X(2, 16), X(7, 32), AT(0, 7, 2, 1)}, ATTR(1, 1)},
    {"a cache of another width", {X(2, 1, 16), X(7, 16), AT(0, 7, 2, 1)}, ATTR(1, 1)},
    {"a cache of three dimensions", {X(2, 1, 16), X(7, 2, 16), AT(0, 7, 2, 1)}, ATTR(1, 1)},
    {"positions of other tokens", {X(2, 1, 16), X(7, 32), AT(0, 7, 2, 2)}, ATTR(1, 1)},
    {"positions that are no integers", {X(2, 1, 16), X(7, 32), X(2, 1)}, ATTR(1, 1)},
    {0},
};

const struct qn_check_op qn_check_cached_attention = {.op = &qn_op_cached_attention,
                                                      .cases = cases,
                                                      .reference = reference,
                                                      .refused = refused,
                                                      .flops = flops};
