/* SPDX-License-Identifier: MIT
 *
 * An array in another type, rounded to nearest: of the update, which makes the parameters in 16
 * bits from their f32 masters.
 */
#include "ops/elementwise.h"

static qn_status shape(struct qn_shape_call *call)
{
    if (!qn_is_float(&call->in[0]))
        return qn_shape_error(call, "wants numbers of floating point, not %s",
                              qn_dtype_name(call->in[0].dtype));
    qn_shape_set(&call->out[0], call->storage, call->in[0].shape.rank, call->in[0].shape.dim);
    return QN_OK;
}

static void cost(const struct qn_call *call, struct qn_cost *result)
{
    *result = qn_elementwise_cost(0, &call->in[0], &call->out[0], NULL);
}

static qn_status cast(struct qn_emit *emit, const struct qn_call *call)
{
    return qn_elementwise_unary(emit, call,
                                &(struct qn_unary){"cast", &call->in[0], &call->out[0]});
}

const struct qn_op qn_op_cast = {.name = "cast",
                                 .n_in = 1,
                                 .n_required = 1,
                                 .n_out = 1,
                                 .shape = shape,
                                 .groups = {{.name = "cast",
                                             .phase = QN_PHASE_UPDATE,
                                             .read = {{QN_IN(0)}},
                                             .write = {{QN_OUT(0)}},
                                             .variant = {{"any", NULL, cost, cast}}}}};
