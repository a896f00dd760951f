/* SPDX-License-Identifier: MIT
 *
 * Whether the gradient of one parameter is finite, from the norms of its chunks (in 0), and what
 * its optimizer needs to know of that, into the control block: whether it is skipped, the factor of
 * the gradient (1 / loss scale), Adam's bias corrections of the update under way. Nothing is
 * counted: gradient_norm does that, once all gradients are there.
 */
#include "ops/common.h"
#include "ops/update.h"

static void cost(const struct qn_call *call, struct qn_cost *result)
{
    qn_update_cost(call, 3, result);
}

static qn_status judge(struct qn_emit *emit, const struct qn_call *call)
{
    struct qn_launch launch = {.kernel = "alone"};
    return qn_update_norms_launch(emit, call, &launch);
}

const struct qn_op qn_op_gradient_finite = {
    .name = "gradient_finite",
    .attr_size = sizeof(struct qn_optimizer_attr),
    .n_in = 1,
    .n_required = 1,
    .shape = qn_update_norms_shape,
    .groups = {{.name = "is it finite",
                .phase = QN_PHASE_UPDATE,
                .read = {{QN_IN(0)}},
                .once = true,
                .variant = QN_BOTH_SHAPES(qn_fits_row_group, cost, judge)}}};
