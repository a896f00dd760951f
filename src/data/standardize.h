/* SPDX-License-Identifier: MIT
 *
 * Numbers of files as f32, standardised where that is asked for.
 */
#ifndef QN_DATA_STANDARDIZE_H
#define QN_DATA_STANDARDIZE_H

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>

/* (x - mean) / deviation by places in a row. Both NULL: numbers stay. */
struct qn_moments {
    const float *mean, *deviation; /* deviations above 0 */
};

/* False: the number that comes out is not finite as f32; `to` stays. Thread-safety: Safe. */
static inline bool qn_standardize(float *to, double number, const struct qn_moments *moments,
                                  size_t place)
{
    if (moments->mean)
        number = (number - (double)moments->mean[place]) / (double)moments->deviation[place];
    if (!(fabs(number) <= (double)FLT_MAX))
        return false;
    *to = (float)number;
    return true;
}

#endif
