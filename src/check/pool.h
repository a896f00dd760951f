/* SPDX-License-Identifier: MIT
 *
 * What the checks of both kinds of pooling share.
 */
#ifndef QN_CHECK_POOL_H
#define QN_CHECK_POOL_H

#include "check/check.h"
#include "op/pool.h"

/* How many places the window has in the padded image, counted. */
void qn_check_pool_outputs(const struct qn_call *call, struct qn_operand out[QN_MAX_OUT]);
/* One operation for each element of each window. */
double qn_check_pool_flops(const struct qn_call *call, const char *group);

#endif
