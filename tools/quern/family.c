/* SPDX-License-Identifier: MIT */
#include "family.h"
#include "rope.h"

#include <stddef.h>
#include <string.h>

enum { MOST = 1 << 24 }; /* of any count */

/* --- kinds of fields --- */

static double *number_in(const struct field *field, struct config *config)
{
    return (double *)(void *)((char *)config + field->offset);
}

static const char *read_count(const struct field *field, const cJSON *item, struct config *config)
{
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= 1 && item->valuedouble <= MOST) ||
        (double)(int64_t)item->valuedouble != item->valuedouble)
        return "is no whole number from 1 to 16777216";
    *number_in(field, config) = item->valuedouble;
    return NULL;
}

static const char *read_count_or_null(const struct field *field, const cJSON *item,
                                      struct config *config)
{
    return cJSON_IsNull(item) ? NULL : read_count(field, item, config);
}

static const char *read_switch(const struct field *field, const cJSON *item, struct config *config)
{
    if (!cJSON_IsBool(item))
        return "is neither true nor false";
    *number_in(field, config) = cJSON_IsTrue(item);
    return NULL;
}

static const char *read_real(const struct field *field, const cJSON *item, struct config *config)
{
    if (!cJSON_IsNumber(item) || !(item->valuedouble > 0 && item->valuedouble <= 1e12))
        return "is no number above 0";
    *number_in(field, config) = item->valuedouble;
    return NULL;
}

static const char *read_fraction(const struct field *field, const cJSON *item,
                                 struct config *config)
{
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0 && item->valuedouble < 1))
        return "is no fraction from 0, below 1";
    *number_in(field, config) = item->valuedouble;
    return NULL;
}

/* The largest of several. */
static const char *read_dropout(const struct field *field, const cJSON *item, struct config *config)
{
    const double before = field_number(field, config);
    const char *reason = read_fraction(field, item, config);
    if (!reason && field_number(field, config) < before)
        *number_in(field, config) = before;
    return reason;
}

/* What every model here computes. */
static const char *read_fixed(const struct field *field, const cJSON *item, struct config *config)
{
    static char reason[200];
    (void)config;
    char *text = cJSON_PrintUnformatted(item);
    if (!text)
        return "out of memory";
    const bool same =
        strcmp(text, field->written) == 0 || (field->also && strcmp(text, field->also) == 0);
    snprintf(reason, sizeof reason, "is %.60s; the model has %s", text, field->written);
    cJSON_free(text);
    return same ? NULL : reason;
}

/* The names of classes: as many as there are labels. */
static const char *read_labels(const struct field *field, const cJSON *item, struct config *config)
{
    const int count = cJSON_GetArraySize(item);
    if (!cJSON_IsObject(item) || count < 1)
        return "is no object with a name for each class";
    *number_in(field, config) = count;
    return NULL;
}

static const char *read_rope(const struct field *field, const cJSON *item, struct config *config)
{
    (void)field;
    return rope_read(config, item);
}

/* --- the tables --- */

