/* SPDX-License-Identifier: MIT */
#include "ops/elementwise.h"

#include <quern/ops.h>

static void gradient_cost(const struct qn_call *call, int input, struct qn_cost *cost)
{
    *cost = qn_elementwise_cost(1, &call->dout[0], &call->din[input], NULL);
}

static qn_status gradient(struct qn_emit *emit, const struct qn_call *call, int input)
{
    return qn_elementwise_scale(
        emit, call,
        &(struct qn_scaling){&call->dout[0], &call->din[input], 1, call->beta_in[input]});
}

QN_BINARY_OPERATOR(add, QN_CHAIN_ADD, {0}, {0})
