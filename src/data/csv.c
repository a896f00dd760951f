/* SPDX-License-Identifier: MIT
 *
 * Datasets of a file of comma-separated values, held in memory.
 */
#include "io/csv.h"
#include "base/log.h"
#include "base/room.h"
#include "base/text.h"
#include "data/class_names.h"
#include "data/source.h"
#include "data/standardize.h"
#include "io/path.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MOST_COLUMNS = 1 << 16, MOST_NAME = 1000 };

/* What a column of the file is for. */
enum role { ROLE_NONE, ROLE_FEATURE, ROLE_TARGET, ROLE_LABEL };
static const char *const column_names[] = {[ROLE_FEATURE] = "features", [ROLE_TARGET] = "targets"};

struct column {
    const char *name;
    enum role role;
    int64_t place; /* among those of the same role */
};

/* Rows of one role. */
struct values {
    int64_t width; /* numbers of a row */
    float *value;  /* (rows, width) */
    size_t room;
    struct qn_moments moments; /* the caller's */
};

struct table {
    struct qn_dataset base;
    const char *path; /* the caller's, while the file is read */
    int64_t count;    /* columns of the file */
    struct column *column;
    const struct column **sorted;     /* (count) by name */
    const char **feature;             /* names of the features */
    struct values values[ROLE_LABEL]; /* by role */
    bool binary, labelled;
    int32_t *label; /* (rows) */
    size_t label_room, rows;
    struct qn_class_names names;
    bool named; /* the caller gave the names */
};

__attribute__((format(printf, 5, 6))) static qn_status refuse(const struct table *table,
                                                              int64_t line, const char *column,
                                                              const struct qn_log *log,
                                                              const char *format, ...)
{
    char reason[300];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    return qn_fail(log, QN_ERR_FORMAT, "%s: line %" PRId64 ": %.60s: %s", table->path, line, column,
                   reason);
}

/* The cell without the blanks around it. */
static char *trim(char *cell)
{
    cell += strspn(cell, " \t");
    size_t length = strlen(cell);
    while (length && strchr(" \t", cell[length - 1]))
        length--;
    cell[length] = 0;
    return cell;
}

/* --- the first line --- */

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const struct column *const *)a)->name,
                  (*(const struct column *const *)b)->name);
}

static qn_status sort_columns(struct table *table, int64_t line, const struct qn_log *log)
{
    for (int64_t i = 0; i < table->count; i++)
        table->sorted[i] = &table->column[i];
    qsort(table->sorted, (size_t)table->count, sizeof *table->sorted, by_name);
    for (int64_t i = 1; i < table->count; i++)
        if (by_name(&table->sorted[i - 1], &table->sorted[i]) == 0)
            return refuse(table, line, table->sorted[i]->name, log, "two columns have this name");
    return QN_OK;
}

static qn_status read_names(struct table *table, const struct qn_csv *csv, const struct qn_log *log)
{
    struct qn_arena *arena = &table->base.arena;
    if (csv->count > MOST_COLUMNS)
        return qn_fail(log, QN_ERR_FORMAT, "%s: line %" PRId64 ": more than %d columns",
                       table->path, csv->number, MOST_COLUMNS);
    table->count = (int64_t)csv->count;
    table->column = qn_arena_new(arena, struct column, csv->count);
    table->sorted = qn_arena_new(arena, const struct column *, csv->count);
    table->feature = qn_arena_new(arena, const char *, csv->count);
    if (!table->column || !table->sorted || !table->feature)
        return qn_fail_memory(log, table->path);
    for (size_t i = 0; i < csv->count; i++) {
        const char *name = trim(qn_csv_cell(csv, i));
        if (!*name || strlen(name) > MOST_NAME)
            return qn_fail(log, QN_ERR_FORMAT,
                           "%s: line %" PRId64 ": cell %zu: the name of a column has 1 to %d bytes",
                           table->path, csv->number, i + 1, MOST_NAME);
        table->column[i].name = qn_arena_strdup(arena, name);
        if (!table->column[i].name)
            return qn_fail_memory(log, table->path);
    }
    return sort_columns(table, csv->number, log);
}

