/* SPDX-License-Identifier: MIT
 *
 * How many kernels a plan launches, as its tasks' costs say.
 */
#ifndef QN_SHOWING_LAUNCHES_H
#define QN_SHOWING_LAUNCHES_H

#include "base/text.h"
#include "plan/program/program.h"

int qn_launches_of_phase(const struct qn_phase_run *phase);
/* Adds a line with those of each phase. */
void qn_launches_text(struct qn_text *text, const struct qn_program *program);
/* Adds the members "launches", and "launches_by_operator" in the order of their first steps. */
void qn_launches_json(struct qn_text *text, const struct qn_phase_run *phase);

#endif
