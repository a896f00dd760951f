/* SPDX-License-Identifier: MIT */
#include "op/batch_norm.h"
#include "base/shape.h"
#include "check/check.h"

#include <math.h>

extern const struct qn_op qn_op_batch_norm;
extern const struct qn_check_op qn_check_batch_norm;

/* One channel of one group of rows, of an image (rows, channels, inner). */
struct part {
    const struct qn_reference *r;
    int64_t first, last, channel, channels, inner;
    int64_t rows;                 /* of a sample */
    double mean, variance, count; /* biased variance */
};

static double x_at(const struct part *p, int64_t row, int64_t i)
{
    return p->r->in[0][(row * p->channels + p->channel) * p->inner + i];
}

static void find_statistics(struct part *p)
{
    p->count = (double)((p->last - p->first) * p->inner);
    p->mean = p->variance = 0;
    for (int64_t s = p->first; s < p->last; s++)
        for (int64_t i = 0; i < p->inner; i++)
            p->mean += x_at(p, s, i) / p->count;
    for (int64_t s = p->first; s < p->last; s++)
        for (int64_t i = 0; i < p->inner; i++)
            p->variance += (x_at(p, s, i) - p->mean) * (x_at(p, s, i) - p->mean) / p->count;
}

static void normalise(const struct part *p, const struct qn_batch_norm_attr *attr)
{
    const struct qn_reference *r = p->r;
    double weight = r->in[1] ? r->in[1][p->channel] : 1;
    double bias = r->in[2] ? r->in[2][p->channel] : 0;
    for (int64_t s = p->first; s < p->last; s++)
        for (int64_t i = 0; i < p->inner; i++) {
            const double xhat = (x_at(p, s, i) - p->mean) / sqrt(p->variance + (double)attr->eps);
            const double y = xhat * weight + bias;
            r->out[0][(s * p->channels + p->channel) * p->inner + i] = attr->relu && y <= 0 ? 0 : y;
        }
}

static void gather(const struct part *p, double share)
{
    double unbiased = p->count > 1 ? p->variance * p->count / (p->count - 1) : 0;
    share *= (double)(p->last - p->first) / (double)p->rows;
    p->r->new_state[0][p->channel] += share * p->mean;
    p->r->new_state[1][p->channel] += share * unbiased;
}

static void train(struct part *p, const struct qn_batch_norm_attr *attr, int64_t rows)
{
    const struct qn_reference *r = p->r;
    const double share = r->control->skip ? 0 : (double)attr->momentum / r->control->samples;
    const double keep = r->control->skip ? 1 : 1 - (double)attr->momentum;
    for (int i = 0; i < 2; i++)
        r->new_state[i][p->channel] = keep * r->state[i][p->channel];
    const int64_t group = attr->group * p->rows;
    for (p->first = 0; p->first < rows; p->first += group) {
        p->last = p->first + group < rows ? p->first + group : rows;
        find_statistics(p);
        normalise(p, attr);
        gather(p, share);
    }
}

static void reference(const struct qn_reference *r)
{
    const struct qn_batch_norm_attr *attr = r->call->attr;
    const struct qn_shape *x = &r->call->in[0].shape;
    struct part p = {.r = r,
                     .channels = x->dim[1],
                     .inner = qn_shape_span(x, 2, x->rank),
                     .rows = x->dim[0] / r->call->batch};
    for (p.channel = 0; p.channel < p.channels; p.channel++) {
        if (!r->eval) {
            train(&p, attr, x->dim[0]);
            continue;
        }
        p.first = 0;
        p.last = x->dim[0];
        p.mean = r->state[0][p.channel];
        p.variance = r->state[1][p.channel];
        normalise(&p, attr);
    }
}

#define IMAGES(...)                                                                                \
    {                                                                                              \
        .rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .dim = { __VA_ARGS__ }         \
    }
#define FAR_IMAGES(...)                                                                            \
    {                                                                                              \
        .rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .dim = {__VA_ARGS__},          \
        .a = 0.5, .b = 3                                                                           \
    }
