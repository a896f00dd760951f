/* SPDX-License-Identifier: MIT */
#include "ops/moments8.h"

#include "base/log.h"

qn_status qn_moments8_shape(struct qn_shape_call *call, int per_chunk, qn_dtype scale)
{
    QN_TRY(qn_update_shape(call, 0));
    const int64_t scales = call->in[2].shape.dim[0] * per_chunk;
    for (int moment = 0; moment < 2; moment++) {
        qn_shape_set(&call->state[moment], QN_U8, 1, call->in[0].shape.dim);
        qn_shape_set(&call->state[2 + moment], scale, 1, &scales);
    }
    return QN_OK;
}

void qn_moments8_cost(const struct qn_call *call, struct qn_cost *cost)
{
    qn_update_cost(call, 64, cost);
}

qn_status qn_moments8_launch(struct qn_emit *emit, const struct qn_call *call, const char *program,
                             int states)
{
    const struct qn_optimizer_attr *attr = call->attr;
    struct qn_launch launch = {.program = program,
                               .kernel = program,
                               .args = {QN_BUF(&call->in[0]), QN_BUF(&call->in[1]),
                                        QN_BUF(&call->in[2]), QN_BUF(&call->control)}};
    struct qn_arg *arg = launch.args + 4;
    for (int s = 0; s < states; s++)
        *arg++ = (struct qn_arg)QN_BUF(&call->state[s]);
    *arg++ = (struct qn_arg)QN_BUF(&call->out[0]);
    *arg++ = (struct qn_arg)QN_FLOAT((float)attr->beta1);
    *arg++ = (struct qn_arg)QN_FLOAT((float)attr->beta2);
    *arg++ = (struct qn_arg)QN_FLOAT((float)(1 - attr->beta1));
    *arg++ = (struct qn_arg)QN_FLOAT((float)(1 - attr->beta2));
    *arg++ = (struct qn_arg)QN_FLOAT((float)attr->eps);
    return qn_update_launch(emit, call, &call->in[2], &launch);
}
