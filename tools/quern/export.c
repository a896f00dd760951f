/* SPDX-License-Identifier: MIT */
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
    const qn_layout *layout;
    struct config config;
    qn_tensors *file; /* the checkpoint's */
    qn_tensors_item *items;
};

/* --- weights --- */

static qn_status give(void *user, int64_t index, int64_t at, void *bytes, int64_t size)
{
    const struct model *model = user;
    return qn_tensors_read(model->file, qn_tensors_at(model->file, index), at, bytes, size);
}

static int write_weights(struct model *model, struct failure *failure)
{
    const int64_t count = qn_tensors_count(model->file);
    const qn_tensors_pair format = {"format", "pt"};
    model->items = calloc((size_t)count + 1, sizeof *model->items);
    if (!model->items)
        return failure_set(failure, CODE_FAILED, "%s: out of memory", model->weights);
    for (int64_t i = 0; i < count; i++) {
        const qn_tensors_entry *entry = qn_tensors_at(model->file, i);
        model->items[i] = (qn_tensors_item){entry->name, entry->dtype, entry->shape};
    }
    const qn_tensors_params params = {.log = failure_log(failure),
                                      .items = model->items,
                                      .count = count,
                                      .metadata = &format,
                                      .metadata_count = 1,
                                      .layout = model->layout};
    TRY_LIBRARY(failure, NULL, qn_tensors_save(model->weights, &params, give, model, NULL, NULL));
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

static int export_checkpoint(struct session *s, const struct arguments *a,
                             const qn_checkpoint_info *info)
{
    const qn_log log = failure_log(s->failure);
    struct model model = {.out = a->value[OPTION_EXPORT]};
    TRY(session_note(s, info, a));
    model.layout = qn_model_layout(s->settings.model);
    if (!model.layout || !config_of(&model.config, &s->settings))
        return failure_set(s->failure, CODE_FAILED,
                           "%s: model.name: of %s Hugging Face has no layout that is known",
                           info->path, s->settings.model);
    snprintf(model.weights, sizeof model.weights, "%s/model.safetensors", model.out);
    snprintf(model.description, sizeof model.description, "%s/config.json", model.out);
    TRY_LIBRARY(s->failure, NULL, qn_tensors_open(&model.file, info->weights, &log));
    int code = config_measure(&model.config, model.file, info->weights, s->failure);
    if (code == CODE_DONE)
        code = write_folder(&model, s->failure);
    qn_tensors_close(&model.file);
    free(model.items);
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
    "transformers. Only for models whose layout is known: gpt, which becomes a GPT2LMHeadModel\n"
    "with as many positions as a sample has tokens. No device is needed.",
    false,
    run,
    {OPTION_EXPORT, OPTION_COUNT},
};
