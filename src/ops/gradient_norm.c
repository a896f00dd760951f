/* SPDX-License-Identifier: MIT
 *
 * The norm of the whole gradient from the norms of all chunks (in 0), and what the update needs to
 * know of it, into the control block: the norm without the loss scale, whether the update is
 * skipped, the factor of every gradient (clip factor / loss scale), Adam's bias corrections, the
 * next loss scale. The optimizers run after it.
 */
#include "ops/common.h"
#include "ops/update.h"

/* Good updates after which the loss scale doubles. */
enum { GROWTH_INTERVAL = 2000 };

static void cost(const struct qn_call *call, struct qn_cost *result)
{
    qn_update_cost(call, 3, result);
}

static qn_status total(struct qn_emit *emit, const struct qn_call *call)
{
    const struct qn_optimizer_attr *attr = call->attr;
    struct qn_launch launch = {
        .kernel = "total",
        .args = {[QN_UPDATE_NORMS_ARGS] = QN_INT(attr->dynamic), QN_INT(GROWTH_INTERVAL)}};
    return qn_update_norms_launch(emit, call, &launch);
}

const struct qn_op qn_op_gradient_norm = {
    .name = "gradient_norm",
    .attr_size = sizeof(struct qn_optimizer_attr),
    .n_in = 1,
    .n_required = 1,
    .shape = qn_update_norms_shape,
    .groups = {{.name = "norm of the gradient",
                .phase = QN_PHASE_UPDATE,
                .read = {{QN_IN(0)}},
                .once = true,
                .variant = QN_BOTH_SHAPES(qn_fits_row_group, cost, total)}}};
