/* SPDX-License-Identifier: MIT
 *
 * Which variants of a plan the device cannot launch: kernels are built and bound, none runs.
 */
#include <quern/tune.h>

#include "base/log.h"
#include "base/shape.h"
#include "cl/device.h"
#include "cl/recording.h"
#include "op/blas.h"
#include "tune/store.h"
#include "tune/tasks.h"
#include "tune/trial.h"

/* One buffer, untouched, stands for every operand. */
struct probe {
    qn_device *device;
    struct qn_tuning tuning;
    struct qn_tune_tasks tasks;
    struct qn_slab *slab;
    int refused;
};

static void place(struct qn_operand *operand, int64_t *most)
{
    const int64_t bytes = qn_present(operand) ? qn_operand_bytes(operand) : 0;
    operand->buffer = 0;
    operand->offset = 0;
    *most = bytes > *most ? bytes : *most;
}

/* The call of a task with all operands at offset 0 of the one buffer; gives the bytes that the
 * buffer needs: the largest operand, scratch or CLBlast's temporary buffer. */
static int64_t call_of(const struct probe *p, const struct qn_tune_task *what, struct qn_call *call)
{
    const struct qn_task *task = what->task;
    struct qn_cost cost = {0};
    int64_t most = 0;
    qn_task_call(what->problem, task, true, call);
    call->facts = qn_device_facts(p->device);
    for (int i = 0; i < task->n_reads; i++)
        place(qn_call_operand(call, task->reads[i].ref), &most);
    for (int i = 0; i < task->n_writes; i++)
        place(qn_call_operand(call, task->writes[i].ref), &most);
    place(&call->control, &most);
    task->group->variant[task->variant].cost(call, &cost);
    call->scratch = (struct qn_operand){0};
    if (cost.scratch > 0)
        qn_shape_set(&call->scratch, QN_F32, 1, &(int64_t){qn_div_up(cost.scratch, 4)});
    place(&call->scratch, &most);
    const int64_t blas =
        cost.blas[0] ? qn_blas_bytes(call->facts, cost.blas[0], cost.blas[1], cost.blas[2]) : 0;
    return blas > most ? blas : most;
}

static qn_status open_slab(struct probe *p)
{
    int64_t most = sizeof(float);
    for (int i = 0; i < p->tasks.count; i++) {
        struct qn_call call;
        const int64_t bytes = call_of(p, &p->tasks.list[i], &call);
        most = bytes > most ? bytes : most;
    }
    return qn_slab_open_untouched(&p->slab, p->device, &most, 1);
}

static qn_status record(const struct probe *p, const struct qn_tune_task *what)
{
    const struct qn_task *task = what->task;
    struct qn_recording *recording;
    struct qn_call call;
    call_of(p, what, &call);
    QN_TRY(qn_recording_open(&recording, p->slab));
    qn_recording_set_blas_buffer(recording, 0);
    const qn_status status =
        task->group->variant[task->variant].emit(qn_recording_emit(recording, task->name), &call);
    qn_recording_close(&recording);
    return status;
}

/* A variant that the table already refused is in the plan only if params.variants names it: then
 * QN_ERR_BUILD, unless another variant was refused now. */
static qn_status refuse(struct probe *p, const struct qn_task *task)
{
    const int before = p->tuning.n_tests;
    qn_trial_refuse(p->device, &p->tuning, task, task->variant, task->setting);
    p->refused += p->tuning.n_tests > before;
    return p->refused ? QN_OK : QN_ERR_BUILD;
}

static qn_status probe_all(struct probe *p)
{
    QN_TRY(open_slab(p));
    for (int i = 0; i < p->tasks.count; i++) {
        const qn_status status = record(p, &p->tasks.list[i]);
        QN_TRY(status == QN_ERR_BUILD ? refuse(p, p->tasks.list[i].task) : status);
    }
    return QN_OK;
}

qn_status qn_tune_probe(qn_device *device, const qn_plan *plan, const char *known, char **tuning,
                        int *refused)
{
    QN_REQUIRE(NULL, device);
    QN_REQUIRE(qn_device_log(device), plan && tuning && refused);
    struct probe probe = {.device = device};
    struct qn_arena arena = {0};
    *tuning = NULL;
    qn_status status = qn_tuning_open(&probe.tuning, device, known);
    if (status == QN_OK)
        status = qn_tune_tasks_of(plan, &arena, &probe.tasks) ? probe_all(&probe) : QN_ERR_MEMORY;
    if (status == QN_OK && !(*tuning = qn_tuning_text(&probe.tuning)))
        status = QN_ERR_MEMORY;
    *refused = probe.refused;
    if (probe.slab)
        qn_slab_close(&probe.slab);
    qn_tuning_free(&probe.tuning);
    qn_arena_free(&arena);
    return status;
}
