/* SPDX-License-Identifier: MIT */
#include "rope.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { FACTOR, LOW, HIGH, ORIGINAL, THETA, PARTS };
static const struct part {
    const char *name;
    size_t offset; /* of a double of the config */
    double least, most;
    bool whole;
} parts[PARTS] = {
    [FACTOR] = {"factor", offsetof(struct config, factor), 1, 1e12, false},
    [LOW] = {"low_freq_factor", offsetof(struct config, low), 1e-12, 1e12, false},
    [HIGH] = {"high_freq_factor", offsetof(struct config, high), 1e-12, 1e12, false},
    [ORIGINAL] = {"original_max_position_embeddings", offsetof(struct config, original), 1, 1 << 24,
                  true},
    [THETA] = {"rope_theta", offsetof(struct config, base), 1e-12, 1e12, false},
};

enum { PLAIN, LINEAR, LLAMA3, KINDS };
static const struct {
    const char *name;
    int parts; /* so many it must have, the first */
} kinds[KINDS] = {
    [PLAIN] = {"default", 0},
    [LINEAR] = {"linear", FACTOR + 1},
    [LLAMA3] = {"llama3", ORIGINAL + 1},
};

static double *number_of(struct config *config, const struct part *part)
{
    return (double *)(void *)((char *)config + part->offset);
}

static int kind_of(const struct config *config)
{
    return config->original > 0 ? LLAMA3 : config->factor > 1 ? LINEAR : PLAIN;
}

/* --- reading --- */

/* "factor: is missing" */
static const char *tell(const char *name, const char *wrong)
{
    static char reason[200];
    snprintf(reason, sizeof reason, "%.60s: %s", name, wrong);
    return reason;
}

/* "type" is the older name. */
static bool is_type(const char *name)
{
    return strcmp(name, "rope_type") == 0 || strcmp(name, "type") == 0;
}

/* All types that are there, which may be under both names. */
static const char *read_kind(const cJSON *object, int *kind)
{
    const cJSON *item;
    *kind = PLAIN;
    cJSON_ArrayForEach(item, object)
    {
        if (!is_type(item->string))
            continue;
        for (*kind = 0; *kind < KINDS; ++*kind)
            if (cJSON_IsString(item) && strcmp(item->valuestring, kinds[*kind].name) == 0)
                break;
        if (*kind == KINDS)
            return tell(item->string, "the model has \"default\", \"linear\" and \"llama3\"");
    }
    return NULL;
}

static const char *read_part(struct config *config, const cJSON *item, int kind)
{
    const struct part *part = NULL;
    for (int i = 0; i < PARTS; i++)
        if ((i < kinds[kind].parts || i == THETA) && strcmp(item->string, parts[i].name) == 0)
            part = &parts[i];
    if (!part)
        return tell(item->string, "is not known");
    const double number = item->valuedouble;
    if (!cJSON_IsNumber(item) || !(number >= part->least && number <= part->most))
        return tell(item->string, part->least < 1 ? "is no number above 0" : "is no number from 1");
    if (part->whole && number != (double)(int64_t)number)
        return tell(item->string, "is no whole number");
    *number_of(config, part) = number;
    return NULL;
}

static const char *read_object(struct config *config, const cJSON *object, int kind)
{
    const cJSON *item;
    const char *reason;
    cJSON_ArrayForEach(item, object)
    {
        if (cJSON_GetObjectItemCaseSensitive(object, item->string) != item)
            return tell(item->string, "is there twice");
        if (!is_type(item->string) && (reason = read_part(config, item, kind)) != NULL)
            return reason;
    }
    for (int i = 0; i < kinds[kind].parts; i++)
        if (!cJSON_GetObjectItemCaseSensitive(object, parts[i].name))
            return tell(parts[i].name, "is missing");
    return NULL;
}

const char *rope_read(struct config *config, const cJSON *item)
{
    int kind;
    if (cJSON_IsNull(item))
        return NULL;
    if (!cJSON_IsObject(item))
        return "is neither null nor an object";
    const char *reason = read_kind(item, &kind);
    if (!reason && kind != PLAIN && kind_of(config) != PLAIN)
        reason = "scales positions that are scaled already";
    return reason ? reason : read_object(config, item, kind);
}

/* --- writing --- */

/* transformers tells 8 and 8.0 apart. */
static bool put_part(cJSON *object, const struct part *part, double number)
{
    char text[40];
    snprintf(text, sizeof text, part->whole ? "%.0f" : "%.1f", number);
    if (strtod(text, NULL) != number)
        snprintf(text, sizeof text, "%.17g", number);
    return cJSON_AddRawToObject(object, part->name, text) != NULL;
}

bool rope_put(cJSON *object, const struct config *config)
{
    struct config numbers = *config;
    const int kind = kind_of(config);
    if (kind == PLAIN)
        return cJSON_AddNullToObject(object, "rope_scaling") != NULL;
    cJSON *made = cJSON_AddObjectToObject(object, "rope_scaling");
    bool whole = made && cJSON_AddStringToObject(made, "rope_type", kinds[kind].name);
    for (int i = 0; whole && i < kinds[kind].parts; i++)
        whole = put_part(made, &parts[i], *number_of(&numbers, &parts[i]));
    return whole;
}
