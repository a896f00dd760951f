/* SPDX-License-Identifier: MIT
 *
 * Stochastic rounding of a number to f16 or bf16 by a given random word: that of
 * cl_kernels/lib/stochastic.clh, in double.
 */
#ifndef QN_CHECK_STOCHASTIC_H
#define QN_CHECK_STOCHASTIC_H

#include <quern/tensor.h>
#include <stdint.h>

/* The distance of a number's neighbours in the type, f16 or bf16. */
double qn_check_spacing(qn_dtype dtype, double value);
/* Does not fall where `value` rises. */
double qn_check_stochastic(qn_dtype dtype, double value, uint32_t word);

#endif
