/* SPDX-License-Identifier: MIT
 *
 * Mean and deviation of columns, by Welford's method ("Note on a method for calculating corrected
 * sums of squares and products", Technometrics 1962).
 */
#include "base/log.h"
#include "data/source.h"

#include <math.h>
#include <string.h>

/* What is known after some samples; (numbers) of each. */
struct moments {
    const struct qn_dataset *dataset;
    int column;
    int64_t numbers;
    void *rows[QN_MAX_COLUMNS]; /* one row of each column */
    double *mean, *squares;     /* squares: sum of squared deviations from the mean */
};

static qn_status add_sample(struct moments *m, int64_t sample, struct qn_rooms *rooms,
                            const struct qn_log *log)
{
    const struct qn_draw draw = {.sample = sample};
    const float *row = m->rows[m->column];
    QN_TRY(m->dataset->source->read(m->dataset, &draw, 1, m->rows, rooms, log));
    for (int64_t i = 0; i < m->numbers; i++) {
        const double before = (double)row[i] - m->mean[i];
        m->mean[i] += before / (double)(sample + 1);
        m->squares[i] += before * ((double)row[i] - m->mean[i]);
    }
    return QN_OK;
}

static qn_status measure(struct moments *m, struct qn_arena *arena, struct qn_rooms *rooms,
                         const struct qn_log *log)
{
    const struct qn_dataset_facts *facts = &m->dataset->facts;
    m->mean = qn_arena_new(arena, double, (size_t)m->numbers);
    m->squares = qn_arena_new(arena, double, (size_t)m->numbers);
    bool good = m->mean && m->squares;
    for (int c = 0; good && c < facts->n_columns; c++) {
        m->rows[c] = qn_arena_alloc(arena, (size_t)qn_column_bytes(&facts->columns[c]), 1);
        good = m->rows[c] != NULL;
    }
    if (!good)
        return qn_fail(log, QN_ERR_MEMORY, "dataset: out of memory");
    for (int64_t i = 0; i < facts->count; i++)
        QN_TRY(add_sample(m, i, rooms, log));
    return QN_OK;
}

qn_status qn_dataset_moments(const qn_dataset *dataset, const char *column, float *mean,
                             float *deviation, const qn_log *log)
{
    QN_REQUIRE(log, dataset && column && mean && deviation);
    const qn_column *found = qn_dataset_column(dataset, column);
    if (!found || found->dtype != QN_F32)
        return qn_fail(log, QN_ERR_ARGUMENT, "dataset: %s: no such column of f32", column);
    struct qn_arena arena = {0};
    struct qn_rooms rooms = {0};
    struct moments m = {.dataset = dataset,
                        .column = (int)(found - dataset->facts.columns),
                        .numbers = qn_column_bytes(found) / (int64_t)sizeof(float)};
    const qn_status status = measure(&m, &arena, &rooms, log);
    for (int64_t i = 0; status == QN_OK && i < m.numbers; i++) {
        const float spread = (float)sqrt(m.squares[i] / (double)dataset->facts.count);
        mean[i] = (float)m.mean[i];
        deviation[i] = spread > 0 ? spread : 1;
    }
    qn_arena_free(&arena);
    qn_rooms_free(&rooms);
    return status;
}
