/* SPDX-License-Identifier: MIT
 *
 * Rows of samples that somebody names.
 */
#include "base/log.h"
#include "data/aside.h"

#include <inttypes.h>

/* Samples that are read at once. */
enum { AT_ONCE = 64 };

static qn_status read_some(const struct qn_dataset *dataset, const qn_column *column,
                           const int32_t *samples, int64_t count, void *rows,
                           struct qn_rooms *rooms)
{
    struct qn_draw draws[AT_ONCE] = {{0}};
    void *at[QN_MAX_COLUMNS] = {NULL};
    at[column - dataset->facts.columns] = rows;
    for (int64_t i = 0; i < count; i++) {
        draws[i].sample = samples[i];
        if (samples[i] < 0 || samples[i] >= dataset->facts.count)
            return qn_fail(NULL, QN_ERR_ARGUMENT,
                           "dataset: there is no sample %" PRId32 " of %" PRId64, samples[i],
                           dataset->facts.count);
    }
    return qn_read_wanted(dataset, draws, count, at, rooms, NULL);
}

qn_status qn_dataset_gather(void *dataset, const char *input, const int32_t *samples, int64_t count,
                            void *rows)
{
    const qn_dataset *from = dataset;
    QN_REQUIRE(NULL, from && input && samples && count >= 0 && rows);
    const qn_column *column = qn_dataset_column(from, input);
    if (!column)
        return qn_fail(NULL, QN_ERR_ARGUMENT, "dataset: no column '%s'", input);
    const int64_t bytes = qn_column_bytes(column);
    struct qn_rooms rooms = {0};
    qn_status status = QN_OK;
    for (int64_t i = 0; i < count && status == QN_OK; i += AT_ONCE)
        status = read_some(from, column, samples + i, count - i < AT_ONCE ? count - i : AT_ONCE,
                           (char *)rows + i * bytes, &rooms);
    qn_rooms_free(&rooms);
    return status;
}
