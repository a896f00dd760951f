/* SPDX-License-Identifier: MIT
 *
 * What sum, mean and global average pooling share: the launches of cl_kernels/row_sum.cl. No
 * operator. The input is seen as (rows, n), where n is the product of the dimensions from `first`
 * on.
 */
#ifndef QN_OPS_ROW_SUM_H
#define QN_OPS_ROW_SUM_H

#include "op/op.h"

/* Out 0 has the first `first` dimensions of the input and the storage type. */
qn_status qn_row_sum_shape(struct qn_shape_call *call, int first);

/* Costs of groups 0 (in 0 -> out 0) and 1 (dout 0 -> din 0) of an operator. */
void qn_row_sum_forward_cost(const struct qn_call *call, struct qn_cost *cost);
void qn_row_sum_backward_cost(const struct qn_call *call, struct qn_cost *cost);

qn_status qn_row_sum_forward(struct qn_emit *emit, const struct qn_call *call, bool cpu, bool mean);
qn_status qn_row_sum_backward(struct qn_emit *emit, const struct qn_call *call, bool cpu,
                              bool mean);

/* The functions of the variants and the groups of an operator; `mean_`: divides by n. */
#define QN_ROW_SUM_GROUPS                                                                          \
    {                                                                                              \
        {.name = "forward",                                                                        \
         .phase = QN_PHASE_TRAIN | QN_PHASE_EVAL,                                                  \
         .read = {{QN_IN(0)}},                                                                     \
         .write = {{QN_OUT(0)}},                                                                   \
         .variant = {{"cpu", qn_fits_cpu, qn_row_sum_forward_cost, forward_cpu},                   \
                     {"gpu", qn_fits_row_group, qn_row_sum_forward_cost, forward_gpu}}},           \
        {                                                                                          \
            .name = "input gradient", .phase = QN_PHASE_BACKWARD, .read = {{QN_DOUT(0)}},          \
            .write = {{QN_DIN(0)}}, .variant = {                                                   \
                {"cpu", qn_fits_cpu, qn_row_sum_backward_cost, backward_cpu},                      \
                {"gpu", qn_fits_row_group, qn_row_sum_backward_cost, backward_gpu}                 \
            }                                                                                      \
        }                                                                                          \
    }
#define QN_ROW_SUM_VARIANTS(mean_)                                                                 \
    static qn_status forward_cpu(struct qn_emit *emit, const struct qn_call *call)                 \
    {                                                                                              \
        return qn_row_sum_forward(emit, call, true, mean_);                                        \
    }                                                                                              \
    static qn_status forward_gpu(struct qn_emit *emit, const struct qn_call *call)                 \
    {                                                                                              \
        return qn_row_sum_forward(emit, call, false, mean_);                                       \
    }                                                                                              \
    static qn_status backward_cpu(struct qn_emit *emit, const struct qn_call *call)                \
    {                                                                                              \
        return qn_row_sum_backward(emit, call, true, mean_);                                       \
    }                                                                                              \
    static qn_status backward_gpu(struct qn_emit *emit, const struct qn_call *call)                \
    {                                                                                              \
        return qn_row_sum_backward(emit, call, false, mean_);                                      \
    }

#endif
