/* SPDX-License-Identifier: MIT
 *
 * Whether the gradient of one parameter is finite, from the norms of its chunks (in 0), and what
 * its optimizer needs to know of that, into the control block: whether it is skipped, the factor of
 * the gradient (1 / loss scale), Adam's bias corrections of the update under way. Nothing is
 * counted: gradient_norm does that, once all gradients are there.
 */
#include "ops/common.h"
#include "ops/update.h"

#include <math.h>

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

static qn_status judge(struct qn_emit *emit, const struct qn_call *call, bool cpu)
{
    const struct qn_optimizer_attr *attr = call->attr;
    const int64_t count = qn_operand_count(&call->in[0]);
    struct qn_walk walk = qn_walk_rows(call->facts, cpu, count);
    struct qn_launch launch = {.program = "gradient_norm",
                               .kernel = "alone",
                               .args = {QN_BUF(&call->in[0]), QN_BUF(&call->control),
                                        QN_LONG(count), QN_FLOAT((float)log(attr->beta1)),
                                        QN_FLOAT((float)log(attr->beta2))},
                               .global = {walk.group},
                               .local = {walk.group}};
    qn_walk_options(&launch, &walk);
    return qn_emit_launch(emit, &launch);
}

static qn_status judge_cpu(struct qn_emit *emit, const struct qn_call *call)
{
    return judge(emit, call, true);
}

static qn_status judge_gpu(struct qn_emit *emit, const struct qn_call *call)
{
    return judge(emit, call, false);
}

const struct qn_op qn_op_gradient_finite = {
    .name = "gradient_finite",
    .attr_size = sizeof(struct qn_optimizer_attr),
    .n_in = 1,
    .n_required = 1,
    .shape = shape,
    .groups = {{.name = "is it finite",
                .phase = QN_PHASE_UPDATE,
                .read = {{QN_IN(0)}},
                .once = true,
                .variant = {{"cpu", qn_fits_cpu, cost, judge_cpu},
                            {"gpu", qn_fits_row_group, cost, judge_gpu}}}}};
