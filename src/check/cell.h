/* SPDX-License-Identifier: MIT
 *
 * The checks of a cell: one subject on one choice of variants.
 */
#ifndef QN_CHECK_CELL_H
#define QN_CHECK_CELL_H

#include "check/bed.h"

/* Runs every check of a cell; the verdict has the first failure. */
void qn_cell_check(const struct qn_subject *subject, qn_device *device,
                   const struct qn_picks *picks, struct qn_verdict *verdict);

/* Whether the operands have the expected contents after a pass; false: the verdict says what
 * differs (expect.c). */
bool qn_expect_outputs(struct qn_bed *bed, double *const *want);
bool qn_expect_state(struct qn_bed *bed);
bool qn_expect_gradients(struct qn_bed *bed, float beta);
/* After a train pass with `beta`: gather = once + beta * (gather before), where `once` is what a
 * pass with beta 0 leaves. */
bool qn_expect_gathered(struct qn_bed *bed, float beta, double *const *once);
bool qn_expect_finite(struct qn_bed *bed);
bool qn_expect_control(struct qn_bed *bed, const struct qn_control *want);
/* The elements of an operand, by number, from the bed's arena; NULL when memory ran out. */
double *qn_expect_values(struct qn_bed *bed, int number);

#endif
