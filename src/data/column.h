/* SPDX-License-Identifier: MIT
 *
 * Single columns: whether they can be, which one has a name, whether one fits an input.
 * Thread-safety: Safe.
 */
#ifndef QN_DATA_COLUMN_H
#define QN_DATA_COLUMN_H

#include <quern/data.h>

/* The column of this name among `count`; NULL: there is none. */
const struct qn_column *qn_column_find(const struct qn_column *columns, int count,
                                       const char *name);

/* Whether column `index` of a dataset of `samples` has a name, a type and a shape whose bytes can
 * be counted. */
qn_status qn_column_check(const struct qn_column *column, int64_t samples, int index,
                          const struct qn_log *log);

/* Whether its rows are those of an input of this type and shape, whose dimension 0 is a multiple of
 * the batch. Sizes of 1 do not count. */
qn_status qn_column_fits(const struct qn_column *column, qn_dtype dtype, const qn_shape *shape,
                         const struct qn_log *log);

#endif
