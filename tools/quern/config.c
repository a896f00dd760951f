/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1 << 24 }; /* of any count */

/* One field of the file. */
struct field {
    const char *name;
    /* Reads it into the config; gives NULL or a reason. */
    const char *(*read)(const struct field *field, const cJSON *item, void *to);
    size_t offset;
    const char *section, *key; /* of the recipe that say the same; NULL: none does */
    const char *written; /* as JSON: the default of a key, or what is written. NULL: it must be
                            there, or is not written */
    const char *also;    /* what is taken beside `written` */
};

/* --- kinds of fields --- */

static const char *read_count(const struct field *field, const cJSON *item, void *to)
{
    (void)field;
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= 1 && item->valuedouble <= MOST) ||
        (double)(int64_t)item->valuedouble != item->valuedouble)
        return "is no whole number from 1 to 16777216";
    *(int64_t *)to = (int64_t)item->valuedouble;
    return NULL;
}

static const char *read_count_or_null(const struct field *field, const cJSON *item, void *to)
{
    return cJSON_IsNull(item) ? NULL : read_count(field, item, to);
}

static const char *read_switch(const struct field *field, const cJSON *item, void *to)
{
    (void)field;
    if (!cJSON_IsBool(item))
        return "is neither true nor false";
    *(int64_t *)to = cJSON_IsTrue(item);
    return NULL;
}

static const char *read_dropout(const struct field *field, const cJSON *item, void *to)
{
    double *dropout = to;
    (void)field;
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0 && item->valuedouble < 1))
        return "is no fraction from 0, below 1";
    *dropout = item->valuedouble > *dropout ? item->valuedouble : *dropout;
    return NULL;
}

/* What every model here computes. */
static const char *read_fixed(const struct field *field, const cJSON *item, void *to)
{
    static char reason[200];
    (void)to;
    char *text = cJSON_PrintUnformatted(item);
    if (!text)
        return "out of memory";
    const bool same =
        strcmp(text, field->written) == 0 || (field->also && strcmp(text, field->also) == 0);
    snprintf(reason, sizeof reason, "is %.60s; the model has %s", text, field->written);
    cJSON_free(text);
    return same ? NULL : reason;
}

/* --- the tables --- */

#define AT(member) offsetof(struct config, member)
static const struct field gpt2[] = {
    {"n_layer", read_count, AT(layers), "model", "layers", NULL, NULL},
    {"n_head", read_count, AT(heads), "model", "heads", NULL, NULL},
    {"n_embd", read_count, AT(width), "model", "width", NULL, NULL},
    {"n_positions", read_count, AT(positions), NULL, NULL, NULL, NULL},
    {"vocab_size", read_count, AT(vocabulary), "data", "classes", NULL, NULL},
    {"tie_word_embeddings", read_switch, AT(tied), "model", "tied", "true", NULL},
    {"n_ctx", read_count, AT(context), NULL, NULL, "", NULL},
    {"n_inner", read_count_or_null, AT(inner), NULL, NULL, "null", NULL},
    {"activation_function", read_fixed, 0, NULL, NULL, "\"gelu_new\"", "\"gelu_pytorch_tanh\""},
    {"layer_norm_epsilon", read_fixed, 0, NULL, NULL, "1e-05", NULL},
    {"scale_attn_weights", read_fixed, 0, NULL, NULL, "true", NULL},
    {"scale_attn_by_inverse_layer_idx", read_fixed, 0, NULL, NULL, "false", NULL},
    {"reorder_and_upcast_attn", read_fixed, 0, NULL, NULL, "false", NULL},
    {"add_cross_attention", read_fixed, 0, NULL, NULL, "false", NULL},
    {"is_encoder_decoder", read_fixed, 0, NULL, NULL, "false", NULL},
    {"resid_pdrop", read_dropout, AT(dropout), NULL, NULL, "0.0", NULL},
    {"embd_pdrop", read_dropout, AT(dropout), NULL, NULL, "0.0", NULL},
    {"attn_pdrop", read_dropout, AT(dropout), NULL, NULL, "0.0", NULL},
};
#undef AT

/* Of every model: what transformers writes besides, about other tasks, tokens, generation and
 * itself. */