static qn_status refuse_name(const struct table *table, int64_t line, const char *name,
                             const struct qn_log *log)
{
    qn_nearest nearest = {.text = name};
    char hint[QN_NEAREST_BYTES];
    for (int64_t i = 0; i < table->count; i++)
        qn_nearest_offer(&nearest, table->column[i].name);
    return refuse(table, line, name, log, "no such column%s", qn_nearest_hint(&nearest, hint));
}

static qn_status give_role(struct table *table, int64_t line, const char *name, enum role role,
                           int64_t place, const struct qn_log *log)
{
    const struct column wanted = {.name = name}, *key = &wanted;
    const struct column **found =
        bsearch(&key, table->sorted, (size_t)table->count, sizeof *table->sorted, by_name);
    if (!found)
        return refuse_name(table, line, name, log);
    struct column *column = &table->column[*found - table->column];
    if (column->role)
        return refuse(table, line, name, log, "is asked for twice");
    column->role = role;
    column->place = place;
    if (role == ROLE_FEATURE)
        table->feature[place] = column->name;
    return QN_OK;
}

static qn_status give_roles(struct table *table, const qn_csv_params *params, int64_t line)
{
    const struct qn_log *log = &params->log;
    int64_t features = 0;
    for (int64_t i = 0; i < params->n_targets; i++)
        QN_TRY(give_role(table, line, params->targets[i], ROLE_TARGET, i, log));
    if (params->label)
        QN_TRY(give_role(table, line, params->label, ROLE_LABEL, 0, log));
    for (; params->features && features < params->n_features; features++)
        QN_TRY(give_role(table, line, params->features[features], ROLE_FEATURE, features, log));
    for (int64_t i = 0; !params->features && i < table->count; i++)
        if (!table->column[i].role)
            QN_TRY(give_role(table, line, table->column[i].name, ROLE_FEATURE, features++, log));
    table->values[ROLE_FEATURE].width = features;
    table->values[ROLE_TARGET].width = params->n_targets;
    return features ? QN_OK
                    : qn_fail(log, QN_ERR_FORMAT, "%s: line %" PRId64 ": no column is a feature",
                              table->path, line);
}

/* --- rows --- */

static qn_status read_number(struct table *table, const struct qn_csv *csv, size_t index,
                             const struct qn_log *log)
{
    const struct column *column = &table->column[index];
    struct values *values = &table->values[column->role];
    const char *cell = trim(qn_csv_cell(csv, index));
    double number;
    if (!*cell)
        return refuse(table, csv->number, column->name, log, "is empty");
    if (!qn_text_read_number(cell, &number))
        return refuse(table, csv->number, column->name, log, "'%.60s' is no number", cell);
    if (column->role == ROLE_TARGET && table->binary && number != 0 && number != 1)
        return refuse(table, csv->number, column->name, log, "'%.60s' is neither 0 nor 1", cell);
    float *to = &values->value[(int64_t)table->rows * values->width + column->place];
    return qn_standardize(to, number, &values->moments, (size_t)column->place)
               ? QN_OK
               : refuse(table, csv->number, column->name, log, "'%.60s' is too large for f32",
                        cell);
}

