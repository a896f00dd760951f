/* SPDX-License-Identifier: MIT
 *
 * Arithmetic on shapes and sizes that cannot overflow unseen.
 */
#ifndef QN_BASE_SHAPE_H
#define QN_BASE_SHAPE_H

#include <quern/tensor.h>
#include <stdbool.h>

/* a * b and a + b of non-negative numbers; -1 when an operand is -1 or the result does not fit. */
int64_t qn_mul(int64_t a, int64_t b);
int64_t qn_sum_of(int64_t a, int64_t b);

/* Elements of a concrete shape; -1 if they cannot be counted. */
int64_t qn_shape_count(const struct qn_shape *shape);
/* Product of dimensions first .. last - 1. */
int64_t qn_shape_span(const struct qn_shape *shape, int first, int last);
bool qn_shape_equal(const struct qn_shape *a, const struct qn_shape *b);
/* "(64, 3, 224, 224)" into `text`; multiples of the batch print as "b" or "2b". Gives `text`. */
const char *qn_shape_text(const struct qn_shape *shape, char *text, int capacity);

/* value / divisor rounded up, and the next multiple; -1 when the value is negative or the multiple
 * does not fit. */
static inline int64_t qn_div_up(int64_t value, int64_t divisor)
{
    return value < 0 ? -1 : value / divisor + (value % divisor != 0);
}

static inline int64_t qn_round_up(int64_t value, int64_t multiple)
{
    return qn_mul(qn_div_up(value, multiple), multiple);
}

#endif
