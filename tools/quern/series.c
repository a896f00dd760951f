/* SPDX-License-Identifier: MIT */
#include "series.h"

#include <math.h>
#include <stdlib.h>

/* Differences of such values are finite. */
static const double LARGEST = 1e150;

bool series_add(struct series *s, double x, double y)
{
    if (s->count == s->room) {
        const int64_t room = s->room ? 2 * s->room : 64;
        double *xs = realloc(s->x, (size_t)room * sizeof *xs);
        s->x = xs ? xs : s->x;
        double *ys = realloc(s->y, (size_t)room * sizeof *ys);
        s->y = ys ? ys : s->y;
        if (!xs || !ys)
            return false;
        s->room = room;
    }
    s->x[s->count] = x;
    s->y[s->count++] = fabs(y) <= LARGEST ? y : NAN;
    return true;
}

void series_cut(struct series *s, double x)
{
    while (s->count && s->x[s->count - 1] >= x)
        s->count--;
}

void series_free(struct series *s)
{
    free(s->x);
    free(s->y);
    *s = (struct series){0};
}

/* Adds what stands for the points [from, to), of which one at least is there. */
static bool add_bin(struct series *ends, struct series *means, const struct series *of,
                    int64_t from, int64_t to)
{
    int64_t least = -1, most = -1, count = 0;
    double sum = 0;
    for (int64_t i = from; i < to; i++) {
        if (!isfinite(of->y[i]))
            continue;
        least = least < 0 || of->y[i] < of->y[least] ? i : least;
        most = most < 0 || of->y[i] > of->y[most] ? i : most;
        sum += of->y[i];
        count++;
    }
    const double middle = (of->x[from] + of->x[to - 1]) / 2;
    if (!count)
        return series_add(ends, middle, NAN) && series_add(means, middle, NAN);
    const int64_t first = least < most ? least : most, second = least < most ? most : least;
    return series_add(ends, of->x[first], of->y[first]) &&
           (first == second || series_add(ends, of->x[second], of->y[second])) &&
           series_add(means, middle, sum / (double)count);
}

bool series_thin(struct series *ends, struct series *means, const struct series *of, int bins)
{
    const int64_t n = of->count;
    const bool all = n <= 2 * (int64_t)bins;
    const double width = n ? (of->x[n - 1] - of->x[0]) / bins : 0;
    for (int64_t from = 0, to; from < n; from = to) {
        const double bin = fmin(floor((of->x[from] - of->x[0]) / width), bins - 1);
        to = from + 1;
        while (!all && to < n && ((of->x[to] - of->x[0]) / width < bin + 1 || bin == bins - 1))
            to++;
        if (!add_bin(ends, means, of, from, to))
            return false;
    }
    return true;
}

double series_at(const struct series *s, double x)
{
    int64_t low = 0, high = s->count; /* points before `low` are at or before x */
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (s->x[middle] <= x)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? s->y[low - 1] : NAN;
}

double series_sum(const struct series *s)
{
    double sum = 0;
    for (int64_t i = 0; i < s->count; i++)
        sum += isfinite(s->y[i]) ? s->y[i] : 0;
    return sum;
}
