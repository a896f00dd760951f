/* SPDX-License-Identifier: MIT
 *
 * Matrix products, shared by the operators that are made of them. No operator.
 */
#ifndef QN_OPS_MATMUL_H
#define QN_OPS_MATMUL_H

#include "op/op.h"

/* c (m, n) = beta * c + a (m, k) * b (k, n) + bias (n), row-major and dense. */
struct qn_matmul {
    int64_t m, n, k;
    bool trans_a, trans_b; /* a is stored (k, m); b is stored (n, k) */
    const struct qn_operand *a, *b, *c;
    const struct qn_operand *bias; /* NULL: none; only with beta 0 */
    float beta;
};

/* c (n) = beta * c + the sum of the rows of a (m, n). */
struct qn_column_sums {
    int64_t m, n;
    const struct qn_operand *a, *c;
    float beta;
};

enum qn_matmul_way {
    QN_MATMUL_CPU,  /* one work-item per work-group, long vectors */
    QN_MATMUL_GPU,  /* work-groups of 256 */
    QN_MATMUL_BLAS, /* CLBlast; f32 only */
};

/* Whether the product can be computed that way on the device; if not, *why says why. */
bool qn_matmul_fits(const struct qn_facts *facts, const struct qn_matmul *matmul,
                    enum qn_matmul_way way, const char **why);
/* Fills in flops, launches and scratch, and counts in `bytes` what passes through scratch: the
 * operands themselves are the caller's. */
void qn_matmul_cost(const struct qn_facts *facts, const struct qn_matmul *matmul,
                    enum qn_matmul_way way, struct qn_cost *cost);
/* Uses call->facts and call->scratch. */
qn_status qn_matmul_emit(struct qn_emit *emit, const struct qn_call *call,
                         const struct qn_matmul *matmul, enum qn_matmul_way way);

/* Of how many terms of k a part has whose products are made by `tiles` work-groups of a GPU. */
int64_t qn_matmul_part(const struct qn_facts *facts, const struct qn_matmul *matmul, int64_t tiles);

/* The same for column sums, in the shape of CPUs or of GPUs. */
void qn_column_sums_cost(const struct qn_facts *facts, const struct qn_column_sums *sum, bool cpu,
                         struct qn_cost *cost);
qn_status qn_column_sums_emit(struct qn_emit *emit, const struct qn_call *call,
                              const struct qn_column_sums *sum, bool cpu);

/* The second pass of a sum that was split: c = beta * c + the sum of `parts` copies of it, each of
 * `count` elements, in the call's scratch. Nothing where there is one part. */
struct qn_parts {
    int64_t parts, count;
    const struct qn_operand *c;
    float beta;
};
qn_status qn_add_parts(struct qn_emit *emit, const struct qn_call *call,
                       const struct qn_parts *parts);

#endif
