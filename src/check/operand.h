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
/* The stream of random numbers that fills an operand. Streams are those of calls with six inputs:
 * so cases keep their numbers when operators get more operands. Behind them are those of directions
 * and of single elements of central differences. */
enum {
    QN_STREAM_INPUTS = 6,
    QN_DIRECTION_STREAMS = 33,
    QN_SINGLE_STREAMS = 81,
    QN_LATER_STREAMS = 128
};
uint64_t qn_operand_stream(int number);
/* "in 0", "gradient of out 1", into `text`. Gives `text`. */
const char *qn_operand_name(int number, char text[32]);

#endif
