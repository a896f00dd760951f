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

/* Numbers of 24 bits in two parts: the bits of the bf16 nearest to f32, and f32 rounded to nearest
 * even at 15 bits of fraction, whose bits are those, as a whole number, times 256, plus code - 128.
 * Codes are 1 to 255: next to the middle between two bf16 a number goes one step away from it, so
 * that the bf16 nearest to both parts together is the first one. */
void qn_number_split(const float *values, int64_t count, void *bf16, uint8_t *code);
void qn_number_join(const void *bf16, const uint8_t *code, int64_t count, float *values);

bool qn_number_is_float(qn_dtype dtype);

#endif
