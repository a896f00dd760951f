/* SPDX-License-Identifier: MIT
 *
 * PEFT's adapters that a training begins with (train.adapters).
 */
#include "adapters.h"
#include "file.h"
#include "line.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

/* --- adapter_config.json --- */

/* A field that a key of [model] says, too. */
static const struct field {
    const char *name, *key;
    bool list;   /* of names; else a number */
    bool needed; /* it must be there, and be what a recipe says */
} fields[] = {
    {"r", "lora_rank", false, true},
    {"lora_alpha", "lora_alpha", false, true},
    {"lora_dropout", "lora_dropout", false, false},
    {"target_modules", "lora_targets", true, false},
    {"modules_to_save", "lora_whole", true, false},
};
enum { N_FIELDS = sizeof fields / sizeof *fields };

/* What says nothing about the numbers of adapters, or about such that are there already. */
static const char *const passed_over[] = {"auto_mapping",      "base_model_name_or_path",
                                          "fan_in_fan_out",    "inference_mode",
                                          "init_lora_weights", "megatron_core",
                                          "peft_type",         "peft_version",
                                          "qalora_group_size", "revision",
                                          "task_type"};

static bool is_passed_over(const char *name)
{
    for (size_t i = 0; i < sizeof passed_over / sizeof *passed_over; i++)
        if (strcmp(passed_over[i], name) == 0)
            return true;
    return false;
}

/* Another kind of adapter, or a part of them, that is switched off. */
static bool is_off(const cJSON *item)
{
    return cJSON_IsNull(item) || cJSON_IsFalse(item) ||
           (cJSON_IsString(item) && strcmp(item->valuestring, "none") == 0) ||
           ((cJSON_IsArray(item) || cJSON_IsObject(item)) && !item->child);
}

/* Whether a name can stand in a list of patterns as it is. */
static bool is_name(const cJSON *item)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    return cJSON_IsString(item) && *item->valuestring &&
           !item->valuestring[strspn(item->valuestring, allowed)];
}

/* Whether the file, if there is one, has a parameter of such a layer. PEFT names layers for all
 * networks that there may be, such as "classifier" and "score". */
static bool is_there(const qn_tensors *file, const char *layer)
{
    char pattern[RECIPE_VALUE_BYTES];
    bool found = !file;
    snprintf(pattern, sizeof pattern, "*.%s.*", layer);
    for (int64_t i = 0; !found && i < qn_tensors_count(file); i++)
        found = qn_matches(pattern, qn_tensors_at(file, i)->name);
    return found;
}

/* The names of a list that are there, separated by commas; false: it is no list of names, or too
 * long for a key. */
static bool join(const cJSON *list, const qn_tensors *file, char text[RECIPE_VALUE_BYTES])
{
    const cJSON *item;
    size_t length = 0;
    *text = 0;
    if (!cJSON_IsArray(list))
        return false;
    cJSON_ArrayForEach(item, list)
    {
        if (!is_name(item))
            return false;
        if (!is_there(file, item->valuestring))
            continue;
        length += (size_t)snprintf(text + length, RECIPE_VALUE_BYTES - length, "%s%s",
                                   length ? ", " : "", item->valuestring);
        if (length >= RECIPE_VALUE_BYTES)
            return false;
    }
    return true;
}

static int give_list(const struct field *field, const cJSON *item, const qn_tensors *file,
                     struct recipe *recipe, const char *path, struct failure *failure)
{
    char text[RECIPE_VALUE_BYTES];
    if (recipe_find(recipe, "model", field->key) || is_off(item))
        return CODE_DONE;
    if (!join(item, file, text))
        return failure_set(failure, CODE_FAILED,
                           "%s: %s: is no list of names of less than %d bytes: name the layers "
                           "with model.%s",
                           path, field->name, RECIPE_VALUE_BYTES, field->key);
    return *text ? recipe_put(recipe, "model", field->key, text, "train.adapters", failure)
                 : CODE_DONE;
}

static int give_number(const struct field *field, const cJSON *item, const qn_tensors *file,
                       struct recipe *recipe, const char *path, struct failure *failure)
{
    (void)file;
    if (!cJSON_IsNumber(item))
        return failure_set(failure, CODE_FAILED, "%s: %s: is missing or no number", path,
                           field->name);
    if (!field->needed && recipe_find(recipe, "model", field->key))
        return CODE_DONE;
    const struct recipe_number said = {"model", field->key, item->valuedouble, path, field->name};
    return recipe_agree(recipe, &said, "train.adapters", failure);
}

