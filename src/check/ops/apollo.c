/* SPDX-License-Identifier: MIT */
#include "check/draw.h"
#include "check/update.h"

#include "base/shape.h"

#include <math.h>

extern const struct qn_op qn_op_apollo;
extern const struct qn_check_op qn_check_apollo;

enum { FIRST, SECOND, BEFORE };

/* --- the formula --- */

static const double pi = 3.14159265358979323846;

/* Element i of the random vector: four share a counter, two of them one pair of words. */
static double drawn(const struct qn_reference *r, int64_t i)
{
    const struct qn_philox words =
        qn_check_draw(r, r->control->update / 200, (uint32_t)r->in[2][2], UINT32_MAX - 1, i / 4);
    const uint32_t *pair = &words.word[i % 4 / 2 * 2];
    const double radius = sqrt(-2 * log(1 - (pair[0] >> 8) * 0x1p-24));
    const double angle = 2 * pi * ((pair[1] >> 8) * 0x1p-24);
    return radius * (i % 2 ? sin(angle) : cos(angle));
}

static double gradient(const struct qn_reference *r, int64_t i)
{
    return r->in[1][i] * (double)r->control->grad_scale;
}

/* Element i of the gradient's projection along the shorter side. */
static double projected(const struct qn_reference *r, int64_t rows, int64_t n, int64_t i)
{
    double sum = 0;
    for (int64_t j = 0; j < (rows < n ? rows : n); j++)
        sum += drawn(r, j) * gradient(r, rows < n ? j * n + i : i * n + j);
    return sum;
}

/* Moves the moments; gives the factor of the projection that Adam's step is, as a whole. */
static double factor_of(const struct qn_reference *r, int64_t rows, int64_t n)
{
    const struct qn_optimizer_attr *attr = r->call->attr;
    double steps = 0, squares = 0;
    for (int64_t i = 0; i < (rows < n ? n : rows); i++) {
        const double q = projected(r, rows, n, i);
        const double m = attr->beta1 * r->state[FIRST][i] + (1 - attr->beta1) * q;
        const double v = attr->beta2 * r->state[SECOND][i] + (1 - attr->beta2) * q * q;
        const double root = sqrt(v / (double)r->control->bias2) + attr->eps;
        r->new_state[FIRST][i] = m;
        r->new_state[SECOND][i] = v;
        steps += pow(m / (double)r->control->bias1 / root, 2);
        squares += q * q;
    }
    return squares > 0 ? sqrt(steps / squares) : 0;
}

/* The factor once the growth of the scaled gradient is limited. */
static double limited(const struct qn_reference *r, double factor)
{
    double squares = 0;
    for (int64_t i = 0; i < qn_operand_count(&r->call->in[1]); i++)
        squares += pow(gradient(r, i), 2);
    const double size = factor * sqrt(squares), before = r->state[BEFORE][0];
    const double most = before > 0 ? fmin(size, 1.01 * before) : size;
    r->new_state[BEFORE][0] = most;
    return size > 0 ? factor * most / size : 0;
}

static void reference(const struct qn_reference *r)
{
    const int64_t count = qn_operand_count(&r->call->in[0]), rows = r->call->in[0].shape.dim[0];
    const struct qn_check_chunk chunk = qn_check_chunk_of(r, 0);
    if (r->control->skip) {
        qn_check_unmoved(r);
        return;
    }
    const double factor = limited(r, factor_of(r, rows, count / rows));
    for (int64_t i = 0; i < count; i++)
        r->out[0][i] = (1 - chunk.rate * chunk.decay) * r->in[0][i] -
                       chunk.rate * sqrt(128) * factor * gradient(r, i);
}

/* --- cases --- */

#define ROW(first, count, number) (first), (count), (number), QN_CHECK_HALF, QN_CHECK_TWO

static const double one[] = {ROW(304, 1961, 5)}, few[] = {ROW(304, 35, 5)},
                    line[] = {ROW(0, 37, 0)}, planes[] = {ROW(512, 135, 1)},
                    tall_planes[] = {ROW(0, 576, 2)}, square[] = {ROW(0, 400, 3)},
                    two[] = {ROW(8192, 4096, 1), ROW(12288, 344, 2)},
                    many[] = {ROW(0, 4096, 0),     ROW(4096, 4096, 1),  ROW(8192, 4096, 2),
                              ROW(12288, 4096, 3), ROW(16384, 4096, 4), ROW(20480, 344, 5)};

