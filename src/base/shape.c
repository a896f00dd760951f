/* SPDX-License-Identifier: MIT */
#include "base/shape.h"

#include <inttypes.h>
#include <stdio.h>

int64_t qn_mul(int64_t a, int64_t b)
{
    int64_t product;
    return a < 0 || b < 0 || __builtin_mul_overflow(a, b, &product) ? -1 : product;
}

int64_t qn_sum_of(int64_t a, int64_t b)
{
    int64_t sum;
    return a < 0 || b < 0 || __builtin_add_overflow(a, b, &sum) ? -1 : sum;
}

int64_t qn_shape_span(const struct qn_shape *shape, int first, int last)
{
    int64_t count = 1;
    for (int i = first; i < last; i++)
        count = qn_mul(count, shape->dim[i]);
    return count;
}

int64_t qn_shape_count(const struct qn_shape *shape)
{
    return qn_shape_span(shape, 0, shape->rank);
}

bool qn_shape_equal(const struct qn_shape *a, const struct qn_shape *b)
{
    if (a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dim[i] != b->dim[i])
            return false;
    return true;
}

static int write_dim(char *text, int capacity, int64_t dim)
{
    if (dim >= 0)
        return snprintf(text, (size_t)capacity, "%" PRId64, dim);
    if (dim == QN_BATCH)
        return snprintf(text, (size_t)capacity, "b");
    return snprintf(text, (size_t)capacity, "%" PRIu64 "b", -(uint64_t)dim);
}

const char *qn_shape_text(const struct qn_shape *shape, char *text, int capacity)
{
    int used = snprintf(text, (size_t)capacity, "(");
    for (int i = 0; i < shape->rank && used < capacity; i++) {
        used += snprintf(text + used, (size_t)(capacity - used), "%s", i ? ", " : "");
        if (used < capacity)
            used += write_dim(text + used, capacity - used, shape->dim[i]);
    }
    if (used < capacity)
        snprintf(text + used, (size_t)(capacity - used), ")");
    return text;
}
