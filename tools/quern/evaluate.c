/* SPDX-License-Identifier: MIT */
#include "evaluate.h"
#include "evaluate_lengths.h"
#include "members.h"
#include "part.h"
#include "ranks.h"
#include "retrieval.h"

#include <math.h>
#include <quern/metric.h>
#include <stdlib.h>
#include <string.h>

/* Between two figures. */
#define GAP "  "

/* What is measured (of PAIRS by retrieval.h), of which output of the model and for which data, and
 * how people see it, the split before it. */
enum kind { ALL, MASKS, TOKENS, BYTES, NUMBERS, BINARY, PAIRS };
static const struct {
    qn_metric_kind metric;
    const char *output, *labels;
    enum kind data;
    const char *key, *text;
    double shown; /* times this */
} figures[FIGURES] = {
    [FIGURE_ACCURACY] = {QN_METRIC_ACCURACY, "logits", "labels", ALL, "test_accuracy",
                         GAP "%s accuracy %.2f %%", 100},
    [FIGURE_LOSS] = {QN_METRIC_MEAN, "loss", NULL, ALL, "test_loss", GAP "%s loss %.4f", 1},
    [FIGURE_OVERLAP] = {QN_METRIC_MEAN_IOU, "logits", "labels", MASKS, "test_iou",
                        GAP "%.0smean IoU %.4f", 1},
    [FIGURE_PERPLEXITY] = {QN_METRIC_PERPLEXITY, "loss", NULL, TOKENS, "test_perplexity",
                           GAP "%.0sperplexity %.5g", 1},
    [FIGURE_BITS] = {QN_METRIC_MEAN, "loss", NULL, BYTES, "test_bits_per_byte",
                     GAP "%.0s%.4f bits/byte", 1},
    [FIGURE_SQUARED] = {QN_METRIC_SQUARED_ERROR, "predictions", "targets", NUMBERS, "test_mse",
                        GAP "%.0sMSE %.5g", 1},
    [FIGURE_ABSOLUTE] = {QN_METRIC_ABSOLUTE_ERROR, "predictions", "targets", NUMBERS, "test_mae",
                         GAP "%.0sMAE %.5g", 1},
    [FIGURE_R2] = {QN_METRIC_R2, "predictions", "targets", NUMBERS, "test_r2", GAP "%.0sR2 %.4f",
                   1},
    [FIGURE_F1] = {QN_METRIC_F1, "logits", "targets", BINARY, "test_f1", GAP "%.0sF1 %.4f", 1},
    [FIGURE_MRR] = {0, "queries", NULL, PAIRS, "test_mrr", GAP "%s MRR %.2f %%", 100},
    [FIGURE_RECALL_1] = {0, "queries", NULL, PAIRS, "test_recall_1", GAP "%.0srecall@1 %.2f %%",
                         100},
    [FIGURE_RECALL_10] = {0, "queries", NULL, PAIRS, "test_recall_10", GAP "%.0s@10 %.2f %%", 100},
    [FIGURE_RECALL_100] = {0, "queries", NULL, PAIRS, "test_recall_100", GAP "%.0s@100 %.2f %%",
                           100},
};

/* What a member counts of its samples. */
struct tally {
    const struct session *session; /* the member's */
    struct part part;
    qn_metric *metrics[FIGURES]; /* NULL: not measured */
    struct detail *detail;       /* NULL: nobody asks */
};

/* The output of the graph that a figure reads; false: there is none. */
static bool find_output(const qn_graph *graph, const char *wanted, qn_tensor *tensor)
{
    const char *name;
    for (int i = 0; (name = qn_graph_output(graph, i, tensor)); i++)
        if (strcmp(name, wanted) == 0)
            return true;
    return false;
}

static bool has(const struct session *s, enum kind data)
{
    switch (data) {
    case NUMBERS:
        return s->data.model.targets && !s->data.model.binary;
    case BINARY:
        return s->data.model.targets && s->data.model.binary;
    case MASKS:
        return s->data.model.masks;
    case TOKENS:
        return settings_learns_tokens(&s->settings);
    case BYTES:
        return s->data.bytes_per_token > 0;
    case PAIRS:
        return s->data.pairs;
    case ALL:
        return !s->data.pairs;
    }
    return false;
}

/* The output that a figure of the session's data and model reads; false: it is not measured. */
static bool find_figure(const struct session *s, enum figure figure, qn_tensor *output)
{
    return has(s, figures[figure].data) && find_output(s->graph, figures[figure].output, output);
}

bool evaluation_has(const struct session *s, enum figure figure)
{
    return find_figure(s, figure, &(qn_tensor){0});
}