static int check_others(const cJSON *root, const char *path, struct failure *failure)
{
    const cJSON *item, *type = cJSON_GetObjectItemCaseSensitive(root, "peft_type");
    if (!cJSON_IsString(type) || strcmp(type->valuestring, "LORA") != 0)
        return failure_set(failure, CODE_FAILED, "%s: peft_type: is not LORA", path);
    cJSON_ArrayForEach(item, root)
    {
        bool known = is_passed_over(item->string) || is_off(item);
        if (cJSON_GetObjectItemCaseSensitive(root, item->string) != item)
            return failure_set(failure, CODE_FAILED, "%s: %.60s: is there twice", path,
                               item->string);
        for (int i = 0; i < N_FIELDS; i++)
            known |= strcmp(fields[i].name, item->string) == 0;
        if (!known)
            return failure_set(failure, CODE_FAILED,
                               "%s: %.60s: is on, and adapters here have nothing of it", path,
                               item->string);
    }
    return CODE_DONE;
}

static int give_all(const cJSON *root, const qn_tensors *file, struct recipe *recipe,
                    const char *path, struct failure *failure)
{
    if (!cJSON_IsObject(root))
        return failure_set(failure, CODE_FAILED, "%s: is no JSON object", path);
    TRY(check_others(root, path, failure));
    for (int i = 0; i < N_FIELDS; i++) {
        const struct field *field = &fields[i];
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(root, field->name);
        if (!item && !field->needed)
            continue;
        TRY((field->list ? give_list : give_number)(field, item, file, recipe, path, failure));
    }
    return CODE_DONE;
}

int adapters_give(const char *text, const qn_tensors *file, struct recipe *recipe, const char *path,
                  struct failure *failure)
{
    cJSON *root = cJSON_ParseWithOpts(text, NULL, true);
    int code = root ? give_all(root, file, recipe, path, failure)
                    : failure_set(failure, CODE_FAILED, "%s: is no well-formed JSON", path);
    cJSON_Delete(root);
    return code;
}

static int open_and_give(const struct adapters *adapters, const char *text, struct recipe *recipe,
                         const char *path, struct failure *failure)
{
    const qn_log log = failure_log(failure);
    qn_tensors *file;
    TRY_LIBRARY(failure, NULL, qn_tensors_open(&file, adapters->weights, &log));
    const int code = adapters_give(text, file, recipe, path, failure);
    qn_tensors_close(&file);
    return code;
}

int adapters_open(struct adapters *adapters, struct recipe *recipe, struct failure *failure)
{
    const struct recipe_entry *entry = recipe_find(recipe, "train", "adapters");
    char path[RECIPE_VALUE_BYTES + 32], *text;
    *adapters->weights = 0;
    if (!entry)
        return CODE_DONE;
    snprintf(adapters->weights, sizeof adapters->weights, "%s/adapter_model.safetensors",
             entry->value);
    snprintf(path, sizeof path, "%s/adapter_config.json", entry->value);
    TRY(file_read(&text, path, failure));
    int code = open_and_give(adapters, text, recipe, path, failure);
    free(text);
    return code;
}

/* --- adapter_model.safetensors --- */

static void count(void *user, const qn_weights_record *record)
{
    *(int *)user += record->fate == QN_WEIGHTS_TAKEN;
}

/* Patterns of all that stands in the file: adapters, and the names of the trainer's other tensors
 * that are trained beside them; freed by the caller, NULL when out of memory. */
static char *list_trained(qn_trainer *trainer, const struct settings *settings)
{
    const char *name;
    size_t room = sizeof QN_ADAPTERS, length;
    for (int i = 0; (name = qn_trainer_tensor(trainer, i, NULL)); i++)
        room += strlen(name) + 1;
    char *text = malloc(room);
    if (!text)
        return NULL;
    length = (size_t)snprintf(text, room, "%s", QN_ADAPTERS);
    for (int i = 0; (name = qn_trainer_tensor(trainer, i, NULL)); i++)
        if (adapters_have(settings, name) && !qn_matches(QN_ADAPTERS, name))
            length += (size_t)snprintf(text + length, room - length, ",%s", name);
    return text;
}

static int load(const struct adapters *adapters, qn_trainer *trainer, const char *trained,
                int *taken, struct failure *failure)
{
    const qn_weights_params params = {
        .layout = qn_model_adapter_layout(), .include = trained, .fn = count, .user = taken};
    TRY_LIBRARY(failure, NULL, qn_trainer_load_weights(trainer, adapters->weights, &params));
    return CODE_DONE;
}

int adapters_load(const struct adapters *adapters, qn_trainer *trainer,
                  const struct settings *settings, bool quiet, struct failure *failure)
{
    int taken = 0;
    if (!*adapters->weights)
        return CODE_DONE;
    char *trained = list_trained(trainer, settings);
    const int code = trained ? load(adapters, trainer, trained, &taken, failure)
                             : failure_set(failure, CODE_FAILED, "out of memory");
    free(trained);
    if (code == CODE_DONE && !quiet)
        line_print(stdout, "adapters: %s: %d tensors", adapters->weights, taken);
    return code;
}
