/* SPDX-License-Identifier: MIT
 *
 * Datasets of pairs: a sample of one dataset and the sample of another that belongs to it, with
 * hard negatives of a third.
 */
#include "base/log.h"
#include "base/shape.h"
#include "data/aside.h"
#include "data/column.h"
#include "data/source.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

enum { MOST_COLUMNS = 2 * QN_MAX_COLUMNS + 1 }; /* of both, and "ids" */

/* One of the datasets, and which of the pairs' columns each of its own becomes. */
struct side {
    const struct qn_dataset *data;
    int column[QN_MAX_COLUMNS]; /* -1: none */
};

struct pairs {
    struct qn_dataset base;
    struct side query, passage, negative; /* the last without data: there are none */
    int64_t negatives;                    /* of each pair */
    int ids;                              /* the column; -1: nobody asks for it */
};

/* --- samples --- */

/* Reads `count` samples of a side to its rows number `row` on. */
static qn_status read_side(const struct side *side, const struct qn_draw *draws, int64_t count,
                           void *const *rows, int64_t row, struct qn_rooms *rooms,
                           const struct qn_log *log)
{
    const struct qn_dataset_facts *facts = &side->data->facts;
    void *at[QN_MAX_COLUMNS];
    bool wanted = false;
    for (int c = 0; c < facts->n_columns; c++) {
        const int column = side->column[c];
        at[c] =
            column < 0 ? NULL : (char *)rows[column] + row * qn_column_bytes(&facts->columns[c]);
        wanted |= column >= 0;
    }
    return wanted ? qn_read_wanted(side->data, draws, count, at, rooms, log) : QN_OK;
}

/* The passage of one pair, then its negatives: 1 + negatives rows. */
static qn_status read_group(const struct pairs *pairs, const struct qn_draw *draw,
                            void *const *rows, int64_t row, struct qn_rooms *rooms,
                            const struct qn_log *log)
{
    struct qn_draw negative = *draw;
    QN_TRY(read_side(&pairs->passage, draw, 1, rows, row, rooms, log));
    for (int64_t i = 0; i < pairs->negatives; i++) {
        negative.sample = draw->sample * pairs->negatives + i;
        QN_TRY(read_side(&pairs->negative, &negative, 1, rows, row + 1 + i, rooms, log));
    }
    return QN_OK;
}

static qn_status read_passages(const struct pairs *pairs, const struct qn_draw *draws,
                               int64_t count, void *const *rows, struct qn_rooms *rooms,
                               const struct qn_log *log)
{
    if (!pairs->negatives)
        return read_side(&pairs->passage, draws, count, rows, 0, rooms, log);
    for (int64_t i = 0; i < count; i++)
        QN_TRY(read_group(pairs, &draws[i], rows, i * (1 + pairs->negatives), rooms, log));
    return QN_OK;
}

static qn_status read_rows(const struct qn_dataset *dataset, const struct qn_draw *draws,
                           int64_t count, void *const *rows, struct qn_rooms *rooms,
                           const struct qn_log *log)
{
    const struct pairs *pairs = (const struct pairs *)dataset;
    QN_TRY(read_side(&pairs->query, draws, count, rows, 0, rooms, log));
    QN_TRY(read_passages(pairs, draws, count, rows, rooms, log));
    for (int64_t i = 0; pairs->ids >= 0 && i < count; i++)
        ((int32_t *)rows[pairs->ids])[i] = (int32_t)draws[i].sample;
    return QN_OK;
}

static uint32_t checksum(const struct qn_dataset *dataset)
{
    const struct pairs *pairs = (const struct pairs *)dataset;
    const uint32_t sums[] = {qn_dataset_checksum(pairs->query.data),
                             qn_dataset_checksum(pairs->passage.data),
                             qn_dataset_checksum(pairs->negative.data)};
    return (uint32_t)crc32_z(0, (const Bytef *)sums, sizeof sums);
}

static const char *name(const struct qn_dataset *dataset, int64_t sample)
{
    return qn_dataset_sample_name(((const struct pairs *)dataset)->query.data, sample);
}

static const struct qn_source source = {read_rows, checksum, .name = name};

/* --- columns --- */

/* Those of the pairs so far. */
struct columns {
    struct qn_column all[MOST_COLUMNS];
    int count;
};

static bool is_wanted(const qn_pair_params *params, const char *name)
{
    for (int i = 0; i < params->n_columns; i++)
        if (strcmp(params->columns[i], name) == 0)
            return true;
    return !params->columns;
}

/* Gives the number of the column; -1: it is not wanted. */
static int add_column(struct columns *columns, const struct qn_column *column,
                      const qn_pair_params *params)
{
    if (!is_wanted(params, column->name))
        return -1;
    columns->all[columns->count] = *column;
    columns->all[columns->count].data = NULL;
    return columns->count++;
}

/* "images" becomes "query.images". */
static const char *prefixed(struct qn_arena *arena, const char *prefix, const char *name)
{
    const size_t bytes = strlen(prefix) + strlen(name) + 1;
    char *text = qn_arena_new(arena, char, bytes);
    if (text)
        snprintf(text, bytes, "%s%s", prefix, name);
    return text;
}

/* With negatives a row has a dimension more: the passage and them. One too many is refused with the
 * columns. */
static void add_dimension(struct qn_shape *shape, int64_t size)
{
    if (size > 1 && shape->rank < QN_MAX_DIMS)
        memmove(shape->dim + 1, shape->dim, (size_t)shape->rank * sizeof *shape->dim);
    if (size > 1) {
        shape->dim[0] = size;
        shape->rank++;
    }
}

