/* SPDX-License-Identifier: MIT */
#include "dual.h"
#include "named.h"
#include "pairs.h"

static qn_tower tower_of(const struct session *s, enum side side)
{
    const struct settings *settings = &s->settings;
    const struct model_settings *own = &settings->passage_model;
    const qn_model_data *data = &s->data.pairs->side[side].model;
    if (side == SIDE_PASSAGES && own->name)
        return (qn_tower){own->name, *data, own->options, own->n_options};
    return (qn_tower){settings->model, *data, settings->options, settings->n_options};
}

/* A qn_towers_fn; what the recipe says of parameters by their names holds in every graph. */
static qn_status put_towers(void *user, qn_graph *graph, qn_tensor *queries, qn_tensor *passages)
{
    struct session *s = user;
    qn_towers towers = {.query = tower_of(s, SIDE_QUERIES),
                        .passage = tower_of(s, SIDE_PASSAGES),
                        .negatives = s->data.pairs->negatives,
                        .tied = s->settings.contrastive.tied,
                        .dot = s->settings.contrastive.score == SCORE_DOT};
    const qn_status status = qn_towers_build(&towers, graph, queries, passages);
    if (status == QN_OK && named_apply(graph, &s->settings, &s->recipe, s->failure))
        return QN_ERR_ARGUMENT;
    return status;
}

static qn_graph_params graph_params(const struct session *s)
{
    return (qn_graph_params){.log = failure_log(s->failure),
                             .storage = s->settings.memory.storage,
                             .parameter_storage = s->settings.memory.parameter_storage};
}

static int put_graph(struct session *s)
{
    const qn_graph_params params = graph_params(s);
    qn_tensor queries, passages;
    TRY_LIBRARY(s->failure, s->recipe.name, qn_graph_create(&s->graph, &params));
    const qn_status status = put_towers(s, s->graph, &queries, &passages);
    if (status == QN_ERR_MEMORY)
        return failure_library(s->failure, status, s->recipe.name);
    if (status == QN_ERR_FORMAT)
        return failure_set(s->failure, CODE_FAILED, "%s", qn_graph_error(s->graph));
    if (qn_graph_status(s->graph) != QN_OK)
        return session_refuse_model(s, qn_graph_error(s->graph));
    if (status != QN_OK)
        return s->failure->code;
    qn_output(s->graph, queries, "queries");
    qn_output(s->graph, passages, "passages");
    return CODE_DONE;
}

static const qn_contrastive_mode modes[] = {
    [CONTRASTIVE_AUTO] = QN_CONTRASTIVE_WHOLE,
    [CONTRASTIVE_WHOLE] = QN_CONTRASTIVE_WHOLE,
    [CONTRASTIVE_GRADCACHE] = QN_CONTRASTIVE_GRADCACHE,
    [CONTRASTIVE_ACCUMULATE] = QN_CONTRASTIVE_ACCUMULATE,
    [CONTRASTIVE_CONTACCUM] = QN_CONTRASTIVE_CONTACCUM,
};

static qn_status make_program(struct session *s)
{
    const struct contrastive_settings *c = &s->settings.contrastive;
    const bool banks = c->mode == CONTRASTIVE_CONTACCUM;
    const qn_contrastive_params params = {.graph = graph_params(s),
                                          .mode = modes[c->mode],
                                          .towers = put_towers,
                                          .user = s,
                                          .temperature = c->temperature,
                                          .learned = c->learned,
                                          .symmetric = c->symmetric,
                                          .duplicates = c->duplicates,
                                          .bank = banks ? c->bank : 0,
                                          .bank_queries = banks ? c->bank_queries : 0,
                                          .no_query_bank = banks && !c->query_bank,
                                          .local_mean = banks && c->local_mean,
                                          .forget = banks && c->forget,
                                          .start = banks ? c->start : 0,
                                          .table = banks};
    qn_contrastive_destroy(&s->contrastive);
    return qn_contrastive_create(&s->contrastive, &params);
}

int dual_graph(struct session *s)
{
    TRY(pretrained_fits(&s->pretrained, &s->data.model, s->failure));
    TRY(put_graph(s));
    TRY_LIBRARY(s->failure, s->recipe.name, make_program(s));
    return CODE_DONE;
}

bool dual_falls_back(struct session *s)
{
    struct contrastive_settings *c = &s->settings.contrastive;
    if (c->mode != CONTRASTIVE_AUTO)
        return false;
    c->mode = CONTRASTIVE_GRADCACHE;
    return make_program(s) == QN_OK;
}

qn_plan_params dual_plan(const struct session *s, const qn_plan_params *params)
{
    const enum contrastive_mode mode = s->settings.contrastive.mode;
    qn_plan_params own = *params;
    if (mode == CONTRASTIVE_AUTO || mode == CONTRASTIVE_WHOLE)
        own.micro_batch = 0;
    return own;
}

const char *const *dual_scopes(const struct session *s)
{
    static const char *const both[] = {"query.", "passage.", NULL}, *const first[] = {"query.",
                                                                                      NULL};
    const struct settings *settings = &s->settings;
    if (!settings->contrastive.mode || settings->contrastive.tied)
        return NULL;
    return settings->passage_model.name ? first : both;
}

bool dual_drift_is_due(const struct session *s, int64_t updates)
{
    const int64_t every = s->settings.contrastive.drift_every;
    return dual_local_loss(s) >= 0 && every > 0 && updates % every == 0;
}

int dual_drift(struct session *s, qn_drift *drift)
{
    const struct contrastive_settings *c = &s->settings.contrastive;
    const qn_drift_params params = {.ages = (int)c->drift_ages,
                                    .entries = c->drift_entries,
                                    .threshold = c->drift_threshold,
                                    .cap = c->cap,
                                    .samples = qn_dataset_gather,
                                    .user = pairs_all(&s->data)};
    failure_clear(s->failure);
    TRY_LIBRARY(s->failure, NULL, qn_drift_measure(s->trainer, &params, drift));
    return CODE_DONE;
}

int dual_local_loss(const struct session *s)
{
    const struct contrastive_settings *c = &s->settings.contrastive;
    return c->mode == CONTRASTIVE_CONTACCUM && c->bank > 0 ? 1 : -1;
}