enum figure evaluation_default(const struct session *s)
{
    return evaluation_has(s, FIGURE_MRR)          ? FIGURE_MRR
           : evaluation_has(s, FIGURE_PERPLEXITY) ? FIGURE_PERPLEXITY
           : evaluation_has(s, FIGURE_ACCURACY)   ? FIGURE_ACCURACY
                                                  : FIGURE_LOSS;
}

/* What a figure counts, and from which column: accuracy comes with the confusion matrix where it is
 * `detailed`, and is another one where a sample may have several classes. */
static void choose_metric(const struct session *s, enum figure i, bool detailed,
                          qn_metric_params *params)
{
    const bool accuracy = i == FIGURE_ACCURACY;
    params->kind = figures[i].metric;
    params->labels = has(s, TOKENS) ? "labels" : figures[i].labels;
    if (accuracy && has(s, BINARY)) {
        params->kind = QN_METRIC_BINARY_ACCURACY;
        params->labels = "targets";
    } else if (accuracy && detailed) {
        params->kind = QN_METRIC_CONFUSION;
    }
}

static int open_metric(const struct session *s, qn_metric **metric, enum figure i, qn_tensor output,
                       bool detailed)
{
    qn_metric_params params = {.log = failure_log(s->failure),
                               .output = figures[i].output,
                               .dtype = qn_dtype_of(s->graph, output),
                               .shape = qn_shape_of(s->graph, output),
                               .class_dim = s->data.model.masks ? 1 : 0,
                               .ignore = has(s, TOKENS),
                               .ignore_label = QN_IGNORED_LABEL};
    choose_metric(s, i, detailed, &params);
    TRY_LIBRARY(s->failure, NULL, qn_metric_create(metric, &params));
    return CODE_DONE;
}

static int open_metrics(struct tally *tally)
{
    const struct session *s = tally->session;
    qn_tensor output;
    for (int i = 0; i < FIGURES; i++)
        if (find_figure(s, (enum figure)i, &output))
            TRY(open_metric(s, &tally->metrics[i], (enum figure)i, output, tally->detail != NULL));
    return CODE_DONE;
}

static qn_status add_rows(void *user, const char *name, int64_t first, int64_t count,
                          const void *rows, const qn_batch *batch)
{
    const struct tally *tally = user;
    qn_status status = QN_OK;
    for (int i = 0; status == QN_OK && i < FIGURES; i++)
        if (tally->metrics[i])
            status = qn_metric_update(tally->metrics[i], name, first, count, rows, batch);
    if (status == QN_OK && tally->detail && tally->detail->wants_mistakes)
        status = mistakes_take(&tally->detail->mistakes, name, first, count, rows, batch);
    return status;
}

static qn_status receive(void *user, const char *name, int64_t first, int64_t count,
                         const void *rows)
{
    const struct part *part = &((const struct tally *)user)->part;
    return add_rows(user, name, part_row(part, first), count, rows, part->batch);
}

static qn_status fetch(void *user, const char *input, int64_t first, int64_t count, void *rows)
{
    return part_fetch(&((struct tally *)user)->part, input, first, count, rows);
}

/* On the thread of the member. */
static qn_status measure_part(void *user, const qn_group_part *of)
{
    struct tally *tally = &((struct tally *)user)[of->member];
    const struct session *s = tally->session;
    if (s->n_shorter)
        return evaluate_lengths(s, of, add_rows, tally);
    const qn_status status = part_open(&tally->part, s, s->data.evaluated, of);
    return status ? status : qn_trainer_evaluate(of->trainer, of->count, fetch, receive, tally);
}

/* --- all members --- */

static int open_tallies(struct session *s, struct tally tallies[MAX_MEMBERS], struct detail *detail)
{
    const struct session *one;
    for (int m = 0; (one = members_session(s, m)); m++) {
        tallies[m] = (struct tally){.session = one, .detail = detail};
        TRY(open_metrics(&tallies[m]));
    }
    return CODE_DONE;
}

static void close_tallies(struct tally tallies[MAX_MEMBERS])
{
    for (int m = 0; m < MAX_MEMBERS; m++) {
        for (int i = 0; i < FIGURES; i++)
            qn_metric_destroy(&tallies[m].metrics[i]);
        part_close(&tallies[m].part);
    }
}

/* Of what all ranks have counted, one after another in `all`. */
static int join_ranks(const struct session *s, qn_metric *metric, char *all)
{
    int64_t bytes;
    const void *own = qn_metric_state(metric, &bytes);
    TRY(ranks_gather(own, (size_t)bytes, all, s->failure));
    qn_metric_reset(metric);
    for (int r = 0; r < ranks_count(); r++)
        TRY_LIBRARY(s->failure, NULL, qn_metric_join(metric, all + r * bytes, bytes));
    return CODE_DONE;
}

