/* SPDX-License-Identifier: MIT */
#include "schedule.h"

#include <math.h>

static const double pi = 3.14159265358979323846;

/* Updates of the warm-up; a fraction need not give a whole number of them. */
static double warmup_of(const struct schedule *s)
{
    double none = s->kind == SCHEDULE_ONE_CYCLE ? 0.3 : 0;
    double warmup = s->warmup < 0 ? none : s->warmup;
    if (warmup >= 1)
        return warmup;
    double updates = warmup * (double)s->total;
    return s->kind == SCHEDULE_ONE_CYCLE ? updates : floor(updates);
}

/* From `a` at part 0 to `b` at part 1 along half a cosine. */
static double ease(double a, double b, double part)
{
    return b + (a - b) * (1 + cos(pi * part)) / 2;
}

static double one_cycle(const struct schedule *s, double update)
{
    double first = s->lr / 25, end = s->end < 0 ? first / 1e4 : s->end;
    double last = (double)(s->total - 1), top = fmin(warmup_of(s) - 1, last);
    update = fmin(update, last);
    if (update < top)
        return ease(first, s->lr, update / top);
    top = fmax(top, 0);
    return last > top ? ease(s->lr, end, (update - top) / (last - top)) : s->lr;
}

double schedule_lr(const struct schedule *s, int64_t update)
{
    double u = (double)update, warmup = warmup_of(s), length = (double)s->total - warmup;
    double end = s->end < 0 ? 0 : s->end;
    if (s->kind == SCHEDULE_ONE_CYCLE)
        return one_cycle(s, u);
    if (u < warmup)
        return s->lr * ((u + 1) / warmup);
    double t = fmin(u - warmup, fmax(length, 0)), part = length > 0 ? t / length : 1;
    switch (s->kind) {
    case SCHEDULE_STEP:
        return s->lr * pow(s->factor, floor((u - warmup) / (double)s->every));
    case SCHEDULE_COSINE:
        return ease(s->lr, end, part);
    case SCHEDULE_LINEAR:
        return s->lr + (end - s->lr) * part;
    default:
        return s->lr;
    }
}
