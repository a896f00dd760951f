/* SPDX-License-Identifier: MIT */
#include "retrieval.h"
#include "members.h"
#include "pairs.h"
#include "part.h"
#include "ranks.h"

#include <math.h>
#include <quern/retrieval.h>
#include <stdlib.h>
#include <string.h>

/* What a member makes of its samples. */
struct encoding {
    const struct session *session; /* the member's */
    struct part part;
    struct vectors *vectors; /* of all */
    const qn_dataset *pairs;
    int64_t count; /* of its samples */
    double *row;   /* (dim) */
};

static qn_dtype type_of_vectors(const struct session *s)
{
    qn_tensor output = {0};
    qn_graph_output(s->graph, 0, &output);
    return qn_dtype_of(s->graph, output);
}

static qn_status fetch(void *user, const char *input, int64_t first, int64_t count, void *rows)
{
    return part_fetch(&((struct encoding *)user)->part, input, first, count, rows);
}

/* Of passages the own one of each sample, which comes before the hard negatives. */
static void take_vectors(const struct encoding *encoding, bool passages, int64_t first,
                         int64_t count, const void *rows)
{
    const struct session *s = encoding->session;
    const struct vectors *v = encoding->vectors;
    const qn_dtype dtype = type_of_vectors(s);
    const int64_t each = passages ? 1 + s->data.pairs->negatives : 1;
    const int64_t bytes = each * v->dim * qn_dtype_size(dtype);
    float *to = v->rows[passages] + first * v->dim;
    for (int64_t i = 0; i < count; i++) {
        qn_number_decode(dtype, (const char *)rows + i * bytes, v->dim, encoding->row);
        for (int64_t d = 0; d < v->dim; d++)
            to[i * v->dim + d] = (float)encoding->row[d];
    }
}

static qn_status receive(void *user, const char *name, int64_t first, int64_t count,
                         const void *rows)
{
    const struct encoding *encoding = user;
    const struct part *part = &encoding->part;
    const int64_t sample = part_sample(part, first);
    qn_batch batch = *part->batch;
    take_vectors(encoding, strcmp(name, "passages") == 0, sample, count, rows);
    return qn_batch_fetch(&batch, "ids", part_row(part, first), count,
                          encoding->vectors->ids + sample);
}

/* On the thread of the member. */
static qn_status encode_part(void *user, const qn_group_part *of)
{
    struct encoding *encoding = &((struct encoding *)user)[of->member];
    encoding->count = of->count;
    const qn_status status = part_open(&encoding->part, encoding->session, encoding->pairs, of);
    return status ? status
                  : qn_trainer_evaluate_run(of->trainer, "encode", of->count, fetch, receive,
                                            encoding);
}

/* --- all members --- */

static int open_encodings(struct session *s, struct encoding encodings[MAX_MEMBERS],
                          struct vectors *v, const qn_dataset *pairs)
{
    const struct session *one;
    for (int m = 0; (one = members_session(s, m)); m++) {
        encodings[m] = (struct encoding){.session = one,
                                         .vectors = v,
                                         .pairs = pairs,
                                         .row = calloc((size_t)v->dim, sizeof(double))};
        if (!encodings[m].row)
            return failure_set(s->failure, CODE_FAILED, "out of memory");
    }
    return CODE_DONE;
}

static void close_encodings(struct encoding encodings[MAX_MEMBERS])
{
    for (int m = 0; m < MAX_MEMBERS; m++) {
        part_close(&encodings[m].part);
        free(encodings[m].row);
    }
}

/* The samples of a rank, which follow one another. */
struct range {
    int64_t first, count;
};

static struct range range_of(const struct encoding encodings[MAX_MEMBERS])
{
    struct range range = {0, 0};
    for (int m = 0; m < MAX_MEMBERS; m++) {
        if (encodings[m].count && !range.count)
            range.first = encodings[m].part.first;
        range.count += encodings[m].count;
    }
    return range;
}

/* Rank 0 receives what other ranks have encoded. */
static int collect(const struct session *s, struct vectors *v, struct range own)
{
    struct range all[QN_MAX_GROUP];
    const int64_t bytes = v->dim * (int64_t)sizeof **v->rows;
    TRY(ranks_gather(&own, sizeof own, all, s->failure));
    for (int side = 0; side < 2; side++) {
        const float *rows = v->rows[side] + own.first * v->dim;
        if (!ranks_first())
            TRY(ranks_send(0, rows, own.count * bytes, s->failure));
        for (int r = 1; ranks_first() && r < ranks_count(); r++)
            TRY(ranks_receive(r, v->rows[side] + all[r].first * v->dim, all[r].count * bytes,
                              s->failure));
    }
    return CODE_DONE;
}

static int encode(struct session *s, struct vectors *v, const qn_dataset *pairs)
{
    struct encoding encodings[MAX_MEMBERS] = {{.session = NULL}};
    int code = open_encodings(s, encodings, v, pairs);
    ranks_busy_begin();
    if (code == CODE_DONE)
        code = members_evaluate(s, v->samples, encode_part, encodings);
    code = ranks_busy_end(code, s->failure);
    if (code == CODE_DONE)
        code = collect(s, v, range_of(encodings));
    close_encodings(encodings);
    return code;
}

int vectors_make(struct vectors *v, struct session *s, const qn_dataset *pairs)
{
    const size_t samples = (size_t)qn_dataset_describe(pairs)->count;
    const size_t dim = (size_t)s->settings.contrastive.dim;
    *v = (struct vectors){.samples = (int64_t)samples, .dim = (int64_t)dim};
    for (int side = 0; side < 2; side++)
        v->rows[side] = calloc(samples, dim * sizeof **v->rows);
    v->ids = calloc(samples, sizeof *v->ids);
    return v->ids && v->rows[0] && v->rows[1]
               ? encode(s, v, pairs)
               : failure_set(s->failure, CODE_FAILED, "out of memory");
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

/* The figures of rank 0, which has all vectors, to all. */
static int share(const struct session *s, struct evaluation *evaluation)
{
    struct evaluation all[QN_MAX_GROUP];
    TRY(ranks_gather(evaluation, sizeof *evaluation, all, s->failure));
    *evaluation = all[0];
    return CODE_DONE;
}

int retrieval_evaluate(struct session *s, struct evaluation *evaluation)
{
    struct vectors vectors;
    *evaluation = (struct evaluation){.samples = qn_dataset_describe(s->data.evaluated)->count,
                                      .validation = s->data.evaluated == s->data.validation};
    int code = vectors_make(&vectors, s, s->data.evaluated);
    if (code == CODE_DONE && ranks_first())
        code = measure(s, &vectors, evaluation);
    if (code == CODE_DONE)
        code = share(s, evaluation);
    vectors_free(&vectors);
    return code;
}
