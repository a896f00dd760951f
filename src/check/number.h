/* SPDX-License-Identifier: MIT
 *
 * Random values of the cases' inputs.
 */
#ifndef QN_CHECK_NUMBER_H
#define QN_CHECK_NUMBER_H

#include "base/number.h"
#include "check/check.h"

/* Fills an input of a case with numbers rounded to `dtype`. Different streams of one seed are
 * independent. */
void qn_number_fill(double *values, int64_t count, const struct qn_check_input *input,
                    qn_dtype dtype, uint64_t seed, uint64_t stream);

#endif
