/* SPDX-License-Identifier: MIT
 *
 * A program of one run, the evaluation of a graph.
 */
#include "base/log.h"
#include "io/names.h"

#include <quern/predict.h>
#include <stdlib.h>

enum { AT_ONCE = 64 };

static const char RUN[] = "predict";

struct qn_predictor {
    qn_log log;
    qn_plan *plan;
    qn_trainer *trainer;
};

static qn_status make_plan(struct qn_predictor *p, const qn_device *device,
                           const qn_predictor_params *params, int64_t *smallest)
{
    const qn_run run = {.name = RUN, .graph = params->graph, .what = QN_RUN_EVALUATE};
    const qn_run_list list = {.runs = &run, .n_runs = 1};
    const qn_plan_params *asked = params->plan;
    qn_plan_params plan = {.batch = {AT_ONCE}};
    if (asked) {
        plan.budget = asked->budget;
        plan.micro_batch = asked->micro_batch;
        plan.tuning = asked->tuning;
        plan.variants = asked->variants;
        plan.cache_dir = asked->cache_dir;
        plan.batch[0] = asked->batch[0] ? asked->batch[0] : AT_ONCE;
    }
    return qn_plan_create_runs(&p->plan, &list, qn_device_facts(device), &plan, smallest);
}

static qn_status load(const struct qn_predictor *p, const qn_predictor_params *params)
{
    qn_checkpoint *checkpoint = NULL;
    const char *path = params->weights;
    if (!path)
        return QN_OK;
    if (qn_is_folder(path)) {
        QN_TRY(qn_checkpoint_open(&checkpoint, path, &p->log));
        path = qn_checkpoint_describe(checkpoint)->weights;
    }
    const qn_status status = qn_trainer_load_weights(p->trainer, path, params->how);
    qn_checkpoint_close(&checkpoint);
    return status;
}

static qn_status open_all(struct qn_predictor *p, qn_device *device,
                          const qn_predictor_params *params, int64_t *smallest)
{
    QN_TRY(make_plan(p, device, params, smallest));
    QN_TRY(qn_trainer_open(&p->trainer, device, p->plan, NULL));
    return load(p, params);
}

qn_status qn_predictor_open(qn_predictor **predictor, qn_device *device,
                            const qn_predictor_params *params, int64_t *smallest)
{
    if (smallest)
        *smallest = 0;
    if (predictor)
        *predictor = NULL;
    QN_REQUIRE(NULL, predictor && device && params);
    QN_REQUIRE(&params->log, params->graph);
    struct qn_predictor *p = calloc(1, sizeof *p);
    if (!p)
        return qn_fail(&params->log, QN_ERR_MEMORY, "predictor: out of host memory");
    p->log = params->log;
    const qn_status status = open_all(p, device, params, smallest);
    if (status != QN_OK)
        qn_predictor_close(&p);
    *predictor = p;
    return status;
}

void qn_predictor_close(qn_predictor **predictor)
{
    struct qn_predictor *p = predictor ? *predictor : NULL;
    if (!p)
        return;
    qn_trainer_close(&p->trainer);
    qn_plan_destroy(&p->plan);
    free(p);
    *predictor = NULL;
}

qn_status qn_predictor_run(qn_predictor *predictor, int64_t samples, qn_fetch_fn fetch,
                           qn_result_fn result, void *user)
{
    QN_REQUIRE(NULL, predictor);
    return qn_trainer_evaluate_run(predictor->trainer, RUN, samples, fetch, result, user);
}

const qn_plan *qn_predictor_plan(const qn_predictor *predictor)
{
    return predictor ? predictor->plan : NULL;
}

qn_trainer *qn_predictor_trainer(qn_predictor *predictor)
{
    return predictor ? predictor->trainer : NULL;
}
