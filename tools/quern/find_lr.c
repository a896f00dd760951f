/* SPDX-License-Identifier: MIT */
#include "commands.h"
#include "curve.h"
#include "session.h"
#include "signals.h"
#include "tuning.h"
#include "value.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum { MOST_UPDATES = 100000, ROWS = 20 };

/* A training whose loss is so many times its lowest has diverged. */
static const double DIVERGED = 4;

struct search {
    struct session *session;
    qn_lr_range range;
    double *losses, *smoothed; /* (range.updates), of which `count` are there */
    int64_t count;
    qn_loader *loader;
};

/* --- the training --- */

static int64_t batch_of(const struct train_settings *train)
{
    return train->batches.count ? qn_schedule_batch(&train->batches, 0)
                                : train->adaptive.batch.least;
}

/* *loss: of one update at its rate. */
static int step(struct search *f, double *loss)
{
    struct failure *failure = f->session->failure;
    qn_batch batch;
    qn_metrics metrics = {0};
    const int64_t samples = batch_of(&f->session->settings.train);
    TRY_LIBRARY(failure, NULL, qn_loader_next(f->loader, samples, &batch));
    const qn_cycle cycle = {.samples = samples,
                            .lr = qn_lr_range_at(&f->range, f->count),
                            .fetch = qn_batch_fetch,
                            .user = &batch,
                            .choose = qn_batch_choose};
    TRY_LIBRARY(failure, NULL, qn_trainer_step(f->session->trainer, &cycle, NULL));
    TRY_LIBRARY(failure, NULL, qn_trainer_finish(f->session->trainer, &metrics));
    *loss = metrics.loss;
    return CODE_DONE;
}

static int open_loader(struct search *f)
{
    const struct session *s = f->session;
    const qn_loader_params params = {.log = failure_log(s->failure),
                                     .seed = (uint64_t)s->settings.train.seed,
                                     .max_samples = batch_of(&s->settings.train)};
    TRY_LIBRARY(s->failure, NULL, qn_loader_open(&f->loader, s->data.train, &params));
    return CODE_DONE;
}

static int train(struct search *f)
{
    double loss, lowest = INFINITY;
    TRY(open_loader(f));
    while (f->count < f->range.updates && !signals_received()) {
        TRY(step(f, &loss));
        lowest = fmin(lowest, loss);
        if (!isfinite(loss) || loss > DIVERGED * lowest)
            return CODE_DONE;
        f->losses[f->count++] = loss;
    }
    return signals_code(f->session->failure);
}

/* --- what came out --- */

static int print_json(const struct search *f, const qn_lr_found *found)
{
    cJSON *object = cJSON_CreateObject();
    cJSON *rates = cJSON_AddArrayToObject(object, "lr");
    for (int64_t i = 0; i < f->count; i++)
        cJSON_AddItemToArray(rates, cJSON_CreateNumber(qn_lr_range_at(&f->range, i)));
    cJSON_AddItemToObject(object, "loss", cJSON_CreateDoubleArray(f->losses, (int)f->count));
    cJSON_AddItemToObject(object, "smoothed", cJSON_CreateDoubleArray(f->smoothed, (int)f->count));
    if (found->lr > 0) {
        cJSON_AddNumberToObject(object, "suggestion", found->lr);
        cJSON_AddNumberToObject(object, "lowest", found->lowest);
    }
    char *text = object ? cJSON_Print(object) : NULL;
    cJSON_Delete(object);
    if (!text)
        return failure_set(f->session->failure, CODE_FAILED, "out of memory");
    printf("%s\n", text);
    free(text);
    return CODE_DONE;
}

static void print_text(const struct search *f, const qn_lr_found *found)
{
    const int64_t stride = f->count > ROWS ? f->count / ROWS : 1;
    printf("  %12s  %10s\n", "lr", "loss");
    for (int64_t i = 0; i < f->count; i += stride)
        printf("  %12.3e  %10.4f\n", qn_lr_range_at(&f->range, i), f->smoothed[i]);
    if (f->count < f->range.updates)
        printf("  %12.3e  diverged\n", qn_lr_range_at(&f->range, f->count));
    if (found->lr > 0)
        printf("train.lr = %.2g: there the loss falls fastest; it is lowest at %.2g\n", found->lr,
               found->lowest);
    else
        printf("the loss falls nowhere between %g and %g\n", f->range.least, f->range.most);
}

