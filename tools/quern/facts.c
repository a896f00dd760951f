/* SPDX-License-Identifier: MIT */
#include "facts.h"
#include "file.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum kind { KIND_FLAG, KIND_INTEGER, KIND_BITS, KIND_WHOLE, KIND_REAL };

#define FIELD(name, kind) {#name, KIND_##kind, offsetof(qn_facts, name)},
static const struct {
    const char *name;
    enum kind kind;
    size_t offset;
} fields[] = {QN_FACTS_LIST(FIELD)};
#undef FIELD
enum { N_FIELDS = sizeof fields / sizeof *fields };

static cJSON *add_field(cJSON *object, int i, const void *at)
{
    switch (fields[i].kind) {
    case KIND_FLAG:
        return cJSON_AddBoolToObject(object, fields[i].name, *(const bool *)at);
    case KIND_INTEGER:
    case KIND_BITS:
        return cJSON_AddNumberToObject(object, fields[i].name, *(const int *)at);
    case KIND_WHOLE:
        return cJSON_AddNumberToObject(object, fields[i].name, (double)*(const int64_t *)at);
    default:
        return cJSON_AddNumberToObject(object, fields[i].name, *(const double *)at);
    }
}

cJSON *facts_json(const qn_facts *facts)
{
    cJSON *object = cJSON_CreateObject();
    bool whole = cJSON_AddStringToObject(object, "name", facts->name) != NULL;
    for (int i = 0; i < N_FIELDS; i++)
        whole = add_field(object, i, (const char *)facts + fields[i].offset) && whole;
    if (whole)
        return object;
    cJSON_Delete(object);
    return NULL;
}

/* Whether a number may be written to a field: all but switches and bits are above 0. */
static bool usable(enum kind kind, double number)
{
    if (kind == KIND_REAL)
        return number > 0 && isfinite(number);
    return number >= (kind == KIND_BITS ? 0 : 1) && number == floor(number) &&
           number < (kind == KIND_WHOLE ? 0x1p53 : 0x1p31);
}

static bool read_field(const cJSON *item, enum kind kind, void *to)
{
    if (kind == KIND_FLAG && cJSON_IsBool(item)) {
        *(bool *)to = cJSON_IsTrue(item);
        return true;
    }
    if (kind == KIND_FLAG || !cJSON_IsNumber(item) || !usable(kind, item->valuedouble))
        return false;
    if (kind == KIND_INTEGER || kind == KIND_BITS)
        *(int *)to = (int)item->valuedouble;
    else if (kind == KIND_WHOLE)
        *(int64_t *)to = (int64_t)item->valuedouble;
    else
        *(double *)to = item->valuedouble;
    return true;
}

static int check(const qn_facts *facts, const char *path, struct failure *failure)
{
    int width = facts->vector_width;
    if (width != 4 && width != 8 && width != 16)
        return failure_set(failure, CODE_FAILED, "%s: vector_width: %d is none of 4, 8, 16", path,
                           width);
    if (facts->alignment % 64)
        return failure_set(failure, CODE_FAILED, "%s: alignment: not a multiple of 64", path);
    return CODE_DONE;
}

static int read_object(qn_facts *facts, const cJSON *object, const char *path,
                       struct failure *failure)
{
    const cJSON *name = cJSON_GetObjectItemCaseSensitive(object, "name");
    const cJSON *cpu = cJSON_GetObjectItemCaseSensitive(object, "cpu");
    if (!cJSON_IsString(name) || !cJSON_IsBool(cpu))
        return failure_set(failure, CODE_FAILED, "%s: %s: missing; facts need it", path,
                           cJSON_IsString(name) ? "cpu" : "name");
    qn_facts_default(facts, cJSON_IsTrue(cpu));
    snprintf(facts->name, sizeof facts->name, "%s", name->valuestring);
    for (int i = 0; i < N_FIELDS; i++) {
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, fields[i].name);
        if (item && !read_field(item, fields[i].kind, (char *)facts + fields[i].offset))
            return failure_set(failure, CODE_FAILED, "%s: %s: not a usable value", path,
                               fields[i].name);
    }
    facts->blas = false;
    return check(facts, path, failure);
}

static bool contains(const cJSON *facts, const char *match)
{
    const cJSON *name = cJSON_GetObjectItemCaseSensitive(facts, "name");
    for (const char *at = cJSON_IsString(name) ? name->valuestring : ""; *at; at++)
        if (strncasecmp(at, match, strlen(match)) == 0)
            return true;
    return false;
}

/* The object that holds the facts, or NULL. */
static const cJSON *find_object(const cJSON *root, const char *match)
{
    const cJSON *devices = cJSON_GetObjectItemCaseSensitive(root, "devices"), *entry;
    cJSON_ArrayForEach(entry, devices)
    {
        const cJSON *facts = cJSON_GetObjectItemCaseSensitive(entry, "facts");
        if (facts && (!match || contains(facts, match)))
            return facts;
    }
    if (devices)
        return NULL;
    const cJSON *facts = cJSON_GetObjectItemCaseSensitive(root, "facts");
    return facts ? facts : root;
}

int facts_read(qn_facts *facts, const char *path, const char *match, struct failure *failure)
{
    char *text;
    TRY(file_read(&text, path, failure));
    cJSON *root = cJSON_Parse(text);
    free(text);
    const cJSON *object = cJSON_IsObject(root) ? find_object(root, match) : NULL;
    int code = object ? read_object(facts, object, path, failure)
                      : failure_set(failure, CODE_FAILED, "%s: facts: %s", path,
                                    root ? "no such device in it" : "not JSON");
    cJSON_Delete(root);
    return code;
}
