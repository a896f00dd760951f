/* SPDX-License-Identifier: MIT */
#include "base/log.h"
#include "base/shape.h"
#include "data/dataset.h"
#include "data/order.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST_CYCLES = 2, MOST_CYCLES = 64 };

/* A slot belongs to the worker while it is being filled and to the caller while it is held. */
enum slot_state { SLOT_FREE, SLOT_FILLING, SLOT_READY, SLOT_HELD };

/* `status` and `reason` say why a ready slot could not be filled. */
struct slot {
    enum slot_state state;
    struct qn_batch batch;
    uint8_t *images, *labels;
    qn_status status;
    char reason[1024];
};

/* `mutex` guards what follows it; `order`, `seed` and `rooms` are the worker's alone. */
struct qn_loader {
    struct qn_log log;
    const struct qn_dataset *dataset;
    const struct qn_dataset_facts *data;
    struct qn_order order;
    uint64_t seed;
    struct qn_rooms rooms;
    int64_t max_samples;
    int cycles;
    struct slot *slots;
    uint8_t *images, *labels;
    pthread_t thread;
    bool running;
    atomic_bool cancel; /* what is being gathered is not wanted any more */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool closing;
    int64_t position; /* of the next cycle that the caller takes */
    int64_t ahead;    /* of the next cycle that the worker fills */
    int64_t samples;  /* of the cycles that the worker fills */
};

static struct slot *slot_in_state(struct qn_loader *loader, enum slot_state state)
{
    for (int i = 0; i < loader->cycles; i++)
        if (loader->slots[i].state == state)
            return &loader->slots[i];
    return NULL;
}

/* Takes a free slot for the cycle ahead; NULL while there is nothing to do. */
static struct slot *claim(struct qn_loader *loader)
{
    struct slot *slot = slot_in_state(loader, SLOT_FREE);
    int64_t next = qn_sum_of(loader->ahead, loader->samples);
    if (!slot || next < 0)
        return NULL;
    slot->state = SLOT_FILLING;
    bool masks = !loader->data->labels;
    slot->batch = (struct qn_batch){.position = loader->ahead,
                                    .samples = loader->samples,
                                    .images = slot->images,
                                    .labels = masks ? NULL : (const int32_t *)slot->labels,
                                    .masks = masks ? slot->labels : NULL};
    loader->ahead = next;
    atomic_store(&loader->cancel, false);
    return slot;
}

/* The log of the worker: what it says is passed on when the caller comes to the cycle. */
static void keep_reason(void *user, qn_log_level level, const char *text)
{
    struct slot *slot = user;
    (void)level;
    snprintf(slot->reason, sizeof slot->reason, "%s", text);
}

static void gather(struct qn_loader *loader, struct slot *slot)
{
    const struct qn_dataset_facts *data = loader->data;
    const struct qn_log log = {keep_reason, slot, QN_LOG_ERROR};
    struct qn_draw draw = {.seed = loader->seed};
    slot->status = QN_OK;
    for (int64_t i = 0; i < slot->batch.samples && !atomic_load(&loader->cancel); i++) {
        int64_t position = slot->batch.position + i;
        draw.epoch = position / data->count;
        draw.sample = qn_order_at(&loader->order, position);
        slot->status = qn_dataset_read(loader->dataset, &draw, &loader->rooms,
                                       slot->images + i * data->image_bytes,
                                       slot->labels + i * data->label_bytes, &log);
        if (slot->status != QN_OK)
            return;
    }
}

static void *work(void *user)
{
    struct qn_loader *loader = user;
    pthread_mutex_lock(&loader->mutex);
    while (!loader->closing) {
        struct slot *slot = claim(loader);
        if (!slot) {
            pthread_cond_wait(&loader->changed, &loader->mutex);
            continue;
        }
        pthread_mutex_unlock(&loader->mutex);
        gather(loader, slot);
        pthread_mutex_lock(&loader->mutex);
        slot->state = atomic_load(&loader->cancel) ? SLOT_FREE : SLOT_READY;
        pthread_cond_broadcast(&loader->changed);
    }
    pthread_mutex_unlock(&loader->mutex);
    return NULL;
}

static qn_status make_memory(struct qn_loader *loader)
{
    int64_t samples = qn_mul(loader->cycles, loader->max_samples);
    int64_t image_bytes = qn_mul(samples, loader->data->image_bytes);
    int64_t label_bytes = qn_mul(samples, loader->data->label_bytes);
    bool countable = image_bytes >= 0 && label_bytes >= 0;
    loader->images = countable ? malloc((size_t)image_bytes) : NULL;
    loader->labels = countable ? malloc((size_t)label_bytes) : NULL;
    loader->slots = calloc((size_t)loader->cycles, sizeof *loader->slots);
    if (!loader->images || !loader->labels || !loader->slots)
        return qn_fail(&loader->log, QN_ERR_MEMORY,
                       "loader: no memory for %d cycles of %lld samples", loader->cycles,
                       (long long)loader->max_samples);
    for (int i = 0; i < loader->cycles; i++) {
        int64_t first = i * loader->max_samples;
        loader->slots[i].images = loader->images + first * loader->data->image_bytes;
        loader->slots[i].labels = loader->labels + first * loader->data->label_bytes;
    }
    return QN_OK;
}

