/* SPDX-License-Identifier: MIT
 *
 * Zeros in an array like in 0: where several runs of a cycle add to an accumulator, it begins so.
 */
#include "base/shape.h"
#include "ops/common.h"

static qn_status shape(struct qn_shape_call *call)
{
    const qn_dtype dtype = call->in[0].dtype;
    if (dtype != QN_F32 && dtype != QN_F16 && dtype != QN_BF16)
        return qn_shape_error(call, "accumulators are f32, f16 or bf16");
    qn_shape_set(&call->out[0], dtype, call->in[0].shape.rank, call->in[0].shape.dim);
    return QN_OK;
}

static void cost(const struct qn_call *call, struct qn_cost *result)
{
    result->bytes = (double)qn_operand_bytes(&call->out[0]);
    result->launches = 1;
}

static qn_status zero(struct qn_emit *emit, const struct qn_call *call)
{
    enum { GROUP = 64, GROUP_WORDS = 2048 }; /* as cl_kernels/fill.cl */
    const int64_t bytes = qn_operand_bytes(&call->out[0]), words = bytes / 4;
    struct qn_operand first = call->out[0]; /* its offset in words */
    first.offset = first.offset * qn_dtype_size(first.dtype) / 4;
    const struct qn_launch launch = {
        .program = "fill",
        .kernel = "fill",
        .args = {QN_BUF(&first), QN_LONG(words), QN_INT(bytes % 4), QN_INT(0)},
        .global = {qn_div_up(bytes, 4 * GROUP_WORDS) * GROUP},
        .local = {GROUP}};
    return qn_emit_launch(emit, &launch);
}

const struct qn_op qn_op_zero = {.name = "zero",
                                 .n_in = 1,
                                 .n_required = 1,
                                 .n_out = 1,
                                 .shape = shape,
                                 .groups = {{.name = "zero",
                                             .phase = QN_PHASE_UPDATE,
                                             .write = {{QN_OUT(0)}},
                                             .variant = {{"any", NULL, cost, zero}}}}};
