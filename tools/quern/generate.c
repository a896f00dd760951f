/* SPDX-License-Identifier: MIT */
#include "progress.h"
#include "commands.h"
#include "file.h"
#include "signals.h"
#include "source.h"
#include "stream.h"
#include "value.h"

#include <cjson/cJSON.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One call of the command. */
struct generating {
    const struct arguments *arguments;
    struct failure *failure;
    struct source source;
    qn_tokenizer *tokenizer; /* NULL: tokens are bytes or numbers */
    qn_sampling sampling;
    qn_plan_params plan;
    qn_dtype storage;
    int64_t most; /* tokens to add */
    int32_t *ids; /* of the prompt, then those that are added */
    int64_t prompt, count, room;
    qn_device *device;
    qn_generator *generator;
    float *logits;
    struct stream stream;
    const char *end;
    double seconds; /* of the tokens behind the first, which waits for the prompt */
};

/* --- what is asked --- */

static int refuse(struct generating *g, const char *option, const char *text, const char *reason)
{
    return failure_set(g->failure, CODE_USAGE, "%s: '%s' %s", option, text, reason);
}

static int read_count(struct generating *g, enum option option, const char *name, int64_t least,
                      int64_t most, int64_t *value)
{
    const char *text = g->arguments->value[option];
    const char *reason = text ? value_count(text, least, most, value) : NULL;
    return reason ? refuse(g, name, text, reason) : CODE_DONE;
}

static int read_real(struct generating *g, enum option option, const char *name, double most,
                     double *value)
{
    const char *text = g->arguments->value[option];
    const char *reason = text ? value_real(text, value) : NULL;
    if (text && !reason && !(*value >= 0 && *value <= most))
        reason = most == 1 ? "is no fraction from 0 to 1" : "is below 0";
    return reason ? refuse(g, name, text, reason) : CODE_DONE;
}

static int read_options(struct generating *g)
{
    const char *const *value = g->arguments->value;
    int64_t seed = 0;
    int type = 0;
    g->most = 128;
    g->sampling.temperature = 1;
    TRY(read_count(g, OPTION_MAX_TOKENS, "--max-tokens", 1, INT_MAX, &g->most));
    TRY(read_count(g, OPTION_TOP_K, "--top-k", 1, INT_MAX, &g->sampling.top_k));
    TRY(read_count(g, OPTION_SAMPLE_SEED, "--seed", 0, INT64_MAX, &seed));
    TRY(read_real(g, OPTION_TEMPERATURE, "--temperature", 1e30, &g->sampling.temperature));
    TRY(read_real(g, OPTION_TOP_P, "--top-p", 1, &g->sampling.top_p));
    g->sampling.seed = (uint64_t)seed;
    const char *budget = value[OPTION_BUDGET], *storage = value[OPTION_WEIGHT_TYPE];
    const char *reason = budget ? value_size(budget, &g->plan.budget) : NULL;
    if (reason)
        return refuse(g, "--budget", budget, reason);
    reason = storage ? value_word(storage, value_floats, &type) : NULL;
    g->storage = (qn_dtype)(QN_F32 + type);
    return reason ? refuse(g, "--storage", storage, reason) : CODE_DONE;
}

/* --- the prompt --- */

static int make_room(struct generating *g, int64_t count)
{
    if (count > g->source.data.width)
        return failure_set(
            g->failure, CODE_FAILED,
            "generate: the prompt has more tokens than the %d positions of the model",
            g->source.data.width);
    if (g->ids)
        return CODE_DONE;
    g->ids = calloc((size_t)g->source.data.width, sizeof *g->ids);
    return g->ids ? CODE_DONE : failure_set(g->failure, CODE_FAILED, "out of memory");
}

static qn_status take_ids(void *user, const int32_t *ids, int64_t count)
{
    struct generating *g = user;
    if (make_room(g, g->prompt + count))
        return QN_ERR_ARGUMENT;
    memcpy(g->ids + g->prompt, ids, (size_t)count * sizeof *ids);
    g->prompt += count;
    return QN_OK;
}

static int take_bytes(struct generating *g, const unsigned char *text, size_t size)
{
    TRY(make_room(g, (int64_t)size));
    for (size_t i = 0; i < size; i++)
        g->ids[g->prompt++] = text[i];
    return CODE_DONE;
}

static int take_text(struct generating *g, const void *text, size_t size)
{
    const qn_encode_params params = {.frame = true, .fn = take_ids, .user = g};
    if (g->stream.numbers)
        return failure_set(g->failure, CODE_USAGE,
                           "generate: --tokenizer: missing; without it there is --tokens alone");
    if (!g->tokenizer)
        return take_bytes(g, text, size);
    const qn_status status = qn_tokenizer_encode(g->tokenizer, text, size, &params);
    return status && !g->failure->code ? failure_library(g->failure, status, NULL)
                                       : g->failure->code;
}