static qn_status read_label(struct table *table, const struct qn_csv *csv, size_t index,
                            const struct qn_log *log)
{
    const char *column = table->column[index].name, *cell = qn_csv_cell(csv, index);
    if (!*cell || strlen(cell) > MOST_NAME)
        return refuse(table, csv->number, column, log, "the name of a class has 1 to %d bytes",
                      MOST_NAME);
    const struct qn_class_name *name = qn_class_names_find(&table->names, cell);
    if (!name && table->named)
        return refuse(table, csv->number, column, log, "'%.60s' is none of the %zu names", cell,
                      table->names.count);
    if (!name && table->names.count == QN_MOST_CLASS_NAMES)
        return refuse(table, csv->number, column, log, "more than %d names", QN_MOST_CLASS_NAMES);
    if (!name)
        name = qn_class_names_add(&table->names, cell);
    if (!name)
        return qn_fail_memory(log, table->path);
    table->label[table->rows] = name->number;
    return QN_OK;
}

static bool make_room(struct table *table)
{
    bool good = !table->labelled || QN_ROOM(table->label, table->label_room, table->rows + 1);
    for (enum role role = ROLE_FEATURE; good && role <= ROLE_TARGET; role++) {
        struct values *values = &table->values[role];
        good = QN_ROOM(values->value, values->room, (table->rows + 1) * (size_t)values->width);
    }
    return good;
}

static qn_status check_cells(const struct table *table, const struct qn_csv *csv,
                             const struct qn_log *log)
{
    const size_t count = (size_t)table->count;
    if (csv->count < count)
        return refuse(table, csv->number, table->column[csv->count].name, log,
                      "is missing: the row has %zu cells, the first line %zu", csv->count, count);
    if (csv->count > count)
        return qn_fail(log, QN_ERR_FORMAT,
                       "%s: line %" PRId64 ": cell %zu: has no column: the first line has %zu",
                       table->path, csv->number, csv->count, count);
    return QN_OK;
}

static qn_status read_row(struct table *table, const struct qn_csv *csv, const struct qn_log *log)
{
    QN_TRY(check_cells(table, csv, log));
    if (!make_room(table))
        return qn_fail_memory(log, table->path);
    for (size_t i = 0; i < csv->count; i++) {
        const enum role role = table->column[i].role;
        if (role == ROLE_LABEL)
            QN_TRY(read_label(table, csv, i, log));
        else if (role != ROLE_NONE)
            QN_TRY(read_number(table, csv, i, log));
    }
    table->rows++;
    return QN_OK;
}

static qn_status read_rows(struct table *table, struct qn_csv *csv, const qn_csv_params *params)
{
    const struct qn_log *log = &params->log;
    bool there;
    QN_TRY(qn_csv_next(csv, &there));
    if (!there)
        return qn_fail(log, QN_ERR_FORMAT, "%s: is empty", table->path);
    QN_TRY(read_names(table, csv, log));
    QN_TRY(give_roles(table, params, csv->number));
    for (;;) {
        QN_TRY(qn_csv_next(csv, &there));
        if (!there)
            break;
        QN_TRY(read_row(table, csv, log));
    }
    return table->rows
               ? QN_OK
               : qn_fail(log, QN_ERR_FORMAT, "%s: no row behind the first line", table->path);
}

/* --- the dataset --- */

static qn_status take_names(struct table *table, const qn_csv_params *params)
{
    table->named = params->class_names != NULL;
    for (int64_t i = 0; table->named && i < params->classes; i++)
        if (!qn_class_names_add(&table->names, params->class_names[i]))
            return qn_fail_memory(&params->log, params->path);
    return QN_OK;
}

/* Gives the names by class, in the dataset's memory; labels become classes. */
static qn_status sort_names(struct table *table, const char ***names, const struct qn_log *log)
{
    const size_t count = table->names.count;
    *names = qn_arena_new(&table->base.arena, const char *, count + 1);
    int32_t *classes = qn_arena_new(&table->base.arena, int32_t, count + 1);
    if (!*names || !classes)
        return qn_fail_memory(log, table->path);
    qn_class_names_order(&table->names, table->named, *names, classes);
    for (size_t i = 0; table->labelled && i < table->rows; i++)
        table->label[i] = classes[table->label[i]];
    return QN_OK;
}

