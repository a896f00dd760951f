/* SPDX-License-Identifier: MIT
 *
 * What a micro-step adds to banks (cells of the kind QN_CELL_RING): its queries (in 0), passages
 * (in 1) and ids (in 2), but zeros and the id -1, by which info_nce leaves a sample out, where a
 * number is not finite.
 */
#include "ops/common.h"

#include <quern/contrastive.h>

enum { QUERIES, PASSAGES, IDS };

static qn_status shape(struct qn_shape_call *call)
{
    const struct qn_operand *queries = &call->in[QUERIES], *passages = &call->in[PASSAGES];
    const struct qn_operand *ids = &call->in[IDS];
    if (!qn_is_float(queries) || queries->shape.rank != 2 || !qn_is_float(passages) ||
        passages->shape.rank != 2)
        return qn_shape_error(call, "takes queries and passages (n, d) of float types");
    if (passages->shape.dim[0] % queries->shape.dim[0] != 0)
        return qn_shape_error(call, "passages must be one or more for each query");
    if (ids->dtype != QN_I32 || ids->shape.rank != 1 || ids->shape.dim[0] != queries->shape.dim[0])
        return qn_shape_error(call, "ids must be one in i32 for each query");
    for (int i = QUERIES; i <= IDS; i++)
        qn_shape_set(&call->out[i], call->in[i].dtype, call->in[i].shape.rank,
                     call->in[i].shape.dim);
    return QN_OK;
}

static void cost(const struct qn_call *call, struct qn_cost *result)
{
    qn_launch_cost(call, 0, 2, &call->in[PASSAGES], result);
}

static qn_status enter(struct qn_emit *emit, const struct qn_call *call)
{
    const int64_t samples = call->in[IDS].shape.dim[0];
    const int64_t query = qn_operand_count(&call->in[QUERIES]) / samples;
    const int64_t passage = qn_operand_count(&call->in[PASSAGES]) / samples;
    const struct qn_walk walk = qn_walk_rows(call, query + passage);
    struct qn_launch launch = {.program = "bank_entry",
                               .kernel = "enter",
                               .args = {QN_BUF(&call->in[QUERIES]), QN_BUF(&call->in[PASSAGES]),
                                        QN_BUF(&call->in[IDS]), QN_BUF(&call->out[QUERIES]),
                                        QN_BUF(&call->out[PASSAGES]), QN_BUF(&call->out[IDS]),
                                        QN_LONG(query), QN_LONG(passage)},
                               .global = {samples * walk.group},
                               .local = {walk.group}};
    qn_walk_options(&launch, &walk);
    qn_launch_type(&launch, "Q", &call->in[QUERIES]);
    qn_launch_type(&launch, "P", &call->in[PASSAGES]);
    return qn_emit_launch(emit, &launch);
}

const struct qn_op qn_op_bank_entry = {
    .name = "bank_entry",
    .n_in = 3,
    .n_required = 3,
    .n_out = 3,
    .batch = {QN_BATCH_MAY, QN_BATCH_MAY, QN_BATCH_MAY},
    .no_gradient = 1u << QUERIES | 1u << PASSAGES | 1u << IDS,
    .shape = shape,
    .groups = {{.name = "forward",
                .phase = QN_PHASE_TRAIN | QN_PHASE_EVAL,
                .read = {{QN_IN(QUERIES)}, {QN_IN(PASSAGES)}, {QN_IN(IDS)}},
                .write = {{QN_OUT(QUERIES)}, {QN_OUT(PASSAGES)}, {QN_OUT(IDS)}},
                .variant = QN_BOTH_SHAPES(qn_fits_row_group, cost, enter)}}};

bool qn_bank_entry(qn_graph *graph, qn_tensor queries, qn_tensor passages, qn_tensor ids,
                   qn_tensor entry[3])
{
    const qn_tensor in[] = {queries, passages, ids};
    const qn_tensor first = qn_op_apply(graph, &qn_op_bank_entry, in, NULL);
    for (uint32_t i = 0; i < 3; i++)
        entry[i] = (qn_tensor){first.id ? first.id + i : 0};
    return first.id != 0;
}
