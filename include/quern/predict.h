/* SPDX-License-Identifier: MIT
 *
 * Using what was trained: forward passes of a graph that has no loss, with weights from a file, in
 * a plan of their own without gradients and optimizer.
 *
 *     const qn_model_data data = {..., .predict = true};
 *     qn_model_build(graph, "resnet", &data, options, n_options);
 *     qn_predictor_open(&predictor, device, &(qn_predictor_params){.graph = graph, .weights = dir},
 *                       NULL);
 *     qn_predictor_run(predictor, count, qn_batch_fetch, take_logits, &batch);
 */
#ifndef QUERN_PREDICT_H
#define QUERN_PREDICT_H

#include <quern/train.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A network on a device.
 * Thread-safety: Unsafe. Lifetime: until qn_predictor_close; the device must outlive it. */
typedef struct qn_predictor qn_predictor;

typedef struct qn_predictor_params {
    qn_log log;
    const qn_graph
        *graph;          /* its outputs are the predictions; borrowed until qn_predictor_close. One
                            with a loss has its evaluation's outputs, and needs labels for them */
    const char *weights; /* a safetensors file, or the folder of a training or a checkpoint; NULL:
                            parameters stay random until they are loaded into
                            qn_predictor_trainer */
    const qn_weights_params *how; /* of the file: names, layout; NULL: as it was saved */
    /* Budget, micro-batch, tuning, variants and cache folder are taken, the rest as zero. As many
     * as batch[0] samples (0: 64) go through the network at a time or, where the budget wants it,
     * fewer. NULL: all default. */
    const qn_plan_params *plan;
} qn_predictor_params;

/* Makes the plan, opens a trainer of it and loads the weights. Errors and *smallest (may be NULL)
 * as of qn_plan_create_runs, qn_trainer_open, qn_checkpoint_open and qn_trainer_load_weights. */
QN_API qn_status qn_predictor_open(qn_predictor **predictor, qn_device *device,
                                   const qn_predictor_params *params, int64_t *smallest);
/* Closes and sets to NULL; accepts a pointer to NULL. */
QN_API void qn_predictor_close(qn_predictor **predictor);

/* The outputs for `samples` samples: inputs come from `fetch`, outputs go to `result`, with `user`
 * each, as of qn_trainer_evaluate. Waits. */
QN_API qn_status qn_predictor_run(qn_predictor *predictor, int64_t samples, qn_fetch_fn fetch,
                                  qn_result_fn result, void *user);

/* The plan that runs, and what holds the parameters; both borrowed. */
QN_API const qn_plan *qn_predictor_plan(const qn_predictor *predictor);
QN_API qn_trainer *qn_predictor_trainer(qn_predictor *predictor);

#ifdef __cplusplus
}
#endif
#endif