static int tell(struct search *f, const struct arguments *a)
{
    struct curve curve = {f->range, {0}, f->losses, f->smoothed, f->count};
    curve.found = qn_lr_range_find(&f->range, f->losses, f->count, f->smoothed);
    if (f->count < 3)
        return failure_set(f->session->failure, CODE_FAILED,
                           "%s: the loss diverges at once; --from a smaller rate",
                           f->session->recipe.name);
    if (a->value[OPTION_CURVE])
        TRY(curve_draw(&curve, a->value[OPTION_CURVE], f->session->failure));
    if (a->value[OPTION_JSON])
        return print_json(f, &curve.found);
    print_text(f, &curve.found);
    return CODE_DONE;
}

/* --- the command --- */

static int read_rate(const struct arguments *a, enum option option, const char *name, double *rate,
                     struct failure *failure)
{
    const char *text = a->value[option], *wrong = text ? value_single(text, rate) : NULL;
    if (!wrong && text && !(*rate > 0))
        wrong = "is not above 0";
    return wrong ? failure_set(failure, CODE_USAGE, "%s: '%s' %s", name, text, wrong) : CODE_DONE;
}

static int read_range(const struct arguments *a, qn_lr_range *range, struct failure *failure)
{
    const char *text = a->value[OPTION_UPDATES];
    const char *wrong = text ? value_count(text, 3, MOST_UPDATES, &range->updates) : NULL;
    if (wrong)
        return failure_set(failure, CODE_USAGE, "--updates: '%s' %s; from 3 to %d", text, wrong,
                           MOST_UPDATES);
    TRY(read_rate(a, OPTION_FROM, "--from", &range->least, failure));
    TRY(read_rate(a, OPTION_TO, "--to", &range->most, failure));
    *range = qn_lr_range_whole(range);
    return range->least < range->most
               ? CODE_DONE
               : failure_set(failure, CODE_USAGE, "--to: %g is not above --from, %g", range->most,
                             range->least);
}

static int open_session(struct session *s, const struct arguments *a)
{
    TRY(session_recipe(s, a->operand, a));
    TRY(pretrained_check(&s->pretrained, s->failure));
    s->data.text.quiet = a->value[OPTION_JSON] != NULL;
    TRY(data_open(&s->data, &s->settings, &s->recipe, s->failure));
    TRY(session_graph(s));
    TRY(session_fits(s));
    TRY(session_device(s, a));
    const qn_plan_params params = settings_plan(&s->settings);
    TRY(tuning_plan(s, &params, s->settings.memory.tune));
    TRY(session_trainer(s));
    return session_weights(s);
}

static int find(struct search *f, const struct arguments *a)
{
    TRY(read_range(a, &f->range, f->session->failure));
    f->losses = calloc((size_t)f->range.updates, sizeof *f->losses);
    f->smoothed = calloc((size_t)f->range.updates, sizeof *f->smoothed);
    if (!f->losses || !f->smoothed)
        return failure_set(f->session->failure, CODE_FAILED, "out of memory");
    TRY(open_session(f->session, a));
    TRY(train(f));
    return tell(f, a);
}

static int run(const struct arguments *a, struct failure *failure)
{
    struct session *session = calloc(1, sizeof *session);
    if (!session)
        return failure_set(failure, CODE_FAILED, "out of memory");
    session->failure = failure;
    session->quiet = true;
    signals_catch();
    struct search search = {.session = session};
    const int code = find(&search, a);
    qn_loader_close(&search.loader);
    session_close(session);
    free(search.losses);
    free(search.smoothed);
    free(session);
    return code;
}

const struct command command_find_lr = {
    "find-lr",
    "RECIPE",
    "tries learning rates, and suggests one",
    "Trains from the recipe's beginning while the learning rate rises from update to update (the\n"
    "range test of Smith, 2015), until the loss diverges, and suggests the rate at which it falls\n"
    "fastest. Schedules with a warm-up bear more. Nothing is saved.",
    true,
    run,
    {OPTION_FROM, OPTION_TO, OPTION_UPDATES, OPTION_CURVE, OPTION_JSON, OPTION_DATA, OPTION_BUDGET,
     OPTION_BATCH, OPTION_MICRO_BATCH, OPTION_RECOMPUTE, OPTION_SEED, OPTION_DEVICE, OPTION_STORAGE,
     OPTION_TUNE, OPTION_SET, OPTION_COUNT},
};
