/* SPDX-License-Identifier: MIT */
#include "commands.h"
#include "names.h"
#include "newest.h"
#include "predictions.h"
#include "signals.h"
#include "value.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* One call of the command. */
struct predicting {
    const struct arguments *arguments;
    struct failure *failure;
    struct session session;
    const char *weights; /* a file, or the folder of a training or checkpoint */
    qn_checkpoint *checkpoint;
    struct class_names names;
    struct samples samples;
    struct predictions predictions;
    qn_loader *loader;
    qn_predictor *predictor;
};

/* --- the model --- */

/* The recipe: of the checkpoint, unless one is named and the weights are. */
static int read_recipe(struct predicting *p)
{
    const struct arguments *a = p->arguments;
    const char *named = a->value[OPTION_WEIGHTS];
    const bool folder = file_is_folder(a->operand);
    p->weights = named ? named : a->operand;
    if (!folder && !named)
        return failure_set(p->failure, CODE_USAGE,
                           "predict: %s: is no folder of a checkpoint; a recipe needs --weights",
                           a->operand);
    if (folder && named)
        return failure_set(p->failure, CODE_USAGE, "predict: --weights: %s has its own",
                           a->operand);
    if (file_is_folder(p->weights))
        TRY_LIBRARY(p->failure, NULL, newest_open(&p->checkpoint, p->weights, p->failure));
    const qn_checkpoint_info *info = p->checkpoint ? qn_checkpoint_describe(p->checkpoint) : NULL;
    TRY(folder ? session_note(&p->session, info, a) : session_recipe(&p->session, a->operand, a));
    return info && info->note ? note_classes(&p->names, info->note, info->path, p->failure)
                              : CODE_DONE;
}

/* Names of targets, or of the data's own classes, if it had to be looked at. */
static int take_names(struct predicting *p)
{
    const char *list = p->session.settings.data.target;
    if (list) {
        struct names targets;
        names_read(&targets, list);
        return class_names_copy(&p->names, targets.name, targets.count, p->failure);
    }
    const qn_column *labels =
        p->session.data.train ? qn_dataset_column(p->session.data.train, "labels") : NULL;
    if (p->names.count || !labels || !labels->class_names)
        return CODE_DONE;
    return class_names_copy(&p->names, labels->class_names, labels->classes, p->failure);
}

/* The graph without labels and loss. */
static int build(struct predicting *p)
{
    struct session *s = &p->session;
    TRY(data_look(&s->data, &s->settings, &s->recipe, p->failure));
    TRY(take_names(p));
    if (settings_learns_tokens(&s->settings))
        return failure_set(p->failure, CODE_USAGE,
                           "predict: the model %s tells tokens, no classes; to continue a text see "
                           "quern help generate",
                           s->settings.model);
    s->data.model.predict = true;
    return session_graph(s);
}

static int open_predictor(struct predicting *p)
{
    struct session *s = &p->session;
    const int64_t samples = qn_dataset_describe(p->samples.dataset)->count;
    qn_plan_params plan = settings_plan(&s->settings);
    plan.batch[0] = samples < plan.batch[0] ? samples : plan.batch[0];
    plan.micro_batch = plan.micro_batch < plan.batch[0] ? plan.micro_batch : plan.batch[0];
    const qn_predictor_params params = {
        .log = failure_log(p->failure), .graph = s->graph, .plan = &plan};
    TRY(session_device(s, p->arguments));
    TRY_LIBRARY(p->failure, s->recipe.name,
                qn_predictor_open(&p->predictor, s->device, &params, NULL));
    TRY_LIBRARY(p->failure, NULL,
                newest_load(qn_predictor_trainer(p->predictor), p->weights, p->failure));
    return CODE_DONE;
}

/* --- the samples --- */

static int open_samples(struct predicting *p)
{
    const struct arguments *a = p->arguments;
    const qn_log log = failure_log(p->failure);
    TRY(samples_open(&p->samples, &p->session, (char *const *)a->operands + 1, a->n_operands - 1));
    failure_clear(p->failure);
    return qn_dataset_fits(p->samples.dataset, p->session.graph, &log) == QN_OK
               ? CODE_DONE
               : failure_set(p->failure, CODE_FAILED, "%s: %s", a->operands[1], p->failure->logged);
}

static enum predictions_kind kind_of(const qn_model_data *model)
{
    return model->masks      ? PREDICT_MASK
           : !model->targets ? PREDICT_CLASS
           : model->binary   ? PREDICT_SEVERAL
                             : PREDICT_NUMBERS;
}

