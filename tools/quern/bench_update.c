/* SPDX-License-Identifier: MIT */
#include "bench_update.h"
#include "progress.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WARM = 2, LEAST = 5, MOST = 200 };
static const double least_seconds = 3;

/* Gives the samples of the next update. */
struct source {
    int (*next)(struct source *source, int64_t samples, qn_cycle *cycle);
    struct failure *failure;
};

/* --- the data of a recipe --- */

struct loaded {
    struct source source;
    qn_loader *loader;
    qn_batch batch;
};

static int load(struct source *source, int64_t samples, qn_cycle *cycle)
{
    struct loaded *l = (struct loaded *)source;
    TRY_LIBRARY(source->failure, NULL, qn_loader_next(l->loader, samples, &l->batch));
    cycle->fetch = qn_batch_fetch;
    cycle->user = &l->batch;
    cycle->choose = qn_batch_choose;
    return CODE_DONE;
}

/* --- made-up data --- */

/* Bytes and labels of a sample. */
struct made_up {
    struct source source;
    int64_t bytes, labels;
    int kinds;        /* of labels or tokens */
    bool masks, text; /* labels are u8, one a pixel; samples are tokens, which are labels too */
};

static uint32_t some_number(int64_t i)
{
    return (uint32_t)(((uint64_t)i * 2654435761u) >> 16) & 0xffffu;
}

static qn_status fetch(void *user, const char *input, int64_t first, int64_t count, void *rows)
{
    const struct made_up *source = user;
    const bool labels = source->text || strcmp(input, "labels") == 0;
    const int64_t each = labels ? source->labels : source->bytes;
    uint8_t *pixels = rows;
    int32_t *words = rows;
    for (int64_t i = 0; i < count * each; i++) {
        const uint32_t number = some_number(first * each + i);
        if (labels && !source->masks)
            words[i] = (int32_t)(number % (uint32_t)source->kinds);
        else
            pixels[i] = (uint8_t)(labels ? number % (uint32_t)source->kinds : number);
    }
    return QN_OK;
}

static int make_up(struct source *source, int64_t samples, qn_cycle *cycle)
{
    (void)samples;
    cycle->fetch = fetch;
    cycle->user = source;
    return CODE_DONE;
}

static struct made_up made_up_of(const qn_model_data *data)
{
    const bool text = data->tokens > 0;
    const int64_t plane = (int64_t)data->height * data->width;
    return (struct made_up){.source = {.next = make_up},
                            .bytes = data->channels * plane,
                            .labels = data->masks || text ? plane : 1,
                            .kinds = text ? data->tokens : data->classes,
                            .masks = data->masks,
                            .text = text};
}

/* --- timing --- */

static double own_time(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int one_update(struct session *s, struct source *source)
{
    qn_cycle cycle = {.samples = qn_plan_settings(s->plan)->batch[0], .lr = 1e-4};
    qn_metrics metrics;
    TRY(source->next(source, cycle.samples, &cycle));
    TRY_LIBRARY(s->failure, NULL, qn_trainer_step(s->trainer, &cycle, &metrics));
    TRY_LIBRARY(s->failure, NULL, qn_trainer_finish(s->trainer, &metrics));
    return CODE_DONE;
}

static int time_updates(struct session *s, struct source *source, struct update_times *times)
{
    double seconds[MOST], sum = 0, host = 0;
    int count = 0;
    for (int i = 0; i < WARM; i++)
        TRY(one_update(s, source));
    for (; count < MOST && (count < LEAST || sum < least_seconds); count++) {
        const double start = clock_now(), own = own_time();
        TRY(one_update(s, source));
        host += own_time() - own;
        seconds[count] = clock_now() - start;
        sum += seconds[count];
    }
    qsort(seconds, (size_t)count, sizeof *seconds, by_size);
    *times = (struct update_times){seconds[count / 2], seconds[0], host / count, count};
    return CODE_DONE;
}

static int time_with(struct session *s, struct source *source, struct update_times *times)
{
    source->failure = s->failure;
    TRY(session_trainer(s));
    int code = time_updates(s, source, times);
    qn_trainer_close(&s->trainer);
    return code;
}

int update_time(struct session *s, struct update_times *times)
{
    struct loaded loaded = {.source = {.next = load}};
    const qn_loader_params params = {.log = failure_log(s->failure),
                                     .seed = 1,
                                     .max_samples = qn_plan_settings(s->plan)->batch[0]};
    TRY_LIBRARY(s->failure, NULL, qn_loader_open(&loaded.loader, s->data.train, &params));
    const int code = time_with(s, &loaded.source, times);
    qn_loader_close(&loaded.loader);
    return code;
}

int update_time_made_up(struct session *s, struct update_times *times)
{
    struct made_up made_up = made_up_of(&s->data.model);
    return time_with(s, &made_up.source, times);
}
