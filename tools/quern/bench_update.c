/* SPDX-License-Identifier: MIT */
#include "bench_update.h"
#include "progress.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WARM = 2, LEAST = 5, MOST = 200 };
static const double least_seconds = 3;

/* --- made-up data --- */

/* Bytes and labels of a sample. */
struct source {
    int64_t bytes, labels;
    int classes;
    bool masks, text; /* labels are u8, one a pixel; samples are tokens, which are labels too */
};

static struct source source_of(const qn_model_data *data, bool text)
{
    const int64_t plane = (int64_t)data->height * data->width;
    return (struct source){.bytes = data->channels * plane,
                           .labels = data->masks || text ? plane : 1,
                           .classes = data->classes,
                           .masks = data->masks,
                           .text = text};
}

static uint32_t some_number(int64_t i)
{
    return (uint32_t)(((uint64_t)i * 2654435761u) >> 16) & 0xffffu;
}

static qn_status fetch(void *user, const char *input, int64_t first, int64_t count, void *rows)
{
    const struct source *source = user;
    const bool labels = source->text || strcmp(input, "labels") == 0;
    const int64_t each = labels ? source->labels : source->bytes;
    uint8_t *pixels = rows;
    int32_t *words = rows;
    for (int64_t i = 0; i < count * each; i++) {
        const uint32_t number = some_number(first * each + i);
        if (labels && !source->masks)
            words[i] = (int32_t)(number % (uint32_t)source->classes);
        else
            pixels[i] = (uint8_t)(labels ? number % (uint32_t)source->classes : number);
    }
    return QN_OK;
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
    const qn_cycle cycle = {
        .samples = qn_plan_settings(s->plan)->batch[0], .lr = 1e-4, .fetch = fetch, .user = source};
    qn_metrics metrics;
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

int update_time(struct session *s, bool text, struct update_times *times)
{
    struct source source = source_of(&s->data.model, text);
    TRY(session_trainer(s));
    int code = time_updates(s, &source, times);
    qn_trainer_close(&s->trainer);
    return code;
}
