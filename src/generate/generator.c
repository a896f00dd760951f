/* SPDX-License-Identifier: MIT
 *
 * A program of two runs: "prompt" appends the keys and values of several tokens at a time and gives
 * nothing, "token" appends those of one and gives its logits. All tokens of a part but the last one
 * go through the first.
 */
#include "base/log.h"

#include <inttypes.h>
#include <quern/generate.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 64 };

struct qn_generator {
    qn_log log;
    qn_model_data data;
    qn_graph *prompt, *token;
    qn_plan *plan;
    qn_trainer *trainer;
    int64_t length;
};

/* --- opening --- */

/* The model with or without its last layer. */
static qn_status build(qn_graph **graph, const struct qn_generator *g,
                       const qn_generator_params *params, bool logits)
{
    const qn_graph_params how = {.log = params->log, .parameter_storage = params->storage};
    qn_model_option *options = calloc((size_t)params->n_options + 1, sizeof *options);
    if (!options)
        return qn_fail(&g->log, QN_ERR_MEMORY, "generator: out of host memory");
    for (int i = 0; i < params->n_options; i++)
        options[i] = params->options[i];
    options[params->n_options] = (qn_model_option){"logits", logits ? "1" : "0"};
    qn_status status = qn_graph_create(graph, &how);
    if (status == QN_OK)
        status = qn_model_build(*graph, params->model, &g->data, options, params->n_options + 1);
    if (status != QN_OK && *graph)
        qn_fail(&g->log, status, "%s", qn_graph_error(*graph));
    free(options);
    return status;
}

static qn_status make_plan(struct qn_generator *g, const qn_device *device,
                           const qn_plan_params *asked, int64_t *smallest)
{
    qn_cell cells[QN_MAX_CELLS];
    const int count = qn_model_cells(g->token, &g->data, cells, QN_MAX_CELLS);
    const qn_run runs[] = {
        {.name = "prompt", .graph = g->prompt, .what = QN_RUN_EVALUATE},
        {.name = "token", .graph = g->token, .what = QN_RUN_EVALUATE, .samples = 1}};
    const qn_run_list list = {.runs = runs, .n_runs = 2, .cells = cells, .n_cells = count};
    qn_plan_params params = {.batch = {CHUNK}};
    if (asked) {
        params.budget = asked->budget;
        params.tuning = asked->tuning;
        params.variants = asked->variants;
        params.cache_dir = asked->cache_dir;
        params.batch[0] = asked->batch[0] ? asked->batch[0] : CHUNK;
    }
    if (params.batch[0] > g->data.cache)
        params.batch[0] = g->data.cache;
    return qn_plan_create_runs(&g->plan, &list, qn_device_facts(device), &params, smallest);
}

static qn_status open_all(struct qn_generator *g, qn_device *device,
                          const qn_generator_params *params, int64_t *smallest)
{
    QN_TRY(build(&g->prompt, g, params, false));
    QN_TRY(build(&g->token, g, params, true));
    QN_TRY(make_plan(g, device, params->plan, smallest));
    return qn_trainer_open(&g->trainer, device, g->plan, NULL);
}

qn_status qn_generator_open(qn_generator **out, qn_device *device,
                            const qn_generator_params *params, int64_t *smallest)
{
    if (smallest)
        *smallest = 0;
    if (out)
        *out = NULL;
    QN_REQUIRE(NULL, out && device && params);
    QN_REQUIRE(&params->log, params->model && params->data && params->n_options >= 0);
    struct qn_generator *g = calloc(1, sizeof *g);
    if (!g)
        return qn_fail(&params->log, QN_ERR_MEMORY, "generator: out of host memory");
    g->log = params->log;
    g->data = *params->data;
    g->data.cache = g->data.cache ? g->data.cache : g->data.width;
    const qn_status status = open_all(g, device, params, smallest);
    if (status != QN_OK)
        qn_generator_close(&g);
    *out = g;
    return status;
}

void qn_generator_close(qn_generator **generator)
{
    struct qn_generator *g = generator ? *generator : NULL;
    if (!g)
        return;
    qn_trainer_close(&g->trainer);
    qn_plan_destroy(&g->plan);
    qn_graph_destroy(&g->token);
    qn_graph_destroy(&g->prompt);
    free(g);
    *generator = NULL;
}

/* --- running --- */

/* A call of a run: the next tokens, and where their logits go. */
struct part {
    const struct qn_generator *generator;
    const int32_t *tokens;
    float *logits;
};

static qn_status fetch(void *user, const char *input, int64_t first, int64_t count, void *rows)
{
    const struct part *part = user;
    const bool tokens = strcmp(input, "tokens") == 0;
    for (int64_t i = 0; i < count; i++)
        ((int32_t *)rows)[i] =
            tokens ? part->tokens[first + i] : (int32_t)(part->generator->length + first + i);
    return QN_OK;
}

static qn_status take(void *user, const char *name, int64_t first, int64_t count, const void *rows)
{
    const struct part *part = user;
    (void)name;
    (void)first;
    (void)count;
    memcpy(part->logits, rows, (size_t)part->generator->data.tokens * sizeof *part->logits);
    return QN_OK;
}

static qn_status check(const struct qn_generator *g, const int32_t *tokens, int64_t count)
{
    if (count > g->data.cache - g->length)
        return qn_fail(&g->log, QN_ERR_ARGUMENT,
                       "generator: the text has %" PRId64 " of %d tokens, and no room for %" PRId64
                       " more",
                       g->length, g->data.cache, count);
    for (int64_t i = 0; i < count; i++)
        if (tokens[i] < 0 || tokens[i] >= g->data.tokens)
            return qn_fail(&g->log, QN_ERR_ARGUMENT,
                           "generator: token %" PRId64 ": %" PRId32 " is none of %d", i, tokens[i],
                           g->data.tokens);
    return QN_OK;
}

qn_status qn_generator_feed(qn_generator *g, const int32_t *tokens, int64_t count, float *logits)
{
    QN_REQUIRE(NULL, g);
    QN_REQUIRE(&g->log, tokens && logits && count > 0);
    QN_TRY(check(g, tokens, count));
    struct part part = {g, tokens, logits};
    if (count > 1)
        QN_TRY(qn_trainer_evaluate_run(g->trainer, "prompt", count - 1, fetch, NULL, &part));
    g->length += count - 1;
    part.tokens = tokens + count - 1;
    QN_TRY(qn_trainer_evaluate_run(g->trainer, "token", 1, fetch, take, &part));
    g->length++;
    return QN_OK;
}

int64_t qn_generator_length(const qn_generator *generator)
{
    return generator ? generator->length : 0;
}

int64_t qn_generator_room(const qn_generator *generator)
{
    return generator ? generator->data.cache : 0;
}

qn_status qn_generator_clear(qn_generator *g)
{
    QN_REQUIRE(NULL, g);
    qn_cell cells[QN_MAX_CELLS];
    const int count = qn_model_cells(g->token, &g->data, cells, QN_MAX_CELLS);
    for (int i = 0; i < count; i++)
        QN_TRY(qn_trainer_clear_cell(g->trainer, cells[i].name));
    g->length = 0;
    return QN_OK;
}

qn_trainer *qn_generator_trainer(qn_generator *generator)
{
    return generator ? generator->trainer : NULL;
}
