/* SPDX-License-Identifier: MIT */
#include "evaluate.h"

#include <quern/metric.h>
#include <string.h>

/* What is measured, of which output of the model. */
enum { ACCURACY, LOSS, OVERLAP, FIGURES };
static const struct figure {
    qn_metric_kind kind;
    const char *output, *labels;
    bool masks; /* of these alone */
} figures[FIGURES] = {
    [ACCURACY] = {QN_METRIC_ACCURACY, "logits", "labels", false},
    [LOSS] = {QN_METRIC_MEAN, "loss", NULL, false},
    [OVERLAP] = {QN_METRIC_MEAN_IOU, "logits", "labels", true},
};

struct tally {
    qn_loader *loader;
    qn_metric *metrics[FIGURES]; /* NULL: not measured */
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

/* `by_class`: accuracy comes with the confusion matrix. */
static int open_metrics(struct session *s, struct tally *tally, bool by_class)
{
    const bool masks = s->data.model.masks;
    for (int i = 0; i < FIGURES; i++) {
        qn_tensor output;
        if ((figures[i].masks && !masks) || !find_output(s->graph, figures[i].output, &output))
            continue;
        const qn_metric_params params = {.log = failure_log(s->failure),
                                         .kind = i == ACCURACY && by_class ? QN_METRIC_CONFUSION
                                                                           : figures[i].kind,
                                         .output = figures[i].output,
                                         .dtype = qn_dtype_of(s->graph, output),
                                         .shape = qn_shape_of(s->graph, output),
                                         .class_dim = masks ? 1 : 0,
                                         .labels = figures[i].labels};
        TRY_LIBRARY(s->failure, NULL, qn_metric_create(&tally->metrics[i], &params));
    }
    return CODE_DONE;
}

static qn_status fetch(void *user, const char *input, int64_t first, int64_t count, void *rows)
{
    return qn_loader_fetch(((struct tally *)user)->loader, input, first, count, rows);
}

static qn_status receive(void *user, const char *name, int64_t first, int64_t count,
                         const void *rows)
{
    const struct tally *tally = user;
    const qn_batch *batch = qn_loader_batch(tally->loader);
    qn_status status = QN_OK;
    for (int i = 0; status == QN_OK && i < FIGURES; i++)
        if (tally->metrics[i])
            status = qn_metric_update(tally->metrics[i], name, first - batch->position, count, rows,
                                      batch);
    return status;
}

static int measure(struct session *s, struct tally *tally, int64_t samples, bool by_class)
{
    const qn_loader_params params = {.log = failure_log(s->failure),
                                     .max_samples = qn_plan_facts(session_running(s))->micro_batch,
                                     .sequential = true};
    TRY(open_metrics(s, tally, by_class));
    TRY_LIBRARY(s->failure, NULL, qn_loader_open(&tally->loader, s->data.test, &params));
    TRY_LIBRARY(s->failure, NULL, qn_trainer_evaluate(s->trainer, samples, fetch, receive, tally));
    return CODE_DONE;
}

/* A class's row holds its labels by what they were taken for: on the diagonal, for itself. */
static void count_classes(const qn_metric *metric, struct class_count *counts)
{
    int64_t classes = 0;
    const int64_t *confusion = qn_metric_confusion(metric, &classes);
    for (int64_t label = 0; label < classes; label++) {
        counts[label].correct = confusion[label * classes + label];
        for (int64_t c = 0; c < classes; c++)
            counts[label].labels += confusion[label * classes + c];
    }
}

int evaluate(struct session *s, struct evaluation *evaluation, struct class_count *counts)
{
    const int64_t samples = qn_dataset_describe(s->data.test)->count;
    struct tally tally = {0};
    int code = measure(s, &tally, samples, counts != NULL);
    if (code == CODE_DONE)
        *evaluation = (struct evaluation){.samples = samples,
                                          .accuracy = qn_metric_result(tally.metrics[ACCURACY]),
                                          .loss = qn_metric_result(tally.metrics[LOSS]),
                                          .masks = s->data.model.masks,
                                          .overlap = qn_metric_result(tally.metrics[OVERLAP])};
    if (code == CODE_DONE && counts)
        count_classes(tally.metrics[ACCURACY], counts);
    for (int i = 0; i < FIGURES; i++)
        qn_metric_destroy(&tally.metrics[i]);
    qn_loader_close(&tally.loader);
    return code;
}

const char *evaluation_text(const struct evaluation *evaluation, char text[EVALUATION_TEXT_BYTES])
{
    int length = snprintf(text, EVALUATION_TEXT_BYTES, "test accuracy %.2f %%  test loss %.4f",
                          100 * evaluation->accuracy, evaluation->loss);
    if (evaluation->masks)
        snprintf(text + length, (size_t)(EVALUATION_TEXT_BYTES - length), "  mean IoU %.4f",
                 evaluation->overlap);
    return text;
}
