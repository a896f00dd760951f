/* SPDX-License-Identifier: MIT
 *
 * The Euclidean norm of the gradient of each group of parameters, from the norms of all chunks (in
 * 0) and the number of each chunk's group (table in 1; below 0: of none), without overflow and
 * without the loss scale, which gradient_norm may change after it.
 */
#include "base/log.h"
#include "base/shape.h"
#include "ops/common.h"
#include "ops/update.h"

static qn_status shape(struct qn_shape_call *call)
{
    const struct qn_norm_groups_attr *attr = call->attr;
    const struct qn_operand *table = &call->in[1];
    QN_TRY(qn_update_norms_shape(call));
    if (table->dtype != QN_I32 || !qn_shape_equal(&table->shape, &call->in[0].shape))
        return qn_shape_error(call, "the table must be of i32, a number for each chunk");
    if (attr->groups < 1)
        return qn_shape_error(call, "there must be a group");
    qn_shape_set(&call->out[0], QN_F32, 1, (int64_t[]){attr->groups});
    return QN_OK;
}

/* Each group looks at all chunks, twice. */
static void cost(const struct qn_call *call, struct qn_cost *result)
{
    const struct qn_norm_groups_attr *attr = call->attr;
    qn_update_cost(call, 4.0 * attr->groups, result);
}

static qn_status groups(struct qn_emit *emit, const struct qn_call *call)
{
    const int64_t count = qn_operand_count(&call->in[0]);
    const struct qn_walk walk = qn_walk_rows(call, count);
    struct qn_launch launch = {.program = "gradient_norm",
                               .kernel = "groups",
                               .args = {QN_BUF(&call->in[0]), QN_BUF(&call->in[1]),
                                        QN_BUF(&call->out[0]), QN_BUF(&call->control),
                                        QN_LONG(count)},
                               .global = {qn_operand_count(&call->out[0]) * walk.group},
                               .local = {walk.group}};
    qn_walk_options(&launch, &walk);
    return qn_emit_launch(emit, &launch);
}

const struct qn_op qn_op_gradient_norm_groups = {
    .name = "gradient_norm_groups",
    .attr_size = sizeof(struct qn_norm_groups_attr),
    .n_in = 2,
    .n_required = 2,
    .n_out = 1,
    .shape = shape,
    .groups = {{.name = "norms of groups",
                .phase = QN_PHASE_UPDATE,
                .read = {{QN_IN(0)}, {QN_IN(1)}},
                .write = {{QN_OUT(0)}},
                .variant = QN_BOTH_SHAPES(qn_fits_row_group, cost, groups)}}};
