/* SPDX-License-Identifier: MIT
 *
 * What layer norm, RMS norm and group norm share: the launches of cl_kernels/row_norm.cl. No
 * operator.
 */
#ifndef QN_OPS_ROW_NORM_H
#define QN_OPS_ROW_NORM_H

#include "op/op.h"

/* x seen as (samples, groups, channels, inner): each (sample, group) is a row with a mean and a
 * deviation of its own, each (group, channel) has a weight and a bias. */
struct qn_row_norm {
    int64_t samples, groups, channels, inner;
    float eps;
    bool rms; /* the mean counts as 0: it is neither taken off nor saved, and there is no bias */
};

/* Sets out 0 like x, and 1 over the deviation of each row, saved 1. A row is an element of the
 * first `kept` dimensions of `rows`. */
void qn_row_norm_set(struct qn_shape_call *call, int kept, const int64_t *rows);
/* Sets the mean of each row, saved 0, as two floats whose sum it is. */
void qn_row_norm_set_mean(struct qn_shape_call *call, int kept, const int64_t *rows);

/* Costs of the groups of an operator. */
void qn_row_norm_forward_cost(const struct qn_call *call, struct qn_cost *cost);
void qn_row_norm_input_cost(const struct qn_call *call, struct qn_cost *cost);
void qn_row_norm_affine_cost(const struct qn_call *call, const struct qn_row_norm *norm,
                             struct qn_cost *cost);

qn_status qn_row_norm_forward(struct qn_emit *emit, const struct qn_call *call,
                              const struct qn_row_norm *norm);
qn_status qn_row_norm_input(struct qn_emit *emit, const struct qn_call *call,
                            const struct qn_row_norm *norm);
qn_status qn_row_norm_affine(struct qn_emit *emit, const struct qn_call *call,
                             const struct qn_row_norm *norm);

/* The groups of an operator and the functions of their variants, for a function `norm_of` that
 * gives the struct qn_row_norm of a call. */
/* clang-format off */
#define QN_ROW_NORM_GROUPS                                                                         \
    {{.name = "forward",                                                                           \
      .phase = QN_PHASE_TRAIN | QN_PHASE_EVAL,                                                     \
      .read = {{QN_IN(0)}, {QN_IN(1)}, {QN_IN(2)}},                                                \
      .write = {{QN_OUT(0), QN_IN(0)}, {QN_SAVED(0)}, {QN_SAVED(1)}},                              \
      .variant = QN_BOTH_SHAPES(qn_fits_row_group, qn_row_norm_forward_cost, forward)},            \
     {.name = "affine gradient",                                                                   \
      .phase = QN_PHASE_BACKWARD,                                                                  \
      .read = {{QN_IN(0)}, {QN_DOUT(0)}, {QN_SAVED(0)}, {QN_SAVED(1)}},                            \
      .write = {{QN_DIN(1)}, {QN_DIN(2)}},                                                         \
      .variant = QN_BOTH_SHAPES(qn_fits_row_group, affine_cost, affine)},                          \
     {.name = "input gradient",                                                                    \
      .phase = QN_PHASE_BACKWARD,                                                                  \
      .read = {{QN_IN(0)}, {QN_DOUT(0)}, {QN_SAVED(0)}, {QN_SAVED(1)}, {QN_IN(1)}},                \
      .write = {{QN_DIN(0), QN_DOUT(0)}},                                                          \
      .variant = QN_BOTH_SHAPES(qn_fits_row_group, qn_row_norm_input_cost, input)}}
/* clang-format on */
#define QN_ROW_NORM_EMIT(name, function)                                                           \
    static qn_status name(struct qn_emit *emit, const struct qn_call *call)                        \
    {                                                                                              \
        const struct qn_row_norm norm = norm_of(call);                                             \
        return function(emit, call, &norm);                                                        \
    }
#define QN_ROW_NORM_VARIANTS                                                                       \
    QN_ROW_NORM_EMIT(forward, qn_row_norm_forward)                                                 \
    QN_ROW_NORM_EMIT(input, qn_row_norm_input)                                                     \
    QN_ROW_NORM_EMIT(affine, qn_row_norm_affine)                                                   \
    static void affine_cost(const struct qn_call *call, struct qn_cost *cost)                      \
    {                                                                                              \
        const struct qn_row_norm norm = norm_of(call);                                             \
        qn_row_norm_affine_cost(call, &norm, cost);                                                \
    }

#endif
