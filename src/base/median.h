/* SPDX-License-Identifier: MIT */
#ifndef QN_BASE_MEDIAN_H
#define QN_BASE_MEDIAN_H

/* The value in the middle of `count`, at least 1, the upper one of two; sorts them. None is a NaN.
 * Thread-safety: Safe. */
double qn_median(double *values, int count);

#endif
