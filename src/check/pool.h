/* SPDX-License-Identifier: MIT
 *
 * What the checks of both kinds of pooling share.
 */
#ifndef QN_CHECK_POOL_H
#define QN_CHECK_POOL_H

#include "check/check.h"
#include "op/pool.h"

/* The outputs of a pooling: along each side, the number of positions of the window in the padded
 * image, found by counting. */
void qn_check_pool_outputs(const struct qn_call *call, struct qn_operand out[QN_MAX_OUT]);
/* One operation for each element of each window. */
double qn_check_pool_flops(const struct qn_call *call, const char *group);

#endif