static int open_predictions(struct predicting *p)
{
    const char *const *value = p->arguments->value;
    const qn_model_data *model = &p->session.data.model;
    const char *top = value[OPTION_TOP];
    qn_tensor logits = {0};
    int64_t count = 1;
    const char *reason = top ? value_count(top, 1, INT_MAX, &count) : NULL;
    if (reason)
        return failure_set(p->failure, CODE_USAGE, "--top: '%s' %s", top, reason);
    if (top && model->targets)
        return failure_set(p->failure, CODE_USAGE, "--top: goes with classes, not with targets");
    if (value[OPTION_JSON] && value[OPTION_CSV])
        return failure_set(p->failure, CODE_USAGE, "predict: --json and --csv exclude each other");
    qn_graph_output(p->session.graph, 0, &logits);
    p->predictions = (struct predictions){
        .failure = p->failure,
        .samples = &p->samples,
        .names = &p->names,
        .form = value[OPTION_JSON]  ? PREDICTIONS_JSON
                : value[OPTION_CSV] ? PREDICTIONS_CSV
                                    : PREDICTIONS_TABLE,
        .out = value[OPTION_PREDICTIONS],
        .mark = p->session.settings.data.mask,
        .dtype = qn_dtype_of(p->session.graph, logits),
        .kind = kind_of(model),
        .classes = model->targets ? model->targets : model->classes,
        .top = (int)count,
        .height = model->masks ? model->height : 0,
        .width = model->masks ? model->width : 0,
    };
    return predictions_open(&p->predictions);
}

static qn_status fetch(void *user, const char *input, int64_t first, int64_t count, void *rows)
{
    return qn_loader_fetch(((struct predicting *)user)->loader, input, first, count, rows);
}

static qn_status take(void *user, const char *output, int64_t first, int64_t count,
                      const void *rows)
{
    struct predicting *p = user;
    return signals_received() ? QN_ERR_ARGUMENT
                              : predictions_take(&p->predictions, output, first, count, rows);
}

static int run_all(struct predicting *p)
{
    const int64_t samples = qn_dataset_describe(p->samples.dataset)->count;
    const qn_loader_params params = {
        .log = failure_log(p->failure),
        .max_samples = qn_plan_facts(qn_predictor_plan(p->predictor))->micro_batch,
        .sequential = true};
    TRY_LIBRARY(p->failure, NULL, qn_loader_open(&p->loader, p->samples.dataset, &params));
    failure_clear(p->failure);
    const qn_status status = qn_predictor_run(p->predictor, samples, fetch, take, p);
    if (signals_received())
        return signals_code(p->failure);
    return status ? failure_library(p->failure, status, NULL) : CODE_DONE;
}

static int predict(struct predicting *p)
{
    TRY(read_recipe(p));
    TRY(build(p));
    TRY(open_samples(p));
    TRY(open_predictor(p));
    TRY(open_predictions(p));
    return run_all(p);
}

static void close_all(struct predicting *p)
{
    qn_loader_close(&p->loader);
    qn_predictor_close(&p->predictor);
    samples_close(&p->samples);
    session_close(&p->session);
    class_names_free(&p->names);
    qn_checkpoint_close(&p->checkpoint);
    free(p);
}

static int run(const struct arguments *a, struct failure *failure)
{
    struct predicting *p = calloc(1, sizeof *p);
    if (!p)
        return failure_set(failure, CODE_FAILED, "out of memory");
    p->arguments = a;
    p->failure = p->session.failure = failure;
    p->session.quiet = true;
    signals_catch();
    const int code = predictions_close(&p->predictions, predict(p));
    close_all(p);
    return code;
}

const struct command command_predict = {
    "predict",
    "DIR FILE...",
    "classes of pictures, texts or rows by a trained model",
    "Tells the most probable class of each sample, by its name where the training had names. DIR "
    "is\n"
    "the folder of a training (its newest checkpoint) or a checkpoint, or a RECIPE with "
    "--weights.\n"
    "FILE is a picture (PNG, JPEG) or a folder of pictures however deep, one file of images "
    "(IDX),\n"
    "or for models of texts a file with a text in each line, .jsonl with one in each object, or\n"
    "of a model of CSV files another one with the same columns of features. A model of masks\n"
    "tells the share of pixels that each class has; --out FOLDER writes the masks.\n"
    "All device memory is within --budget; there are neither gradients nor an optimizer.",
    true,
    run,
    {OPTION_TOP, OPTION_JSON, OPTION_CSV, OPTION_PREDICTIONS, OPTION_WEIGHTS, OPTION_BUDGET,
     OPTION_MICRO_BATCH, OPTION_DEVICE, OPTION_SET, OPTION_COUNT},
};
