/* SPDX-License-Identifier: MIT */
#include "check/tolerance.h"

#include <math.h>
#include <string.h>

/* Relative to the largest magnitude of the operand. Rounding once costs 2^-11 = 4.9e-4 of an
 * element in f16 and 2^-8 = 3.9e-3 in bf16; f32: 2^-24 = 6e-8 times some 30, for sums of a few
 * hundred terms. The floor is the noise of the central differences that a gradient is compared
 * with. Codes in 8 bits are absolute: the reference gives where between two of them an element
 * lies, and the nearest is half a code away at most; what lies in the middle may become either. */
static const struct {
    double relative, floor, absolute;
} by_type[] = {
    [QN_F32] = {2e-6, 1e-7, 0}, [QN_F16] = {6e-4, 1e-6, 0}, [QN_BF16] = {4e-3, 1e-6, 0},
    [QN_U8] = {0, 0, 0.51},     [QN_I32] = {0, 0, 0},
};

#define STOCHASTIC "either neighbour in 16 bits, not the nearer"

/* Operators that need more, and why. Factors of the table above; of outputs those in 16 bits alone.
 */
static const struct {
    const char *op;
    double output, gradient;
    const char *reason;
} by_operator[] = {
    {"adam", 2, 1, STOCHASTIC},
    {"adamw", 2, 1, STOCHASTIC},
    {"adamw8", 2, 1, STOCHASTIC},
    {"adafactor", 2, 1, STOCHASTIC},
    {"apollo", 2, 1, STOCHASTIC},
    {"attention", 1, 2, "its gradient comes from the output, which was rounded"},
    {"batch_norm", 1, 2, "weight and bias: sums over all pixels of the micro-batch"},
    {"bias", 1, 4, "bias: a sum over all rows of the micro-batch"},
    {"flash_adamw", 2, 1, STOCHASTIC},
    {"lion", 2, 1, STOCHASTIC},
    {"linear_activation", 1, 2, "the derivative comes from the output, which was rounded"},
    {"sgd", 2, 1, STOCHASTIC},
    {"sigmoid", 1, 2, "its derivative comes from the output, which was rounded"},
    {"softmax", 1, 2, "its gradient comes from the output, which was rounded"},
    {"tanh", 1, 2, "its derivative comes from the output, which was rounded"},
    {NULL, 0, 0, NULL},
};

static double factor_of(const char *op, qn_dtype dtype, bool gradient)
{
    for (int i = 0; by_operator[i].op; i++)
        if (strcmp(by_operator[i].op, op) == 0)
            return gradient ? by_operator[i].gradient : dtype == QN_F32 ? 1 : by_operator[i].output;
    return 1;
}

double qn_tolerance_of_direction(double tolerance, int64_t count)
{
    return tolerance * sqrt((double)count);
}

double qn_tolerance(const char *op, qn_dtype dtype, double scale, bool gradient)
{
    return factor_of(op, dtype, gradient) *
               (by_type[dtype].relative * scale + (gradient ? by_type[dtype].floor : 0)) +
           by_type[dtype].absolute;
}
