/* SPDX-License-Identifier: MIT */
#include "run/trainer.h"

#include "base/log.h"
#include "base/shape.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

qn_status qn_trainer_check(struct qn_trainer *trainer, qn_status status)
{
    if (status == QN_ERR_DEVICE)
        trainer->failed = status;
    return status;
}

int64_t qn_trainer_updates(const qn_trainer *trainer)
{
    return trainer ? trainer->updates : 0;
}

const qn_plan *qn_trainer_plan(const qn_trainer *trainer)
{
    return trainer ? trainer->plan : NULL;
}

int64_t qn_trainer_bytes(const qn_trainer *trainer)
{
    return trainer && trainer->slab ? qn_slab_bytes(trainer->slab) : 0;
}

_Static_assert(QN_MAX_POOLS + 1 <= (int)QN_MAX_BUFFERS,
               "every pool and CLBlast's buffer need a place");

static qn_status open_slab(struct qn_trainer *trainer)
{
    const struct qn_plan *plan = trainer->plan;
    int64_t bytes[QN_MAX_BUFFERS] = {0};
    int count = plan->placement.n_pools;
    for (int i = 0; i < count; i++)
        bytes[i] = plan->placement.pool_bytes[i];
    trainer->blas_buffer = plan->program.blas_temp ? count : -1;
    if (plan->program.blas_temp)
        bytes[count++] = plan->program.blas_temp;
    return qn_slab_open(&trainer->slab, trainer->device, bytes, count);
}

/* --- host memory for transfers --- */

static int64_t input_row(const struct qn_node *node)
{
    struct qn_operand one;
    qn_operand_at(&node->leaf, 1, &one);
    return qn_operand_bytes(&one);
}

static int lay_inputs(struct qn_trainer *trainer)
{
    const qn_graph *graph = trainer->plan->graph;
    int inputs = 0;
    for (int n = 0; n < graph->n_nodes; n++) {
        if (graph->nodes[n].kind != QN_NODE_INPUT)
            continue;
        inputs++;
        trainer->input_at[n] = trainer->stage_bytes;
        trainer->stage_bytes +=
            qn_round_up(qn_mul(input_row(&graph->nodes[n]), trainer->plan->info.micro_batch), 64);
    }
    return inputs;
}

static int64_t largest_output(const struct qn_plan *plan)
{
    int64_t largest = 1;
    for (int i = 0; i < plan->graph->n_outputs; i++) {
        struct qn_operand operand;
        qn_operand_at(&plan->graph->tensors[plan->graph->outputs[i].tensor].symbolic,
                      plan->info.micro_batch, &operand);
        int64_t bytes = qn_operand_bytes(&operand);
        largest = bytes > largest ? bytes : largest;
    }
    return largest;
}

/* Transfers of the phase that parks most. */
static size_t most_parking(const struct qn_program *program)
{
    size_t most = 0;
    for (int p = 0; p < program->n_phases; p++) {
        const struct qn_phase_run *phase = &program->phases[p];
        size_t count = 0;
        for (int i = 0; i < phase->n_steps; i++)
            count += qn_task_parks(&phase->problem->tasks[phase->steps[i].task]);
        most = count > most ? count : most;
    }
    return most;
}

/* Ordinary memory of the process, for what is parked. Where a driver copies only to and from pages
 * that it has locked at full speed, a buffer of CL_MEM_ALLOC_HOST_PTR that stays mapped would give
 * such pages; it would count as a buffer, though it takes nothing of the device. */
static bool open_parked(struct qn_trainer *trainer)
{
    const size_t bytes = (size_t)trainer->plan->program.host_bytes;
    trainer->parked = bytes ? qn_arena_alloc(&trainer->plan_arena, bytes, 1) : NULL;
    return !bytes || trainer->parked;
}

static qn_status open_stages(struct qn_trainer *trainer)
{
    struct qn_arena *arena = &trainer->plan_arena;
    trainer->input_at = qn_arena_new(arena, int64_t, (size_t)trainer->plan->graph->n_nodes + 1);
    if (!trainer->input_at)
        return qn_fail(&trainer->log, QN_ERR_MEMORY, "trainer: out of host memory");
    const size_t inputs = (size_t)lay_inputs(trainer);
    const size_t parking = most_parking(&trainer->plan->program);
    bool complete = open_parked(trainer);
    for (int i = 0; i < QN_STAGES; i++) {
        struct qn_stage *stage = &trainer->stages[i];
        stage->rows = qn_arena_alloc(arena, (size_t)trainer->stage_bytes + 64, 1);
        stage->transfers = qn_arena_new(arena, struct qn_transfer, inputs + 1);
        stage->parking = qn_arena_new(arena, struct qn_transfer, parking + 1);
        complete &= stage->rows && stage->transfers && stage->parking;
    }
    trainer->results = qn_arena_alloc(arena, (size_t)largest_output(trainer->plan), 1);
    if (!complete || !trainer->results)
        return qn_fail(&trainer->log, QN_ERR_MEMORY, "trainer: out of host memory");
    return QN_OK;
}

