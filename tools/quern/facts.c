/* SPDX-License-Identifier: MIT */
#include "facts.h"
#include "file.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum kind { KIND_FLAG, KIND_INTEGER, KIND_BITS, KIND_NEWER, KIND_WHOLE, KIND_REAL };

#define FIELD(name, kind, least, most) {#name, KIND_##kind, offsetof(qn_facts, name), least, most},
static const struct field {
    const char *name;
    enum kind kind;
    size_t offset;
    double least, most;
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
    case KIND_NEWER:
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

static int read_field(const cJSON *item, const struct field *field, void *to, const char *path,
                      struct failure *failure)
{
    if (field->kind == KIND_FLAG ? !cJSON_IsBool(item) : !cJSON_IsNumber(item))
        return failure_set(failure, CODE_FAILED, "%s: %s: is not %s", path, field->name,
                           field->kind == KIND_FLAG ? "true or false" : "a number");
    const double number = item->valuedouble;
    const bool whole = field->kind != KIND_REAL && field->kind != KIND_FLAG;
    if (field->kind == KIND_FLAG)
        *(bool *)to = cJSON_IsTrue(item);
    else if (!(number >= field->least && number <= field->most) ||
             (whole && number != floor(number)))
        return failure_set(failure, CODE_FAILED, "%s: %s: %.15g is not %sfrom %.15g to %.15g", path,
                           field->name, number, whole ? "a whole number " : "", field->least,
                           field->most);
    else if (field->kind == KIND_REAL)
        *(double *)to = number;
    else if (field->kind == KIND_WHOLE)
        *(int64_t *)to = (int64_t)number;
    else
        *(int *)to = (int)number;
    return CODE_DONE;
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
    bool newer = true;
    qn_facts_default(facts, cJSON_IsTrue(cpu));
    snprintf(facts->name, sizeof facts->name, "%s", name->valuestring);
    for (int i = 0; i < N_FIELDS; i++) {
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, fields[i].name);
        if (item)
            TRY(read_field(item, &fields[i], (char *)facts + fields[i].offset, path, failure));
        else if (fields[i].kind == KIND_NEWER)
            newer = false;
    }
    facts->blas &= newer; /* what it needs is not known */
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
    const char *end = NULL;
    TRY(file_read(&text, path, failure));
    cJSON *root = cJSON_ParseWithOpts(text, &end, false);
    const bool whole = root && !end[strspn(end, " \t\r\n")];
    free(text);
    const cJSON *object = cJSON_IsObject(root) ? find_object(root, match) : NULL;
    int code = object && whole ? read_object(facts, object, path, failure)
                               : failure_set(failure, CODE_FAILED, "%s: facts: %s", path,
                                             !root    ? "not JSON"
                                             : !whole ? "something stands behind the JSON"
                                                      : "no such device in it");
    cJSON_Delete(root);
    return code;
}