/* Every column of a side whose rows hold `each` of its samples. */
static qn_status add_side(struct pairs *pairs, struct side *side, const char *prefix, int64_t each,
                          struct columns *columns, const qn_pair_params *params)
{
    const struct qn_dataset_facts *facts = &side->data->facts;
    for (int c = 0; c < facts->n_columns; c++) {
        struct qn_column column = facts->columns[c];
        column.name = prefixed(&pairs->base.arena, prefix, column.name);
        if (!column.name)
            return qn_fail(&params->log, QN_ERR_MEMORY, "dataset: out of memory");
        add_dimension(&column.shape, each);
        side->column[c] = add_column(columns, &column, params);
    }
    return QN_OK;
}

static qn_status refuse_negatives(const struct qn_column *passage, const struct qn_column *negative,
                                  const struct qn_log *log)
{
    char has[128], wants[128];
    if (!negative)
        return qn_fail(log, QN_ERR_ARGUMENT,
                       "dataset: %s: the passages have this column, the "
                       "negatives have not",
                       passage->name);
    return qn_fail(
        log, QN_ERR_ARGUMENT,
        "dataset: %s: the passages have rows of %s %s, the negatives of %s %s", passage->name,
        qn_dtype_name(passage->dtype), qn_shape_text(&passage->shape, wants, sizeof wants),
        qn_dtype_name(negative->dtype), qn_shape_text(&negative->shape, has, sizeof has));
}

/* Negatives go where the passages' columns of the same names do. */
static qn_status match_negatives(struct pairs *pairs, const struct qn_log *log)
{
    const struct qn_dataset_facts *passages = &pairs->passage.data->facts,
                                  *negatives = &pairs->negative.data->facts;
    for (int c = 0; c < negatives->n_columns; c++)
        pairs->negative.column[c] = -1;
    for (int c = 0; c < passages->n_columns; c++) {
        const struct qn_column *passage = &passages->columns[c], *negative;
        const int column = pairs->passage.column[c];
        if (column < 0)
            continue;
        negative = qn_column_find(negatives->columns, negatives->n_columns, passage->name);
        if (!negative || negative->dtype != passage->dtype ||
            !qn_shape_equal(&negative->shape, &passage->shape))
            return refuse_negatives(passage, negative, log);
        pairs->negative.column[negative - negatives->columns] = column;
    }
    return QN_OK;
}

static qn_status check_wanted(const struct columns *columns, const qn_pair_params *params)
{
    for (int i = 0; i < params->n_columns; i++)
        if (!qn_column_find(columns->all, columns->count, params->columns[i]))
            return qn_fail(&params->log, QN_ERR_ARGUMENT,
                           "dataset: %s: no column of the pairs has this name", params->columns[i]);
    return QN_OK;
}

/* --- opening --- */

static qn_status check_counts(const qn_pair_params *params)
{
    const struct qn_log *log = &params->log;
    const int64_t queries = params->queries->facts.count, passages = params->passages->facts.count;
    const int64_t negatives = params->negatives ? params->negatives->facts.count : 0;
    if (queries != passages)
        return qn_fail(log, QN_ERR_ARGUMENT,
                       "dataset: %" PRId64 " queries, but %" PRId64 " passages", queries, passages);
    if (queries > INT32_MAX)
        return qn_fail(log, QN_ERR_ARGUMENT, "dataset: %" PRId64 " pairs, at most %" PRId32,
                       queries, INT32_MAX);
    if (negatives % queries)
        return qn_fail(log, QN_ERR_ARGUMENT,
                       "dataset: %" PRId64 " negatives are not the same number for each of %" PRId64
                       " pairs",
                       negatives, queries);
    return QN_OK;
}

static qn_status make(struct pairs *pairs, const qn_pair_params *params)
{
    static const struct qn_column ids = {.name = "ids", .dtype = QN_I32};
    const int64_t count = params->queries->facts.count;
    struct columns columns = {.count = 0};
    QN_TRY(check_counts(params));
    pairs->query.data = params->queries;
    pairs->passage.data = params->passages;
    pairs->negative.data = params->negatives;
    pairs->negatives = params->negatives ? params->negatives->facts.count / count : 0;
    QN_TRY(add_side(pairs, &pairs->query, "query.", 1, &columns, params));
    QN_TRY(add_side(pairs, &pairs->passage, "passage.", 1 + pairs->negatives, &columns, params));
    if (pairs->negatives)
        QN_TRY(match_negatives(pairs, &params->log));
    pairs->ids = add_column(&columns, &ids, params);
    QN_TRY(check_wanted(&columns, params));
    return qn_dataset_set(&pairs->base, &(qn_dataset_facts){count, columns.count, columns.all},
                          &params->log);
}

qn_status qn_dataset_pair(qn_dataset **dataset, const qn_pair_params *params)
{
    const struct qn_log *log = params ? &params->log : NULL;
    QN_REQUIRE(log, dataset && params && params->queries && params->passages);
    QN_REQUIRE(log, params->columns ? params->n_columns > 0 : params->n_columns == 0);
    *dataset = NULL;
    struct pairs *made = qn_dataset_new(&source, sizeof *made, log);
    if (!made)
        return QN_ERR_MEMORY;
    return qn_dataset_give(dataset, &made->base, make(made, params));
}
