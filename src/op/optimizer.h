/* SPDX-License-Identifier: MIT
 *
 * Optimizers: operators of the update, and the attributes that they and gradient_norm_partial,
 * gradient_norm and gradient_finite have; and what other operators of the update have.
 */
#ifndef QN_OP_OPTIMIZER_H
#define QN_OP_OPTIMIZER_H

#include <quern/plan.h>

struct qn_op;

/* Elements of a chunk, the share of one work-group in an update, at most (ops/update.h). */
enum { QN_CHUNK = 4096 };

/* A row of the table of a block of parameters: neighbouring elements of one of them, the share of a
 * work-group. On the device QN_CHUNK_NUMBERS numbers of i32, the last two of them bits of f32. */
struct qn_chunk {
    int32_t first, count; /* elements of the block; at most QN_CHUNK */
    int32_t number;       /* among the chunks of all blocks */
    float rate, decay;    /* factors of the learning rate and of weight decay */
};
enum { QN_CHUNK_NUMBERS = sizeof(struct qn_chunk) / sizeof(int32_t) };

struct qn_optimizer_attr {
    int nesterov;
    int dynamic;                        /* the loss scale follows overflows (f16 storage) */
    double momentum, beta1, beta2, eps; /* 1 - beta is not exact enough in f32 */
};

/* Of gradient_norm_groups. */
struct qn_norm_groups_attr {
    int groups;
};

/* Of weight_average. */
struct qn_average_attr {
    double decay;
};

/* The attributes, with the optimizer's own defaults where a setting is 0. */
struct qn_optimizer_attr qn_optimizer_settings(const struct qn_optimizer *optimizer, bool dynamic);

/* The optimizer of that name, NULL: "sgd"; NULL where there is none. Thread-safety: Safe. */
const struct qn_op *qn_optimizer_find(const char *name);
/* The one that updates what is too small for it; itself, if nothing is. */
const struct qn_op *qn_optimizer_small(const struct qn_op *optimizer);
/* The one that updates a parameter of that shape: itself, or qn_optimizer_small. */
const struct qn_op *qn_optimizer_of(const struct qn_op *optimizer, const struct qn_shape *shape);
/* Whether parameters of the type have a slot of it that corrects them. */
bool qn_optimizer_corrects(const struct qn_op *optimizer, qn_dtype dtype);

#endif
