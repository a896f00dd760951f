/* SPDX-License-Identifier: MIT */
#include "check/moments8.h"

#include <math.h>

const struct qn_optimizer_attr qn_check_wide_eps = {.beta1 = 0.9, .beta2 = 0.999, .eps = 0.125};
const struct qn_optimizer_attr qn_check_small_eps = {.beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8};
const struct qn_optimizer_attr qn_check_other_betas = {.beta1 = 0.5, .beta2 = 0.75, .eps = 0.125};
const struct qn_optimizer_attr qn_check_forgetful = {.beta1 = 0, .beta2 = 0, .eps = 0.125};

const double qn_check_zeros[37] = {0};
const double qn_check_decades[37] = {
    1,       -0.997,  0.99,   0.5,   -0.25,   0.101,  0.0999,  -0.05, 0.0101, 9.9e-3,
    -5e-3,   1.01e-3, 9.9e-4, -5e-4, 1.01e-4, 9.9e-5, -5e-5,   2e-5,  1.2e-5, 9.9e-6,
    -3.3e-6, 1.1e-6,  9e-7,   -7e-7, 5e-7,    3e-7,   -2.9e-7, 2e-7,  1e-7,   -1e-8,
    1e-9,    -1e-10,  1e-11,  1e-12, 0,       -0.0,   0.7};

/* The states of operators whose slots are codes and scales of both moments. */
enum { FIRST, SECOND, FIRST_SCALE, SECOND_SCALE };

double qn_check_code(double (*value)(int code), double x)
{
    int code = 0;
    for (int half = 128; half > 0; half /= 2)
        code += code + half < 255 && x >= value(code + half) ? half : 0;
    const double low = value(code), high = value(code + 1);
    return code + fmin(fmax((x - low) / (high - low), 0), 1);
}

/* Elements that share a scale, the first of them and their number. */
struct share {
    int64_t first, n, scale;
    struct qn_check_chunk chunk;
};

/* A skipped update, and what belongs to no element. */
static void keep_all(const struct qn_reference *r, const struct qn_check_codes *codes)
{
    for (int64_t i = 0; i < qn_operand_count(&r->call->in[0]); i++)
        r->out[0][i] = codes->parameter(r, i);
    for (int slot = FIRST; slot <= SECOND_SCALE; slot++)
        for (int64_t i = 0; i < qn_operand_count(&r->call->state[slot]); i++)
            r->new_state[slot][i] = r->state[slot][i];
}

/* The parameter after the update; new_state has the moments for now. */
static void update(const struct qn_reference *r, const struct qn_check_codes *codes,
                   const struct share *s, int64_t i)
{
    struct qn_check_element e = {.r = r, .rate = s->chunk.rate, .decay = s->chunk.decay};
    e.p = codes->parameter(r, i) * (1 - e.rate * e.decay);
    e.g = r->in[1][i] * (double)r->control->grad_scale;
    e.state[0] = codes->first_value((int)r->state[FIRST][i]) * r->state[FIRST_SCALE][s->scale];
    e.state[1] = codes->second_value((int)r->state[SECOND][i]) * r->state[SECOND_SCALE][s->scale];
    qn_check_adam_step(&e);
    r->out[0][i] = e.p;
    r->new_state[FIRST][i] = e.state[0];
    r->new_state[SECOND][i] = e.state[1];
}

/* A second moment that is not 0 does not become 0. */
static double second_code(const struct qn_check_codes *codes, double x)
{
    return x > 0 ? fmax(codes->second_code(x), 1) : 0;
}

static void update_share(const struct qn_reference *r, const struct qn_check_codes *codes,
                         const struct share *s)
{
    double first = 0, second = 0;
    for (int64_t i = s->first; i < s->first + s->n; i++) {
        update(r, codes, s, i);
        first = fmax(first, fabs(r->new_state[FIRST][i]));
        second = fmax(second, r->new_state[SECOND][i]);
    }
    first = codes->scale(first);
    second = codes->scale(second);
    for (int64_t i = s->first; i < s->first + s->n; i++) {
        double *m = &r->new_state[FIRST][i], *v = &r->new_state[SECOND][i];
        *m = codes->first_code(first > 0 ? *m / first : 0);
        *v = second_code(codes, second > 0 ? *v / second : 0);
    }
    r->new_state[FIRST_SCALE][s->scale] = first;
    r->new_state[SECOND_SCALE][s->scale] = second;
}

void qn_check_moments8(const struct qn_reference *r, const struct qn_check_codes *codes)
{
    keep_all(r, codes);
    for (int64_t k = 0; !r->control->skip && k < r->call->in[2].shape.dim[0]; k++) {
        struct share s = {.chunk = qn_check_chunk_of(r, k)};
        const int64_t n = s.chunk.n;
        for (int64_t at = 0; at < n; at += codes->shared) {
            s.first = s.chunk.first + at;
            s.n = n - at < codes->shared ? n - at : codes->shared;
            s.scale = (k * QN_CHUNK + at) / codes->shared;
            update_share(r, codes, &s);
        }
    }
}
