/* SPDX-License-Identifier: MIT */
#include "ops/elementwise.h"

#include <quern/ops.h>

QN_UNARY_OPERATOR(relu, QN_CHAIN_RELU, qn_present(&call->in[0]) ? &call->in[0] : &call->out[0],
                  {.ref = QN_IN(0), .or_ = QN_OUT(0)})
