/* SPDX-License-Identifier: MIT
 *
 * Datasets of lines, each a text and its class in JSON, or a text as it stands.
 */
#include "io/json_lines.h"
#include "base/log.h"
#include "base/room.h"
#include "data/class_names.h"
#include "data/source.h"
#include "io/file.h"
#include "io/lines.h"
#include "io/path.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum column { TOKENS, LENGTHS, LABELS, COLUMNS };
enum label_kind { LABEL_UNKNOWN, LABEL_NUMBER, LABEL_NAME };
enum { BYTES = 256 }; /* tokens without a tokenizer */

struct line {
    int64_t offset; /* in the file */
    int32_t bytes, label;
};

/* A file, and where its samples are: sample i is line first + i. */
struct line_set {
    struct qn_dataset base;
    int fd;
    int64_t bytes;                /* of the file */
    struct qn_json_fields fields; /* the dataset's own texts; `log` is the caller's of the moment */
    const qn_tokenizer *tokenizer;
    int64_t length, first;
    bool plain;        /* lines are texts, not JSON */
    struct line *line; /* (count) of the whole file */
    size_t count, room;
    enum label_kind kind;
    struct qn_class_names names;
    bool named;         /* the caller gave the names */
    int64_t classes;    /* the largest label and 1, or as many as there are names */
    uint32_t first_row; /* CRC-32 of its tokens: tokenizers differ there */
};

/* --- labels --- */

static bool is_labelled(const struct line_set *set)
{
    return set->fields.label != NULL;
}

static qn_status refuse_label(const struct qn_json_fields *fields, int64_t number,
                              const char *reason)
{
    return qn_json_line_wrong(fields, number, fields->label, "%s", reason);
}

static qn_status name_label(struct line_set *set, const struct qn_json_fields *fields,
                            int64_t number, const char *text, int32_t *label)
{
    const struct qn_class_name *name = qn_class_names_find(&set->names, text);
    if (!name && set->named)
        return qn_json_line_wrong(fields, number, fields->label, "'%.60s' is none of the %zu names",
                                  text, set->names.count);
    if (!name && set->names.count == QN_MOST_CLASS_NAMES)
        return qn_json_line_wrong(fields, number, fields->label, "more than %d names",
                                  QN_MOST_CLASS_NAMES);
    if (!name)
        name = qn_class_names_add(&set->names, text);
    if (!name)
        return qn_fail_memory(fields->log, fields->path);
    *label = name->number;
    return QN_OK;
}

static qn_status add_label(struct line_set *set, const struct qn_json_fields *fields,
                           int64_t number, const struct qn_json_line *line, int32_t *label)
{
    const enum label_kind kind = line->name ? LABEL_NAME : LABEL_NUMBER;
    if (set->kind == LABEL_UNKNOWN)
        set->kind = kind;
    if (kind != set->kind)
        return refuse_label(fields, number,
                            line->name ? "is a name, but other labels are numbers"
                                       : "is a number, but other labels are names");
    if (line->name)
        return name_label(set, fields, number, line->name, label);
    *label = (int32_t)line->label;
    if (set->classes <= line->label)
        set->classes = line->label + 1;
    return QN_OK;
}

/* The caller's names keep their order. */
static qn_status take_names(struct line_set *set, const qn_json_line_params *params)
{
    set->named = params->class_names != NULL;
    set->kind = set->named ? LABEL_NAME : is_labelled(set) ? LABEL_UNKNOWN : LABEL_NUMBER;
    for (int64_t i = 0; set->named && i < params->classes; i++)
        if (!qn_class_names_add(&set->names, params->class_names[i]))
            return qn_fail_memory(&params->log, params->path);
    return QN_OK;
}

/* Gives the names by class, in the dataset's memory; NULL: labels are numbers. Else they become
 * classes. */
static qn_status sort_names(struct line_set *set, const char *const **texts,
                            const struct qn_log *log)
{
    const size_t count = set->names.count;
    *texts = NULL;
    if (set->kind == LABEL_NUMBER)
        return QN_OK;
    const char **sorted = qn_arena_new(&set->base.arena, const char *, count);
    int32_t *classes = qn_arena_new(&set->base.arena, int32_t, count);
    if (!sorted || !classes)
        return qn_fail_memory(log, set->fields.path);
    qn_class_names_order(&set->names, set->named, sorted, classes);
    for (size_t i = 0; i < set->count; i++)
        set->line[i].label = classes[set->line[i].label];
    set->classes = (int64_t)count;
    *texts = sorted;
    return QN_OK;
}

/* --- opening --- */

static qn_status check_params(const qn_json_line_params *params)
{
    const struct qn_log *log = &params->log;
    QN_REQUIRE(log, params->path && !(params->plain && params->label));
    QN_REQUIRE(log, params->length >= 1 && params->length <= INT32_MAX);
    QN_REQUIRE(log, params->held_out >= 0 && params->held_out < 1);
    QN_REQUIRE(log, params->split == QN_SPLIT_TRAIN || params->split == QN_SPLIT_TEST);
    QN_REQUIRE(log, !params->class_names ||
                        (params->classes >= 1 && params->classes <= QN_MOST_CLASS_NAMES));
    return QN_OK;
}

