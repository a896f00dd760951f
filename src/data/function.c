/* SPDX-License-Identifier: MIT
 *
 * Datasets whose rows a function of the caller's makes.
 */
#include "base/log.h"
#include "data/source.h"

#include <string.h>
#include <zlib.h>

struct function {
    struct qn_dataset base;
    qn_rows_fn fn;
    void *user;
};

static qn_status read_rows(const struct qn_dataset *dataset, const struct qn_draw *draws,
                           int64_t count, void *const *rows, struct qn_rooms *rooms,
                           const struct qn_log *log)
{
    const struct function *function = (const struct function *)dataset;
    (void)rooms;
    qn_status status = function->fn(function->user, draws, count, rows);
    return status == QN_OK
               ? QN_OK
               : qn_fail(log, status, "samples %lld .. %lld of epoch %lld: the function failed",
                         (long long)draws[0].sample, (long long)draws[count - 1].sample,
                         (long long)draws[0].epoch);
}

/* The rows are not asked for: there may be more of them than anybody waits for. */
static uint32_t checksum(const struct qn_dataset *dataset)
{
    uLong sum = crc32_z(0, (const Bytef *)&dataset->facts.count, sizeof dataset->facts.count);
    for (int c = 0; c < dataset->facts.n_columns; c++) {
        const struct qn_column *column = &dataset->facts.columns[c];
        const uint8_t type = (uint8_t)column->dtype;
        sum = crc32_z(sum, (const Bytef *)column->name, strlen(column->name) + 1);
        sum = crc32_z(sum, &type, sizeof type);
        sum = crc32_z(sum, (const Bytef *)column->shape.dim,
                      (size_t)column->shape.rank * sizeof *column->shape.dim);
    }
    return (uint32_t)sum;
}

static const struct qn_source source = {read_rows, checksum, NULL};

qn_status qn_dataset_from_function(qn_dataset **dataset, const qn_function_params *params)
{
    const struct qn_log *log = params ? &params->log : NULL;
    QN_REQUIRE(log, dataset && params && params->fn);
    *dataset = NULL;
    struct function *made = qn_dataset_new(&source, sizeof *made, log);
    if (!made)
        return QN_ERR_MEMORY;
    made->fn = params->fn;
    made->user = params->user;
    const qn_dataset_facts facts = {params->count, params->n_columns, params->columns};
    qn_status status = qn_dataset_set(&made->base, &facts, log);
    for (int c = 0; status == QN_OK && c < facts.n_columns; c++)
        if (facts.columns[c].data)
            status = qn_fail(log, QN_ERR_ARGUMENT, "dataset: %s: has data, and a function too",
                             facts.columns[c].name);
    return qn_dataset_give(dataset, &made->base, status);
}
