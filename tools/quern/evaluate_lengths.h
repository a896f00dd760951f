/* SPDX-License-Identifier: MIT
 *
 * Evaluating samples of different length, each in the graph of its bucket.
 */
#ifndef QUERN_TOOL_EVALUATE_LENGTHS_H
#define QUERN_TOOL_EVALUATE_LENGTHS_H

#include "session.h"

/* Takes an output's rows for samples first .. first + count - 1 of the batch, in the shape that the
 * graph of the longest samples gives them; what is behind a shorter sample is 0. */
typedef qn_status evaluate_rows_fn(void *user, const char *name, int64_t first, int64_t count,
                                   const void *rows, const qn_batch *batch);

/* Evaluates a part of the test split; what `fn` gives but QN_OK ends it. `session`: that of the
 * member. May be called on a thread of its own. */
qn_status evaluate_lengths(const struct session *session, const qn_group_part *part,
                           evaluate_rows_fn *fn, void *user);

#endif
