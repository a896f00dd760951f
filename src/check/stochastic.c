/* SPDX-License-Identifier: MIT */
#include "check/stochastic.h"

#include <math.h>

static int fraction_digits(qn_dtype dtype)
{
    return dtype == QN_BF16 ? 7 : 10;
}

double qn_check_spacing(qn_dtype dtype, double value)
{
    const int smallest = dtype == QN_BF16 ? -119 : -14; /* exponent; below it the spacing stays */
    const int exponent = value == 0 ? smallest : ilogb(value);
    return ldexp(1, (exponent > smallest ? exponent : smallest) - fraction_digits(dtype));
}

double qn_check_stochastic(qn_dtype dtype, double value, uint32_t word)
{
    const int digits = fraction_digits(dtype);
    const double spacing = qn_check_spacing(dtype, value);
    const double draw = ldexp(word >> (9 + digits), digits - 23);
    return floor(value / spacing + draw) * spacing;
}
