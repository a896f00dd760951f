/* SPDX-License-Identifier: MIT */
#include "check/stochastic.h"

#include <math.h>

double qn_check_stochastic(qn_dtype dtype, double value, uint32_t word)
{
    const int digits = dtype == QN_BF16 ? 7 : 10;       /* of the fraction */
    const int smallest = dtype == QN_BF16 ? -119 : -14; /* exponent; below it the spacing stays */
    const int exponent = value == 0 ? smallest : ilogb(value);
    const int spacing = (exponent > smallest ? exponent : smallest) - digits;
    const double draw = ldexp(word >> (9 + digits), digits - 23);
    return ldexp(floor(ldexp(value, -spacing) + draw), spacing);
}
