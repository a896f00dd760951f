/* SPDX-License-Identifier: MIT */
#include "check/number.h"

#include "base/random.h"

#include <math.h>

struct draw {
    double a, b;
    uint64_t seed, stream;
};

static double draw_normal(const struct draw *d, int64_t i)
{
    double scale = d->a != 0 ? d->a : 1;
    return scale * qn_random_normal(d->seed, d->stream, (uint64_t)i) + d->b;
}

static double draw_uniform(const struct draw *d, int64_t i)
{
    return d->a + (d->b - d->a) * qn_random_uniform(d->seed, d->stream, (uint64_t)i);
}

static double draw_kinkless(const struct draw *d, int64_t i)
{
    double value = draw_normal(d, i);
    return value < 0 ? fmin(value, -0.05) : fmax(value, 0.05);
}

/* Element i is grid number (i * stride + start) % MODULUS, a prime: MODULUS neighbouring elements
 * are all different. */
static double draw_distinct(const struct draw *d, int64_t i)
{
    enum { MODULUS = 509 };
    int64_t stride = 1 + (int64_t)(qn_random_bits(d->seed, d->stream, 0) % (MODULUS - 1));
    int64_t start = (int64_t)(qn_random_bits(d->seed, d->stream, 1) % MODULUS);
    double step = d->a != 0 ? d->a : 1.0 / 64;
    return (double)((i % MODULUS * stride + start) % MODULUS - MODULUS / 2) * step;
}

static double draw_integer(const struct draw *d, int64_t i)
{
    return floor(draw_uniform(d, i));
}

static double draw_positive(const struct draw *d, int64_t i)
{
    return 0.1 + qn_random_uniform(d->seed, d->stream, (uint64_t)i);
}

static double (*const draws[])(const struct draw *, int64_t) = {
    [QN_FILL_NORMAL] = draw_normal,     [QN_FILL_UNIFORM] = draw_uniform,
    [QN_FILL_KINKLESS] = draw_kinkless, [QN_FILL_DISTINCT] = draw_distinct,
    [QN_FILL_INTEGER] = draw_integer,   [QN_FILL_POSITIVE] = draw_positive,
};

void qn_number_fill(double *values, int64_t count, const struct qn_check_input *input,
                    qn_dtype dtype, uint64_t seed, uint64_t stream)
{
    const struct draw draw = {input->a, input->b, seed, stream};
    for (int64_t i = 0; i < count; i++) {
        const double drawn = input->values ? input->values[i] : draws[input->fill](&draw, i);
        uint32_t stored = 0;
        qn_number_encode(dtype, &drawn, 1, &stored);
        qn_number_decode(dtype, &stored, 1, &values[i]);
    }
}
