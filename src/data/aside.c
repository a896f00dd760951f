/* SPDX-License-Identifier: MIT */
#include "data/aside.h"
#include "base/log.h"
#include "base/shape.h"

enum { ALIGNMENT = 64 };

static int64_t bytes_of(const struct qn_column *column, int64_t count)
{
    return qn_round_up(qn_mul(qn_column_bytes(column), count), ALIGNMENT);
}

/* What all unwanted rows take; -1: they cannot be counted. */
static int64_t bytes_aside(const struct qn_dataset_facts *facts, int64_t count, void *const *rows)
{
    int64_t bytes = 0;
    for (int c = 0; c < facts->n_columns; c++)
        if (!rows[c])
            bytes = qn_sum_of(bytes, bytes_of(&facts->columns[c], count));
    return bytes;
}

qn_status qn_read_wanted(const struct qn_dataset *dataset, const struct qn_draw *draws,
                         int64_t count, void *const *rows, struct qn_rooms *rooms,
                         const struct qn_log *log)
{
    const struct qn_dataset_facts *facts = &dataset->facts;
    const int64_t bytes = bytes_aside(facts, count, rows);
    char *aside = bytes ? qn_room_take(&rooms->aside, bytes) : NULL;
    struct qn_rooms *inner = qn_rooms_inner(rooms);
    void *at[QN_MAX_COLUMNS];
    if ((bytes && !aside) || !inner)
        return qn_fail(log, QN_ERR_MEMORY, "dataset: out of memory");
    for (int c = 0; c < facts->n_columns; c++) {
        at[c] = rows[c] ? rows[c] : aside;
        if (!rows[c])
            aside += bytes_of(&facts->columns[c], count);
    }
    return dataset->source->read(dataset, draws, count, at, inner, log);
}
