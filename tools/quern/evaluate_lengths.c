/* SPDX-License-Identifier: MIT */
#include "evaluate_lengths.h"

#include <stdlib.h>
#include <string.h>

/* Micro-batches whose samples are sorted by length together. */
enum { SORTED = 32 };

/* Samples of one length, from `first` on, of a batch. */
struct part {
    const qn_graph *graph; /* of the longest */
    qn_batch *batch;
    int64_t first, count, length, longest;
    evaluate_rows_fn *fn;
    void *user;
};

static qn_status fetch(void *user, const char *input, int64_t first, int64_t count, void *rows)
{
    const struct part *part = user;
    return qn_batch_fetch(part->batch, input, part->first + first, count, rows);
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
    const struct part *part = user;
    const int64_t token = token_bytes(part->graph, name), from = part->length * token,
                  to = part->longest * token;
    if (from == to)
        return part->fn(part->user, name, part->first + first, count, rows, part->batch);
    char *wide = calloc((size_t)count, (size_t)to);
    if (!wide)
        return QN_ERR_MEMORY;
    for (int64_t i = 0; i < count; i++)
        memcpy(wide + i * to, (const char *)rows + i * from, (size_t)from);
    const qn_status status =
        part->fn(part->user, name, part->first + first, count, wide, part->batch);
    free(wide);
    return status;
}

/* The batch, whose samples are sorted, length by length. */
static int evaluate_batch(struct session *s, struct part *part)
{
    const struct lengths *lengths = &s->settings.data.lengths;
    char name[SESSION_RUN_BYTES];
    for (part->first = 0; part->first < part->batch->samples; part->first += part->count) {
        const int bucket = qn_batch_choose(part->batch, part->first, 1);
        part->count = 1;
        while (part->first + part->count < part->batch->samples &&
               qn_batch_choose(part->batch, part->first + part->count, 1) == bucket)
            part->count++;
        part->length = lengths->length[bucket];
        session_run_name(s, bucket, true, name);
        TRY_LIBRARY(s->failure, NULL,
                    qn_trainer_evaluate_run(s->trainer, name, part->count, fetch, receive, part));
    }
    return CODE_DONE;
}

static int64_t samples_of(const struct session *s)
{
    return qn_dataset_describe(s->data.evaluated)->count;
}

static int evaluate_all(struct session *s, qn_loader *loader, int64_t most, struct part *part)
{
    qn_batch batch;
    part->batch = &batch;
    for (int64_t left = samples_of(s); left > 0; left -= batch.samples) {
        TRY_LIBRARY(s->failure, NULL, qn_loader_next(loader, left < most ? left : most, &batch));
        TRY(evaluate_batch(s, part));
    }
    return CODE_DONE;
}

int evaluate_lengths(struct session *s, evaluate_rows_fn *fn, void *user)
{
    const int64_t sorted = SORTED * qn_plan_facts(session_running(s))->micro_batch;
    const int64_t most = sorted < samples_of(s) ? sorted : samples_of(s);
    const qn_loader_params params = {
        .log = failure_log(s->failure), .max_samples = most, .sequential = true};
    struct part part = {
        .graph = s->graph, .longest = s->settings.data.length, .fn = fn, .user = user};
    qn_loader *loader = NULL;
    TRY_LIBRARY(s->failure, NULL, qn_loader_open(&loader, s->data.evaluated, &params));
    const int code = evaluate_all(s, loader, most, &part);
    qn_loader_close(&loader);
    return code;
}
