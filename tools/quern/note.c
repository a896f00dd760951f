/* SPDX-License-Identifier: MIT */
#include "note.h"

#include <cjson/cJSON.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char CLASSES[] = "classes", FEATURES[] = "features", GRAPH[] = "text";

static bool add_text(cJSON *root, const char *name, const char *key, const char *value)
{
    cJSON *section = cJSON_GetObjectItemCaseSensitive(root, name);
    if (!section)
        section = cJSON_AddObjectToObject(root, name);
    return section && cJSON_AddStringToObject(section, key, value);
}

static bool add_graphs(cJSON *root, const struct recipe *recipe)
{
    bool whole = true;
    for (int i = 0; whole && i < RECIPE_GRAPHS; i++)
        if (recipe->graph[i])
            whole = add_text(root, recipe_graph_sections[i], GRAPH, recipe->graph[i]);
    return whole;
}

static bool add_classes(cJSON *root, const qn_column *classes)
{
    cJSON *list = cJSON_AddArrayToObject(root, CLASSES);
    bool whole = list != NULL;
    for (int64_t i = 0; whole && i < classes->classes; i++)
        whole = cJSON_AddItemToArray(list, cJSON_CreateString(classes->class_names[i]));
    return whole;
}

static bool add_features(cJSON *root, const struct features *features)
{
    cJSON *list = cJSON_AddArrayToObject(root, FEATURES);
    bool whole = list != NULL;
    for (int64_t i = 0; whole && i < features->count; i++) {
        cJSON *feature = cJSON_CreateArray();
        whole = cJSON_AddItemToArray(list, feature) &&
                cJSON_AddItemToArray(feature, cJSON_CreateString(features->name[i])) &&
                cJSON_AddItemToArray(feature, cJSON_CreateNumber((double)features->mean[i])) &&
                cJSON_AddItemToArray(feature, cJSON_CreateNumber((double)features->deviation[i]));
    }
    return whole;
}

char *note_text(const struct recipe *recipe, const qn_column *classes,
                const struct features *features)
{
    cJSON *root = cJSON_CreateObject();
    bool whole = root != NULL;
    const struct recipe_entry *entry;
    for (int i = 0; whole && (entry = recipe_next(recipe, &i));) {
        whole = add_text(root, entry->section, entry->key, entry->value);
    }
    whole = whole && add_graphs(root, recipe);
    if (whole && classes && classes->class_names)
        whole = add_classes(root, classes);
    if (whole && features && features->count)
        whole = add_features(root, features);
    char *text = whole ? cJSON_PrintUnformatted(root) : NULL;
    cJSON_Delete(root);
    return text;
}

/* Where the recipe keeps the text of a graph file that this is; NULL: it is none. */
static char **graph_of(struct recipe *recipe, const char *section, const char *key)
{
    for (int i = 0; i < RECIPE_GRAPHS; i++)
        if (strcmp(section, recipe_graph_sections[i]) == 0 && strcmp(key, GRAPH) == 0)
            return &recipe->graph[i];
    return NULL;
}

static int take_graph(char **graph, const char *text, struct failure *failure)
{
    free(*graph);
    *graph = strdup(text);
    return *graph ? CODE_DONE : failure_set(failure, CODE_FAILED, "out of memory");
}

static int take_section(struct recipe *recipe, const cJSON *section, struct failure *failure)
{
    const cJSON *item;
    cJSON_ArrayForEach(item, section)
    {
        if (!cJSON_IsString(item))
            return failure_set(failure, CODE_FAILED, "%s: recipe: %s.%s: is no text", recipe->name,
                               section->string, item->string);
        char **graph = graph_of(recipe, section->string, item->string);
        TRY(graph ? take_graph(graph, item->valuestring, failure)
                  : recipe_put(recipe, section->string, item->string, item->valuestring, "",
                               failure));
    }
    return CODE_DONE;
}

static int take_all(struct recipe *recipe, const cJSON *root, struct failure *failure)
{
    const cJSON *section;
    if (!cJSON_IsObject(root))
        return failure_set(failure, CODE_FAILED, "%s: recipe: is not JSON", recipe->name);
    cJSON_ArrayForEach(section, root)
    {
        if (cJSON_IsArray(section) &&
            (strcmp(section->string, CLASSES) == 0 || strcmp(section->string, FEATURES) == 0))
            continue;
        if (!cJSON_IsObject(section))
            return failure_set(failure, CODE_FAILED, "%s: recipe: %s: is no section", recipe->name,
                               section->string);
        TRY(take_section(recipe, section, failure));
    }
    return CODE_DONE;
}

