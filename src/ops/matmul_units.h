/* SPDX-License-Identifier: MIT
 *
 * The way of a matrix product by the device's matrix units; see matmul.h. Operands of f16 and bf16
 * are factors as they are; one of f32 is split into the sum of two, so that its products are as
 * exact as those of the other ways.
 */
#ifndef QN_OPS_MATMUL_UNITS_H
#define QN_OPS_MATMUL_UNITS_H

#include "ops/matmul.h"

/* Tiles of the work-groups: what call->setting counts. */
extern const char *const qn_matmul_units_settings[];

bool qn_matmul_units_fits(const struct qn_call *call, const struct qn_matmul *matmul,
                          const char **why);
/* Fills in everything. */
void qn_matmul_units_cost(const struct qn_call *call, const struct qn_matmul *matmul,
                          struct qn_cost *cost);
/* Uses call->facts, call->setting and call->scratch. */
qn_status qn_matmul_units_emit(struct qn_emit *emit, const struct qn_call *call,
                               const struct qn_matmul *matmul);

/* NAME_fits, NAME_cost and NAME_emit of a group that is one product, which `product` gives for a
 * call; and the variant that they make. */
#define QN_MATMUL_UNITS(name, product)                                                             \
    static bool name##_fits(const struct qn_call *call, const char **why)                          \
    {                                                                                              \
        const struct qn_matmul matmul = product(call);                                             \
        return qn_matmul_units_fits(call, &matmul, why);                                           \
    }                                                                                              \
    static void name##_cost(const struct qn_call *call, struct qn_cost *cost)                      \
    {                                                                                              \
        const struct qn_matmul matmul = product(call);                                             \
        qn_matmul_units_cost(call, &matmul, cost);                                                 \
    }                                                                                              \
    static qn_status name##_emit(struct qn_emit *emit, const struct qn_call *call)                 \
    {                                                                                              \
        const struct qn_matmul matmul = product(call);                                             \
        return qn_matmul_units_emit(emit, call, &matmul);                                          \
    }
#define QN_UNITS(name)                                                                             \
    {                                                                                              \
        "units", name##_fits, name##_cost, name##_emit, qn_matmul_units_settings                   \
    }

#endif
