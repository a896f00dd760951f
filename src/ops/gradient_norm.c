/* SPDX-License-Identifier: MIT
 *
 * The norm of the whole gradient from the norms of all chunks (in 0), and what the update needs to
 * know of it, into the control block: the norm without the loss scale, whether the update is
 * skipped, the factor of every gradient (clip factor / loss scale), Adam's bias corrections, the
 * next loss scale. The optimizers run after it.
 */
#include "ops/common.h"
#include "ops/update.h"

#include <math.h>

/* Good updates after which the loss scale doubles. */
enum { GROWTH_INTERVAL = 2000 };

static qn_status shape(struct qn_shape_call *call)
{
    if (call->in[0].dtype != QN_F32 || call->in[0].shape.rank != 1)
        return qn_shape_error(call, "the norms of chunks must be an f32 array");
    return QN_OK;
}

static void cost(const struct qn_call *call, struct qn_cost *result)
{
    qn_update_cost(call, 3, result);
}

static qn_status total(struct qn_emit *emit, const struct qn_call *call, bool cpu)
{
    const struct qn_optimizer_attr *attr = call->attr;
    const int64_t count = qn_operand_count(&call->in[0]);
    struct qn_walk walk = qn_walk_rows(call->facts, cpu, count);
    struct qn_launch launch = {.program = "gradient_norm",
                               .kernel = "total",
                               .args = {QN_BUF(&call->in[0]), QN_BUF(&call->control),
                                        QN_LONG(count), QN_FLOAT((float)log(attr->beta1)),
                                        QN_FLOAT((float)log(attr->beta2)), QN_INT(attr->dynamic),
                                        QN_INT(GROWTH_INTERVAL)},
                               .global = {walk.group},
                               .local = {walk.group}};
    qn_walk_options(&launch, &walk);
    return qn_emit_launch(emit, &launch);
}

static qn_status total_cpu(struct qn_emit *emit, const struct qn_call *call)
{
    return total(emit, call, true);
}

static qn_status total_gpu(struct qn_emit *emit, const struct qn_call *call)
{
    return total(emit, call, false);
}

const struct qn_op qn_op_gradient_norm = {
    .name = "gradient_norm",
    .attr_size = sizeof(struct qn_optimizer_attr),
    .n_in = 1,
    .n_required = 1,
    .shape = shape,
    .groups = {{.name = "norm of the gradient",
                .phase = QN_PHASE_UPDATE,
                .read = {{QN_IN(0)}},
                .once = true,
                .variant = {{"cpu", qn_fits_cpu, cost, total_cpu},
                            {"gpu", qn_fits_row_group, cost, total_gpu}}}}};
