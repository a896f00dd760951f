/* SPDX-License-Identifier: MIT
 *
 * Optimizers: operators of the update, and the attributes that they and gradient_norm_partial,
 * gradient_norm and gradient_finite have.
 */
#ifndef QN_OP_OPTIMIZER_H
#define QN_OP_OPTIMIZER_H

#include <quern/plan.h>

struct qn_op;

struct qn_optimizer_attr {
    int nesterov;
    int dynamic;                        /* the loss scale follows overflows (f16 storage) */
    double momentum, beta1, beta2, eps; /* 1 - beta is not exact enough in f32 */
};

/* The attributes, with the optimizer's own defaults where a setting is 0. */
struct qn_optimizer_attr qn_optimizer_settings(const struct qn_optimizer *optimizer, bool dynamic);

/* The optimizer of that name, NULL: "sgd"; NULL where there is none. Thread-safety: Safe. */
const struct qn_op *qn_optimizer_find(const char *name);

#endif