static qn_status copy_fields(struct line_set *set, const qn_json_line_params *params)
{
    struct qn_arena *arena = &set->base.arena;
    set->fields = (struct qn_json_fields){
        .path = qn_arena_strdup(arena, params->path),
        .text = qn_arena_strdup(arena, params->text ? params->text : "text"),
        .label = params->label ? qn_arena_strdup(arena, params->label) : NULL};
    return set->fields.path && set->fields.text && !set->fields.label == !params->label
               ? QN_OK
               : qn_fail_memory(&params->log, params->path);
}

static qn_status add_line(struct line_set *set, const struct qn_json_fields *fields,
                          const struct qn_lines *lines, const struct qn_json_line *line)
{
    int32_t label = 0;
    if (!line->bytes)
        return qn_json_line_wrong(fields, lines->number, fields->text, "is empty");
    if (is_labelled(set))
        QN_TRY(add_label(set, fields, lines->number, line, &label));
    if (!QN_ROOM(set->line, set->room, set->count + 1))
        return qn_fail_memory(fields->log, fields->path);
    set->line[set->count++] = (struct line){lines->offset, (int32_t)lines->bytes, label};
    return QN_OK;
}

static qn_status read_line(const struct line_set *set, struct qn_json_line *line,
                           const struct qn_json_fields *fields, int64_t number, const char *bytes,
                           size_t size)
{
    if (!set->plain)
        return qn_json_line_read(line, fields, number, bytes, size);
    const bool ended = size && bytes[size - 1] == '\r';
    *line = (struct qn_json_line){.text = bytes, .bytes = size - ended};
    return QN_OK;
}

static qn_status add_lines(struct line_set *set, const struct qn_json_fields *fields,
                           struct qn_lines *lines)
{
    struct qn_json_line line;
    for (bool there;;) {
        QN_TRY(qn_lines_next(lines, &there));
        if (!there)
            return QN_OK;
        QN_TRY(read_line(set, &line, fields, lines->number, lines->line, lines->bytes));
        const qn_status status = add_line(set, fields, lines, &line);
        qn_json_line_free(&line);
        QN_TRY(status);
    }
}

static qn_status read_file(struct line_set *set, const struct qn_log *log)
{
    struct qn_json_fields fields = set->fields;
    struct qn_lines lines;
    fields.log = log;
    QN_TRY(qn_lines_open(&lines, fields.path, log));
    const qn_status status = add_lines(set, &fields, &lines);
    qn_lines_close(&lines);
    return status == QN_OK && !set->count ? qn_fail(log, QN_ERR_FORMAT, "%s: is empty", fields.path)
                                          : status;
}

/* Finds the split's lines and so the number of samples. */
static qn_status divide(struct line_set *set, const qn_json_line_params *params, int64_t *samples)
{
    struct qn_division division = {.path = set->fields.path,
                                   .rows = "lines",
                                   .count = (int64_t)set->count,
                                   .held_out = params->held_out,
                                   .split = params->split};
    QN_TRY(qn_divide(&division, &params->log));
    set->first = division.first;
    *samples = division.samples;
    return QN_OK;
}

static qn_status describe(struct line_set *set, int64_t samples, const char *const *names,
                          const struct qn_log *log)
{
    const int64_t tokens = set->tokenizer ? qn_tokenizer_size(set->tokenizer) : BYTES;
    const struct qn_column columns[COLUMNS] = {
        [TOKENS] = {.name = "tokens",
                    .dtype = QN_I32,
                    .shape = {1, {set->length}},
                    .classes = tokens},
        [LENGTHS] = {.name = "lengths", .dtype = QN_I32},
        [LABELS] = {.name = "labels",
                    .dtype = QN_I32,
                    .classes = set->classes,
                    .class_names = names},
    };
    const qn_dataset_facts facts = {samples, is_labelled(set) ? COLUMNS : LABELS, columns};
    return qn_dataset_set(&set->base, &facts, log);
}

/* --- samples --- */

/* A row of tokens as it is filled. */
struct row {
    int32_t *tokens;
    int64_t count;
};

static qn_status take_ids(void *user, const int32_t *ids, int64_t count)
{
    struct row *row = user;
    memcpy(row->tokens + row->count, ids, (size_t)count * sizeof *ids);
    row->count += count;
    return QN_OK;
}

static qn_status encode(const struct line_set *set, const struct qn_json_line *line,
                        struct row *row, const struct qn_log *log)
{
    const qn_encode_params params = {
        .frame = true, .most = set->length, .log = log, .fn = take_ids, .user = row};
    if (set->tokenizer)
        return qn_tokenizer_encode(set->tokenizer, line->text, line->bytes, &params);
    for (; row->count < set->length && row->count < (int64_t)line->bytes; row->count++)
        row->tokens[row->count] = (uint8_t)line->text[row->count];
    return QN_OK;
}