static const struct qn_optimizer_attr usual = {.beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8};
static const struct qn_optimizer_attr unusual = {.beta1 = 0.5, .beta2 = 0.75, .eps = 0.125};

/* Of a small step and of a large one, and in other draws. */
#define CONTROL                                                                                    \
    .seed_lo = 3, .seed_hi = 5, .lr = 0.0625f, .weight_decay = 0.03125f, .loss_scale = 1,          \
    .grad_scale = 0.5f, .counted = 37, .bias2 = 0.25f
static const struct qn_control slow = {CONTROL, .bias1 = 100, .update = 399};
static const struct qn_control fast = {CONTROL, .bias1 = 0.001f, .update = 400};

static const double nothing[35] = {0};

#define MATRIX(...) QN_CHECK_WHOLE(QN_F32, 1, one, __VA_ARGS__)
#define SMALL(type) QN_CHECK_WHOLE(type, 1, few, 5, 7)

static const struct qn_check_case cases[] = {
    {"wide", MATRIX(37, 53), &usual},
    {"tall", MATRIX(53, 37), &usual},
    {"square", QN_CHECK_WHOLE(QN_F32, 1, square, 20, 20), &usual},
    {"small and wide", SMALL(QN_F32), &usual, .small = true},
    {"small and tall", QN_CHECK_WHOLE(QN_F32, 1, few, 7, 5), &usual, .small = true},
    {"one row", QN_CHECK_WHOLE(QN_F32, 1, line, 1, 37), &usual, .small = true},
    {"one column", QN_CHECK_WHOLE(QN_F32, 1, line, 37, 1), &usual, .small = true},
    {"four dimensions", QN_CHECK_WHOLE(QN_F32, 1, planes, 5, 3, 3, 3), &usual},
    {"four dimensions, tall", QN_CHECK_WHOLE(QN_F32, 1, tall_planes, 64, 1, 3, 3), &usual},
    {"row blocks", QN_CHECK_WHOLE(QN_F32, 2, two, 60, 74), &usual},
    {"more columns than a strip", QN_CHECK_WHOLE(QN_F32, 6, many, 8, 2603), &usual},
    {"many rows", QN_CHECK_WHOLE(QN_F32, 6, many, 2603, 8), &usual},
    {"other betas", MATRIX(37, 53), &unusual},
    {"first update", MATRIX(37, 53), &usual, .control = &qn_check_first_update},
    {"a step that is not limited", MATRIX(37, 53), &usual, .control = &slow},
    {"a limited step", MATRIX(37, 53), &usual, .control = &fast},
    {"gradients of 0",
     {QN_CHECK_TENSOR(QN_F32, 1, 5, 7),
      {.role = QN_ROLE_FIXED, .dtype = QN_F32, .rank = 2, .dim = {5, 7}, .values = nothing},
      QN_CHECK_TABLE(1, few)},
     &usual},
    {"skipped update", SMALL(QN_F32), &usual, .control = &qn_check_skipped_update, .small = true},
    {"bf16", QN_CHECK_WHOLE(QN_BF16, 2, two, 60, 74), &usual},
    {"f16", SMALL(QN_F16), &usual, .small = true},
    {"bf16, skipped update", SMALL(QN_BF16), &usual, .control = &qn_check_skipped_update},
    {"one element", QN_CHECK_WHOLE(QN_F32, 1, qn_check_one_element, 1, 1), &usual},
    {0},
};

static const struct qn_check_case refused[] = {
    {"a vector", QN_CHECK_BLOCK(37, 1, qn_check_one_chunk), &usual},
    {"gradients of another shape",
     {QN_CHECK_TENSOR(QN_F32, 1, 5, 7), QN_CHECK_TENSOR(QN_F32, 1, 7, 5), QN_CHECK_TABLE(1, few)},
     &usual},
    {0},
};

const struct qn_check_op qn_check_apollo = {.op = &qn_op_apollo,
                                            .cases = cases,
                                            .reference = reference,
                                            .refused = refused,
                                            .outputs = qn_check_update_outputs,
                                            .word = qn_check_update_word};