static int take_numbers(struct generating *g, const char *text)
{
    for (const char *at = text; *at;) {
        char *end;
        const long id = strtol(at, &end, 10);
        if (end == at || (*end && *end != ',') || id < 0 || id >= g->source.data.tokens)
            return failure_set(g->failure, CODE_FAILED,
                               "--tokens: '%.20s' is no token from 0 to %d", at,
                               g->source.data.tokens - 1);
        if (take_ids(g, &(int32_t){(int32_t)id}, 1) != QN_OK)
            return g->failure->code;
        at = end + (*end == ',');
    }
    return CODE_DONE;
}

static int take_file(struct generating *g, const char *path)
{
    const void *bytes;
    size_t size;
    TRY(file_map(&bytes, &size, path, g->failure));
    const int code = take_text(g, bytes, size);
    file_unmap(bytes, size);
    return code;
}

/* The tokenizer that is named, or the one that lies beside the weights. */
static int open_tokenizer(struct generating *g)
{
    const qn_log log = failure_log(g->failure);
    const char *path = g->arguments->value[OPTION_TOKENIZER];
    char beside[PATH_MAX];
    snprintf(beside, sizeof beside, "%s/tokenizer.json", g->arguments->operand);
    if (!path && access(beside, F_OK) == 0)
        path = beside;
    if (path)
        TRY_LIBRARY(g->failure, NULL, qn_tokenizer_open(&g->tokenizer, path, &log));
    if (path && qn_tokenizer_size(g->tokenizer) > g->source.data.tokens)
        return failure_set(g->failure, CODE_FAILED, "%s: has %lld tokens, but the model has %d",
                           path, (long long)qn_tokenizer_size(g->tokenizer), g->source.data.tokens);
    g->stream.tokenizer = g->tokenizer;
    g->stream.numbers = !path && g->source.data.tokens != 256;
    return CODE_DONE;
}

static int read_prompt(struct generating *g)
{
    const char *const *value = g->arguments->value;
    const char *text = value[OPTION_PROMPT];
    if (!!text + !!value[OPTION_PROMPT_FILE] + !!value[OPTION_IDS] != 1)
        return failure_set(g->failure, CODE_USAGE,
                           "generate: needs one of --prompt, --prompt-file and --tokens");
    TRY(text                ? take_text(g, text, strlen(text))
        : value[OPTION_IDS] ? take_numbers(g, value[OPTION_IDS])
                            : take_file(g, value[OPTION_PROMPT_FILE]));
    return g->prompt ? CODE_DONE
                     : failure_set(g->failure, CODE_FAILED, "generate: the prompt is empty");
}

/* --- the device --- */

static int open_model(struct generating *g)
{
    const qn_device_params device = {.log = failure_log(g->failure),
                                     .match = g->arguments->value[OPTION_DEVICE]};
    const struct source *source = &g->source;
    int64_t smallest;
    g->room = source->data.width - g->prompt < g->most ? source->data.width : g->prompt + g->most;
    qn_model_data data = source->data;
    data.cache = (int)g->room;
    const qn_generator_params params = {.log = failure_log(g->failure),
                                        .model = source->model,
                                        .data = &data,
                                        .options = source->options,
                                        .n_options = source->n_options,
                                        .storage = g->storage,
                                        .plan = &g->plan};
    TRY_LIBRARY(g->failure, device.match ? "--device" : NULL, qn_device_open(&g->device, &device));
    const qn_status status = qn_generator_open(&g->generator, g->device, &params, &smallest);
    if (status == QN_ERR_BUDGET && g->arguments->value[OPTION_JSON])
        printf("{\"smallest_budget_bytes\": %lld}\n", (long long)smallest);
    if (status)
        return failure_library(g->failure, status, g->arguments->operand);
    g->logits = calloc((size_t)data.tokens, sizeof *g->logits);
    if (!g->logits)
        return failure_set(g->failure, CODE_FAILED, "out of memory");
    return source_load(source, qn_generator_trainer(g->generator), g->failure);
}

/* --- going on --- */

static bool ends_text(const struct generating *g, int32_t token)
{
    return g->tokenizer && qn_tokenizer_is_special(g->tokenizer, token);
}

static int choose(struct generating *g, int32_t *token)
{
    const int64_t number = g->count - g->prompt;
    const qn_status status =
        qn_sample(token, g->logits, g->source.data.tokens, &g->sampling, (uint64_t)number);
    return status ? failure_set(g->failure, CODE_FAILED, "generate: a logit is not finite")
                  : CODE_DONE;
}

static int feed(struct generating *g, const int32_t *ids, int64_t count)
{
    TRY_LIBRARY(g->failure, NULL, qn_generator_feed(g->generator, ids, count, g->logits));
    return CODE_DONE;
}

