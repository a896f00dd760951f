/* SPDX-License-Identifier: MIT */
#include "note.h"

#include <cjson/cJSON.h>
#include <stdio.h>

static bool add_entry(cJSON *root, const struct recipe_entry *entry)
{
    cJSON *section = cJSON_GetObjectItemCaseSensitive(root, entry->section);
    if (!section)
        section = cJSON_AddObjectToObject(root, entry->section);
    return section && cJSON_AddStringToObject(section, entry->key, entry->value);
}

char *note_text(const struct recipe *recipe)
{
    cJSON *root = cJSON_CreateObject();
    bool whole = root != NULL;
    for (int i = 0; whole && i < recipe->count; i++)
        whole = add_entry(root, &recipe->entries[i]);
    char *text = whole ? cJSON_PrintUnformatted(root) : NULL;
    cJSON_Delete(root);
    return text;
}

static int take_section(struct recipe *recipe, const cJSON *section, struct failure *failure)
{
    const cJSON *item;
    cJSON_ArrayForEach(item, section)
    {
        if (!cJSON_IsString(item))
            return failure_set(failure, CODE_FAILED, "%s: recipe: %s.%s: is no text", recipe->name,
                               section->string, item->string);
        TRY(recipe_put(recipe, section->string, item->string, item->valuestring, "", failure));
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
    snprintf(recipe->name, sizeof recipe->name, "%s", name);
    int code = take_all(recipe, root, failure);
    cJSON_Delete(root);
    return code;
}
