/* SPDX-License-Identifier: MIT */
#include "adapters.h"
#include "commands.h"
#include "file.h"
#include "session.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <quern/io.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 4096 };

/* What is written, and from where. */
struct model {
    const char *out;
    char weights[PATH_BYTES], description[PATH_BYTES];
    bool adapters; /* alone, in PEFT's layout */
    const struct settings *settings;
    const qn_layout *layout;
    struct config config;
    qn_tensors *file; /* the checkpoint's */
    double scale;     /* of adapters; 0: it has none */
};

/* --- weights --- */

/* With adapters merged, if there are any. */
static int write_weights(struct model *model, struct failure *failure)
{
    const qn_tensors_pair format = {"format", "pt"};
    const qn_tensors_params params = {.log = failure_log(failure),
                                      .metadata = &format,
                                      .metadata_count = 1,
                                      .layout = model->layout};
    TRY_LIBRARY(failure, NULL,
                qn_tensors_merge(model->weights, &params, model->file, model->scale));
    return CODE_DONE;
}

static int write_description(const struct model *model, struct failure *failure)
{
    char *text = config_text(&model->config);
    if (!text)
        return failure_set(failure, CODE_FAILED, "%s: out of memory", model->description);
    int code = file_replace(model->description, text, failure);
    cJSON_free(text);
    return code;
}

/* --- the folder --- */

static int write_files(struct model *model, struct failure *failure)
{
    if (model->adapters)
        return adapters_write(model->weights, model->description, model->settings, model->file,
                              failure);
    TRY(write_weights(model, failure));
    return write_description(model, failure);
}

/* Nothing that lies there is written over, and a failure leaves nothing. */
static int write_folder(struct model *model, struct failure *failure)
{
    const bool made = mkdir(model->out, 0777) == 0;
    if (!made && !file_is_folder(model->out))
        return failure_set(failure, CODE_FAILED, "--out: %s: %s", model->out, strerror(errno));
    if (access(model->weights, F_OK) == 0 || access(model->description, F_OK) == 0)
        return failure_set(failure, CODE_USAGE, "--out: %s: holds a model already", model->out);
    int code = write_files(model, failure);
    if (code)
        unlink(model->weights);
    if (code && made)
        rmdir(model->out);
    return code;
}

/* What the recipe says of what is written; whether that can be. */
static int describe(struct model *model, const char *path, struct failure *failure)
{
    const struct settings *settings = model->settings;
    const char *names[] = {"model.safetensors", "config.json"};
    const char *alone[] = {"adapter_model.safetensors", "adapter_config.json"};
    const char *const *name = model->adapters ? alone : names;
    snprintf(model->weights, sizeof model->weights, "%s/%s", model->out, name[0]);
    snprintf(model->description, sizeof model->description, "%s/%s", model->out, name[1]);
    model->layout = qn_model_layout(settings->model);
    model->scale = adapters_scale(settings);
    if (model->adapters)
        return model->scale > 0
                   ? CODE_DONE
                   : failure_set(failure, CODE_FAILED,
                                 "%s: model.lora_rank: its model has no adapters", path);
    if (!model->layout || !config_of(&model->config, settings))
        return failure_set(failure, CODE_FAILED,
                           "%s: model.name: of %s Hugging Face has no layout that is known", path,
                           settings->model);
    return CODE_DONE;
}

static int export_checkpoint(struct session *s, const struct arguments *a,
                             const qn_checkpoint_info *info)
{
    const qn_log log = failure_log(s->failure);
    struct model model = {.out = a->value[OPTION_EXPORT],
                          .adapters = a->value[OPTION_ADAPTERS] != NULL,
                          .settings = &s->settings};
    TRY(session_note(s, info, a));
    TRY(describe(&model, info->path, s->failure));
    TRY_LIBRARY(s->failure, NULL, qn_tensors_open(&model.file, info->weights, &log));
    int code = model.adapters
                   ? CODE_DONE
                   : config_measure(&model.config, model.file, info->weights, s->failure);
    if (code == CODE_DONE)
        code = write_folder(&model, s->failure);
    qn_tensors_close(&model.file);
    return code;
}

static int open_and_export(struct session *s, const struct arguments *a)
{
    const qn_log log = failure_log(s->failure);
    qn_checkpoint *checkpoint = NULL;
    TRY_LIBRARY(s->failure, NULL, qn_checkpoint_open(&checkpoint, a->operand, &log));
    int code = export_checkpoint(s, a, qn_checkpoint_describe(checkpoint));
    session_close(s);
    qn_checkpoint_close(&checkpoint);
    return code;
}

static int run(const struct arguments *a, struct failure *failure)
{
    const char *out = a->value[OPTION_EXPORT];
    if (!out || !*out || strlen(out) >= PATH_BYTES - 32)
        return failure_set(failure, CODE_USAGE, "export: --out: needs the name of a folder");
    struct session *session = calloc(1, sizeof *session);
    if (!session)
        return failure_set(failure, CODE_FAILED, "out of memory");
    session->failure = failure;
    int code = open_and_export(session, a);
    free(session);
    return code;
}

const struct command command_export = {
    "export",
    "DIR",
    "trained weights in Hugging Face's layout",
    "Writes the newest checkpoint of a training (or DIR, if it is a checkpoint) as others load "
    "it:\n"
    "model.safetensors and config.json in the folder of --out, for from_pretrained of\n"
    "transformers. Only for models whose layout is known: gpt becomes a GPT2LMHeadModel, llama a\n"
    "LlamaForCausalLM, bert a BertForMaskedLM or BertForSequenceClassification, with as many\n"
    "positions as a sample has tokens. Low-rank adapters are merged into the weights;\n"
    "with --adapters they alone are written, for PEFT: adapter_model.safetensors and\n"
    "adapter_config.json, of any model. No device is needed.",
    false,
    run,
    {OPTION_EXPORT, OPTION_ADAPTERS, OPTION_COUNT},
};