static int go_on(struct generating *g)
{
    TRY(feed(g, g->ids, g->prompt));
    const double start = clock_now();
    for (g->count = g->prompt; !signals_received();) {
        int32_t token;
        TRY(choose(g, &token));
        g->end = ends_text(g, token) ? "end of text" : NULL;
        if (g->end)
            return CODE_DONE;
        g->ids[g->count++] = token;
        TRY(stream_take(&g->stream, g->ids + g->prompt, g->count - g->prompt, g->failure));
        g->seconds = clock_now() - start;
        g->end = g->stream.stopped                  ? "stop text"
                 : g->count - g->prompt == g->most  ? "tokens"
                 : g->count == g->source.data.width ? "positions"
                                                    : NULL;
        if (g->end)
            return CODE_DONE;
        TRY(feed(g, g->ids + g->count - 1, 1));
    }
    g->end = "signal";
    return CODE_DONE;
}

static int print_json(const struct generating *g)
{
    const qn_trainer *trainer = qn_generator_trainer(g->generator);
    const qn_plan_info *info = qn_plan_facts(qn_trainer_plan(trainer));
    const int64_t made = g->count - g->prompt;
    char *made_text = g->stream.text ? stream_text(&g->stream) : NULL;
    cJSON *root = cJSON_CreateObject();
    cJSON *tokens = cJSON_AddArrayToObject(root, "tokens");
    for (int64_t i = g->prompt; tokens && i < g->count; i++)
        cJSON_AddItemToArray(tokens, cJSON_CreateNumber(g->ids[i]));
    if (made_text)
        cJSON_AddStringToObject(root, "text", made_text);
    free(made_text);
    cJSON_AddStringToObject(root, "end", g->end);
    cJSON_AddNumberToObject(root, "prompt_tokens", (double)g->prompt);
    cJSON_AddNumberToObject(root, "tokens_per_second",
                            made > 1 ? (double)(made - 1) / g->seconds : 0);
    cJSON_AddNumberToObject(root, "budget_bytes", (double)info->budget_bytes);
    cJSON_AddNumberToObject(root, "peak_bytes_planned", (double)info->peak_bytes);
    cJSON_AddNumberToObject(root, "peak_bytes_allocated", (double)qn_trainer_bytes(trainer));
    char *text = cJSON_Print(root);
    cJSON_Delete(root);
    if (!text)
        return failure_set(g->failure, CODE_FAILED, "out of memory");
    printf("%s\n", text);
    free(text);
    return CODE_DONE;
}

static int generate(struct generating *g)
{
    TRY(read_options(g));
    TRY(source_open(&g->source, g->arguments->operand, g->failure));
    TRY(open_tokenizer(g));
    TRY(read_prompt(g));
    TRY(open_model(g));
    TRY(go_on(g));
    TRY(stream_end(&g->stream, g->failure));
    if (g->stream.silent)
        TRY(print_json(g));
    return signals_code(g->failure);
}

static int run(const struct arguments *a, struct failure *failure)
{
    struct generating *g = calloc(1, sizeof *g);
    if (!g)
        return failure_set(failure, CODE_FAILED, "out of memory");
    g->arguments = a;
    g->failure = failure;
    g->stream = (struct stream){
        .silent = a->value[OPTION_JSON] != NULL, .stops = a->stops, .n_stops = a->n_stops};
    signals_catch();
    const int code = generate(g);
    stream_free(&g->stream);
    qn_generator_close(&g->generator);
    qn_device_close(&g->device);
    qn_tokenizer_close(&g->tokenizer);
    source_close(&g->source);
    free(g->logits);
    free(g->ids);
    free(g);
    return code;
}

const struct command command_generate = {
    "generate",
    "DIR",
    "continues a text with a trained model",
    "Prints what a gpt or llama model adds to a prompt, as it is made. DIR is the folder of a\n"
    "training (its newest checkpoint) or a checkpoint, or has config.json and weights in Hugging\n"
    "Face's layout (GPT-2, Llama). Without --tokenizer that of DIR is taken, if it has a\n"
    "tokenizer.json; else a model of 256 tokens takes bytes, and others are asked with --tokens\n"
    "and answer with numbers. All device memory is within --budget. A special token ends the text.",
    false,
    run,
    {OPTION_PROMPT, OPTION_PROMPT_FILE, OPTION_IDS, OPTION_TOKENIZER, OPTION_MAX_TOKENS,
     OPTION_TEMPERATURE, OPTION_TOP_K, OPTION_TOP_P, OPTION_SAMPLE_SEED, OPTION_STOP, OPTION_BUDGET,
     OPTION_WEIGHT_TYPE, OPTION_DEVICE, OPTION_JSON, OPTION_COUNT},
};
