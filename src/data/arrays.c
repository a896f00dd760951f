/* SPDX-License-Identifier: MIT
 *
 * Datasets whose rows are in host memory.
 */
#include "base/log.h"
#include "data/source.h"

#include <string.h>
#include <zlib.h>

qn_status qn_arrays_read(const struct qn_dataset *dataset, const struct qn_draw *draws,
                         int64_t count, void *const *rows, struct qn_rooms *rooms,
                         const struct qn_log *log)
{
    (void)rooms;
    (void)log;
    for (int c = 0; c < dataset->facts.n_columns; c++) {
        const struct qn_column *column = &dataset->facts.columns[c];
        const int64_t bytes = qn_column_bytes(column);
        const char *data = column->data;
        char *row = rows[c];
        for (int64_t i = 0; i < count; i++, row += bytes)
            memcpy(row, data + draws[i].sample * bytes, (size_t)bytes);
    }
    return QN_OK;
}

uint32_t qn_arrays_checksum(const struct qn_dataset *dataset)
{
    uLong sum = 0;
    for (int c = 0; c < dataset->facts.n_columns; c++) {
        const struct qn_column *column = &dataset->facts.columns[c];
        sum = crc32_z(sum, column->data, (size_t)(dataset->facts.count * qn_column_bytes(column)));
    }
    return (uint32_t)sum;
}

static const struct qn_source arrays = {qn_arrays_read, qn_arrays_checksum, NULL};

qn_status qn_dataset_from_arrays(qn_dataset **dataset, const qn_array_params *params)
{
    const struct qn_log *log = params ? &params->log : NULL;
    QN_REQUIRE(log, dataset && params);
    *dataset = NULL;
    struct qn_dataset *made = qn_dataset_new(&arrays, sizeof *made, log);
    if (!made)
        return QN_ERR_MEMORY;
    const qn_dataset_facts facts = {params->count, params->n_columns, params->columns};
    qn_status status = qn_dataset_set(made, &facts, log);
    for (int c = 0; status == QN_OK && c < facts.n_columns; c++)
        if (!facts.columns[c].data)
            status =
                qn_fail(log, QN_ERR_ARGUMENT, "dataset: %s: data: missing", facts.columns[c].name);
    return qn_dataset_give(dataset, made, status);
}
