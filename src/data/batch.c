/* SPDX-License-Identifier: MIT
 *
 * Batches: columns of a few samples, looked up by name.
 */
#include "base/log.h"
#include "data/column.h"

#include <string.h>

const qn_column *qn_batch_column(const qn_batch *batch, const char *name)
{
    return batch && name ? qn_column_find(batch->columns, batch->n_columns, name) : NULL;
}

bool qn_batch_has(const qn_batch *batch, int64_t first, int64_t count)
{
    return batch && count >= 0 && first >= batch->before &&
           first <= batch->samples - batch->after - count;
}

int qn_batch_choose(void *batch, int64_t first, int64_t count)
{
    const qn_batch *from = batch;
    const qn_column *column = qn_batch_column(from, "bucket");
    int32_t largest = 0;
    if (!qn_batch_has(from, first, count))
        return -1;
    if (!column || !column->data || column->dtype != QN_I32 || column->shape.rank)
        return 0;
    for (int64_t i = first; i < first + count; i++) {
        const int32_t bucket = ((const int32_t *)column->data)[i];
        largest = bucket > largest ? bucket : largest;
    }
    return largest;
}

qn_status qn_batch_fetch(void *batch, const char *input, int64_t first, int64_t count, void *rows)
{
    const qn_batch *from = batch;
    QN_REQUIRE(NULL, from && input && rows);
    QN_REQUIRE(NULL, qn_batch_has(from, first, count));
    const qn_column *column = qn_batch_column(from, input);
    if (!column || !column->data)
        return qn_fail(NULL, QN_ERR_ARGUMENT, "batch: no column '%s' with data", input);
    const int64_t bytes = qn_column_bytes(column);
    memcpy(rows, (const char *)column->data + first * bytes, (size_t)(count * bytes));
    return QN_OK;
}
