/* SPDX-License-Identifier: MIT
 *
 * Fields of a JSON file, and the line that names the one that is wrong: `FILE: model.vocab:
 * reason`.
 */
#ifndef QN_TEXT_JSON_H
#define QN_TEXT_JSON_H

#include <cjson/cJSON.h>
#include <quern/log.h>
#include <stdbool.h>
#include <stdint.h>

struct qn_json {
    const char *path;
    const struct qn_log *log;
    cJSON *root;
};

/* Reads a file that holds one JSON object, of at most 64 MiB. */
qn_status qn_json_open(struct qn_json *json, const char *path, const struct qn_log *log);
void qn_json_close(struct qn_json *json);

/* "PATH: WHERE.KEY: reason", QN_ERR_FORMAT; `where` may be "". */
qn_status qn_json_wrong(const struct qn_json *json, const char *where, const char *key,
                        const char *format, ...) __attribute__((format(printf, 4, 5)));

/* The value of a key; NULL: it is missing or null. */
const cJSON *qn_json_member(const cJSON *object, const char *key);
/* The text of the key "type"; "" where it has none. */
const char *qn_json_type(const cJSON *object);

/* The value of a key, which must have the type; what was in *value stays where the key is missing
 * or null. Texts are borrowed. Numbers are whole and within [least, most]. */
qn_status qn_json_bool(const struct qn_json *json, const cJSON *object, const char *where,
                       const char *key, bool *value);
qn_status qn_json_text(const struct qn_json *json, const cJSON *object, const char *where,
                       const char *key, const char **value);
/* A number may not be missing. */
qn_status qn_json_number(const struct qn_json *json, const cJSON *object, const char *where,
                         const char *key, int64_t least, int64_t most, int64_t *value);

#endif
