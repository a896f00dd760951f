/* SPDX-License-Identifier: MIT
 *
 * Reading some of another dataset's columns.
 * Thread-safety: Safe, with rooms for each thread.
 */
#ifndef QN_DATA_ASIDE_H
#define QN_DATA_ASIDE_H

#include "data/source.h"

/* As the dataset's source reads, but columns whose rows[c] is NULL are nobody's: their rows lie in
 * rooms->aside and are forgotten. The dataset reads with rooms of its own, so that the caller's
 * keep what is in them. */
qn_status qn_read_wanted(const struct qn_dataset *dataset, const struct qn_draw *draws,
                         int64_t count, void *const *rows, struct qn_rooms *rooms,
                         const struct qn_log *log);

#endif
