/* SPDX-License-Identifier: MIT */
#include "check/draw.h"
#include "check/update.h"

#include "base/shape.h"

#include <math.h>
#include <stdlib.h>

extern const struct qn_op qn_op_adafactor;
extern const struct qn_check_op qn_check_adafactor;

enum { OF_ROWS, OF_COLUMNS, OF_VECTOR };

/* --- the formula --- */

/* What the update is about: `count` elements, as a matrix of rows of n elements. */
struct whole {
    const struct qn_reference *r;
    int64_t count, rows, n;
    double share; /* of this update in the second moments */
};

static double gradient(const struct whole *w, int64_t i)
{
    return w->r->in[1][i] * (double)w->r->control->grad_scale;
}

static double eps_of(const struct whole *w)
{
    return ((const struct qn_optimizer_attr *)w->r->call->attr)->eps;
}

static double moved(const struct whole *w, double moment, double square)
{
    return (1 - w->share) * moment + w->share * (square + eps_of(w));
}

/* The mean of the squares of `count` elements, `step` apart. */
static double mean_square(const struct whole *w, int64_t first, int64_t count, int64_t step)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += pow(gradient(w, first + i * step), 2);
    return sum / (double)count;
}

static void move_moments(const struct whole *w)
{
    const struct qn_reference *r = w->r;
    if (r->call->in[0].shape.rank < 2) {
        for (int64_t i = 0; i < w->count; i++)
            r->new_state[OF_VECTOR][i] = moved(w, r->state[OF_VECTOR][i], pow(gradient(w, i), 2));
        return;
    }
    for (int64_t i = 0; i < w->rows; i++)
        r->new_state[OF_ROWS][i] =
            moved(w, r->state[OF_ROWS][i], mean_square(w, i * w->n, w->n, 1));
    for (int64_t j = 0; j < w->n; j++)
        r->new_state[OF_COLUMNS][j] =
            moved(w, r->state[OF_COLUMNS][j], mean_square(w, j, w->rows, w->n));
}

/* The second moment of element i. */
static double moment_of(const struct whole *w, int64_t i)
{
    const struct qn_reference *r = w->r;
    if (r->call->in[0].shape.rank < 2)
        return r->new_state[OF_VECTOR][i];
    double mean = 0;
    for (int64_t row = 0; row < w->rows; row++)
        mean += r->new_state[OF_ROWS][row] / (double)w->rows;
    return r->new_state[OF_ROWS][i / w->n] * r->new_state[OF_COLUMNS][i % w->n] / mean;
}

static void move_parameter(const struct whole *w)
{
    const struct qn_reference *r = w->r;
    const struct qn_check_chunk chunk = qn_check_chunk_of(r, 0);
    double steps = 0, sizes = 0;
    for (int64_t i = 0; i < w->count; i++) {
        r->out[0][i] = gradient(w, i) / sqrt(moment_of(w, i));
        steps += pow(r->out[0][i], 2) / (double)w->count;
        sizes += pow(r->in[0][i], 2) / (double)w->count;
    }
    const double alpha =
        fmax(1e-3, sqrt(sizes)) * fmin(chunk.rate, 1 / sqrt((double)r->control->counted));
    for (int64_t i = 0; i < w->count; i++)
        r->out[0][i] = (1 - chunk.rate * chunk.decay) * r->in[0][i] -
                       alpha / fmax(1, sqrt(steps)) * r->out[0][i];
}

static void reference(const struct qn_reference *r)
{
    const struct qn_shape *shape = &r->call->in[0].shape;
    struct whole w = {.r = r, .count = qn_shape_count(shape), .rows = shape->dim[0]};
    w.n = w.count / w.rows;
    w.share = pow((double)r->control->counted, -0.8);
    if (r->control->skip) {
        qn_check_unmoved(r);
        return;
    }
    move_moments(&w);
    move_parameter(&w);
}

/* Matrices have words of their own for each row; a vector is one row. */
static uint32_t word_of(const struct qn_reference *r, int64_t i)
{
    const struct qn_shape *shape = &r->call->in[0].shape;
    const int64_t rows = shape->rank < 2 ? 1 : shape->dim[0], n = qn_shape_count(shape) / rows;
    return qn_check_word(r, qn_check_chunk_of(r, 0).number, UINT32_MAX - 1 - (uint32_t)(i / n),
                         i % n);
}

/* --- cases --- */

static const double one[] = {304, 1961, 5, QN_CHECK_HALF, QN_CHECK_TWO};
static const double two[] = {8192,  4096, 1, QN_CHECK_ONE, QN_CHECK_HALF,
                             12288, 344,  2, QN_CHECK_ONE, QN_CHECK_HALF};

static const struct qn_optimizer_attr usual = {.beta1 = 0.9, .beta2 = 0.999, .eps = 1e-30};
static const struct qn_optimizer_attr large_eps = {.beta1 = 0.9, .beta2 = 0.999, .eps = 0.125};

static const struct qn_control fast = {
    .lr = 4, .weight_decay = 0.03125f, .loss_scale = 1, .grad_scale = 0.5f, .counted = 37};

/* A row and a column of nothing but 0. */
static const double zeros[35] = {[8] = 1, [9] = -2, [10] = 0.5, [15] = 3, [17] = -1, [23] = 1e-20};
static const double nothing[35] = {0};

