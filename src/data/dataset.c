/* SPDX-License-Identifier: MIT
 *
 * What datasets of all sources have in common.
 */
#include "base/log.h"
#include "base/shape.h"
#include "data/column.h"
#include "data/source.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void qn_rooms_free(struct qn_rooms *rooms)
{
    qn_room_free(&rooms->pixels);
    qn_room_free(&rooms->passes);
    qn_room_free(&rooms->turned);
    qn_room_free(&rooms->colours);
    qn_room_free(&rooms->partner);
    qn_room_free(&rooms->line);
    qn_room_free(&rooms->whole);
    qn_room_free(&rooms->aside);
    if (rooms->inner)
        qn_rooms_free(rooms->inner);
    free(rooms->inner);
    rooms->inner = NULL;
}

struct qn_rooms *qn_rooms_inner(struct qn_rooms *rooms)
{
    if (!rooms->inner)
        rooms->inner = calloc(1, sizeof *rooms->inner);
    return rooms->inner;
}

/* --- making --- */

void *qn_dataset_new(const struct qn_source *source, size_t size, const struct qn_log *log)
{
    struct qn_dataset *dataset = calloc(1, size);
    if (dataset)
        dataset->source = source;
    else
        qn_fail(log, QN_ERR_MEMORY, "dataset: out of memory");
    return dataset;
}

static qn_status check(const struct qn_dataset_facts *facts, const struct qn_log *log)
{
    if (facts->count < 1)
        return qn_fail(log, QN_ERR_ARGUMENT, "dataset: %" PRId64 " samples, at least 1",
                       facts->count);
    if (!facts->columns || facts->n_columns < 1 || facts->n_columns > QN_MAX_COLUMNS)
        return qn_fail(log, QN_ERR_ARGUMENT, "dataset: %d columns, 1 to %d can be",
                       facts->n_columns, QN_MAX_COLUMNS);
    for (int c = 0; c < facts->n_columns; c++) {
        const struct qn_column *column = &facts->columns[c];
        QN_TRY(qn_column_check(column, facts->count, c, log));
        if (qn_column_find(facts->columns, c, column->name))
            return qn_fail(log, QN_ERR_ARGUMENT, "dataset: %s: two columns have this name",
                           column->name);
    }
    return QN_OK;
}

/* Copies the names; false: out of memory. */
static bool copy_names(struct qn_arena *arena, struct qn_column *column)
{
    column->name = qn_arena_strdup(arena, column->name);
    if (!column->class_names)
        return column->name != NULL;
    const char **names = qn_arena_new(arena, const char *, (size_t)column->classes);
    bool good = column->name && names;
    for (int64_t i = 0; good && i < column->classes; i++) {
        names[i] = qn_arena_strdup(arena, column->class_names[i]);
        good = names[i] != NULL;
    }
    column->class_names = names;
    return good;
}

qn_status qn_dataset_set(struct qn_dataset *dataset, const struct qn_dataset_facts *facts,
                         const struct qn_log *log)
{
    QN_TRY(check(facts, log));
    size_t bytes = (size_t)facts->n_columns * sizeof *facts->columns;
    struct qn_column *columns = qn_arena_copy(&dataset->arena, facts->columns, bytes);
    bool good = columns != NULL;
    for (int c = 0; good && c < facts->n_columns; c++)
        good = copy_names(&dataset->arena, &columns[c]);
    if (!good)
        return qn_fail(log, QN_ERR_MEMORY, "dataset: out of memory");
    dataset->facts = *facts;
    dataset->facts.columns = columns;
    return QN_OK;
}

qn_status qn_dataset_give(qn_dataset **dataset, struct qn_dataset *made, qn_status status)
{
    if (status == QN_OK)
        *dataset = made;
    else
        qn_dataset_close(&made);
    return status;
}

void qn_dataset_close(qn_dataset **dataset)
{
    if (!dataset || !*dataset)
        return;
    if ((*dataset)->source->close)
        (*dataset)->source->close(*dataset);
    qn_arena_free(&(*dataset)->arena);
    free(*dataset);
    *dataset = NULL;
}

/* --- asking --- */

const qn_dataset_facts *qn_dataset_describe(const qn_dataset *dataset)
{
    return dataset ? &dataset->facts : NULL;
}

const qn_column *qn_dataset_column(const qn_dataset *dataset, const char *name)
{
    return dataset && name ? qn_column_find(dataset->facts.columns, dataset->facts.n_columns, name)
                           : NULL;
}

const char *qn_dataset_sample_name(const qn_dataset *dataset, int64_t sample)
{
    const bool named =
        dataset && dataset->source->name && sample >= 0 && sample < dataset->facts.count;
    return named ? dataset->source->name(dataset, sample) : NULL;
}

uint32_t qn_dataset_checksum(const qn_dataset *dataset)
{
    return dataset ? dataset->source->checksum(dataset) : 0;
}

qn_status qn_dataset_fits(const qn_dataset *dataset, const qn_graph *graph, const qn_log *log)
{
    QN_REQUIRE(log, dataset && graph);
    qn_tensor input;
    const char *name;
    for (int i = 0; (name = qn_graph_input(graph, i, &input)); i++) {
        const qn_column *column = qn_dataset_column(dataset, name);
        const qn_shape shape = qn_shape_of(graph, input);
        if (!column)
            return qn_fail(log, QN_ERR_SHAPE, "%s: the data has no column for this input", name);
        QN_TRY(qn_column_fits(column, qn_dtype_of(graph, input), &shape, log));
    }
    return QN_OK;
}
