/* SPDX-License-Identifier: MIT
 *
 * What the checks of losses of two tensors, element by element, have in common.
 */
#ifndef QN_CHECK_PAIR_H
#define QN_CHECK_PAIR_H

#include "check/check.h"

/* The loss is f32, whatever the tensors are. */
void qn_pair_outputs(const struct qn_call *call, struct qn_operand out[QN_MAX_OUT]);
/* Two shapes, integers; ended by no name. */
extern const struct qn_check_case qn_pair_refused[];

#endif
