/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <quern/schedule.h>

static const double pi = 3.14159265358979323846;

/* Updates of the warm-up; a fraction need not give a whole number of them. */
static double warmup_of(const qn_lr_schedule *s)
{
    const bool one_cycle = s->kind == QN_LR_ONE_CYCLE;
    double warmup = one_cycle && s->warmup == 0 ? 0.3 : fmax(s->warmup, 0);
    if (warmup >= 1)
        return warmup;
    double updates = warmup * (double)s->total;
    return one_cycle ? updates : floor(updates);
}

/* From `a` at part 0 to `b` at part 1 along half a cosine. */
static double ease(double a, double b, double part)
{
    return b + (a - b) * (1 + cos(pi * part)) / 2;
}

static double one_cycle(const qn_lr_schedule *s, double update)
{
    double first = s->lr / 25, end = s->end == 0 ? first / 1e4 : fmax(s->end, 0);
    double last = (double)(s->total - 1), top = fmin(warmup_of(s) - 1, last);
    update = fmin(update, last);
    if (update < top)
        return ease(first, s->lr, update / top);
    top = fmax(top, 0);
    return last > top ? ease(s->lr, end, (update - top) / (last - top)) : s->lr;
}

double qn_schedule_lr(const qn_lr_schedule *s, int64_t update)
{
    if (!s)
        return 0;
    double u = (double)update, warmup = warmup_of(s), length = (double)s->total - warmup;
    double end = fmax(s->end, 0), factor = s->factor == 0 ? 0.1 : s->factor;
    double every = s->every ? (double)s->every : 1000;
    if (s->kind == QN_LR_ONE_CYCLE)
        return one_cycle(s, u);
    if (u < warmup)
        return s->lr * ((u + 1) / warmup);
    double t = fmin(u - warmup, fmax(length, 0)), part = length > 0 ? t / length : 1;
    switch (s->kind) {
    case QN_LR_STEP:
        return s->lr * pow(factor, floor((u - warmup) / every));
    case QN_LR_COSINE:
        return ease(s->lr, end, part);
    case QN_LR_LINEAR:
        return s->lr + (end - s->lr) * part;
    default:
        return s->lr;
    }
}
