/* SPDX-License-Identifier: MIT */
#include "op/optimizer.h"

static double or_default(double value, double otherwise)
{
    return value == 0 ? otherwise : value;
}

struct qn_optimizer_attr qn_optimizer_settings(const struct qn_optimizer *optimizer, bool dynamic)
{
    return (struct qn_optimizer_attr){
        .momentum = optimizer->momentum,
        .nesterov = optimizer->nesterov,
        .beta1 = or_default(optimizer->beta1, 0.9),
        .beta2 = or_default(optimizer->beta2, 0.999),
        .eps = or_default(optimizer->eps, 1e-8),
        .dynamic = dynamic,
    };
}
