/* SPDX-License-Identifier: MIT
 *
 * How far a kernel may be from the reference: one table for all operators.
 */
#ifndef QN_CHECK_TOLERANCE_H
#define QN_CHECK_TOLERANCE_H

#include <quern/tensor.h>
#include <stdbool.h>
#include <stdint.h>

/* The largest error allowed in an operand that was computed from elements rounded to `dtype` and
 * whose largest magnitude is `scale`; `gradient`: a gradient or a new state, not an output. */
double qn_tolerance(const char *op, qn_dtype dtype, double scale, bool gradient);
/* The tolerance of a derivative along a random direction: `count` independent errors of `tolerance`
 * add up to sqrt(count) times as much. */
double qn_tolerance_of_direction(double tolerance, int64_t count);

#endif
