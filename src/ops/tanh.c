/* SPDX-License-Identifier: MIT */
#include "ops/elementwise.h"

#include <quern/ops.h>

QN_UNARY_OPERATOR(tanh, QN_CHAIN_TANH, &call->out[0], {.ref = QN_OUT(0)})