#define ROW(count)                                                                                 \
    {                                                                                              \
        .role = QN_ROLE_PARAMETER, .rank = 1, .dim = {(count)}, .fill = QN_FILL_POSITIVE           \
    }
/* Two clusters of values with a gap around their mean, in every group. Weights of either sign and
 * biases, small and large, keep the ReLU's kink inside the gap or beyond both clusters, so that no
 * value is near the kink; values, weights and biases all decide on which side one lies. */
#define HEAPS13 1.2, -0.9, -1.4, 1, 0.8, -1.1, 1.3, -1.2, -0.8, 1.4, -1, 0.9, -1.3
#define HEAPS65 HEAPS13, HEAPS13, HEAPS13, HEAPS13, HEAPS13
#define HEAPS325 HEAPS65, HEAPS65, HEAPS65, HEAPS65, HEAPS65
#define HEAPS1625 HEAPS325, HEAPS325, HEAPS325, HEAPS325, HEAPS325
static const double heaps[] = {HEAPS1625, HEAPS1625, HEAPS1625};
#define HEAPS(...)                                                                                 \
    {                                                                                              \
        .rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .dim = {__VA_ARGS__},          \
        .values = heaps                                                                            \
    }
/* Values so far from 0 that their squares lose digits, unless a value near the mean is subtracted
 * first. */
#define FAR13 65.25, 63.125, 62.5, 65, 64.75, 63, 65.25, 62.75, 63.25, 65.5, 63, 64.875, 62.625
#define FAR65 FAR13, FAR13, FAR13, FAR13, FAR13
#define FAR325 FAR65, FAR65, FAR65, FAR65, FAR65
static const double far[] = {FAR325, FAR325, FAR325};
#define VERY_FAR(...)                                                                              \
    {                                                                                              \
        .rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .dim = {__VA_ARGS__},          \
        .values = far                                                                              \
    }
#define TURNS7 -0.75, 1.25, 1, -1.5, -0.5, 0.75, -1
static const double turns[] = {TURNS7, TURNS7, TURNS7};
#define TURN(count)                                                                                \
    {                                                                                              \
        .role = QN_ROLE_PARAMETER, .rank = 1, .dim = {(count)}, .values = turns                    \
    }
#define MOVES5 0.0625, 3, -0.03125, -3, -0.0625
static const double moves[] = {MOVES5, MOVES5, MOVES5, MOVES5};
#define MOVE(count)                                                                                \
    {                                                                                              \
        .role = QN_ROLE_PARAMETER, .rank = 1, .dim = {(count)}, .values = moves                    \
    }
#define NONE                                                                                       \
    {                                                                                              \
        .rank = -1                                                                                 \
    }
#define GROUP(n)                                                                                   \
    &(const struct qn_batch_norm_attr)                                                             \
    {                                                                                              \
        .group = (n), .eps = 1e-5f, .momentum = 0.1f                                               \
    }

#define RELU(n)                                                                                    \
    &(const struct qn_batch_norm_attr)                                                             \
    {                                                                                              \
        .group = (n), .eps = 1e-5f, .momentum = 0.1f, .relu = 1                                    \
    }

static const struct qn_control skipped = {.samples = 6, .loss_scale = 1, .skip = 1};

