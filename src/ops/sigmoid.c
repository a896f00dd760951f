/* SPDX-License-Identifier: MIT */
#include "ops/elementwise.h"

#include <quern/ops.h>

QN_UNARY_OPERATOR(sigmoid, QN_CHAIN_SIGMOID, &call->out[0], {.ref = QN_OUT(0)})
