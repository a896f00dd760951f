/* SPDX-License-Identifier: MIT */
#include "commands.h"
#include "names.h"
#include "newest.h"
#include "predictions.h"
#include "signals.h"
#include "trained.h"
#include "value.h"
#include "vocabulary.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

/* One call of the command. */
struct predicting {
    const struct arguments *arguments;
    struct failure *failure;
    struct session session;
    struct trained trained;
    char tokenizer[PATH_MAX];
    struct class_names names;
    struct samples samples;
    struct predictions predictions;
    qn_loader *loader;
    qn_predictor *predictor;
};

/* --- the model --- */

/* The recipe, and the tokenizer that is named or lies beside the weights in place of its own, whose
 * path may have changed. */
static int read_recipe(struct predicting *p)
{
    const struct arguments *a = p->arguments;
    const char *named = a->value[OPTION_TOKENIZER];
    TRY(trained_open(&p->trained, &p->session, a, "predict"));
    snprintf(p->tokenizer, sizeof p->tokenizer, "%s/tokenizer.json", a->operand);
    if (named || access(p->tokenizer, F_OK) == 0) {
        p->session.settings.data.tokenizer = named ? named : p->tokenizer;
        p->session.settings.data.vocabulary = 0;
    }
    const qn_checkpoint_info *info = p->trained.info;
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

/* The samples, and the graph without labels and loss, which may depend on them. */
static int build(struct predicting *p)
{
    struct session *s = &p->session;
    const struct arguments *a = p->arguments;
    const qn_log log = failure_log(p->failure);
    TRY(data_look(&s->data, &s->settings, &s->recipe, p->failure));
    TRY(take_names(p));
    TRY(samples_open(&p->samples, s, (char *const *)a->operands + 1, a->n_operands - 1));
    TRY(session_graph(s));
    failure_clear(p->failure);
    return qn_dataset_fits(p->samples.dataset, s->graph, &log) == QN_OK
               ? CODE_DONE
               : failure_set(p->failure, CODE_FAILED, "%s: %s", a->operands[1], p->failure->logged);
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
                newest_load(qn_predictor_trainer(p->predictor), p->trained.weights, p->failure));
    return CODE_DONE;
}

/* --- what is told --- */

static enum predictions_kind kind_of(const qn_model_data *model)
{
    return model->asked      ? PREDICT_TOKEN
           : model->masks    ? PREDICT_MASK
           : !model->targets ? PREDICT_CLASS
           : model->binary   ? PREDICT_SEVERAL
                             : PREDICT_NUMBERS;
}

static int count_told(const qn_model_data *model)
{
    return model->asked ? model->tokens : model->targets ? model->targets : model->classes;
}

static enum predictions_form form_of(const char *const *value)
{
    return value[OPTION_JSON]  ? PREDICTIONS_JSON
           : value[OPTION_CSV] ? PREDICTIONS_CSV
                               : PREDICTIONS_TABLE;
}

static int name_tokens(struct predicting *p)
{
    static const enum vocabulary_form forms[] = {[PREDICTIONS_TABLE] = VOCABULARY_QUOTED,
                                                 [PREDICTIONS_JSON] = VOCABULARY_UTF8,
                                                 [PREDICTIONS_CSV] = VOCABULARY_ESCAPED};
    const struct session *s = &p->session;
    const struct vocabulary vocabulary = {.tokenizer = s->data.text.tokenizer,
                                          .tokens = s->data.model.tokens,
                                          .mask = data_mask_token(&s->data, &s->settings),
                                          .mark = prompts_mark(s),
                                          .form = forms[form_of(p->arguments->value)]};
    if (!s->data.model.asked)
        return CODE_DONE;
    class_names_free(&p->names);
    return vocabulary_names(&vocabulary, &p->names, p->failure);
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
    TRY(name_tokens(p));
    qn_graph_output(p->session.graph, 0, &logits);
    p->predictions = (struct predictions){
        .failure = p->failure,
        .samples = &p->samples,
        .names = &p->names,
        .form = form_of(value),
        .out = value[OPTION_PREDICTIONS],
        .mark = p->session.settings.data.mask,
        .dtype = qn_dtype_of(p->session.graph, logits),
        .kind = kind_of(model),
        .classes = count_told(model),
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
    if (p->session.settings.contrastive.mode)
        return failure_set(p->failure, CODE_USAGE,
                           "%s: is of a dual encoder, which tells vectors: quern embed",
                           p->arguments->operand);
    TRY(build(p));
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
    trained_close(&p->trained);
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
    "classes of pictures, texts or rows, and tokens of texts, by a trained model",
    "Tells the most probable class of each sample, by its name where the training had names. DIR "
    "is\n"
    "the folder of a training (its newest checkpoint) or a checkpoint, or a RECIPE with "
    "--weights.\n"
    "FILE is a picture (PNG, JPEG) or a folder of pictures however deep, one file of images "
    "(IDX),\n"
    "or for models of texts a file with a text in each line, .jsonl with one in each object, or\n"
    "of a model of CSV files another one with the same columns of features, or an array of "
    "NumPy's\n"
    "(.npy) of rows or images as in the training. A model of masks tells the share of pixels that\n"
    "each class has; --out FOLDER writes the masks in the sizes of the pictures.\n"
    "A language model (gpt, llama) tells the token that follows each text; one that was trained\n"
    "with masks (bert) the one in the place of each [MASK], or what its tokenizer calls its mask;\n"
    "[MASK] it is where bytes are tokens, too. Without --tokenizer that of DIR or its recipe is "
    "taken.\n"
    "All device memory is within --budget; there are neither gradients nor an optimizer.",
    true,
    run,
    {OPTION_TOP, OPTION_JSON, OPTION_CSV, OPTION_PREDICTIONS, OPTION_WEIGHTS, OPTION_TOKENIZER,
     OPTION_BUDGET, OPTION_MICRO_BATCH, OPTION_DEVICE, OPTION_SET, OPTION_COUNT},
};
