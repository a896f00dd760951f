/* SPDX-License-Identifier: MIT
 *
 * Lines of JSON: what one of them says, and all texts of a file. What is wrong is told as
 * `FILE: line 3: field: reason`.
 */
#ifndef QN_IO_JSON_LINES_H
#define QN_IO_JSON_LINES_H

#include <quern/log.h>
#include <stddef.h>
#include <stdint.h>

/* What is looked for. Texts are borrowed. */
struct qn_json_fields {
    const char *path;
    const char *text;
    const char *label; /* NULL: labels are not looked at */
    const struct qn_log *log;
};

/* What a line says. A zeroed struct is none. */
struct qn_json_line {
    const char *text; /* with a NUL behind it */
    size_t bytes;
    const char *name; /* the label, 1 to 1000 bytes; NULL: `label` is */
    int64_t label;    /* from 0 on, below 2^24 */
    struct cJSON *root;
};

/* Reads line `number` of the file: `bytes` bytes, with a NUL behind them. Texts are bytes: nobody
 * asks whether they are UTF-8. QN_ERR_FORMAT: it is no JSON object, a field is missing, there twice
 * or of another type, or there is a character 0, which no text can hold. */
qn_status qn_json_line_read(struct qn_json_line *line, const struct qn_json_fields *fields,
                            int64_t number, const char *bytes, size_t size);
void qn_json_line_free(struct qn_json_line *line);

/* "PATH: line N: FIELD: reason", QN_ERR_FORMAT. */
qn_status qn_json_line_wrong(const struct qn_json_fields *fields, int64_t number, const char *field,
                             const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
