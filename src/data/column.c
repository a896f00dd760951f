/* SPDX-License-Identifier: MIT */
#include "data/column.h"
#include "base/log.h"
#include "base/shape.h"

#include <string.h>

enum { MOST_NAME = 100 };

const struct qn_column *qn_column_find(const struct qn_column *columns, int count, const char *name)
{
    for (int c = 0; c < count; c++)
        if (strcmp(columns[c].name, name) == 0)
            return &columns[c];
    return NULL;
}

int64_t qn_column_bytes(const qn_column *column)
{
    return column ? qn_mul(qn_shape_count(&column->shape), qn_dtype_size(column->dtype)) : 0;
}

static bool has_shape(const struct qn_column *column, int64_t samples)
{
    const struct qn_shape *shape = &column->shape;
    if (shape->rank < 0 || shape->rank > QN_MAX_DIMS)
        return false;
    for (int i = 0; i < shape->rank; i++)
        if (shape->dim[i] < 1)
            return false;
    return qn_mul(qn_column_bytes(column), samples) >= 0;
}

qn_status qn_column_check(const struct qn_column *column, int64_t samples, int index,
                          const struct qn_log *log)
{
    const char *name = column->name;
    if (!name || !*name || strlen(name) > MOST_NAME)
        return qn_fail(log, QN_ERR_ARGUMENT, "dataset: column %d: a name has 1 to %d bytes", index,
                       MOST_NAME);
    if (qn_dtype_size(column->dtype) == 0)
        return qn_fail(log, QN_ERR_ARGUMENT, "dataset: %s: dtype: %d is none", name,
                       (int)column->dtype);
    if (!has_shape(column, samples))
        return qn_fail(log, QN_ERR_ARGUMENT,
                       "dataset: %s: shape: not 0 to %d sizes above 0 whose bytes can be counted",
                       name, QN_MAX_DIMS);
    if (column->classes < 0 || (column->class_names && !column->classes))
        return qn_fail(log, QN_ERR_ARGUMENT, "dataset: %s: classes: negative, or named without any",
                       name);
    return QN_OK;
}

/* The sizes that are not 1; of an input, those of one sample. */
static qn_shape squeeze(const qn_shape *shape)
{
    qn_shape squeezed = {0};
    for (int i = 0; i < shape->rank; i++) {
        int64_t size = shape->dim[i] < 0 ? -shape->dim[i] : shape->dim[i];
        if (size != 1)
            squeezed.dim[squeezed.rank++] = size;
    }
    return squeezed;
}

qn_status qn_column_fits(const struct qn_column *column, qn_dtype dtype, const qn_shape *shape,
                         const struct qn_log *log)
{
    const qn_shape row = squeeze(&column->shape), wanted = squeeze(shape);
    char has[128], wants[128];
    if (column->dtype == dtype && qn_shape_equal(&row, &wanted))
        return QN_OK;
    return qn_fail(log, QN_ERR_SHAPE, "%s: the data has rows of %s %s, the input wants %s %s",
                   column->name, qn_dtype_name(column->dtype),
                   qn_shape_text(&column->shape, has, sizeof has), qn_dtype_name(dtype),
                   qn_shape_text(shape, wants, sizeof wants));
}
