/* SPDX-License-Identifier: MIT */
#include "retrieval.h"
#include "pairs.h"

#include <math.h>
#include <quern/retrieval.h>
#include <stdlib.h>
#include <string.h>

struct encoding {
    struct vectors *vectors;
    qn_loader *loader;
    qn_dtype dtype;
    int64_t each; /* passages of a sample, its own first */
    double *row;  /* (dim) */
};

static qn_status fetch(void *user, const char *input, int64_t first, int64_t count, void *rows)
{
    return qn_loader_fetch(((struct encoding *)user)->loader, input, first, count, rows);
}

static qn_status receive(void *user, const char *name, int64_t first, int64_t count,
                         const void *rows)
{
    const struct encoding *encoding = user;
    struct vectors *v = encoding->vectors;
    const bool passages = strcmp(name, "passages") == 0;
    float *to = v->rows[passages] + first * v->dim;
    const int64_t bytes = (passages ? encoding->each : 1) * v->dim * qn_dtype_size(encoding->dtype);
    for (int64_t i = 0; i < count; i++) {
        qn_number_decode(encoding->dtype, (const char *)rows + i * bytes, v->dim, encoding->row);
        for (int64_t d = 0; d < v->dim; d++)
            to[i * v->dim + d] = (float)encoding->row[d];
    }
    return QN_OK;
}

static qn_dtype type_of_vectors(const struct session *s)
{
    qn_tensor output = {0};
    qn_graph_output(s->graph, 0, &output);
    return qn_dtype_of(s->graph, output);
}

/* The loader goes on with the next samples. */
static qn_status read_ids(struct encoding *encoding, int64_t most)
{
    struct vectors *v = encoding->vectors;
    qn_status status = QN_OK;
    qn_batch batch;
    for (int64_t at = 0; status == QN_OK && at < v->samples; at += most) {
        const int64_t count = v->samples - at < most ? v->samples - at : most;
        status = qn_loader_next(encoding->loader, count, &batch);
        if (status == QN_OK)
            status = qn_batch_fetch(&batch, "ids", 0, count, v->ids + at);
    }
    return status;
}

static int encode(struct session *s, struct encoding *encoding, const qn_dataset *pairs)
{
    const qn_loader_params params = {.log = failure_log(s->failure),
                                     .max_samples = qn_plan_facts(session_running(s))->micro_batch,
                                     .sequential = true};
    TRY_LIBRARY(s->failure, NULL, qn_loader_open(&encoding->loader, pairs, &params));
    TRY_LIBRARY(s->failure, NULL, read_ids(encoding, params.max_samples));
    qn_loader_close(&encoding->loader);
    TRY_LIBRARY(s->failure, NULL, qn_loader_open(&encoding->loader, pairs, &params));
    TRY_LIBRARY(s->failure, NULL,
                qn_trainer_evaluate_run(s->trainer, "encode", encoding->vectors->samples, fetch,
                                        receive, encoding));
    return CODE_DONE;
}

int vectors_make(struct vectors *v, struct session *s, const qn_dataset *pairs)
{
    const size_t samples = (size_t)qn_dataset_describe(pairs)->count;
    const size_t dim = (size_t)s->settings.contrastive.dim;
    struct encoding encoding = {.vectors = v,
                                .dtype = type_of_vectors(s),
                                .each = 1 + s->data.pairs->negatives,
                                .row = calloc(dim, sizeof *encoding.row)};
    *v = (struct vectors){.samples = (int64_t)samples, .dim = (int64_t)dim};
    for (int side = 0; side < 2; side++)
        v->rows[side] = calloc(samples, dim * sizeof **v->rows);
    v->ids = calloc(samples, sizeof *v->ids);
    const int code = encoding.row && v->ids && v->rows[0] && v->rows[1]
                         ? encode(s, &encoding, pairs)
                         : failure_set(s->failure, CODE_FAILED, "out of memory");
    qn_loader_close(&encoding.loader);
    free(encoding.row);
    return code;
}

void vectors_free(struct vectors *v)
{
    free(v->rows[0]);
    free(v->rows[1]);
    free(v->ids);
    *v = (struct vectors){.samples = 0};
}

static int measure(struct session *s, const struct vectors *v, struct evaluation *evaluation)
{
    const qn_retrieval_params params = {.log = failure_log(s->failure),
                                        .n_queries = v->samples,
                                        .n_candidates = v->samples,
                                        .dim = v->dim,
                                        .queries = v->rows[0],
                                        .candidates = v->rows[1]};
    qn_retrieval found;
    TRY_LIBRARY(s->failure, NULL, qn_retrieval_measure(&found, &params, NULL, NULL));
    const struct {
        enum figure figure;
        double value;
    } figures[] = {{FIGURE_MRR, found.mrr},
                   {FIGURE_RECALL_1, found.recall_1},
                   {FIGURE_RECALL_10, found.recall_10},
                   {FIGURE_RECALL_100, found.recall_100}};
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        evaluation->figure[figures[i].figure].there = !isnan(figures[i].value);
        evaluation->figure[figures[i].figure].value = figures[i].value;
    }
    if (found.not_finite)
        say("warning: %lld vectors have numbers that are not finite, and find nothing",
            (long long)found.not_finite);
    return CODE_DONE;
}

int retrieval_evaluate(struct session *s, struct evaluation *evaluation)
{
    struct vectors vectors;
    *evaluation = (struct evaluation){.samples = qn_dataset_describe(s->data.evaluated)->count,
                                      .validation = s->data.evaluated == s->data.validation};
    int code = vectors_make(&vectors, s, s->data.evaluated);
    if (code == CODE_DONE)
        code = measure(s, &vectors, evaluation);
    vectors_free(&vectors);
    return code;
}
