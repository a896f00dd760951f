/* SPDX-License-Identifier: MIT
 *
 * The operands of a call by number.
 */
#ifndef QN_CHECK_OPERAND_H
#define QN_CHECK_OPERAND_H

#include "op/op.h"

/* Every operand of a call has an operand number from 0 to QN_OPERANDS - 1. */
enum {
    QN_OPERANDS = 2 * QN_MAX_IN + 2 * QN_MAX_OUT + QN_MAX_SAVED + QN_MAX_TEMP + 2 * QN_MAX_STATE
};
int qn_operand_number(struct qn_ref ref);
struct qn_ref qn_operand_ref(int number);
/* "in 0", "gradient of out 1", into `text`. Gives `text`. */
const char *qn_operand_name(int number, char text[32]);

#endif
