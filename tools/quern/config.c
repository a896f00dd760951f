/* SPDX-License-Identifier: MIT */
#include "config.h"
#include "family.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* --- reading --- */

static int find_family(const struct family **family, const cJSON *root, const char *path,
                       struct failure *failure)
{
    const cJSON *type = cJSON_GetObjectItemCaseSensitive(root, "model_type");
    if (!cJSON_IsString(type))
        return failure_set(failure, CODE_FAILED, "%s: model_type: is missing or no text", path);
    *family = family_of_type(type->valuestring);
    if (*family)
        return CODE_DONE;
    return failure_set(failure, CODE_FAILED, "%s: model_type: '%.60s' is no model that ships", path,
                       type->valuestring);
}

static int read_field(struct config *config, const struct family *family, const cJSON *item,
                      const char *path, struct failure *failure)
{
    const struct field *field =
        field_is_part(item->string) ? NULL : family_field(family, item->string);
    if (strcmp(item->string, "model_type") == 0 || (!field && family_passes_over(item->string)))
        return CODE_DONE;
    const char *reason = field ? field->read(field, item, config) : "is not known";
    return reason ? failure_set(failure, CODE_FAILED, "%s: %.60s: %s", path, item->string, reason)
                  : CODE_DONE;
}

/* What the numbers of the model are among each other; `name` and `other` are those of the fields
 * that are told, by their offsets. */
static int check(const struct config *c, const struct family *family, const char *path,
                 struct failure *failure)
{
#define AT(member) offsetof(struct config, member)
    const struct {
        bool wrong;
        size_t name;
        const char *is_not;
        size_t other;
    } rules[] = {
        {c->context > 0 && c->context != c->positions, AT(context), "", AT(positions)},
        {c->fourfold > 0 && c->fourfold != 4 * c->width, AT(fourfold), "4 ", AT(width)},
        {fmod(c->width, c->heads) != 0, AT(width), "a multiple of ", AT(heads)},
        {fmod(c->heads, c->kv_heads) != 0, AT(heads), "a multiple of ", AT(kv_heads)},
        {c->head > 0 && c->head * c->heads != c->width, AT(head), "the width over ", AT(heads)},
        {c->attention != c->dropout, AT(attention), "", AT(dropout)},
        {c->original > 0 && c->high <= c->low, AT(high), "above ", AT(low)},
    };
#undef AT
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].wrong)
            return failure_set(failure, CODE_FAILED, "%s: %s: is not %s%s", path,
                               family_name(family, rules[i].name), rules[i].is_not,
                               family_name(family, rules[i].other));
    return CODE_DONE;
}

static int read_object(struct config *config, const cJSON *root, const char *path,
                       struct failure *failure)
{
    const struct family *family;
    const cJSON *item;
    if (!cJSON_IsObject(root))
        return failure_set(failure, CODE_FAILED, "%s: is no JSON object", path);
    TRY(find_family(&family, root, path, failure));
    *config = family->absent;
    config->model = family->model;
    cJSON_ArrayForEach(item, root)
    {
        if (cJSON_GetObjectItemCaseSensitive(root, item->string) != item)
            return failure_set(failure, CODE_FAILED, "%s: %.60s: is there twice", path,
                               item->string);
        TRY(read_field(config, family, item, path, failure));
    }
    for (const struct field *field = family->fields; field->name; field++)
        if (!field->written && !cJSON_GetObjectItemCaseSensitive(root, field->name))
            return failure_set(failure, CODE_FAILED, "%s: %s: is missing", path, field->name);
    if (config->kv_heads == 0)
        config->kv_heads = config->heads;
    return check(config, family, path, failure);
}

int config_read(struct config *config, const char *text, const char *path, struct failure *failure)
{
    cJSON *root = cJSON_ParseWithOpts(text, NULL, true);
    int code = root ? read_object(config, root, path, failure)
                    : failure_set(failure, CODE_FAILED, "%s: is no well-formed JSON", path);
    cJSON_Delete(root);
    return code;
}

/* --- beside a recipe --- */

static int give(const struct config *config, const struct field *field, struct recipe *recipe,
                const char *path, struct failure *failure)
{
    const struct recipe_number said = {field->section, field->key, field_number(field, config),
                                       path, field->name};
    return recipe_agree(recipe, &said, "train.weights", failure);
}