int note_read(struct recipe *recipe, const char *text, const char *name, struct failure *failure)
{
    cJSON *root = cJSON_Parse(text);
    recipe->count = 0;
    recipe_free_graphs(recipe);
    snprintf(recipe->name, sizeof recipe->name, "%s", name);
    int code = take_all(recipe, root, failure);
    cJSON_Delete(root);
    return code;
}

static int make_room(struct class_names *names, int64_t count, struct failure *failure)
{
    *names = (struct class_names){.name = calloc((size_t)count + 1, sizeof *names->name)};
    return names->name ? CODE_DONE : failure_set(failure, CODE_FAILED, "out of memory");
}

static int add_name(struct class_names *names, const char *text, struct failure *failure)
{
    char *copy = strdup(text);
    if (!copy)
        return failure_set(failure, CODE_FAILED, "out of memory");
    names->name[names->count++] = copy;
    return CODE_DONE;
}

int class_names_copy(struct class_names *names, const char *const *from, int64_t count,
                     struct failure *failure)
{
    TRY(make_room(names, count, failure));
    for (int64_t i = 0; i < count; i++)
        TRY(add_name(names, from[i], failure));
    return CODE_DONE;
}

/* Gives the list that the note has under the key to `take`, with `to`; nothing if it has none. */
static int read_list(const char *text, const char *key,
                     int (*take)(void *to, const cJSON *list, const char *name,
                                 struct failure *failure),
                     void *to, const char *name, struct failure *failure)
{
    cJSON *root = cJSON_Parse(text);
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(root, key);
    const int code = cJSON_IsArray(list) ? take(to, list, name, failure) : CODE_DONE;
    cJSON_Delete(root);
    return code;
}

static int take_names(void *to, const cJSON *list, const char *name, struct failure *failure)
{
    struct class_names *names = to;
    const cJSON *item;
    TRY(make_room(names, cJSON_GetArraySize(list), failure));
    cJSON_ArrayForEach(item, list)
    {
        if (!cJSON_IsString(item))
            return failure_set(failure, CODE_FAILED, "%s: recipe: classes: %lld is no text", name,
                               (long long)names->count);
        TRY(add_name(names, item->valuestring, failure));
    }
    return CODE_DONE;
}

int note_classes(struct class_names *names, const char *text, const char *name,
                 struct failure *failure)
{
    *names = (struct class_names){0};
    const int code = read_list(text, CLASSES, take_names, names, name, failure);
    if (code)
        class_names_free(names);
    return code;
}

static bool is_f32(const cJSON *item)
{
    return cJSON_IsNumber(item) && fabs(item->valuedouble) <= (double)FLT_MAX;
}

static int take_feature(struct features *features, int64_t index, const cJSON *item,
                        const char *name, struct failure *failure)
{
    const cJSON *mean = cJSON_GetArrayItem(item, 1), *deviation = cJSON_GetArrayItem(item, 2);
    const char *text = cJSON_GetStringValue(cJSON_GetArrayItem(item, 0));
    if (!text || !*text || !is_f32(mean) || !is_f32(deviation) ||
        !((float)deviation->valuedouble > 0))
        return failure_set(failure, CODE_FAILED,
                           "%s: recipe: features: %lld is no name, mean and deviation", name,
                           (long long)index);
    features->mean[index] = (float)mean->valuedouble;
    features->deviation[index] = (float)deviation->valuedouble;
    features->name[index] = strdup(text);
    return features->name[index] ? CODE_DONE : failure_set(failure, CODE_FAILED, "out of memory");
}

static int take_features(void *to, const cJSON *list, const char *name, struct failure *failure)
{
    struct features *features = to;
    const cJSON *item;
    int64_t index = 0;
    TRY(features_make(features, cJSON_GetArraySize(list), failure));
    cJSON_ArrayForEach(item, list)
    {
        TRY(take_feature(features, index, item, name, failure));
        index++;
    }
    return CODE_DONE;
}

int note_features(struct features *features, const char *text, const char *name,
                  struct failure *failure)
{
    *features = (struct features){0};
    const int code = read_list(text, FEATURES, take_features, features, name, failure);
    if (code)
        features_free(features);
    return code;
}

void class_names_free(struct class_names *names)
{
    for (int64_t i = 0; i < names->count; i++)
        free(names->name[i]);
    free(names->name);
    *names = (struct class_names){0};
}
