/* SPDX-License-Identifier: MIT */
#include "ops/elementwise.h"

#include <quern/ops.h>

QN_UNARY_OPERATOR(hardswish, QN_CHAIN_HARDSWISH, &call->in[0], {.ref = QN_IN(0)})
