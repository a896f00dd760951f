/* SPDX-License-Identifier: MIT
 *
 * AdamW (Loshchilov and Hutter 2019), as PyTorch has it: weight decay shrinks the parameter first.
 */
#include "ops/common.h"
#include "ops/update.h"

static qn_status shape(struct qn_shape_call *call)
{
    return qn_update_shape(call, 2);
}

static void cost(const struct qn_call *call, struct qn_cost *result)
{
    qn_update_cost(call, 15, result);
}

static qn_status step_cpu(struct qn_emit *emit, const struct qn_call *call)
{
    return qn_update_adam(emit, call, true, true);
}

static qn_status step_gpu(struct qn_emit *emit, const struct qn_call *call)
{
    return qn_update_adam(emit, call, false, true);
}

const struct qn_op qn_op_adamw = {
    .name = "adamw",
    .attr_size = sizeof(struct qn_optimizer_attr),
    .n_in = 3,
    .n_required = 3,
    .n_out = 1,
    .shape = shape,
    .state = {{"first_moment", 0}, {"second_moment", 0}},
    .groups = {{.name = "step",
                .phase = QN_PHASE_UPDATE,
                .read = {{QN_IN(0)}, {QN_IN(1)}, {QN_IN(2)}, {QN_STATE(0)}, {QN_STATE(1)}},
                .write = {{QN_OUT(0), QN_IN(0)}, {QN_STATE(0)}, {QN_STATE(1)}},
                .variant = {{"cpu", qn_fits_cpu, cost, step_cpu},
                            {"gpu", qn_fits_row_group, cost, step_gpu}}}}};
