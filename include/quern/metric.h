/* SPDX-License-Identifier: MIT
 *
 * Figures of an evaluation, gathered micro-batch by micro-batch from what the graph gives and from
 * the data that belongs to it, both by name. No device takes part.
 *
 *     qn_metric_create(&accuracy, &(qn_metric_params){.kind = QN_METRIC_ACCURACY,
 *                                                     .output = "logits",
 *                                                     .shape = qn_shape_of(graph, logits),
 *                                                     .labels = "labels"});
 *     qn_trainer_evaluate(trainer, samples, qn_loader_fetch, result, loader);
 *     printf("%.4f\n", qn_metric_result(accuracy));
 *
 * where `result`, a qn_result_fn whose user is that loader, calls
 *
 *     const qn_batch *batch = qn_loader_batch(loader);
 *     qn_metric_update(accuracy, name, first - batch->position, count, rows, batch);
 */
#ifndef QUERN_METRIC_H
#define QUERN_METRIC_H

#include <quern/data.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What is counted, over all labels so far; a label may belong to a sample, a pixel or a token. */
typedef enum qn_metric_kind {
    QN_METRIC_MEAN,       /* mean of the output, which has a number for each label: a loss */
    QN_METRIC_PERPLEXITY, /* exp of that mean */
    QN_METRIC_ACCURACY,   /* fraction of labels that are among the `top` largest of their logits; of
                             equal ones those of lower classes come first */
    QN_METRIC_CONFUSION,  /* the same for the largest, and qn_metric_confusion */
    QN_METRIC_MEAN_IOU,   /* intersection over union of labels and largest logits, the mean over all
                             classes that occur; and qn_metric_confusion */
    /* Of outputs with a number for each target: */
    QN_METRIC_SQUARED_ERROR,  /* mean of the squared differences */
    QN_METRIC_ABSOLUTE_ERROR, /* mean of the absolute differences */
    QN_METRIC_R2, /* 1 - squared differences / squared deviations from the targets' mean,
                     the mean over the targets of a sample. Of targets that are all equal
                     1 if they are met, else 0 */
    /* Of outputs with a logit for each class that a sample may have; a target above 1/2 says that
     * it does, a logit above 0 that the model thinks so: */
    QN_METRIC_BINARY_ACCURACY, /* fraction of targets that are told right */
    QN_METRIC_F1,              /* harmonic mean of precision and recall over all classes together; 0
                                  where no sample has any, nor is thought to */
} qn_metric_kind;

typedef struct qn_metric_params {
    qn_log log;
    qn_metric_kind kind;
    const char *output; /* "logits": name of an output of the graph, 1 to 100 bytes */
    qn_dtype dtype; /* of the output, as qn_dtype_of gives it: QN_F32 (default), QN_F16, QN_BF16 */
    qn_shape shape; /* of the output, as qn_shape_of gives it; zeroed: (b) */
    int class_dim;  /* the dimension of `shape` that holds the classes; 0: the last */
    const char *labels; /* column of u8 or i32, or of targets in f32; may be NULL for mean and
                           perplexity */
    bool ignore;        /* labels that are ignore_label, and what belongs to them, do not count;
                           not of targets */
    int32_t ignore_label;
    int top; /* of accuracy; 0: 1 */
} qn_metric_params;

/* Thread-safety: Unsafe. Lifetime: until qn_metric_destroy. */
typedef struct qn_metric qn_metric;

/* QN_ERR_ARGUMENT: names, type, shape or labels are missing or cannot be. */
QN_API qn_status qn_metric_create(qn_metric **metric, const qn_metric_params *params);
/* Frees and sets to NULL; accepts a pointer to NULL. */
QN_API void qn_metric_destroy(qn_metric **metric);

/* Counts `count` rows of an output, as a qn_result_fn gets them, for samples first ..
 * first + count - 1 of the batch. Another output than the metric's is QN_OK and changes nothing.
 * QN_ERR_ARGUMENT: the batch has no such column or not so many samples; QN_ERR_SHAPE: not one label
 * for each row of logits; QN_ERR_FORMAT: a label is no class. Nothing is counted then. */
QN_API qn_status qn_metric_update(qn_metric *metric, const char *output, int64_t first,
                                  int64_t count, const void *rows, const qn_batch *batch);

/* The figure over all updates since qn_metric_create or qn_metric_reset, and of how many labels it
 * is; NAN and 0 without any. */
QN_API double qn_metric_result(const qn_metric *metric);
QN_API int64_t qn_metric_count(const qn_metric *metric);
/* Of confusion and mean IoU: (classes, classes) labels by class (row) and largest logit (column),
 * borrowed; `classes` may be NULL. NULL for other kinds. */
QN_API const int64_t *qn_metric_confusion(const qn_metric *metric, int64_t *classes);
/* Forgets all updates. */
QN_API void qn_metric_reset(qn_metric *metric);

/* What was counted so far, for the qn_metric_join of a metric of the same params, in this process
 * or in one of a machine with the same byte order: *bytes bytes, borrowed until the next call with
 * this metric. NULL for a metric or `bytes` that is NULL. */
QN_API const void *qn_metric_state(const qn_metric *metric, int64_t *bytes);
/* Counts all that another metric has counted, by its state. Counts are whole numbers and sums are
 * rounded once, by qn_metric_result: however updates are ordered, and dealt out among metrics that
 * are joined, the figure has the same bits. QN_ERR_ARGUMENT: not so many bytes. */
QN_API qn_status qn_metric_join(qn_metric *metric, const void *state, int64_t bytes);

#ifdef __cplusplus
}
#endif
#endif
