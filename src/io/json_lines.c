/* SPDX-License-Identifier: MIT */
#include "io/json_lines.h"
#include "base/log.h"
#include "io/lines.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <quern/text.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { MOST_NAME = 1000, MOST_LABELS = 1 << 24, REASON_BYTES = 400 };

qn_status qn_json_line_wrong(const struct qn_json_fields *fields, int64_t number, const char *field,
                             const char *format, ...)
{
    char reason[REASON_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    return qn_fail(fields->log, QN_ERR_FORMAT, "%s: line %" PRId64 ": %.60s: %s", fields->path,
                   number, field, reason);
}

/* --- one line --- */

/* Whether there is a byte 0, or an escape that means one: strings would end there. */
static bool holds_zero(const char *bytes, size_t size)
{
    static const char escape[] = "\\u0000";
    const size_t length = sizeof escape - 1;
    for (size_t i = 0; i < size; i++) {
        if (!bytes[i] || (size - i >= length && memcmp(bytes + i, escape, length) == 0))
            return true;
        i += bytes[i] == '\\';
    }
    return false;
}

static qn_status find(const struct qn_json_fields *fields, int64_t number, const cJSON *root,
                      const char *field, const cJSON **found)
{
    const cJSON *item;
    *found = NULL;
    cJSON_ArrayForEach(item, root)
    {
        if (strcmp(item->string, field) != 0)
            continue;
        if (*found)
            return qn_json_line_wrong(fields, number, field, "is there twice");
        *found = item;
    }
    return *found ? QN_OK : qn_json_line_wrong(fields, number, field, "is missing");
}

static qn_status read_text(struct qn_json_line *line, const struct qn_json_fields *fields,
                           int64_t number)
{
    const cJSON *item;
    QN_TRY(find(fields, number, line->root, fields->text, &item));
    if (!cJSON_IsString(item))
        return qn_json_line_wrong(fields, number, fields->text, "is not a text");
    line->text = item->valuestring;
    line->bytes = strlen(line->text);
    return QN_OK;
}

static qn_status read_name(struct qn_json_line *line, const struct qn_json_fields *fields,
                           int64_t number, const char *name)
{
    line->name = name;
    return *name && strlen(name) <= MOST_NAME
               ? QN_OK
               : qn_json_line_wrong(fields, number, fields->label,
                                    "the name of a class has 1 to %d bytes", MOST_NAME);
}

static qn_status read_label(struct qn_json_line *line, const struct qn_json_fields *fields,
                            int64_t number)
{
    const cJSON *item;
    QN_TRY(find(fields, number, line->root, fields->label, &item));
    if (cJSON_IsString(item))
        return read_name(line, fields, number, item->valuestring);
    const double label = item->valuedouble;
    if (!cJSON_IsNumber(item))
        return qn_json_line_wrong(fields, number, fields->label, "is neither a number nor a text");
    if (!(label >= 0 && label < MOST_LABELS) || label != (double)(int64_t)label)
        return qn_json_line_wrong(fields, number, fields->label,
                                  "%.17g is not a whole number from 0 to %d", label,
                                  MOST_LABELS - 1);
    line->label = (int64_t)label;
    return QN_OK;
}

static qn_status read_fields(struct qn_json_line *line, const struct qn_json_fields *fields,
                             int64_t number, const char *bytes, size_t size)
{
    const char *path = fields->path;
    if (holds_zero(bytes, size))
        return qn_fail(fields->log, QN_ERR_FORMAT, "%s: line %" PRId64 ": has a character 0", path,
                       number);
    line->root = cJSON_ParseWithLengthOpts(bytes, size + 1, NULL, true);
    if (!cJSON_IsObject(line->root))
        return qn_fail(fields->log, QN_ERR_FORMAT, "%s: line %" PRId64 ": is not a JSON object",
                       path, number);
    QN_TRY(read_text(line, fields, number));
    return fields->label ? read_label(line, fields, number) : QN_OK;
}

qn_status qn_json_line_read(struct qn_json_line *line, const struct qn_json_fields *fields,
                            int64_t number, const char *bytes, size_t size)
{
    *line = (struct qn_json_line){0};
    const qn_status status = read_fields(line, fields, number, bytes, size);
    if (status != QN_OK)
        qn_json_line_free(line);
    return status;
}

void qn_json_line_free(struct qn_json_line *line)
{
    cJSON_Delete(line->root);
    *line = (struct qn_json_line){0};
}

/* --- all texts --- */

static qn_status give_text(const struct qn_lines *lines, const struct qn_json_fields *fields,
                           qn_text_fn fn, void *user)
{
    struct qn_json_line line;
    QN_TRY(qn_json_line_read(&line, fields, lines->number, lines->line, lines->bytes));
    const qn_status status = fn(user, line.text, line.bytes);
    qn_json_line_free(&line);
    return status;
}

static qn_status give_texts(struct qn_lines *lines, const struct qn_json_fields *fields,
                            qn_text_fn fn, void *user)
{
    for (bool there;;) {
        QN_TRY(qn_lines_next(lines, &there));
        if (!there)
            break;
        QN_TRY(give_text(lines, fields, fn, user));
    }
    return lines->number ? QN_OK
                         : qn_fail(fields->log, QN_ERR_FORMAT, "%s: is empty", fields->path);
}

qn_status qn_json_lines_texts(const char *path, const char *field, qn_text_fn fn, void *user,
                              const qn_log *log)
{
    QN_REQUIRE(log, path && field && fn);
    const struct qn_json_fields fields = {.path = path, .text = field, .log = log};
    struct qn_lines lines;
    QN_TRY(qn_lines_open(&lines, path, log));
    const qn_status status = give_texts(&lines, &fields, fn, user);
    qn_lines_close(&lines);
    return status;
}