int config_give(const struct config *config, struct recipe *recipe, const char *path,
                struct failure *failure)
{
    const struct family *family = family_of_model(config->model);
    const struct recipe_entry *model = recipe_find(recipe, "model", "name");
    if (model && strcmp(model->value, config->model) != 0)
        return failure_set(failure, CODE_FAILED,
                           "%s: model_type: is %s, the model %s, but model.name of %s is %s", path,
                           family->type, family->model, recipe->name, model->value);
    if (!model)
        TRY(recipe_put(recipe, "model", "name", config->model, "train.weights", failure));
    const bool classifies = config->labels > 0 && recipe_find(recipe, "data", "label");
    for (const struct field *field = family->fields; field->name; field++)
        if (field->key && (field->offset != offsetof(struct config, labels) || classifies))
            TRY(give(config, field, recipe, path, failure));
    return CODE_DONE;
}

int config_fits(const struct config *config, const qn_model_data *data, const char *path,
                struct failure *failure)
{
    const struct family *family = family_of_model(config->model);
    if (data->tokens != config->vocabulary)
        return failure_set(failure, CODE_FAILED, "%s: %s: is %.0f, but the data has %d tokens",
                           path, family_name(family, offsetof(struct config, vocabulary)),
                           config->vocabulary, data->tokens);
    if (data->width > config->positions)
        return failure_set(failure, CODE_FAILED, "%s: %s: is %.0f, but a sample has %d tokens",
                           path, family_name(family, offsetof(struct config, positions)),
                           config->positions, data->width);
    return CODE_DONE;
}

/* --- writing --- */

bool config_of(struct config *config, const struct settings *settings)
{
    const struct family *family = family_of_model(settings->model);
    if (!family)
        return false;
    *config = family->own;
    config->model = family->model;
    config->positions = (double)settings->data.length;
    for (const struct field *field = family->fields; field->name; field++) {
        const bool ours = field->section && strcmp(field->section, "model") == 0;
        const char *value = ours ? settings_option(settings, field->key) : NULL;
        if (value)
            *(double *)(void *)((char *)config + field->offset) = strtod(value, NULL);
    }
    config->inner = config->inner > 0 ? config->inner : 4 * config->width;
    config->attention = config->dropout;
    return true;
}

static int find_table(const qn_tensors *file, const char *name, const char *path,
                      const qn_tensors_entry **entry, struct failure *failure)
{
    *entry = qn_tensors_find(file, name);
    return *entry && (*entry)->shape.rank == 2
               ? CODE_DONE
               : failure_set(failure, CODE_FAILED, "%s: tensor %s: is missing or no table", path,
                             name);
}

int config_measure(struct config *config, const qn_tensors *file, const char *path,
                   struct failure *failure)
{
    const struct family *family = family_of_model(config->model);
    const qn_tensors_entry *words, *positions;
    TRY(find_table(file, family->words, path, &words, failure));
    config->vocabulary = (double)words->shape.dim[0];
    config->dtype = words->dtype;
    if (family->classes && qn_tensors_find(file, family->classes))
        config->labels = (double)qn_tensors_find(file, family->classes)->shape.dim[0];
    if (!family->positions)
        return CODE_DONE;
    TRY(find_table(file, family->positions, path, &positions, failure));
    config->positions = (double)positions->shape.dim[0];
    return CODE_DONE;
}

/* Tokens that begin and end a text are transformers' own where there are so many. */
static bool put_tokens(cJSON *object, const struct config *config, const struct family *family)
{
    return config->vocabulary >= (double)family->tokens ||
           (cJSON_AddNullToObject(object, "bos_token_id") &&
            cJSON_AddNullToObject(object, "eos_token_id"));
}

static bool put_all(cJSON *object, const struct config *config)
{
    const struct family *family = family_of_model(config->model);
    const char *name = config->labels > 0 ? family->classifier : family->architecture;
    cJSON *architectures = cJSON_AddArrayToObject(object, "architectures");
    const char *type = config->dtype == QN_F16    ? "float16"
                       : config->dtype == QN_BF16 ? "bfloat16"
                                                  : "float32";
    bool whole = architectures && cJSON_AddItemToArray(architectures, cJSON_CreateString(name)) &&
                 cJSON_AddStringToObject(object, "model_type", family->type) &&
                 cJSON_AddStringToObject(object, "torch_dtype", type) &&
                 put_tokens(object, config, family);
    for (const struct field *field = family->fields; whole && field->name; field++)
        whole = field_put(object, field, config);
    return whole;
}

char *config_text(const struct config *config)
{
    cJSON *object = cJSON_CreateObject();
    char *text = object && put_all(object, config) ? cJSON_Print(object) : NULL;
    cJSON_Delete(object);
    return text;
}
