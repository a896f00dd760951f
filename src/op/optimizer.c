/* SPDX-License-Identifier: MIT */
#include "op/optimizer.h"

#include "base/shape.h"
#include "op/op.h"

static const struct qn_optimizer_attr adams = {.beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8};

static double or_default(double value, double otherwise)
{
    return value == 0 ? otherwise : value;
}

struct qn_optimizer_attr qn_optimizer_settings(const struct qn_optimizer *optimizer, bool dynamic)
{
    const struct qn_op *op = qn_optimizer_find(optimizer->name);
    const struct qn_optimizer_attr *defaults = op && op->defaults ? op->defaults : &adams;
    return (struct qn_optimizer_attr){
        .momentum = optimizer->momentum,
        .nesterov = optimizer->nesterov,
        .beta1 = or_default(optimizer->beta1, defaults->beta1),
        .beta2 = or_default(optimizer->beta2, defaults->beta2),
        .eps = or_default(optimizer->eps, defaults->eps),
        .dynamic = dynamic,
    };
}

const struct qn_op *qn_optimizer_find(const char *name)
{
    const struct qn_op *op = qn_op_find(name ? name : "sgd");
    return op && op->optimizer ? op : NULL;
}

const struct qn_op *qn_optimizer_small(const struct qn_op *optimizer)
{
    return optimizer->small.name ? qn_optimizer_find(optimizer->small.name) : optimizer;
}

const struct qn_op *qn_optimizer_of(const struct qn_op *optimizer, const struct qn_shape *shape)
{
    const bool small =
        qn_shape_count(shape) < optimizer->small.below || shape->rank < optimizer->small.rank;
    return small ? qn_optimizer_small(optimizer) : optimizer;
}

bool qn_optimizer_corrects(const struct qn_op *optimizer, qn_dtype dtype)
{
    return optimizer->correction && dtype == QN_BF16;
}

qn_dtype qn_optimizer_storage(const char *name)
{
    const struct qn_op *op = qn_optimizer_find(name);
    return op && qn_optimizer_corrects(op, QN_BF16) ? QN_BF16 : QN_F32;
}

const char *qn_optimizer_name(int index)
{
    for (const struct qn_op *const *op = qn_op_all(); index >= 0 && *op; op++)
        if ((*op)->optimizer && index-- == 0)
            return (*op)->name;
    return NULL;
}
