/* SPDX-License-Identifier: MIT */
#include "evaluate_lengths.h"

#include <stdlib.h>
#include <string.h>

/* Micro-batches whose samples are sorted by length together. */
enum { SORTED = 32 };

/* Samples of one length, from `first` on, of a batch. */
struct run {
    qn_trainer *trainer;
    const qn_graph *graph; /* of the longest */
    qn_batch *batch;
    int64_t first, count, length, longest;
    evaluate_rows_fn *fn;
    void *user;
};

static qn_status fetch(void *user, const char *input, int64_t first, int64_t count, void *rows)
{
    const struct run *run = user;
    return qn_batch_fetch(run->batch, input, run->first + first, count, rows);
}

/* Bytes of an output for each token. */
static int64_t token_bytes(const qn_graph *graph, const char *wanted)
{
    qn_tensor output = {0};
    const char *name;
    for (int i = 0; (name = qn_graph_output(graph, i, &output)); i++)
        if (strcmp(name, wanted) == 0)
            break;
    const qn_shape shape = qn_shape_of(graph, output);
    int64_t bytes = qn_dtype_size(qn_dtype_of(graph, output));
    for (int d = 2; d < shape.rank; d++)
        bytes *= shape.dim[d];
    return bytes;
}

static qn_status receive(void *user, const char *name, int64_t first, int64_t count,
                         const void *rows)
{
    const struct run *run = user;
    const int64_t token = token_bytes(run->graph, name), from = run->length * token,
                  to = run->longest * token;
    if (from == to)
        return run->fn(run->user, name, run->first + first, count, rows, run->batch);
    char *wide = calloc((size_t)count, (size_t)to);
    if (!wide)
        return QN_ERR_MEMORY;
    for (int64_t i = 0; i < count; i++)
        memcpy(wide + i * to, (const char *)rows + i * from, (size_t)from);
    const qn_status status = run->fn(run->user, name, run->first + first, count, wide, run->batch);
    free(wide);
    return status;
}

/* How many samples of the batch, from `first` on, have the same length. */
static int64_t count_same(qn_batch *batch, int64_t first, int bucket)
{
    int64_t count = 1;
    while (first + count < batch->samples && qn_batch_choose(batch, first + count, 1) == bucket)
        count++;
    return count;
}

/* The batch, whose samples are sorted, length by length. */
static qn_status evaluate_batch(const struct session *s, struct run *run)
{
    char name[SESSION_RUN_BYTES];
    qn_status status = QN_OK;
    for (run->first = 0; status == QN_OK && run->first < run->batch->samples;
         run->first += run->count) {
        const int bucket = qn_batch_choose(run->batch, run->first, 1);
        run->count = count_same(run->batch, run->first, bucket);
        run->length = s->settings.data.lengths.length[bucket];
        session_run_name(s, bucket, true, name);
        status = qn_trainer_evaluate_run(run->trainer, name, run->count, fetch, receive, run);
    }
    return status;
}

static qn_status evaluate_all(const struct session *s, qn_loader *loader, int64_t samples,
                              int64_t most, struct run *run)
{
    qn_batch batch = {.samples = 0};
    qn_status status = QN_OK;
    run->batch = &batch;
    for (int64_t left = samples; status == QN_OK && left > 0; left -= batch.samples) {
        status = qn_loader_next(loader, left < most ? left : most, &batch);
        if (status == QN_OK)
            status = evaluate_batch(s, run);
    }
    return status;
}

qn_status evaluate_lengths(const struct session *s, const qn_group_part *part, evaluate_rows_fn *fn,
                           void *user)
{
    const int64_t sorted = SORTED * qn_plan_facts(session_running(s))->micro_batch;
    const qn_loader_params params = {.log = failure_log(s->failure),
                                     .position = part->first,
                                     .max_samples = sorted < part->count ? sorted : part->count,
                                     .sequential = true};
    struct run run = {.trainer = part->trainer,
                      .graph = s->graph,
                      .longest = s->settings.data.length,
                      .fn = fn,
                      .user = user};
    qn_loader *loader = NULL;
    qn_status status = qn_loader_open(&loader, s->data.evaluated, &params);
    if (status == QN_OK)
        status = evaluate_all(s, loader, part->count, params.max_samples, &run);
    qn_loader_close(&loader);
    return status;
}
