/* SPDX-License-Identifier: MIT
 *
 * Numbers over the updates of a training, and how few of them still show every spike.
 */
#ifndef QUERN_TOOL_SERIES_H
#define QUERN_TOOL_SERIES_H

#include <stdbool.h>
#include <stdint.h>

/* Zeroed is empty. x rises; a y that is not finite is a gap. */
struct series {
    double *x, *y; /* (count) */
    int64_t count, room;
};

/* Adds a point behind the others. What is too large to be drawn becomes a gap. False: out of
 * memory. */
bool series_add(struct series *series, double x, double y);
/* Takes away all points from x on. */
void series_cut(struct series *series, double x);
void series_free(struct series *series);

/* Of each of `bins` equal ranges of x the least and the greatest y, in their order, to `ends`; and
 * the mean in the middle of their x to `means`. Both are empty before. A series with no more points
 * than that is copied to both. False: out of memory. */
bool series_thin(struct series *ends, struct series *means, const struct series *of, int bins);

/* The value of the last point at or before x; not finite: there is none. */
double series_at(const struct series *series, double x);
/* The sum of all finite values. */
double series_sum(const struct series *series);

#endif