static qn_status describe(struct table *table, const qn_csv_params *params)
{
    struct qn_division division = {.path = table->path,
                                   .rows = "rows",
                                   .count = (int64_t)table->rows,
                                   .held_out = params->held_out,
                                   .split = params->split};
    struct qn_column columns[ROLE_LABEL];
    const char **names;
    int count = 0;
    QN_TRY(qn_divide(&division, &params->log));
    QN_TRY(sort_names(table, &names, &params->log));
    for (enum role role = ROLE_FEATURE; role <= ROLE_TARGET; role++) {
        const struct values *values = &table->values[role];
        if (values->width)
            columns[count++] =
                (struct qn_column){.name = column_names[role],
                                   .dtype = QN_F32,
                                   .shape = {1, {values->width}},
                                   .data = values->value + division.first * values->width};
    }
    if (table->labelled)
        columns[count++] = (struct qn_column){.name = "labels",
                                              .dtype = QN_I32,
                                              .classes = (int64_t)table->names.count,
                                              .class_names = names,
                                              .data = table->label + division.first};
    const qn_dataset_facts facts = {division.samples, count, columns};
    return qn_dataset_set(&table->base, &facts, &params->log);
}

static void close_table(struct qn_dataset *dataset)
{
    struct table *table = (struct table *)dataset;
    for (enum role role = ROLE_FEATURE; role <= ROLE_TARGET; role++)
        free(table->values[role].value);
    free(table->label);
    qn_class_names_free(&table->names);
}

static const struct qn_source source = {qn_arrays_read, qn_arrays_checksum, close_table};

static qn_status open_table(struct table *table, const qn_csv_params *params)
{
    struct qn_csv csv;
    table->path = params->path;
    table->values[ROLE_FEATURE].moments = (struct qn_moments){params->mean, params->deviation};
    table->binary = params->binary;
    table->labelled = params->label != NULL;
    QN_TRY(take_names(table, params));
    QN_TRY(qn_csv_open(&csv, params->path, &params->log));
    const qn_status status = read_rows(table, &csv, params);
    qn_csv_close(&csv);
    return status == QN_OK ? describe(table, params) : status;
}

static qn_status check_params(const qn_csv_params *params)
{
    const struct qn_log *log = &params->log;
    QN_REQUIRE(log, params->path && !(params->label && params->n_targets));
    QN_REQUIRE(log, params->n_targets >= 0 && (!params->n_targets || params->targets));
    QN_REQUIRE(log, !params->features || params->n_features >= 1);
    QN_REQUIRE(log, !params->mean == !params->deviation && (!params->mean || params->features));
    QN_REQUIRE(log, params->held_out >= 0 && params->held_out < 1);
    QN_REQUIRE(log, params->split == QN_SPLIT_TRAIN || params->split == QN_SPLIT_TEST);
    QN_REQUIRE(log, !params->class_names ||
                        (params->classes >= 1 && params->classes <= QN_MOST_CLASS_NAMES));
    for (int64_t i = 0; params->deviation && i < params->n_features; i++)
        QN_REQUIRE(log, params->deviation[i] > 0);
    return QN_OK;
}

qn_status qn_dataset_open_csv(qn_dataset **dataset, const qn_csv_params *params)
{
    const struct qn_log *log = params ? &params->log : NULL;
    QN_REQUIRE(log, dataset && params);
    QN_TRY(check_params(params));
    *dataset = NULL;
    struct table *made = qn_dataset_new(&source, sizeof *made, log);
    if (!made)
        return QN_ERR_MEMORY;
    return qn_dataset_give(dataset, &made->base, open_table(made, params));
}

const char *qn_csv_feature(const qn_dataset *dataset, int64_t index)
{
    const struct table *table = (const struct table *)dataset;
    if (!dataset || dataset->source != &source || index < 0)
        return NULL;
    return index < table->values[ROLE_FEATURE].width ? table->feature[index] : NULL;
}
