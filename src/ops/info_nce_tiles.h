/* SPDX-License-Identifier: MIT
 *
 * The tiles of scores that info_nce works through: which there are, what they cost, what is
 * launched for them. No operator.
 */
#ifndef QN_OPS_INFO_NCE_TILES_H
#define QN_OPS_INFO_NCE_TILES_H

#include "op/info_nce.h"
#include "op/op.h"
#include "ops/matmul.h"

/* Groups of the operator, in the order of its list. */
enum qn_nce_group { QN_NCE_FORWARD, QN_NCE_QUERY_GRADIENT, QN_NCE_PASSAGE_GRADIENT };

/* Samples of the micro-step, of the bank whose queries count as rows, and of all that it stores;
 * passages of a sample. */
struct qn_nce_sizes {
    int64_t samples, bank, stored, each;
};
struct qn_nce_sizes qn_nce_sizes_of(const struct qn_call *call);
/* What kernels are compiled with. */
void qn_nce_options(const struct qn_call *call, struct qn_launch *launch);

/* The three functions of a variant of a group, whose products are computed one way. */
bool qn_nce_fits(const struct qn_call *call, enum qn_nce_group group,
                 const struct qn_matmul_way *way, const char **why);
void qn_nce_cost(const struct qn_call *call, enum qn_nce_group group,
                 const struct qn_matmul_way *way, struct qn_cost *cost);
qn_status qn_nce_emit(struct qn_emit *emit, const struct qn_call *call, enum qn_nce_group group,
                      const struct qn_matmul_way *way);

#endif
