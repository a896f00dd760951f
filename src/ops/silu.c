/* SPDX-License-Identifier: MIT */
#include "ops/elementwise.h"

#include <quern/ops.h>

QN_UNARY_OPERATOR(silu, QN_CHAIN_SILU, &call->in[0], {.ref = QN_IN(0)})
