/* SPDX-License-Identifier: MIT */
#include "session.h"
#include "dual.h"
#include "file.h"
#include "members.h"
#include "named.h"
#include "moved.h"
#include "note.h"
#include "value.h"
#include "waiting.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Makes a path absolute if something is there: a checkpoint's recipe must mean the same in every
 * folder. In a recipe's file it begins in the folder of that file, else in the current one. */
static int complete_path(struct session *s, const struct recipe_entry *entry)
{
    const bool inside = entry->line && *entry->value != '/';
    char joined[2 * RECIPE_VALUE_BYTES], real[PATH_MAX];
    snprintf(joined, sizeof joined, "%s%s", inside ? s->recipe.folder : "", entry->value);
    const char *path = realpath(joined, real) ? real : joined;
    if (strlen(path) >= RECIPE_VALUE_BYTES)
        return recipe_refuse(&s->recipe, entry, s->failure, "its path is too long");
    strcpy(s->recipe.entries[entry - s->recipe.entries].value, path);
    return CODE_DONE;
}

static int complete_keys(struct session *s, const char *section, const char *const *keys)
{
    for (; *keys; keys++) {
        const struct recipe_entry *entry = recipe_find(&s->recipe, section, *keys);
        if (entry)
            TRY(complete_path(s, entry));
    }
    return CODE_DONE;
}

/* Features are a file where data.kind = npy, else names. */
static int complete_paths(struct session *s)
{
    static const char *const of_model[] = {"path", NULL};
    static const char *const of_train[] = {"weights", "adapters", NULL};
    static const char *const of_npy[] = {"features", NULL};
    static const char *const of_data[] = {
        "path",          "test_path", "images",       "labels",    "test_images", "test_labels",
        "test_features", "targets",   "test_targets", "tokenizer", NULL};
    const struct recipe_entry *kind = recipe_find(&s->recipe, "data", "kind");
    for (int i = 0; i < RECIPE_GRAPHS; i++)
        TRY(complete_keys(s, recipe_graph_sections[i], of_model));
    TRY(complete_keys(s, "data", of_data));
    TRY(complete_keys(s, "passages", of_data));
    TRY(complete_keys(s, "negatives", of_data));
    if (kind && strcmp(kind->value, "npy") == 0)
        TRY(complete_keys(s, "data", of_npy));
    return complete_keys(s, "train", of_train);
}

/* The text of a graph file, which the checkpoints keep: there the file may be gone, or another. */
static int read_graph(struct session *s, enum recipe_graph which)
{
    static const char *const data[RECIPE_GRAPHS] = {"data", "passages"};
    const char *section = recipe_graph_sections[which];
    const struct recipe_entry *name = recipe_find(&s->recipe, section, "name");
    const struct recipe_entry *path = recipe_find(&s->recipe, section, "path");
    char **text = &s->recipe.graph[which];
    if (!name || strcmp(name->value, "graph") != 0 || !path || (*text && !*path->option))
        return CODE_DONE;
    const struct recipe_entry *mean = recipe_find(&s->recipe, data[which], "mean");
    const struct recipe_entry *unused =
        mean ? mean : recipe_find(&s->recipe, data[which], "deviation");
    if (unused)
        return recipe_refuse(
            &s->recipe, unused, s->failure,
            "a graph file says it itself: normalize(images) mean=... deviation=...");
    free(*text);
    return file_read(text, path->value, s->failure);
}

static int finish_recipe(struct session *s, const struct arguments *arguments)
{
    TRY(arguments_override(arguments, &s->recipe, s->failure));
    TRY(member_list_override(arguments, &s->recipe, s->failure));
    TRY(complete_paths(s));
    if (!s->recipe.resumed) {
        TRY(pretrained_open(&s->pretrained, &s->recipe, s->failure));
        TRY(adapters_open(&s->adapters, &s->recipe, s->failure));
    }
    for (int i = 0; i < RECIPE_GRAPHS; i++)
        TRY(read_graph(s, (enum recipe_graph)i));
    TRY(settings_read(&s->settings, &s->recipe, s->failure));
    const char *path = arguments->value[OPTION_BUDGET_FILE];
    return path ? budget_file_open(&s->budget_file, path, &s->settings.memory.budget, s->failure)
                : CODE_DONE;
}

int session_recipe(struct session *s, const char *name, const struct arguments *arguments)
{
    TRY(recipe_read(&s->recipe, name, s->failure));
    return finish_recipe(s, arguments);
}