static const char *const passed_over[] = {"_name_or_path",
                                          "_num_labels",
                                          "architectures",
                                          "bos_token_id",
                                          "chunk_size_feed_forward",
                                          "do_sample",
                                          "dtype",
                                          "early_stopping",
                                          "eos_token_id",
                                          "finetuning_task",
                                          "gradient_checkpointing",
                                          "id2label",
                                          "initializer_range",
                                          "is_decoder",
                                          "label2id",
                                          "length_penalty",
                                          "max_length",
                                          "min_length",
                                          "n_special",
                                          "no_repeat_ngram_size",
                                          "num_beams",
                                          "num_return_sequences",
                                          "output_attentions",
                                          "output_hidden_states",
                                          "output_past",
                                          "pad_token_id",
                                          "predict_special_tokens",
                                          "prefix",
                                          "problem_type",
                                          "repetition_penalty",
                                          "return_dict",
                                          "sep_token_id",
                                          "summary_activation",
                                          "summary_first_dropout",
                                          "summary_proj_to_labels",
                                          "summary_type",
                                          "summary_use_proj",
                                          "task_specific_params",
                                          "temperature",
                                          "tokenizer_class",
                                          "top_k",
                                          "top_p",
                                          "torch_dtype",
                                          "torchscript",
                                          "transformers_version",
                                          "use_bfloat16",
                                          "use_cache"};

/* The networks, by model_type. */
static const struct family {
    const char *type, *model, *architecture;
    const char *words, *positions; /* tables with a row for each */
    const struct field *fields;
    size_t count;
} families[] = {
    {"gpt2", "gpt", "GPT2LMHeadModel", "transformer.wte.weight", "transformer.wpe.weight", gpt2,
     sizeof gpt2 / sizeof *gpt2},
};
enum { N_FAMILIES = sizeof families / sizeof *families };

static const struct family *family_of(const char *model)
{
    for (int i = 0; i < N_FAMILIES; i++)
        if (strcmp(families[i].model, model) == 0)
            return &families[i];
    return NULL;
}

static const struct field *find_field(const struct family *family, const char *name)
{
    for (size_t i = 0; i < family->count; i++)
        if (strcmp(family->fields[i].name, name) == 0)
            return &family->fields[i];
    return NULL;
}

static bool is_passed_over(const char *name)
{
    for (size_t i = 0; i < sizeof passed_over / sizeof *passed_over; i++)
        if (strcmp(passed_over[i], name) == 0)
            return true;
    return false;
}

/* --- reading --- */

static int find_family(const struct family **family, const cJSON *root, const char *path,
                       struct failure *failure)
{
    const cJSON *type = cJSON_GetObjectItemCaseSensitive(root, "model_type");
    if (!cJSON_IsString(type))
        return failure_set(failure, CODE_FAILED, "%s: model_type: is missing or no text", path);
    for (int i = 0; i < N_FAMILIES; i++)
        if (strcmp(families[i].type, type->valuestring) == 0) {
            *family = &families[i];
            return CODE_DONE;
        }
    return failure_set(failure, CODE_FAILED, "%s: model_type: '%.60s' is no model that ships", path,
                       type->valuestring);
}

static int read_field(struct config *config, const struct family *family, const cJSON *item,
                      const char *path, struct failure *failure)
{
    const struct field *field = find_field(family, item->string);
    if (strcmp(item->string, "model_type") == 0 || is_passed_over(item->string))
        return CODE_DONE;
    const char *reason =
        field ? field->read(field, item, (char *)config + field->offset) : "is not known";
    return reason ? failure_set(failure, CODE_FAILED, "%s: %.60s: %s", path, item->string, reason)
                  : CODE_DONE;
}

