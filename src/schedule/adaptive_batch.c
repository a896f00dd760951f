/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <quern/schedule.h>
#include <string.h>

/* Size `index` counted from the least one; 0: there is none. */
static int64_t size_at(const qn_adaptive_batch *a, int index)
{
    if (a->least < 1 || index >= QN_MAX_BATCH_SIZES || a->least > a->most >> index)
        return 0;
    return a->least << index;
}

int qn_adaptive_sizes(const qn_adaptive_batch *adaptive, int64_t sizes[QN_MAX_BATCH_SIZES])
{
    int count = 0;
    if (!sizes)
        return 0;
    memset(sizes, 0, QN_MAX_BATCH_SIZES * sizeof *sizes);
    while (adaptive && size_at(adaptive, count))
        count++;
    for (int i = 0; i < count; i++)
        sizes[i] = size_at(adaptive, count - 1 - i);
    return count;
}

double qn_noise_scale(const qn_adaptive_batch *adaptive)
{
    if (!adaptive || (adaptive->signal <= 0 && adaptive->noise <= 0))
        return NAN;
    if (adaptive->noise <= 0)
        return 0;
    return adaptive->signal <= 0 ? INFINITY : adaptive->noise / adaptive->signal;
}

/* Puts the estimates of one cycle into the averages; false: it tells nothing. */
static bool measure(qn_adaptive_batch *a, const qn_gradient_norms *norms, double decay)
{
    const double all = (double)norms->batch, part = (double)norms->micro_batch;
    if (part < 1 || part >= all || !isfinite(norms->batch_square) || !isfinite(norms->micro_square))
        return false;
    double signal = (all * norms->batch_square - part * norms->micro_square) / (all - part);
    double noise = (norms->micro_square - norms->batch_square) / (1 / part - 1 / all);
    a->signal += (1 - decay) * (signal - a->signal);
    a->noise += (1 - decay) * (noise - a->noise);
    return true;
}

/* The size next to the present one on the side of the noise scale, or the present one. */
static int64_t choose(const qn_adaptive_batch *a)
{
    const double scale = qn_noise_scale(a), batch = (double)a->batch;
    int i = 0;
    while (size_at(a, i + 1) && size_at(a, i) < a->batch)
        i++;
    if (scale >= 2 * batch && size_at(a, i + 1))
        return size_at(a, i + 1);
    return scale <= batch / 2 && i > 0 ? size_at(a, i - 1) : a->batch;
}

int64_t qn_batch_adapt(qn_adaptive_batch *adaptive, const qn_gradient_norms *norms)
{
    if (!adaptive)
        return 0;
    const double decay = adaptive->decay == 0 ? 0.95 : adaptive->decay;
    if (!adaptive->batch)
        adaptive->batch = adaptive->least;
    if (!norms || !measure(adaptive, norms, decay))
        return adaptive->batch;
    adaptive->measured++;
    const int64_t before = adaptive->batch;
    if ((double)adaptive->measured * (1 - decay) >= 1 - 1e-9) /* 20 * (1 - 0.95) is below 1 */
        adaptive->batch = choose(adaptive);
    if (adaptive->batch != before)
        adaptive->measured = 0;
    return adaptive->batch;
}
