/* SPDX-License-Identifier: MIT
 *
 * The operands of a call by number.
 */
#ifndef QN_CHECK_SLOT_H
#define QN_CHECK_SLOT_H

#include "op/op.h"

/* Every operand of a call has a slot: a number from 0 to QN_SLOTS - 1. */
enum { QN_SLOTS = 2 * QN_MAX_IN + 2 * QN_MAX_OUT + QN_MAX_SAVED + QN_MAX_TEMP + 2 * QN_MAX_STATE };
int qn_slot_of(struct qn_ref ref);
struct qn_ref qn_slot_ref(int slot);
/* "in 0", "gradient of out 1", into `text`. Gives `text`. */
const char *qn_slot_name(int slot, char text[32]);

#endif
