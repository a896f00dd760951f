/* SPDX-License-Identifier: MIT
 *
 * Values as a kernel stores them, from and to doubles; and random values.
 */
#ifndef QN_CHECK_NUMBER_H
#define QN_CHECK_NUMBER_H

#include "check/check.h"

/* Rounds to nearest, ties to even; integers must be in range. */
void qn_number_encode(qn_dtype dtype, const double *values, int64_t count, void *bytes);
void qn_number_decode(qn_dtype dtype, const void *bytes, int64_t count, double *values);
bool qn_number_is_float(qn_dtype dtype);

/* Values of a case's input, rounded to `dtype`. The stream tells apart draws of one seed. */
void qn_number_fill(double *values, int64_t count, const struct qn_check_input *input,
                    qn_dtype dtype, uint64_t seed, uint64_t stream);

#endif