static int check(const struct config *config, const char *path, struct failure *failure)
{
    if (config->context && config->context != config->positions)
        return failure_set(failure, CODE_FAILED, "%s: n_ctx: is not n_positions", path);
    if (config->inner && config->inner != 4 * config->width)
        return failure_set(failure, CODE_FAILED,
                           "%s: n_inner: is not 4 n_embd, which the model has", path);
    if (config->width % config->heads)
        return failure_set(failure, CODE_FAILED, "%s: n_embd: is not a multiple of n_head", path);
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
    *config = (struct config){.model = family->model, .tied = 1};
    cJSON_ArrayForEach(item, root)
    {
        if (cJSON_GetObjectItemCaseSensitive(root, item->string) != item)
            return failure_set(failure, CODE_FAILED, "%s: %.60s: is there twice", path,
                               item->string);
        TRY(read_field(config, family, item, path, failure));
    }
    for (size_t i = 0; i < family->count; i++)
        if (!family->fields[i].written &&
            !cJSON_GetObjectItemCaseSensitive(root, family->fields[i].name))
            return failure_set(failure, CODE_FAILED, "%s: %s: is missing", path,
                               family->fields[i].name);
    return check(config, path, failure);
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

static int64_t number_of(const struct config *config, const struct field *field)
{
    return *(const int64_t *)(const void *)((const char *)config + field->offset);
}

static int give(const struct config *config, const struct field *field, struct recipe *recipe,
                const char *path, struct failure *failure)
{
    const struct recipe_entry *entry = recipe_find(recipe, field->section, field->key);
    const int64_t number = number_of(config, field);
    char text[32];
    snprintf(text, sizeof text, "%" PRId64, number);
    if (!entry)
        return recipe_put(recipe, field->section, field->key, text, "train.weights", failure);
    char *end;
    const double wanted = strtod(entry->value, &end);
    if (end != entry->value && !*end && wanted == (double)number)
        return CODE_DONE;
    return failure_set(failure, CODE_FAILED, "%s: %s: is %s, but %s.%s of %s is %s", path,
                       field->name, text, field->section, field->key, recipe->name, entry->value);
}

int config_give(const struct config *config, struct recipe *recipe, const char *path,
                struct failure *failure)
{
    const struct family *family = family_of(config->model);
    const struct recipe_entry *model = recipe_find(recipe, "model", "name");
    if (model && strcmp(model->value, config->model) != 0)
        return failure_set(failure, CODE_FAILED,
                           "%s: model_type: is %s, the model %s, but model.name of %s is %s", path,
                           family->type, family->model, recipe->name, model->value);
    if (!model)
        TRY(recipe_put(recipe, "model", "name", config->model, "train.weights", failure));
    for (size_t i = 0; i < family->count; i++)
        if (family->fields[i].key)
            TRY(give(config, &family->fields[i], recipe, path, failure));
    return CODE_DONE;
}

int config_fits(const struct config *config, const qn_model_data *data, const char *path,
                struct failure *failure)
{
    if (data->classes != config->vocabulary)
        return failure_set(failure, CODE_FAILED,
                           "%s: vocab_size: is %" PRId64 ", but the data has %d tokens", path,
                           config->vocabulary, data->classes);
    if (data->width > config->positions)
        return failure_set(failure, CODE_FAILED,
                           "%s: n_positions: is %" PRId64 ", but a sample has %d tokens", path,
                           config->positions, data->width);
    return CODE_DONE;
}

/* --- writing --- */

bool config_of(struct config *config, const struct settings *settings)
{
    static const struct config defaults = {.layers = 12, .heads = 12, .width = 768, .tied = 1};
    const struct family *family = family_of(settings->model);
    *config = defaults;
    for (size_t i = 0; family && i < family->count; i++) {
        const struct field *field = &family->fields[i];
        const bool ours = field->section && strcmp(field->section, "model") == 0;
        const char *value = ours ? settings_option(settings, field->key) : NULL;
        const double number = value ? strtod(value, NULL) : -1;
        if (number >= 0 && number <= MOST)
            *(int64_t *)(void *)((char *)config + field->offset) = (int64_t)number;
    }
    config->model = family ? family->model : NULL;
    return family != NULL;
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
    const struct family *family = family_of(config->model);
    const qn_tensors_entry *words, *positions;
    TRY(find_table(file, family->words, path, &words, failure));
    TRY(find_table(file, family->positions, path, &positions, failure));
    config->vocabulary = words->shape.dim[0];
    config->positions = positions->shape.dim[0];
    config->dtype = words->dtype;
    return CODE_DONE;
}

static bool put_field(cJSON *object, const struct config *config, const struct field *field)
{
    if (field->read == read_switch)
        return cJSON_AddBoolToObject(object, field->name, number_of(config, field) != 0);
    if (field->read == read_count)
        return !number_of(config, field) ||
               cJSON_AddNumberToObject(object, field->name, (double)number_of(config, field));
    return cJSON_AddRawToObject(object, field->name, field->written);
}

/* Tokens that begin and end a text are transformers' own where there are so many. */
static bool put_tokens(cJSON *object, const struct config *config)
{
    enum { TOKENS_OF_GPT2 = 50257 };
    return config->vocabulary >= TOKENS_OF_GPT2 || (cJSON_AddNullToObject(object, "bos_token_id") &&
                                                    cJSON_AddNullToObject(object, "eos_token_id"));
}

static bool put_all(cJSON *object, const struct config *config)
{
    const struct family *family = family_of(config->model);
    cJSON *architectures = cJSON_AddArrayToObject(object, "architectures");
    const char *type = config->dtype == QN_F16    ? "float16"
                       : config->dtype == QN_BF16 ? "bfloat16"
                                                  : "float32";
    bool whole = architectures &&
                 cJSON_AddItemToArray(architectures, cJSON_CreateString(family->architecture)) &&
                 cJSON_AddStringToObject(object, "model_type", family->type) &&
                 cJSON_AddStringToObject(object, "torch_dtype", type) && put_tokens(object, config);
    for (size_t i = 0; whole && i < family->count; i++)
        whole = put_field(object, config, &family->fields[i]);
    return whole;
}

char *config_text(const struct config *config)
{
    cJSON *object = cJSON_CreateObject();
    char *text = object && put_all(object, config) ? cJSON_Print(object) : NULL;
    cJSON_Delete(object);
    return text;
}
