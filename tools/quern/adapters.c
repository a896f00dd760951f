/* SPDX-License-Identifier: MIT */
#include "adapters.h"
#include "file.h"

#include <cjson/cJSON.h>
#include <quern/io.h>
#include <stdlib.h>
#include <string.h>

/* A key of the model as a number; `otherwise` where it is not given. */
static double number_of(const struct settings *settings, const char *key, double otherwise)
{
    const char *value = settings_option(settings, key);
    return value ? strtod(value, NULL) : otherwise;
}

static double rank_of(const struct settings *settings)
{
    return number_of(settings, "lora_rank", 0);
}

static double alpha_of(const struct settings *settings)
{
    return number_of(settings, "lora_alpha", 8);
}

double adapters_scale(const struct settings *settings)
{
    return rank_of(settings) > 0 ? alpha_of(settings) / rank_of(settings) : 0;
}

/* --- which tensors --- */

/* Whether a parameter is of a layer that the pattern names, whole or from a dot on. */
static bool names_parameter(const char *pattern, int length, const char *parameter)
{
    char patterns[2 * RECIPE_VALUE_BYTES + 16];
    snprintf(patterns, sizeof patterns, "%.*s.*,*.%.*s.*", length, pattern, length, pattern);
    return qn_matches(patterns, parameter);
}

static bool is_whole(const char *patterns, const char *parameter)
{
    while (patterns && *patterns) {
        patterns += strspn(patterns, " ");
        const int length = (int)strcspn(patterns, ", ");
        if (length && names_parameter(patterns, length, parameter))
            return true;
        patterns += length + strspn(patterns + length, ", ");
    }
    return false;
}

bool adapters_have(const struct settings *settings, const char *parameter)
{
    return qn_matches(QN_ADAPTERS, parameter) ||
           is_whole(settings_option(settings, "lora_whole"), parameter);
}

/* --- adapter_model.safetensors --- */

/* Those of a file that are written, by their numbers in it. */
struct chosen {
    const qn_tensors *file;
    int64_t *number;
    qn_tensors_item *items;
    int64_t count;
};

static qn_status give(void *user, int64_t index, int64_t at, void *bytes, int64_t size)
{
    const struct chosen *chosen = user;
    const qn_tensors_entry *entry = qn_tensors_at(chosen->file, chosen->number[index]);
    return qn_tensors_read(chosen->file, entry, at, bytes, size);
}

static int save_chosen(struct chosen *chosen, const char *path, const struct settings *settings,
                       struct failure *failure)
{
    const qn_tensors_pair format = {"format", "pt"};
    for (int64_t i = 0; i < qn_tensors_count(chosen->file); i++) {
        const qn_tensors_entry *entry = qn_tensors_at(chosen->file, i);
        if (!adapters_have(settings, entry->name))
            continue;
        chosen->items[chosen->count] = (qn_tensors_item){entry->name, entry->dtype, entry->shape};
        chosen->number[chosen->count++] = i;
    }
    const qn_tensors_params params = {.log = failure_log(failure),
                                      .items = chosen->items,
                                      .count = chosen->count,
                                      .metadata = &format,
                                      .metadata_count = 1,
                                      .layout = qn_model_adapter_layout()};
    TRY_LIBRARY(failure, NULL, qn_tensors_save(path, &params, give, chosen, NULL, NULL));
    return CODE_DONE;
}

static int write_weights(const char *path, const struct settings *settings, const qn_tensors *file,
                         struct failure *failure)
{
    const size_t most = (size_t)qn_tensors_count(file) + 1;
    struct chosen chosen = {.file = file,
                            .number = calloc(most, sizeof *chosen.number),
                            .items = calloc(most, sizeof *chosen.items)};
    int code = chosen.number && chosen.items
                   ? save_chosen(&chosen, path, settings, failure)
                   : failure_set(failure, CODE_FAILED, "%s: out of memory", path);
    free(chosen.number);
    free(chosen.items);
    return code;
}

/* --- adapter_config.json --- */

/* Adds the names of layers that have a parameter with this end, each as PEFT finds it alone. */
static bool add_layers(cJSON *object, const char *key, const struct settings *settings,
                       const qn_tensors *file, const char *end)
{
    cJSON *list = cJSON_AddArrayToObject(object, key);
    const size_t cut = strlen(end);
    const bool adapters = qn_matches(QN_ADAPTERS, end);
    for (int64_t i = 0; list && i < qn_tensors_count(file); i++) {
        const char *name = qn_tensors_at(file, i)->name;
        const size_t length = strlen(name);
        char layer[256];
        if (length <= cut || length >= sizeof layer || strcmp(name + length - cut, end) != 0 ||
            !adapters_have(settings, name) || qn_matches(QN_ADAPTERS, name) != adapters)
            continue;
        snprintf(layer, sizeof layer, "%.*s", (int)(length - cut), name);
        if (!cJSON_AddItemToArray(list, cJSON_CreateString(layer)))
            return false;
    }
    if (list && !cJSON_GetArraySize(list))
        cJSON_ReplaceItemInObjectCaseSensitive(object, key, cJSON_CreateNull());
    return list != NULL;
}

/* What a network is for, in PEFT's words; NULL: it does not say. GPT-2 of transformers keeps its
 * dense weights the other way round. */
static const struct {
    const char *model, *task;
    bool turned;
} tasks[] = {{"gpt", "CAUSAL_LM", true}, {"llama", "CAUSAL_LM", false}};

static bool put_task(cJSON *object, const struct settings *settings)
{
    const char *task = NULL;
    bool turned = false;
    for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++)
        if (strcmp(tasks[i].model, settings->model) == 0) {
            task = tasks[i].task;
            turned = tasks[i].turned;
        }
    if (settings->data.label)
        task = "SEQ_CLS";
    return cJSON_AddBoolToObject(object, "fan_in_fan_out", turned) &&
           (task ? cJSON_AddStringToObject(object, "task_type", task)
                 : cJSON_AddNullToObject(object, "task_type"));
}

static bool put_all(cJSON *object, const struct settings *settings, const qn_tensors *file)
{
    return cJSON_AddStringToObject(object, "peft_type", "LORA") &&
           cJSON_AddNullToObject(object, "base_model_name_or_path") &&
           cJSON_AddNumberToObject(object, "r", rank_of(settings)) &&
           cJSON_AddNumberToObject(object, "lora_alpha", alpha_of(settings)) &&
           cJSON_AddNumberToObject(object, "lora_dropout",
                                   number_of(settings, "lora_dropout", 0)) &&
           cJSON_AddStringToObject(object, "bias", "none") &&
           cJSON_AddBoolToObject(object, "inference_mode", true) && put_task(object, settings) &&
           add_layers(object, "target_modules", settings, file, ".lora_A.weight") &&
           add_layers(object, "modules_to_save", settings, file, ".weight");
}

static int write_description(const char *path, const struct settings *settings,
                             const qn_tensors *file, struct failure *failure)
{
    cJSON *object = cJSON_CreateObject();
    char *text = object && put_all(object, settings, file) ? cJSON_Print(object) : NULL;
    int code = text ? file_replace(path, text, failure)
                    : failure_set(failure, CODE_FAILED, "%s: out of memory", path);
    cJSON_Delete(object);
    cJSON_free(text);
    return code;
}

int adapters_write(const char *weights, const char *description, const struct settings *settings,
                   const qn_tensors *file, struct failure *failure)
{
    TRY(write_weights(weights, settings, file, failure));
    return write_description(description, settings, file, failure);
}