/* What the members of this rank have counted, then what all ranks have. */
static int join(const struct session *s, struct tally tallies[MAX_MEMBERS], enum figure figure)
{
    qn_metric *metric = tallies[0].metrics[figure];
    int64_t bytes;
    for (int m = 1; tallies[m].session; m++) {
        const void *counted = qn_metric_state(tallies[m].metrics[figure], &bytes);
        TRY_LIBRARY(s->failure, NULL, qn_metric_join(metric, counted, bytes));
    }
    if (ranks_count() == 1)
        return CODE_DONE;
    qn_metric_state(metric, &bytes);
    char *all = calloc((size_t)ranks_count(), (size_t)bytes);
    const int code =
        all ? join_ranks(s, metric, all) : failure_set(s->failure, CODE_FAILED, "out of memory");
    free(all);
    return code;
}

/* Leaves the figures of all in the first tally. */
static int measure(struct session *s, struct tally tallies[MAX_MEMBERS])
{
    const int64_t samples = qn_dataset_describe(s->data.evaluated)->count;
    ranks_busy_begin();
    const int code = members_evaluate(s, samples, measure_part, tallies);
    TRY(ranks_busy_end(code, s->failure));
    for (int i = 0; i < FIGURES; i++)
        if (tallies[0].metrics[i])
            TRY(join(s, tallies, (enum figure)i));
    return CODE_DONE;
}

static int copy_confusion(struct session *s, const qn_metric *metric, struct detail *detail)
{
    int64_t classes = 0;
    const int64_t *confusion = qn_metric_confusion(metric, &classes);
    const size_t count = (size_t)(classes * classes);
    detail->confusion = calloc(count, sizeof *confusion);
    if (!detail->confusion)
        return failure_set(s->failure, CODE_FAILED, "out of memory");
    memcpy(detail->confusion, confusion, count * sizeof *confusion);
    return CODE_DONE;
}

static void take_figures(const struct session *s, const struct tally *tally,
                         struct evaluation *evaluation)
{
    *evaluation = (struct evaluation){.samples = qn_dataset_describe(s->data.evaluated)->count,
                                      .validation = s->data.evaluated == s->data.validation};
    for (int i = 0; i < FIGURES; i++) {
        evaluation->figure[i].there = tally->metrics[i] != NULL;
        evaluation->figure[i].value = qn_metric_result(tally->metrics[i]);
    }
    evaluation->figure[FIGURE_BITS].value /= log(2) * s->data.bytes_per_token;
}

int evaluate(struct session *s, struct evaluation *evaluation, struct detail *detail)
{
    struct tally tallies[MAX_MEMBERS + 1] = {{.session = NULL}};
    if (s->data.pairs)
        return retrieval_evaluate(s, evaluation);
    int code = detail && detail->wants_mistakes ? mistakes_open(&detail->mistakes, s) : CODE_DONE;
    if (code == CODE_DONE)
        code = open_tallies(s, tallies, detail);
    if (code == CODE_DONE)
        code = measure(s, tallies);
    if (code == CODE_DONE)
        take_figures(s, &tallies[0], evaluation);
    if (code == CODE_DONE && detail)
        code = copy_confusion(s, tallies[0].metrics[FIGURE_ACCURACY], detail);
    close_tallies(tallies);
    return code;
}

void detail_free(struct detail *detail)
{
    mistakes_close(&detail->mistakes);
    free(detail->confusion);
    *detail = (struct detail){0};
}

const char *evaluation_key(enum figure figure)
{
    return figures[figure].key;
}

double evaluation_score(const struct evaluation *evaluation, enum figure figure)
{
    const double value = evaluation->figure[figure].value;
    switch (figure) {
    case FIGURE_PERPLEXITY:
        return 1 / value;
    case FIGURE_LOSS:
    case FIGURE_BITS:
    case FIGURE_SQUARED:
    case FIGURE_ABSOLUTE:
        return -value;
    default:
        return value;
    }
}

const char *evaluation_text(const struct evaluation *evaluation, char text[EVALUATION_TEXT_BYTES])
{
    *text = 0;
    for (int i = 0; i < FIGURES; i++) {
        const size_t length = strlen(text), gap = length ? 0 : strlen(GAP);
        if (evaluation->figure[i].there)
            snprintf(text + length, EVALUATION_TEXT_BYTES - length, figures[i].text + gap,
                     evaluation->validation ? "validation" : "test",
                     figures[i].shown * evaluation->figure[i].value);
    }
    return text;
}
