/* SPDX-License-Identifier: MIT */
#include "base/log.h"
#include "base/shape.h"
#include "data/order.h"
#include "data/source.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST_CYCLES = 2, MOST_CYCLES = 64 };

/* Samples that are read at once; between two such parts the worker looks whether they are still
 * wanted. */
enum { PART = 16 };

/* A slot belongs to the worker while it is being filled and to the caller while it is held. */
enum slot_state { SLOT_FREE, SLOT_FILLING, SLOT_READY, SLOT_HELD };

/* `status` and `reason` say why a ready slot could not be filled. */
struct slot {
    enum slot_state state;
    struct qn_batch batch;
    uint8_t *rows[QN_MAX_COLUMNS];
    struct qn_column columns[QN_MAX_COLUMNS]; /* the dataset's, whose data are the rows */
    qn_status status;
    char reason[1024];
};

/* `mutex` guards what follows it; `order`, `seed`, `draws`, `rooms` and `range` are the worker's
 * alone. */
struct qn_loader {
    struct qn_log log;
    const struct qn_dataset *dataset;
    const struct qn_dataset_facts *data;
    struct qn_order order;
    uint64_t seed;
    struct qn_draw *draws; /* (max_samples), of the cycle that is gathered */
    struct qn_rooms rooms;
    qn_range_fn range; /* NULL: of all samples */
    void *user;
    int64_t max_samples;
    int cycles;
    struct slot *slots;
    uint8_t *memory[QN_MAX_COLUMNS]; /* (cycles, max_samples) rows of each column */
    pthread_t thread;
    bool running;
    atomic_bool cancel; /* what is being gathered is not wanted any more */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool closing;
    struct slot *held; /* the caller's; NULL: none */
    int64_t position;  /* of the next cycle that the caller takes */
    int64_t ahead;     /* of the next cycle that the worker fills */
    int64_t samples;   /* of the cycles that the worker fills */
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
    slot->batch = (struct qn_batch){.position = loader->ahead,
                                    .samples = loader->samples,
                                    .n_columns = loader->data->n_columns,
                                    .columns = slot->columns};
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

/* Reads samples first .. first + count - 1 of a slot, at most PART. */
static qn_status read_part(struct qn_loader *loader, struct slot *slot, int64_t first,
                           int64_t count)
{
    const struct qn_log log = {keep_reason, slot, QN_LOG_ERROR};
    void *rows[QN_MAX_COLUMNS];
    for (int c = 0; c < loader->data->n_columns; c++) {
        const struct qn_column *column = &slot->columns[c];
        rows[c] = slot->rows[c] + first * qn_column_bytes(column);
    }
    return loader->dataset->source->read(loader->dataset, loader->draws + first, count, rows,
                                         &loader->rooms, &log);
}

static int bucket_of(const struct qn_loader *loader, int64_t sample)
{
    const struct qn_source *source = loader->dataset->source;
    return source->bucket ? source->bucket(loader->dataset, sample) : 0;
}

/* The samples of a cycle, bucket by bucket, else in their order. */
static void draw(struct qn_loader *loader, const struct qn_batch *batch)
{
    int64_t drawn = 0;
    for (int bucket = 0; drawn < batch->samples; bucket++)
        for (int64_t i = 0; i < batch->samples; i++) {
            const int64_t position = batch->position + i;
            const struct qn_draw one = {.seed = loader->seed,
                                        .epoch = position / loader->data->count,
                                        .sample = qn_order_at(&loader->order, position)};
            if (bucket_of(loader, one.sample) == bucket)
                loader->draws[drawn++] = one;
        }
}

/* The samples of a slot that are wanted: the rows before and after them are not read. */
static qn_status find_range(const struct qn_loader *loader, struct slot *slot)
{
    const struct qn_log log = {keep_reason, slot, QN_LOG_ERROR};
    struct qn_batch *batch = &slot->batch;
    int64_t first = 0, count = batch->samples;
    if (loader->range)
        loader->range(loader->user, batch->samples, &first, &count);
    if (!qn_batch_has(batch, first, count))
        return qn_fail(&log, QN_ERR_ARGUMENT,
                       "loader: range: %lld samples from %lld on, but the cycle has %lld",
                       (long long)count, (long long)first, (long long)batch->samples);
    batch->before = first;
    batch->after = batch->samples - first - count;
    return QN_OK;
}

static void gather(struct qn_loader *loader, struct slot *slot)
{
    slot->status = find_range(loader, slot);
    const int64_t end = slot->batch.samples - slot->batch.after;
    draw(loader, &slot->batch);
    for (int64_t i = slot->batch.before;
         slot->status == QN_OK && i < end && !atomic_load(&loader->cancel); i += PART)
        slot->status = read_part(loader, slot, i, end - i < PART ? end - i : PART);
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

static qn_status no_memory(const struct qn_loader *loader)
{
    return qn_fail(&loader->log, QN_ERR_MEMORY, "loader: no memory for %d cycles of %lld samples",
                   loader->cycles, (long long)loader->max_samples);
}

/* One column of all slots. */
static qn_status make_column(struct qn_loader *loader, int c)
{
    const struct qn_column *column = &loader->data->columns[c];
    int64_t bytes = qn_mul(loader->max_samples, qn_column_bytes(column));
    int64_t all = qn_mul(loader->cycles, bytes);
    loader->memory[c] = all >= 0 ? malloc((size_t)all) : NULL;
    if (!loader->memory[c])
        return no_memory(loader);
    for (int i = 0; i < loader->cycles; i++) {
        struct slot *slot = &loader->slots[i];
        slot->rows[c] = loader->memory[c] + i * bytes;
        slot->columns[c] = *column;
        slot->columns[c].data = slot->rows[c];
    }
    return QN_OK;
}

static qn_status make_memory(struct qn_loader *loader)
{
    loader->slots = calloc((size_t)loader->cycles, sizeof *loader->slots);
    loader->draws = calloc((size_t)loader->max_samples, sizeof *loader->draws);
    if (!loader->slots || !loader->draws)
        return no_memory(loader);
    for (int c = 0; c < loader->data->n_columns; c++)
        QN_TRY(make_column(loader, c));
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
    loader->range = params->range;
    loader->user = params->user;
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
    struct slot *slot;
    if (loader->held)
        loader->held->state = SLOT_FREE;
    loader->held = NULL;
    if (samples != loader->samples)
        restart(loader, samples);
    pthread_cond_broadcast(&loader->changed);
    while ((slot = wanted(loader)) == NULL)
        pthread_cond_wait(&loader->changed, &loader->mutex);
    if (slot->status != QN_OK)
        return qn_fail(&loader->log, slot->status, "%s", slot->reason);
    slot->state = SLOT_HELD;
    loader->held = slot;
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

const qn_batch *qn_loader_batch(const qn_loader *loader)
{
    return loader && loader->held ? &loader->held->batch : NULL;
}

qn_status qn_loader_fetch(void *loader, const char *input, int64_t first, int64_t count, void *rows)
{
    struct qn_loader *from = loader;
    qn_batch batch;
    QN_REQUIRE(NULL, from);
    if (first == from->position)
        QN_TRY(qn_loader_next(from, count, &batch));
    QN_REQUIRE(&from->log, from->held);
    batch = from->held->batch;
    return qn_batch_fetch(&batch, input, first - batch.position, count, rows);
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
    for (int c = 0; c < QN_MAX_COLUMNS; c++)
        free((*loader)->memory[c]);
    free((*loader)->slots);
    free((*loader)->draws);
    free(*loader);
    *loader = NULL;
}