#define AT(member) offsetof(struct config, member)
static const struct family families[] = {
    {"gpt2",
     "gpt",
     "GPT2LMHeadModel",
     NULL,
     true,
     "transformer.wte.weight",
     "transformer.wpe.weight",
     NULL,
     50257,
     {.tied = 1},
     {.layers = 12, .heads = 12, .width = 768, .tied = 1},
     {{"n_layer", read_count, AT(layers), "model", "layers", NULL, NULL},
      {"n_head", read_count, AT(heads), "model", "heads", NULL, NULL},
      {"n_embd", read_count, AT(width), "model", "width", NULL, NULL},
      {"n_positions", read_count, AT(positions), NULL, NULL, NULL, NULL},
      {"vocab_size", read_count, AT(vocabulary), "data", "tokens", NULL, NULL},
      {"tie_word_embeddings", read_switch, AT(tied), "model", "tied", "", NULL},
      {"n_ctx", read_count, AT(context), NULL, NULL, "", NULL},
      {"n_inner", read_count_or_null, AT(fourfold), NULL, NULL, "null", NULL},
      {"activation_function", read_fixed, 0, NULL, NULL, "\"gelu_new\"", "\"gelu_pytorch_tanh\""},
      {"layer_norm_epsilon", read_fixed, 0, NULL, NULL, "1e-05", NULL},
      {"scale_attn_weights", read_fixed, 0, NULL, NULL, "true", NULL},
      {"scale_attn_by_inverse_layer_idx", read_fixed, 0, NULL, NULL, "false", NULL},
      {"reorder_and_upcast_attn", read_fixed, 0, NULL, NULL, "false", NULL},
      {"add_cross_attention", read_fixed, 0, NULL, NULL, "false", NULL},
      {"is_encoder_decoder", read_fixed, 0, NULL, NULL, "false", NULL},
      {"resid_pdrop", read_dropout, AT(lost), NULL, NULL, "0.0", NULL},
      {"embd_pdrop", read_dropout, AT(lost), NULL, NULL, "0.0", NULL},
      {"attn_pdrop", read_dropout, AT(lost), NULL, NULL, "0.0", NULL}}},
    {"llama",
     "llama",
     "LlamaForCausalLM",
     NULL,
     true,
     "model.embed_tokens.weight",
     NULL,
     NULL,
     32000,
     {.base = 10000, .factor = 1, .low = 1, .high = 4, .eps = 1e-6},
     {.layers = 22,
      .heads = 32,
      .kv_heads = 4,
      .width = 2048,
      .inner = 5632,
      .base = 10000,
      .factor = 1,
      .low = 1,
      .high = 4,
      .eps = 1e-5},
     {{"num_hidden_layers", read_count, AT(layers), "model", "layers", NULL, NULL},
      {"num_attention_heads", read_count, AT(heads), "model", "heads", NULL, NULL},
      {"num_key_value_heads", read_count, AT(kv_heads), "model", "kv_heads", "", NULL},
      {"hidden_size", read_count, AT(width), "model", "width", NULL, NULL},
      {"intermediate_size", read_count, AT(inner), "model", "inner", NULL, NULL},
      {"max_position_embeddings", read_count, AT(positions), NULL, NULL, NULL, NULL},
      {"vocab_size", read_count, AT(vocabulary), "data", "tokens", NULL, NULL},
      {"tie_word_embeddings", read_switch, AT(tied), "model", "tied", "", NULL},
      {"rms_norm_eps", read_real, AT(eps), "model", "eps", "", NULL},
      {"rope_theta", read_real, AT(base), "model", "base", "", NULL},
      {"rope_parameters", read_rope, AT(base), NULL, NULL, "", NULL},
      {"rope_scaling", read_rope, AT(base), NULL, NULL, "null", NULL},
      {"rope_scaling.factor", NULL, AT(factor), "model", "factor", "", NULL},
      {"rope_scaling.low_freq_factor", NULL, AT(low), "model", "low_freq_factor", "", NULL},
      {"rope_scaling.high_freq_factor", NULL, AT(high), "model", "high_freq_factor", "", NULL},
      {"rope_scaling.original_max_position_embeddings", NULL, AT(original), "model",
       "original_positions", "", NULL},
      {"head_dim", read_count_or_null, AT(head), NULL, NULL, "null", NULL},
      {"hidden_act", read_fixed, 0, NULL, NULL, "\"silu\"", NULL},
      {"attention_bias", read_fixed, 0, NULL, NULL, "false", NULL},
      {"mlp_bias", read_fixed, 0, NULL, NULL, "false", NULL},
      {"pretraining_tp", read_fixed, 0, NULL, NULL, "1", NULL},
      {"is_encoder_decoder", read_fixed, 0, NULL, NULL, "false", NULL},
      {"add_cross_attention", read_fixed, 0, NULL, NULL, "false", NULL},
      {"attention_dropout", read_dropout, AT(lost), NULL, NULL, "0.0", NULL}}},
    {"bert",
     "bert",
     "BertForMaskedLM",
     "BertForSequenceClassification",
     false,
     "bert.embeddings.word_embeddings.weight",
     "bert.embeddings.position_embeddings.weight",
     "classifier.weight",
     INT64_MAX,
     {.dropout = 0.1, .attention = 0.1},
     {.layers = 12, .heads = 12, .width = 768, .dropout = 0.1},
     {{"num_hidden_layers", read_count, AT(layers), "model", "layers", NULL, NULL},
      {"num_attention_heads", read_count, AT(heads), "model", "heads", NULL, NULL},
      {"hidden_size", read_count, AT(width), "model", "width", NULL, NULL},
      {"intermediate_size", read_count, AT(inner), "model", "inner", NULL, NULL},
      {"max_position_embeddings", read_count, AT(positions), NULL, NULL, NULL, NULL},
      {"vocab_size", read_count, AT(vocabulary), "data", "tokens", NULL, NULL},
      {"type_vocab_size", read_fixed, 0, NULL, NULL, "2", NULL},
      {"hidden_dropout_prob", read_fraction, AT(dropout), "model", "dropout", "", NULL},
      {"attention_probs_dropout_prob", read_fraction, AT(attention), NULL, NULL, "", NULL},
      {"classifier_dropout", read_fixed, 0, NULL, NULL, "null", NULL},
      {"id2label", read_labels, AT(labels), "data", "classes", "", NULL},
      {"num_labels", read_count, AT(labels), "data", "classes", "", NULL},
      {"hidden_act", read_fixed, 0, NULL, NULL, "\"gelu\"", NULL},
      {"layer_norm_eps", read_fixed, 0, NULL, NULL, "1e-12", NULL},
      {"position_embedding_type", read_fixed, 0, NULL, NULL, "\"absolute\"", NULL},
      {"tie_word_embeddings", read_fixed, 0, NULL, NULL, "true", NULL},
      {"is_encoder_decoder", read_fixed, 0, NULL, NULL, "false", NULL},
      {"add_cross_attention", read_fixed, 0, NULL, NULL, "false", NULL}}},
};
#undef AT
enum { N_FAMILIES = sizeof families / sizeof *families };

