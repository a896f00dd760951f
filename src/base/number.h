/* SPDX-License-Identifier: MIT
 *
 * Values as a kernel stores them, from and to doubles. Thread-safety: Safe.
 */
#ifndef QN_BASE_NUMBER_H
#define QN_BASE_NUMBER_H

#include <quern/tensor.h>
#include <stdbool.h>

/* Rounds to nearest, ties to even; integers must be in range. */
void qn_number_encode(qn_dtype dtype, const double *values, int64_t count, void *bytes);
void qn_number_decode(qn_dtype dtype, const void *bytes, int64_t count, double *values);
bool qn_number_is_float(qn_dtype dtype);

#endif
