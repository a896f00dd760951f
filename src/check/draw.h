/* SPDX-License-Identifier: MIT
 *
 * The random words of a reference: those that the kernels draw (cl_kernels/lib/random.clh).
 */
#ifndef QN_CHECK_DRAW_H
#define QN_CHECK_DRAW_H

#include "base/random.h"
#include "check/check.h"

/* The four words number `draw` of an update for what has this number; `node` stands where dropout
 * has that of its node. */
struct qn_philox qn_check_draw(const struct qn_reference *r, uint32_t update, uint32_t number,
                               uint32_t node, int64_t draw);
/* The word of one element in the update of r->control: four share a draw. */
uint32_t qn_check_word(const struct qn_reference *r, int64_t number, uint32_t node,
                       int64_t element);
/* Whether dropout keeps an element of sample number `sample` of the batch. */
bool qn_check_keeps(const struct qn_reference *r, int64_t sample, int64_t element, float rate);

#endif