/* The thread takes no signals: they are the caller's. */
static qn_status start_thread(struct qn_loader *loader)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&loader->thread, NULL, work, loader);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    loader->running = failed == 0;
    return failed ? qn_fail(&loader->log, QN_ERR_MEMORY, "loader: no thread: %s", strerror(failed))
                  : QN_OK;
}

static qn_status start(struct qn_loader *loader, const struct qn_loader_params *params)
{
    QN_TRY(qn_order_make(&loader->order, params->seed, loader->data->count, params->sequential,
                         &loader->log));
    QN_TRY(make_memory(loader));
    return start_thread(loader);
}

static struct qn_loader *new_loader(const qn_dataset *dataset, const qn_loader_params *params)
{
    struct qn_loader *loader = calloc(1, sizeof *loader);
    if (!loader)
        return NULL;
    loader->log = params->log;
    loader->dataset = dataset;
    loader->data = qn_dataset_describe(dataset);
    loader->seed = params->seed;
    loader->max_samples = loader->samples = params->max_samples;
    loader->cycles = params->cycles ? params->cycles : LEAST_CYCLES;
    loader->position = loader->ahead = params->position;
    pthread_mutex_init(&loader->mutex, NULL);
    pthread_cond_init(&loader->changed, NULL);
    return loader;
}

qn_status qn_loader_open(qn_loader **loader, const qn_dataset *dataset,
                         const qn_loader_params *params)
{
    const struct qn_log *log = params ? &params->log : NULL;
    QN_REQUIRE(log, loader && dataset && params);
    QN_REQUIRE(log, params->max_samples >= 1 && params->position >= 0);
    QN_REQUIRE(log, params->cycles == 0 ||
                        (params->cycles >= LEAST_CYCLES && params->cycles <= MOST_CYCLES));
    *loader = NULL;
    struct qn_loader *made = new_loader(dataset, params);
    if (!made)
        return qn_fail(log, QN_ERR_MEMORY, "loader: out of memory");
    qn_status status = start(made, params);
    if (status == QN_OK)
        *loader = made;
    else
        qn_loader_close(&made);
    return status;
}

/* Starts anew at the caller's position: what is there or under way has the wrong size. */
static void restart(struct qn_loader *loader, int64_t samples)
{
    loader->samples = samples;
    loader->ahead = loader->position;
    atomic_store(&loader->cancel, true);
    for (int i = 0; i < loader->cycles; i++)
        if (loader->slots[i].state == SLOT_READY)
            loader->slots[i].state = SLOT_FREE;
}

static struct slot *wanted(struct qn_loader *loader)
{
    for (int i = 0; i < loader->cycles; i++) {
        struct slot *slot = &loader->slots[i];
        if (slot->state == SLOT_READY && slot->batch.position == loader->position)
            return slot;
    }
    return NULL;
}

/* A slot that could not be filled stays: asked for again, it says the same. */
static qn_status take(struct qn_loader *loader, int64_t samples, struct qn_batch *batch)
{
    struct slot *slot = slot_in_state(loader, SLOT_HELD);
    if (slot)
        slot->state = SLOT_FREE;
    if (samples != loader->samples)
        restart(loader, samples);
    pthread_cond_broadcast(&loader->changed);
    while ((slot = wanted(loader)) == NULL)
        pthread_cond_wait(&loader->changed, &loader->mutex);
    if (slot->status != QN_OK)
        return qn_fail(&loader->log, slot->status, "%s", slot->reason);
    slot->state = SLOT_HELD;
    loader->position += samples;
    *batch = slot->batch;
    return QN_OK;
}

qn_status qn_loader_next(qn_loader *loader, int64_t samples, qn_batch *batch)
{
    QN_REQUIRE(NULL, loader);
    QN_REQUIRE(&loader->log, batch && samples >= 1 && samples <= loader->max_samples);
    QN_REQUIRE(&loader->log, qn_sum_of(loader->position, samples) >= 0);
    pthread_mutex_lock(&loader->mutex);
    qn_status status = take(loader, samples, batch);
    pthread_mutex_unlock(&loader->mutex);
    return status;
}

int64_t qn_loader_position(const qn_loader *loader)
{
    return loader ? loader->position : 0;
}

static void stop_thread(struct qn_loader *loader)
{
    if (!loader->running)
        return;
    pthread_mutex_lock(&loader->mutex);
    loader->closing = true;
    atomic_store(&loader->cancel, true);
    pthread_cond_broadcast(&loader->changed);
    pthread_mutex_unlock(&loader->mutex);
    pthread_join(loader->thread, NULL);
}

void qn_loader_close(qn_loader **loader)
{
    if (!loader || !*loader)
        return;
    stop_thread(*loader);
    pthread_mutex_destroy(&(*loader)->mutex);
    pthread_cond_destroy(&(*loader)->changed);
    qn_order_free(&(*loader)->order);
    qn_rooms_free(&(*loader)->rooms);
    free((*loader)->images);
    free((*loader)->labels);
    free((*loader)->slots);
    free(*loader);
    *loader = NULL;
}
