/* SPDX-License-Identifier: MIT
 *
 * What the checks of add and multiply share.
 */
#ifndef QN_CHECK_BINARY_H
#define QN_CHECK_BINARY_H

#include "check/check.h"

/* Sizes at which the last vector is full, is filled in part, or is the only one. */
extern const struct qn_check_case qn_check_binary_cases[];

/* Inputs of two shapes, and of integers. */
extern const struct qn_check_case qn_check_binary_refused[];

#endif