static qn_status fill_row(const struct line_set *set, const struct qn_json_fields *fields,
                          int64_t number, const struct qn_json_line *line, struct row *row)
{
    QN_TRY(encode(set, line, row, fields->log));
    if (!row->count)
        return qn_json_line_wrong(fields, number, fields->text, "becomes no token");
    memset(row->tokens + row->count, 0, (size_t)(set->length - row->count) * sizeof *row->tokens);
    return QN_OK;
}

static qn_status read_row(const struct line_set *set, int64_t index, struct row *row,
                          struct qn_rooms *rooms, const struct qn_log *log)
{
    const struct line *place = &set->line[index];
    const size_t bytes = (size_t)place->bytes;
    char *text = qn_room_take(&rooms->line, (int64_t)bytes + 1);
    struct qn_json_fields fields = set->fields;
    struct qn_json_line line;
    fields.log = log;
    fields.label = NULL;
    if (!text)
        return qn_fail_memory(log, fields.path);
    QN_TRY(qn_read_at(set->fd, fields.path, place->offset, text, bytes, log));
    text[bytes] = 0;
    QN_TRY(read_line(set, &line, &fields, index + 1, text, bytes));
    const qn_status status = fill_row(set, &fields, index + 1, &line, row);
    qn_json_line_free(&line);
    return status;
}

static qn_status read_samples(const struct qn_dataset *dataset, const struct qn_draw *draws,
                              int64_t count, void *const *rows, struct qn_rooms *rooms,
                              const struct qn_log *log)
{
    const struct line_set *set = (const struct line_set *)dataset;
    int32_t *tokens = rows[TOKENS], *lengths = rows[LENGTHS];
    int32_t *labels = is_labelled(set) ? rows[LABELS] : NULL;
    for (int64_t i = 0; i < count; i++) {
        const int64_t index = set->first + draws[i].sample;
        struct row row = {.tokens = tokens + i * set->length};
        QN_TRY(read_row(set, index, &row, rooms, log));
        lengths[i] = (int32_t)row.count;
        if (labels)
            labels[i] = set->line[index].label;
    }
    return QN_OK;
}

/* --- the whole --- */

static uint32_t checksum(const struct qn_dataset *dataset)
{
    const struct line_set *set = (const struct line_set *)dataset;
    const int64_t numbers[] = {qn_file_pages_crc32(set->fd, set->fields.path, set->bytes),
                               set->first, set->length, set->first_row};
    uLong sum = crc32_z(0, (const Bytef *)numbers, sizeof numbers);
    const char *label = is_labelled(set) ? set->fields.label : "";
    sum = crc32_z(sum, (const Bytef *)set->fields.text, strlen(set->fields.text) + 1);
    return (uint32_t)crc32_z(sum, (const Bytef *)label, strlen(label));
}

static void close_file(struct qn_dataset *dataset)
{
    struct line_set *set = (struct line_set *)dataset;
    if (set->fd >= 0)
        close(set->fd);
    free(set->line);
    qn_class_names_free(&set->names);
}

static const struct qn_source source = {read_samples, checksum, close_file};

/* A tokenizer that does not fit is refused here, not by a loader. */
static qn_status read_first(struct line_set *set, const struct qn_log *log)
{
    struct qn_rooms rooms = {0};
    const size_t bytes = (size_t)set->length * sizeof(int32_t);
    struct row row = {.tokens = malloc(bytes)};
    const qn_status status = row.tokens ? read_row(set, set->first, &row, &rooms, log)
                                        : qn_fail_memory(log, set->fields.path);
    if (status == QN_OK)
        set->first_row = (uint32_t)crc32_z(0, (const Bytef *)row.tokens, bytes);
    free(row.tokens);
    qn_rooms_free(&rooms);
    return status;
}

static qn_status open_file(struct line_set *set, const qn_json_line_params *params)
{
    const struct qn_log *log = &params->log;
    const char *const *names;
    int64_t samples;
    QN_TRY(copy_fields(set, params));
    QN_TRY(take_names(set, params));
    QN_TRY(qn_file_open(params->path, &set->fd, &set->bytes, log));
    QN_TRY(read_file(set, log));
    QN_TRY(sort_names(set, &names, log));
    QN_TRY(divide(set, params, &samples));
    QN_TRY(describe(set, samples, names, log));
    return read_first(set, log);
}

qn_status qn_dataset_open_json_lines(qn_dataset **dataset, const qn_json_line_params *params)
{
    const struct qn_log *log = params ? &params->log : NULL;
    QN_REQUIRE(log, dataset && params);
    QN_TRY(check_params(params));
    *dataset = NULL;
    struct line_set *made = qn_dataset_new(&source, sizeof *made, log);
    if (!made)
        return QN_ERR_MEMORY;
    made->fd = -1;
    made->tokenizer = params->tokenizer;
    made->length = params->length;
    made->plain = params->plain;
    return qn_dataset_give(dataset, &made->base, open_file(made, params));
}
