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

/* Operators whose gradients need more, and why: factors of the table above. */
static const struct {
    const char *op;
    double gradient;
    const char *reason;
} by_operator[] = {
    {"attention", 2, "its gradient comes from the output, which was rounded"},
    {"batch_norm", 2, "weight and bias: sums over all pixels of the micro-batch"},
    {"bias", 4, "bias: a sum over all rows of the micro-batch"},
    {"linear_activation", 2, "the derivative comes from the output, which was rounded"},
    {"linear_cross_entropy", 2, "its logits may be those of another kernel than the output's"},
    {"sigmoid", 2, "its derivative comes from the output, which was rounded"},
    {"softmax", 2, "its gradient comes from the output, which was rounded"},
    {"tanh", 2, "its derivative comes from the output, which was rounded"},
    {NULL, 0, NULL},
};

static double factor_of_gradient(const char *op)
{
    for (int i = 0; by_operator[i].op; i++)
        if (strcmp(by_operator[i].op, op) == 0)
            return by_operator[i].gradient;
    return 1;
}

double qn_tolerance_of_direction(double tolerance, int64_t count)
{
    return tolerance * sqrt((double)count);
}

double qn_tolerance(const char *op, qn_dtype dtype, double scale, bool gradient)
{
    const double rounding = by_type[dtype].relative * scale;
    return (gradient ? factor_of_gradient(op) * (rounding + by_type[dtype].floor) : rounding) +
           by_type[dtype].absolute;
}