static const char *const passed_over[] = {"_name_or_path",
                                          "_num_labels",
                                          "architectures",
                                          "bos_token_id",
                                          "chunk_size_feed_forward",
                                          "directionality",
                                          "pooler_fc_size",
                                          "pooler_num_attention_heads",
                                          "pooler_num_fc_layers",
                                          "pooler_size_per_head",
                                          "pooler_type",
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

/* --- looking up --- */

const struct family *family_of_type(const char *type)
{
    for (int i = 0; i < N_FAMILIES; i++)
        if (strcmp(families[i].type, type) == 0)
            return &families[i];
    return NULL;
}

const struct family *family_of_model(const char *model)
{
    for (int i = 0; i < N_FAMILIES; i++)
        if (strcmp(families[i].model, model) == 0)
            return &families[i];
    return NULL;
}

const struct field *family_field(const struct family *family, const char *name)
{
    for (const struct field *field = family->fields; field->name; field++)
        if (strcmp(field->name, name) == 0)
            return field;
    return NULL;
}

const char *family_name(const struct family *family, size_t offset)
{
    for (const struct field *field = family->fields; field->name; field++)
        if (field->read != read_fixed && field->offset == offset)
            return field->name;
    return "";
}

bool family_passes_over(const char *name)
{
    for (size_t i = 0; i < sizeof passed_over / sizeof *passed_over; i++)
        if (strcmp(passed_over[i], name) == 0)
            return true;
    return false;
}

/* --- writing --- */

/* A count of 0 says that there is none. */
bool field_put(cJSON *object, const struct field *field, const struct config *config)
{
    const double number = field_number(field, config);
    if (field_is_part(field->name))
        return true;
    if (field->read == read_rope)
        return !*field->written || rope_put(object, config);
    if (field->written && *field->written)
        return cJSON_AddRawToObject(object, field->name, field->written);
    if (field->read == read_labels || (field->read == read_count && number == 0))
        return true;
    return field->read == read_switch
               ? cJSON_AddBoolToObject(object, field->name, number != 0) != NULL
               : cJSON_AddNumberToObject(object, field->name, number) != NULL;
}
