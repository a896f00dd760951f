/* SPDX-License-Identifier: MIT
 *
 * Attributes of the operators sgd, adam, adamw, gradient_norm_partial, gradient_norm and
 * gradient_finite.
 */
#ifndef QN_OP_OPTIMIZER_H
#define QN_OP_OPTIMIZER_H

#include <quern/plan.h>

struct qn_optimizer_attr {
    int nesterov;
    int dynamic;                        /* the loss scale follows overflows (f16 storage) */
    double momentum, beta1, beta2, eps; /* 1 - beta is not exact enough in f32 */
};

/* The attributes with defaults filled in. */
struct qn_optimizer_attr qn_optimizer_settings(const struct qn_optimizer *optimizer, bool dynamic);

#endif
