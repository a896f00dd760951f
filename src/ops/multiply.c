/* SPDX-License-Identifier: MIT */
#include "ops/elementwise.h"

#include <quern/ops.h>

static void gradient_cost(const struct qn_call *call, int input, struct qn_cost *cost)
{
    *cost = qn_elementwise_cost(1, &call->dout[0], &call->in[1 - input], &call->din[input]);
}

static qn_status gradient(struct qn_emit *emit, const struct qn_call *call, int input)
{
    return qn_elementwise_binary(emit, call,
                                 &(struct qn_binary){"multiply", &call->dout[0],
                                                     &call->in[1 - input], &call->din[input],
                                                     call->beta_in[input]});
}

QN_BINARY_OPERATOR(multiply, QN_CHAIN_MULTIPLY, QN_IN(1), QN_IN(0))
