/* SPDX-License-Identifier: MIT
 *
 * What the checks of the operators that only move or clear elements share.
 */
#ifndef QN_CHECK_ROWS_H
#define QN_CHECK_ROWS_H

#include "check/check.h"

/* The inputs of a case: one array of rows. */
#define QN_CHECK_ROWS(type, ...)                                                                   \
    {                                                                                              \
        {                                                                                          \
            .role = QN_ROLE_FIXED, .dtype = type, .rank = 2, .dim = { __VA_ARGS__ }                \
        }                                                                                          \
    }

/* Control blocks whose positions are row 0, row 9, and a row near the end of a ring of 48 rows (the
 * cell of position 1). */
extern const struct qn_control qn_check_start, qn_check_ninth, qn_check_late;

double qn_check_no_flops(const struct qn_call *call, const char *group);

#endif
