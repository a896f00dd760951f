/* SPDX-License-Identifier: MIT */
#include "text/json.h"
#include "base/log.h"
#include "io/file.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { LARGEST_FILE = 1 << 26, REASON_BYTES = 400 };

qn_status qn_json_open(struct qn_json *json, const char *path, const struct qn_log *log)
{
    char *text;
    size_t size;
    const char *end = NULL;
    *json = (struct qn_json){.path = path, .log = log};
    QN_TRY(qn_file_read(path, LARGEST_FILE, &text, &size, log));
    json->root = cJSON_ParseWithLengthOpts(text, size + 1, &end, true);
    const long long stopped = end ? (long long)(end - text) : 0;
    free(text);
    if (!json->root)
        return qn_fail(log, QN_ERR_FORMAT, "%s: is not JSON, seen at byte %lld of %zu", path,
                       stopped, size);
    if (cJSON_IsObject(json->root))
        return QN_OK;
    qn_json_close(json);
    return qn_fail(log, QN_ERR_FORMAT, "%s: is not a JSON object", path);
}

void qn_json_close(struct qn_json *json)
{
    cJSON_Delete(json->root);
    json->root = NULL;
}

qn_status qn_json_wrong(const struct qn_json *json, const char *where, const char *key,
                        const char *format, ...)
{
    char reason[REASON_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    return qn_fail(json->log, QN_ERR_FORMAT, "%s: %s%s%s: %s", json->path, where,
                   *where && *key ? "." : "", key, reason);
}

const cJSON *qn_json_member(const cJSON *object, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsNull(item) ? NULL : item;
}

const char *qn_json_type(const cJSON *object)
{
    const cJSON *type = qn_json_member(object, "type");
    return cJSON_IsString(type) ? type->valuestring : "";
}

qn_status qn_json_bool(const struct qn_json *json, const cJSON *object, const char *where,
                       const char *key, bool *value)
{
    const cJSON *item = qn_json_member(object, key);
    if (item && !cJSON_IsBool(item))
        return qn_json_wrong(json, where, key, "is neither true nor false");
    if (item)
        *value = cJSON_IsTrue(item);
    return QN_OK;
}

qn_status qn_json_text(const struct qn_json *json, const cJSON *object, const char *where,
                       const char *key, const char **value)
{
    const cJSON *item = qn_json_member(object, key);
    if (item && !cJSON_IsString(item))
        return qn_json_wrong(json, where, key, "is not a text");
    if (item)
        *value = item->valuestring;
    return QN_OK;
}

qn_status qn_json_number(const struct qn_json *json, const cJSON *object, const char *where,
                         const char *key, int64_t least, int64_t most, int64_t *value)
{
    const cJSON *item = qn_json_member(object, key);
    if (!cJSON_IsNumber(item))
        return qn_json_wrong(json, where, key, "is not a number");
    const double number = item->valuedouble;
    if (!(number >= (double)least && number <= (double)most) || number != (double)(int64_t)number)
        return qn_json_wrong(json, where, key, "%.17g is not a whole number from %lld to %lld",
                             number, (long long)least, (long long)most);
    *value = (int64_t)number;
    return QN_OK;
}