/* Under the debug mode nothing may rest on memory that happens to be zero. */
static qn_status poison_everything(struct qn_trainer *trainer)
{
    for (int i = 0; i < trainer->plan->placement.n_pools; i++)
        QN_TRY(
            qn_slab_fill(trainer->slab, i, 0, trainer->plan->placement.pool_bytes[i], 0x7fc00000u));
    return QN_OK;
}

static qn_status keep_names(struct qn_trainer *trainer)
{
    char text[128];
    struct qn_named named;
    int count = 0;
    while (qn_trainer_named(trainer, count, text, &named))
        count++;
    trainer->tensor_names = qn_arena_new(&trainer->arena, const char *, (size_t)count + 1);
    bool complete = trainer->tensor_names != NULL;
    for (int i = 0; complete && qn_trainer_named(trainer, i, text, &named); i++) {
        trainer->tensor_names[i] = qn_arena_strdup(&trainer->arena, named.name);
        complete = trainer->tensor_names[i] != NULL;
    }
    return complete ? QN_OK : qn_fail(&trainer->log, QN_ERR_MEMORY, "trainer: out of host memory");
}

qn_status qn_trainer_open_plan(struct qn_trainer *trainer)
{
    QN_TRY(open_slab(trainer));
    QN_TRY(open_stages(trainer));
    if (trainer->params.poison)
        QN_TRY(poison_everything(trainer));
    return qn_trainer_record(trainer);
}

static qn_status open_all(struct qn_trainer *trainer)
{
    const double decay = trainer->params.weight_decay, clip = trainer->params.clip;
    QN_REQUIRE(&trainer->log, decay >= 0 && isfinite(decay));
    QN_REQUIRE(&trainer->log, clip >= 0);
    if (trainer->plan->persist.early && clip > 0)
        return qn_fail(&trainer->log, QN_ERR_ARGUMENT,
                       "trainer: clip waits for the whole gradient, and early_updates do not");
    QN_TRY(keep_names(trainer));
    QN_TRY(qn_trainer_open_plan(trainer));
    return qn_trainer_initialise(trainer);
}

qn_status qn_trainer_open(qn_trainer **out, qn_device *device, const qn_plan *plan,
                          const qn_trainer_params *params)
{
    if (out)
        *out = NULL;
    if (!out || !device || !plan)
        return QN_ERR_ARGUMENT;
    struct qn_trainer *trainer = calloc(1, sizeof *trainer);
    if (!trainer)
        return qn_fail(&plan->log, QN_ERR_MEMORY, "trainer: out of host memory");
    trainer->device = device;
    trainer->plan = plan;
    trainer->log = plan->log;
    if (params)
        trainer->params = *params;
    qn_status status = open_all(trainer);
    if (status != QN_OK)
        qn_trainer_close(&trainer);
    *out = trainer;
    return status;
}

void qn_trainer_close_plan(struct qn_trainer *t)
{
    for (int i = 0; i < QN_STAGES; i++) {
        qn_stage_wait(t, &t->stages[i]);
        t->stages[i] = (struct qn_stage){0};
    }
    for (int p = 0; p < QN_MAX_PHASES; p++)
        qn_recording_close(&t->phases[p].recording);
    qn_slab_close(&t->slab);
    qn_arena_free(&t->plan_arena);
    t->stage_bytes = 0;
}

void qn_trainer_close(qn_trainer **trainer)
{
    if (!trainer || !*trainer)
        return;
    struct qn_trainer *t = *trainer;
    for (int i = 0; i < QN_STAGES; i++) {
        qn_transfer_wait(t->device, &t->slots[i].write);
        qn_transfer_wait(t->device, &t->slots[i].read);
    }
    qn_trainer_close_plan(t);
    qn_plan_destroy(&t->own);
    qn_arena_free(&t->arena);
    free(t);
    *trainer = NULL;
}

/* --- tensors by name --- */

static bool state_named(const struct qn_trainer *trainer, int n, int i, char text[128],
                        struct qn_named *named)
{
    const struct qn_node *node = &trainer->plan->graph->nodes[n];
    int value = trainer->plan->persist.state[n][i];
    if (value < 0)
        return false;
    snprintf(text, 128, "%s.%s", node->name, node->op->state[i].name);
    *named = (struct qn_named){text, value, trainer->plan->persist.values[value].operand.shape};
    return true;
}

bool qn_trainer_named(const struct qn_trainer *trainer, int index, char text[128],
                      struct qn_named *named)
{
    const struct qn_persist *persist = &trainer->plan->persist;
    for (int n = 0; n < persist->graph->n_nodes; n++) {
        const struct qn_node *node = &persist->graph->nodes[n];
        if (node->kind == QN_NODE_PARAMETER && index-- == 0) {
            *named = (struct qn_named){node->name, persist->leaf[n], node->leaf.shape};
            return true;
        }
        for (int i = 0; node->kind == QN_NODE_OPERATOR && i < QN_MAX_STATE; i++)
            if (persist->state[n][i] >= 0 && index-- == 0)
                return state_named(trainer, n, i, text, named);
    }
    return false;
}
