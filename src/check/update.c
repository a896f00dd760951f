/* SPDX-License-Identifier: MIT */
#include "check/update.h"

#include "check/draw.h"

#include <math.h>
#include <string.h>

enum { QUARTER = 0x3e800000 };

const double qn_check_one_chunk[] = {0, 37, 0, QN_CHECK_ONE, QN_CHECK_ONE};
const double qn_check_neighbours[] = {0,    304,  0, QN_CHECK_ONE,  0,            /* */
                                      304,  4096, 1, QN_CHECK_HALF, QN_CHECK_TWO, /* */
                                      4400, 37,   2, QN_CHECK_TWO,  QUARTER};
const double qn_check_one_element[] = {0, 1, 0, QN_CHECK_ONE, QN_CHECK_ONE};

const struct qn_control qn_check_first_update = {.lr = 0.125f,
                                                 .weight_decay = 0.0625f,
                                                 .loss_scale = 1,
                                                 .applied = 1,
                                                 .grad_scale = 1,
                                                 .bias1 = 0.1f,
                                                 .bias2 = 0.001f,
                                                 .counted = 1};
const struct qn_control qn_check_skipped_update = {
    .lr = 0.125f, .weight_decay = 0.0625f, .loss_scale = 1, .skip = 1};

static const struct qn_optimizer_attr usual = {.beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8};
static const struct qn_optimizer_attr unusual = {.beta1 = 0.5, .beta2 = 0.75, .eps = 0.125};

const struct qn_check_case qn_check_adam_cases[] = {
    {"one chunk", QN_CHECK_BLOCK(37, 1, qn_check_one_chunk), &usual, .small = true},
    {"neighbours", QN_CHECK_BLOCK(4437, 3, qn_check_neighbours), &usual},
    {"other betas", QN_CHECK_BLOCK(37, 1, qn_check_one_chunk), &unusual},
    {"first update", QN_CHECK_BLOCK(4437, 3, qn_check_neighbours), &usual,
     .control = &qn_check_first_update},
    {"skipped update", QN_CHECK_BLOCK(37, 1, qn_check_one_chunk), &usual,
     .control = &qn_check_skipped_update, .small = true},
    {"one element", QN_CHECK_BLOCK(1, 1, qn_check_one_element), &usual},
    {"bf16", QN_CHECK_STORED_BLOCK(QN_BF16, 4437, 3, qn_check_neighbours), &usual},
    {"f16", QN_CHECK_STORED_BLOCK(QN_F16, 37, 1, qn_check_one_chunk), &usual, .small = true},
    {0},
};

const struct qn_check_case qn_check_update_refused[] = {
    {"gradients of another size",
     {QN_CHECK_PARAMETERS(8), QN_CHECK_PARAMETERS(9), QN_CHECK_TABLE(1, qn_check_one_element)},
     &usual},
    {"no table", {QN_CHECK_PARAMETERS(8), QN_CHECK_PARAMETERS(8), QN_CHECK_PARAMETERS(4)}, &usual},
    {0},
};

static void update_element(struct qn_check_element *e, int64_t i,
                           void (*step)(struct qn_check_element *))
{
    const struct qn_reference *r = e->r;
    e->p = r->in[0][i];
    e->g = r->in[1][i] * (double)r->control->grad_scale;
    for (int s = 0; s < QN_MAX_STATE; s++)
        e->state[s] = r->state[s] ? r->state[s][i] : 0;
    if (!r->control->skip)
        step(e);
    r->out[0][i] = e->p;
    for (int s = 0; s < QN_MAX_STATE; s++)
        if (r->new_state[s])
            r->new_state[s][i] = e->state[s];
}

void qn_check_unmoved(const struct qn_reference *r)
{
    memcpy(r->out[0], r->in[0], (size_t)qn_operand_count(&r->call->in[0]) * sizeof(double));
    for (int s = 0; s < QN_MAX_STATE; s++)
        if (r->new_state[s])
            memcpy(r->new_state[s], r->state[s],
                   (size_t)qn_operand_count(&r->call->state[s]) * sizeof(double));
}

void qn_check_update_outputs(const struct qn_call *call, struct qn_operand out[QN_MAX_OUT])
{
    out[0].dtype = call->in[0].dtype;
}

static double factor(double bits)
{
    const int32_t number = (int32_t)bits;
    float value;
    memcpy(&value, &number, sizeof value);
    return (double)value;
}

struct qn_check_chunk qn_check_chunk_of(const struct qn_reference *r, int64_t k)
{
    const double *row = r->in[2] + k * QN_CHUNK_NUMBERS;
    return (struct qn_check_chunk){.first = (int64_t)row[0],
                                   .n = (int64_t)row[1],
                                   .number = (int64_t)row[2],
                                   .rate = factor(row[3]) * (double)r->control->lr,
                                   .decay = factor(row[4]) * (double)r->control->weight_decay};
}

uint32_t qn_check_update_word(const struct qn_reference *r, int64_t i)
{
    struct qn_check_chunk chunk = qn_check_chunk_of(r, 0);
    for (int64_t k = 1; i >= chunk.n; k++) {
        i -= chunk.n;
        chunk = qn_check_chunk_of(r, k);
    }
    return qn_check_word(r, chunk.number, UINT32_MAX, i);
}

double qn_check_corrected(double stored, int code)
{
    int exponent;
    const double fraction = frexp(fabs(stored), &exponent);
    const int step = exponent - 16 - (fraction == 0.5 && code < 128);
    return copysign(fabs(stored) + ldexp(code - 128, step), stored);
}

void qn_check_update(const struct qn_reference *r, void (*step)(struct qn_check_element *))
{
    for (int64_t k = 0; k < r->call->in[2].shape.dim[0]; k++) {
        const struct qn_check_chunk chunk = qn_check_chunk_of(r, k);
        struct qn_check_element e = {.r = r, .rate = chunk.rate, .decay = chunk.decay};
        for (int64_t i = 0; i < chunk.n; i++)
            update_element(&e, chunk.first + i, step);
    }
}

void qn_check_adam_step(struct qn_check_element *e)
{
    const struct qn_optimizer_attr *attr = e->r->call->attr;
    const struct qn_control *control = e->r->control;
    e->state[0] = attr->beta1 * e->state[0] + (1 - attr->beta1) * e->g;
    e->state[1] = attr->beta2 * e->state[1] + (1 - attr->beta2) * e->g * e->g;
    const double root = sqrt(e->state[1]) / sqrt((double)control->bias2) + attr->eps;
    e->p -= e->rate / (double)control->bias1 * e->state[0] / root;
}