#define MATRIX(...) QN_CHECK_WHOLE(QN_F32, 1, one, __VA_ARGS__)

static const struct qn_check_case cases[] = {
    {"a matrix", MATRIX(37, 53), &usual},
    {"a small matrix", MATRIX(5, 7), &usual, .small = true},
    {"one row", MATRIX(1, 37), &usual, .small = true},
    {"one column", MATRIX(37, 1), &usual, .small = true},
    {"a long row", MATRIX(1, 1961), &usual},
    {"four dimensions", MATRIX(5, 3, 3, 3), &usual},
    {"more columns than a strip", MATRIX(20, 2603), &usual},
    {"whole vectors", MATRIX(24, 48), &usual},
    {"row blocks", QN_CHECK_WHOLE(QN_F32, 2, two, 148, 30), &usual},
    {"larger row blocks", QN_CHECK_WHOLE(QN_F32, 2, two, 2100, 3), &usual},
    {"a large eps", MATRIX(37, 53), &large_eps},
    {"first update", MATRIX(37, 53), &usual, .control = &qn_check_first_update},
    {"a fast one", MATRIX(37, 53), &usual, .control = &fast},
    {"a limited step",
     {QN_CHECK_TENSOR(QN_F32, 1, 37, 53), QN_CHECK_TENSOR(QN_F32, 100, 37, 53),
      QN_CHECK_TABLE(1, one)},
     &usual},
    {"a small parameter",
     {QN_CHECK_TENSOR(QN_F32, 1e-5, 37, 53), QN_CHECK_TENSOR(QN_F32, 1, 37, 53),
      QN_CHECK_TABLE(1, one)},
     &usual},
    {"a row and a column of 0",
     {QN_CHECK_TENSOR(QN_F32, 1, 5, 7),
      {.role = QN_ROLE_FIXED, .dtype = QN_F32, .rank = 2, .dim = {5, 7}, .values = zeros},
      QN_CHECK_TABLE(1, one)},
     &usual,
     .control = &qn_check_first_update},
    {"gradients of 0",
     {QN_CHECK_TENSOR(QN_F32, 1, 5, 7),
      {.role = QN_ROLE_FIXED, .dtype = QN_F32, .rank = 2, .dim = {5, 7}, .values = nothing},
      QN_CHECK_TABLE(1, one)},
     &usual,
     .control = &qn_check_first_update},
    {"skipped update", MATRIX(5, 7), &usual, .control = &qn_check_skipped_update, .small = true},
    {"bf16", QN_CHECK_WHOLE(QN_BF16, 1, one, 37, 53), &usual},
    {"f16", QN_CHECK_WHOLE(QN_F16, 1, one, 5, 7), &usual, .small = true},
    {"whole vectors in bf16", QN_CHECK_WHOLE(QN_BF16, 1, one, 24, 48), &usual},
    {"whole vectors in f16", QN_CHECK_WHOLE(QN_F16, 1, one, 24, 48), &usual},
    {"bf16, skipped update", QN_CHECK_WHOLE(QN_BF16, 1, one, 5, 7), &usual,
     .control = &qn_check_skipped_update},
    {"a vector", MATRIX(37), &usual, .small = true},
    {"a long vector", QN_CHECK_WHOLE(QN_F32, 2, two, 4440), &usual},
    {"a vector, a limited step",
     {QN_CHECK_TENSOR(QN_F32, 1, 37), QN_CHECK_TENSOR(QN_F32, 100, 37), QN_CHECK_TABLE(1, one)},
     &usual},
    {"a small vector",
     {QN_CHECK_TENSOR(QN_F32, 1e-5, 37), QN_CHECK_TENSOR(QN_F32, 1, 37), QN_CHECK_TABLE(1, one)},
     &usual},
    {"a vector, first update", MATRIX(37), &usual, .control = &qn_check_first_update},
    {"a vector, a fast update", MATRIX(37), &large_eps, .control = &fast},
    {"a vector, skipped update", MATRIX(37), &usual, .control = &qn_check_skipped_update,
     .small = true},
    {"a vector, gradients of 0",
     {QN_CHECK_TENSOR(QN_F32, 1, 35), QN_CHECK_GIVEN(35, zeros), QN_CHECK_TABLE(1, one)},
     &usual,
     .control = &qn_check_first_update},
    {"a vector in bf16", QN_CHECK_WHOLE(QN_BF16, 1, one, 37), &usual, .small = true},
    {"one element", MATRIX(1), &usual},
    {0},
};

static const struct qn_check_case refused[] = {
    {"gradients of another shape",
     {QN_CHECK_TENSOR(QN_F32, 1, 5, 7), QN_CHECK_TENSOR(QN_F32, 1, 7, 5), QN_CHECK_TABLE(1, one)},
     &usual},
    {"no table",
     {QN_CHECK_TENSOR(QN_F32, 1, 5, 7), QN_CHECK_TENSOR(QN_F32, 1, 5, 7), QN_CHECK_PARAMETERS(4)},
     &usual},
    {0},
};

const struct qn_check_op qn_check_adafactor = {.op = &qn_op_adafactor,
                                               .cases = cases,
                                               .reference = reference,
                                               .refused = refused,
                                               .outputs = qn_check_update_outputs,
                                               .word = word_of};
