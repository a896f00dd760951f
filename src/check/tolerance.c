/* SPDX-License-Identifier: MIT */
#include "check/tolerance.h"

#include <string.h>

/* Relative to the largest magnitude of the operand; the floor is for operands that are all but 0.
 * Rounding once to f16 costs 2^-11 = 4.9e-4 and to bf16 2^-9 = 2.0e-3 of an element; twice that
 * leaves room for one rounded intermediate (an output read again by the backward pass). f32: 2^-24
 * times some 30 for sums of a few hundred terms. */
static const struct {
    double relative, floor;
} by_type[] = {
    [QN_F32] = {4e-6, 1e-7}, [QN_F16] = {1.2e-3, 1e-6}, [QN_BF16] = {8e-3, 1e-6},
    [QN_U8] = {0, 0},        [QN_I32] = {0, 0},
};

/* Operators that need more, and why. Factors of the table above; 0: 1. */
static const struct {
    const char *op;
    double output, gradient;
    const char *reason;
} by_operator[] = {
    {NULL, 0, 0, NULL},
};

static double factor_of(const char *op, bool gradient)
{
    for (int i = 0; by_operator[i].op; i++) {
        double factor = gradient ? by_operator[i].gradient : by_operator[i].output;
        if (strcmp(by_operator[i].op, op) == 0 && factor > 0)
            return factor;
    }
    return 1;
}

double qn_tolerance(const char *op, qn_dtype dtype, double scale, bool gradient)
{
    return factor_of(op, gradient) * (by_type[dtype].relative * scale + by_type[dtype].floor);
}