int session_note(struct session *s, const qn_checkpoint_info *info,
                 const struct arguments *arguments)
{
    s->recipe.resumed = true;
    if (!info->note || !*info->note)
        return failure_set(s->failure, CODE_FAILED, "%s: recipe: the checkpoint has none",
                           info->path);
    if (note_read(&s->recipe, info->note, info->path, s->failure))
        return s->failure->code;
    TRY(note_features(&s->data.features, info->note, info->path, s->failure));
    TRY(moved_find(&s->recipe, info->path, s->failure));
    return finish_recipe(s, arguments);
}

/* What the graph says begins with "model.KEY: " where a key of the recipe is to blame. */
int session_refuse_model(struct session *s, const char *text)
{
    char key[sizeof s->recipe.entries->key];
    int length = 0;
    const struct recipe_entry *entry = NULL;
    if (sscanf(text, "model.%31[^:]: %n", key, &length) == 1 && length)
        entry = recipe_find(&s->recipe, "model", key);
    return entry ? recipe_refuse(&s->recipe, entry, s->failure, "%s", text + length)
                 : failure_set(s->failure, CODE_USAGE, "%s: %s", s->recipe.name, text);
}

static int build_graph(struct session *s, const qn_model_data *data, qn_graph **graph)
{
    qn_graph_params params = {.log = failure_log(s->failure),
                              .storage = s->settings.memory.storage,
                              .parameter_storage = s->settings.memory.parameter_storage};
    if (data->predict) /* what a training is warned of is too late here */
        params.log.level = QN_LOG_ERROR;
    TRY_LIBRARY(s->failure, s->recipe.name, qn_graph_create(graph, &params));
    qn_status status =
        qn_model_build(*graph, s->settings.model, data, s->settings.options, s->settings.n_options);
    if (status == QN_ERR_MEMORY)
        return failure_library(s->failure, status, s->recipe.name);
    if (status == QN_ERR_FORMAT)
        return failure_set(s->failure, CODE_FAILED, "%s", qn_graph_error(*graph));
    if (status != QN_OK)
        return session_refuse_model(s, qn_graph_error(*graph));
    return named_apply(*graph, &s->settings, &s->recipe, s->failure);
}

int session_graph(struct session *s)
{
    const struct lengths *lengths = &s->settings.data.lengths;
    if (s->settings.contrastive.mode)
        return dual_graph(s);
    TRY(pretrained_fits(&s->pretrained, &s->data.model, s->failure));
    TRY(build_graph(s, &s->data.model, &s->graph));
    while (s->n_shorter < lengths->count - 1) {
        qn_model_data data = s->data.model;
        data.width = (int)lengths->length[s->n_shorter];
        TRY(build_graph(s, &data, &s->shorter[s->n_shorter++]));
    }
    return CODE_DONE;
}

void session_run_name(const struct session *s, int bucket, bool evaluates,
                      char name[SESSION_RUN_BYTES])
{
    snprintf(name, SESSION_RUN_BYTES, "%s of %" PRId64 " tokens",
             evaluates ? "evaluation" : "training", s->settings.data.lengths.length[bucket]);
}

void session_runs(const struct session *s, struct session_runs *r)
{
    const int count = s->n_shorter + 1;
    if (s->contrastive) {
        r->list = *qn_contrastive_program(s->contrastive);
        return;
    }
    r->list = (qn_run_list){.runs = r->runs, .n_runs = s->n_shorter ? 2 * count : 0};
    for (int i = 0; i < r->list.n_runs; i++) {
        const int bucket = i % count;
        const bool evaluates = i >= count;
        session_run_name(s, bucket, evaluates, r->names[i]);
        r->runs[i] = (qn_run){.name = r->names[i],
                              .graph = bucket < s->n_shorter ? s->shorter[bucket] : s->graph,
                              .what = evaluates ? QN_RUN_EVALUATE : QN_RUN_TRAIN,
                              .alternative = !evaluates && bucket > 0};
    }
}

int session_fits(struct session *s)
{
    const qn_log log = failure_log(s->failure);
    TRY_LIBRARY(s->failure, s->recipe.name, qn_dataset_fits(s->data.train, s->graph, &log));
    for (int i = 0; i < s->n_shorter; i++)
        TRY_LIBRARY(s->failure, s->recipe.name,
                    qn_dataset_fits(s->data.train, s->shorter[i], &log));
    return CODE_DONE;
}

int session_device(struct session *s, const struct arguments *arguments)
{
    const qn_device_params params = {.log = failure_log(s->failure),
                                     .match = arguments->value[OPTION_DEVICE]};
    TRY_LIBRARY(s->failure, params.match ? "--device" : NULL, qn_device_open(&s->device, &params));
    return CODE_DONE;
}