static const struct qn_check_case cases[] = {
    {"small", {IMAGES(3, 2, 2, 3), ROW(2), ROW(2)}, GROUP(2), .small = true},
    {"one group", {IMAGES(4, 3, 5, 7), ROW(3), ROW(3)}, GROUP(4)},
    {"short last group", {IMAGES(7, 5, 3, 11), ROW(5), ROW(5)}, GROUP(3)},
    {"group larger than the batch", {IMAGES(5, 2, 13), ROW(2), ROW(2)}, GROUP(16)},
    {"no weight, no bias", {IMAGES(6, 3, 17), NONE, NONE}, GROUP(2), .small = true},
    {"weight alone", {IMAGES(6, 3, 17), ROW(3), NONE}, GROUP(3)},
    {"bias alone", {IMAGES(6, 3, 17), NONE, ROW(3)}, GROUP(6)},
    {"features", {IMAGES(37, 19), ROW(19), ROW(19)}, GROUP(16)},
    {"one feature", {IMAGES(9, 1), ROW(1), ROW(1)}, GROUP(4)},
    {"whole vectors", {IMAGES(4, 3, 4, 8), ROW(3), ROW(3)}, GROUP(2)},
    {"whole vectors of features", {IMAGES(9, 24), ROW(24), ROW(24)}, GROUP(4)},
    {"more features than a work-group", {IMAGES(18, 40), ROW(40), ROW(40)}, GROUP(9)},
    {"rank 5", {IMAGES(4, 3, 2, 5, 3), ROW(3), ROW(3)}, GROUP(2)},
    {"far from 0", {FAR_IMAGES(8, 2, 31), ROW(2), ROW(2)}, GROUP(4)},
    {"very far from 0", {VERY_FAR(4, 3, 23), ROW(3), ROW(3)}, GROUP(2)},
    {"features very far from 0", {VERY_FAR(37, 19), ROW(19), ROW(19)}, GROUP(16)},
    {"more channels than a work-group", {IMAGES(5, 131, 3), ROW(131), ROW(131)}, GROUP(2)},
    {"large images", {IMAGES(3, 2, 71, 73), ROW(2), ROW(2)}, GROUP(2)},
    {"rows of a sample", {IMAGES(15, 3, 4), ROW(3), ROW(3)}, GROUP(2), .rows_per_sample = 3},
    {"tokens", {IMAGES(28, 19), ROW(19), ROW(19)}, GROUP(4), .rows_per_sample = 7},
    {"skipped update", {IMAGES(6, 2, 5), ROW(2), ROW(2)}, GROUP(2), .control = &skipped},
    {"relu", {HEAPS(4, 2, 2, 5), TURN(2), MOVE(2)}, RELU(2), .small = true},
    {"relu, whole vectors", {HEAPS(4, 3, 4, 8), TURN(3), MOVE(3)}, RELU(2)},
    {"relu, a short last group", {HEAPS(7, 5, 3, 11), TURN(5), MOVE(5)}, RELU(3)},
    {"relu, no weight, no bias", {HEAPS(6, 3, 17), NONE, NONE}, RELU(2)},
    {"relu, weight alone", {HEAPS(6, 3, 18), TURN(3), NONE}, RELU(3)},
    {"relu, bias alone", {HEAPS(6, 3, 17), NONE, MOVE(3)}, RELU(6)},
    {"relu, features",
     {HEAPS(37, 19), TURN(19), MOVE(19)},
     RELU(16),
     .small = true,
     .f32_only = true},
    {"relu, features, weight alone", {HEAPS(37, 19), TURN(19), NONE}, RELU(16)},
    {"relu, features, bias alone", {HEAPS(37, 19), NONE, MOVE(19)}, RELU(16)},
    {"relu, large images", {HEAPS(2, 2, 23, 47), TURN(2), MOVE(2)}, RELU(2)},
    {"relu, tokens", {HEAPS(36, 19), TURN(19), MOVE(19)}, RELU(2), .rows_per_sample = 9},
    {0},
};

static const struct qn_check_case refused[] = {
    {"rank 1", {IMAGES(8), NONE, NONE}, GROUP(2)},
    {"weight of another size", {IMAGES(4, 3, 5), ROW(4), ROW(3)}, GROUP(2)},
    {"bias of another size", {IMAGES(4, 3, 5), ROW(3), ROW(2)}, GROUP(2)},
    {"weight of rank 2", {IMAGES(4, 3, 5), IMAGES(3, 1), NONE}, GROUP(2)},
    {"group of 0", {IMAGES(4, 3, 5), NONE, NONE}, GROUP(0)},
    {"negative group", {IMAGES(4, 3, 5), NONE, NONE}, GROUP(-2)},
    {"integers",
     {{.role = QN_ROLE_FIXED, .dtype = QN_I32, .rank = 2, .dim = {4, 3}}, NONE, NONE},
     GROUP(2)},
    {0},
};

const struct qn_check_op qn_check_batch_norm = {
    .op = &qn_op_batch_norm, .cases = cases, .reference = reference, .refused = refused};
