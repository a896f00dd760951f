/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <quern/schedule.h>
#include <string.h>

/* The average takes one in so many of all losses on each side, at least one. */
enum { SIDES = 20 };

qn_lr_range qn_lr_range_whole(const qn_lr_range *range)
{
    qn_lr_range whole = {0};
    if (range)
        whole = *range;
    whole.least = whole.least == 0 ? 1e-7 : whole.least;
    whole.most = whole.most == 0 ? 10 : whole.most;
    whole.updates = whole.updates == 0 ? 100 : whole.updates;
    return whole;
}

double qn_lr_range_at(const qn_lr_range *range, int64_t update)
{
    const qn_lr_range r = qn_lr_range_whole(range);
    return r.updates < 2
               ? r.least
               : r.least * pow(r.most / r.least, (double)update / (double)(r.updates - 1));
}

static void smooth(const double *losses, int64_t count, int64_t side, double *smoothed)
{
    for (int64_t i = 0; i < count; i++) {
        const int64_t room = i < count - 1 - i ? i : count - 1 - i, n = room < side ? room : side;
        double sum = 0;
        for (int64_t k = i - n; k <= i + n; k++)
            sum += losses[k];
        smoothed[i] = sum / (double)(2 * n + 1);
    }
}

qn_lr_found qn_lr_range_find(const qn_lr_range *range, const double *losses, int64_t count,
                             double *smoothed)
{
    const qn_lr_range r = qn_lr_range_whole(range);
    qn_lr_found found = {0};
    int64_t lowest = 0, steepest = 0;
    double fall = 0;
    if (!losses || !smoothed || count < 3)
        return found;
    smooth(losses, count, r.updates / SIDES > 1 ? r.updates / SIDES : 1, smoothed);
    for (int64_t i = 0; i < count; i++)
        if (smoothed[i] < smoothed[lowest])
            lowest = i;
    for (int64_t i = 1; i + 1 < count && i <= lowest; i++)
        if (smoothed[i - 1] - smoothed[i + 1] > fall) {
            fall = smoothed[i - 1] - smoothed[i + 1];
            steepest = i;
        }
    if (steepest)
        found = (qn_lr_found){qn_lr_range_at(&r, steepest), qn_lr_range_at(&r, lowest)};
    return found;
}