void session_warn_budget(struct session *s, int64_t budget, const qn_facts *facts)
{
    char wanted[SIZE_TEXT_BYTES], there[SIZE_TEXT_BYTES];
    if (budget <= facts->global_bytes || budget == s->large_budget)
        return;
    s->large_budget = budget;
    say("warning: the budget of %s is more than the memory of %s, %s", size_text(budget, wanted),
        facts->name, size_text(facts->global_bytes, there));
}

static qn_status make_plan(struct session *s, const qn_facts *facts, const qn_plan_params *params)
{
    struct session_runs runs;
    session_runs(s, &runs);
    failure_clear(s->failure);
    if (!runs.list.n_runs)
        return qn_plan_create(&s->plan, s->graph, facts, params, &s->smallest_budget);
    const qn_plan_params own = s->contrastive ? dual_plan(s, params) : *params;
    return qn_plan_create_runs(&s->plan, &runs.list, facts, &own, &s->smallest_budget);
}

/* A plan of another program, where the recipe leaves the choice and this one fits no budget. That
 * the other one cannot be, as with batch norm, is no news then. */
static qn_status make_other_plan(struct session *s, const qn_facts *facts,
                                 const qn_plan_params *params)
{
    char first[FAILURE_BYTES];
    memcpy(first, s->failure->logged, sizeof first);
    if (!s->contrastive || !dual_falls_back(s))
        return QN_ERR_BUDGET;
    const qn_status status = make_plan(s, facts, params);
    if (status == QN_OK || status == QN_ERR_BUDGET || status == QN_ERR_MEMORY)
        return status;
    memcpy(s->failure->logged, first, sizeof first);
    return QN_ERR_BUDGET;
}

static int refuse_plan(struct session *s, qn_status status)
{
    char context[sizeof s->recipe.name + 64];
    if (s->planned_for)
        snprintf(context, sizeof context, "%s: device %s", s->recipe.name, s->planned_for);
    else if (s->members)
        snprintf(context, sizeof context, "%s: member %d", s->recipe.name, members_number(s));
    else
        snprintf(context, sizeof context, "%s", s->recipe.name);
    return failure_library(s->failure, status, context);
}

int session_plan(struct session *s, const qn_facts *facts, const qn_plan_params *params)
{
    struct waiting waiting;
    session_warn_budget(s, s->settings.memory.budget, facts);
    waiting_begin(&waiting, s->quiet ? NULL : "planning ...");
    qn_status status = make_plan(s, facts, params);
    if (status == QN_ERR_BUDGET)
        status = make_other_plan(s, facts, params);
    waiting_end(&waiting);
    return status ? refuse_plan(s, status) : CODE_DONE;
}

qn_trainer_params session_trainer_params(const struct session *s)
{
    return (qn_trainer_params){.seed = (uint64_t)s->settings.train.seed,
                               .weight_decay = s->settings.train.weight_decay,
                               .clip = s->settings.train.clip};
}

int session_trainer(struct session *s)
{
    const qn_trainer_params params = session_trainer_params(s);
    TRY_LIBRARY(s->failure, NULL, qn_trainer_open(&s->trainer, s->device, s->plan, &params));
    return CODE_DONE;
}

int session_weights(struct session *s)
{
    TRY(pretrained_load(&s->pretrained, s->trainer, s->settings.model, dual_scopes(s), s->quiet,
                        s->failure));
    return adapters_load(&s->adapters, s->trainer, &s->settings, s->quiet, s->failure);
}

const qn_plan *session_running(const struct session *s)
{
    return s->trainer ? qn_trainer_plan(s->trainer) : s->plan;
}

void session_close(struct session *s)
{
    members_close(s);
    qn_trainer_close(&s->trainer);
    qn_plan_destroy(&s->plan);
    free(s->tuning);
    s->tuning = NULL;
    qn_device_close(&s->device);
    qn_contrastive_destroy(&s->contrastive);
    qn_graph_destroy(&s->graph);
    while (s->n_shorter)
        qn_graph_destroy(&s->shorter[--s->n_shorter]);
    data_close(&s->data);
    recipe_free_graphs(&s->recipe);
}

const char *session_budget_origin(const struct session *s)
{
    const struct recipe_entry *entry = recipe_find(&s->recipe, "memory", "budget");
    if (s->budget_file.path)
        return "--budget-file";
    if (entry && *entry->option)
        return entry->option;
    if (s->recipe.resumed)
        return "of the checkpoint";
    return entry ? "of the recipe" : "three quarters of the device's memory";
}
