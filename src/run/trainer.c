/* SPDX-License-Identifier: MIT */
#include "run/trainer.h"

#include "base/log.h"
#include "base/shape.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

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

/* Samples that one repetition of a run over the graph sees at most. */
static int64_t most_samples(const struct qn_plan *plan, int graph)
{
    int64_t most = 0;
    for (int r = 0; r < plan->runs.n_runs; r++) {
        const struct qn_run_of *run = &plan->runs.run[r];
        const int64_t samples = run->whole ? qn_largest_cycle(&plan->params)
                                           : qn_run_samples(run, plan->info.micro_batch);
        if (run->graph == graph && samples > most)
            most = samples;
    }
    return most;
}

/* Gives the number of inputs, -1 when out of memory. */
static int lay_inputs(struct qn_trainer *trainer, int number)
{
    const qn_graph *graph = trainer->plan->graphs[number];
    const int64_t samples = most_samples(trainer->plan, number);
    int64_t *at = qn_arena_new(&trainer->plan_arena, int64_t, (size_t)graph->n_nodes + 1);
    int64_t end = 0;
    int inputs = 0;
    for (int n = 0; at && n < graph->n_nodes; n++) {
        if (graph->nodes[n].kind != QN_NODE_INPUT)
            continue;
        inputs++;
        at[n] = end;
        end += qn_round_up(qn_mul(input_row(&graph->nodes[n]), samples), 64);
    }
    trainer->input_at[number] = at;
    trainer->stage_bytes = end > trainer->stage_bytes ? end : trainer->stage_bytes;
    return at ? inputs : -1;
}

static int64_t largest_output(const struct qn_plan *plan)
{
    int64_t largest = 1;
    for (int g = 0; g < plan->n_graphs; g++)
        for (int i = 0; i < plan->graphs[g]->n_outputs; i++) {
            const qn_graph *graph = plan->graphs[g];
            struct qn_operand operand;
            qn_operand_at(&graph->tensors[graph->outputs[i].tensor].symbolic, most_samples(plan, g),
                          &operand);
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
    const size_t parking = most_parking(&trainer->plan->program);
    bool complete = open_parked(trainer);
    size_t inputs = 0;
    for (int g = 0; complete && g < trainer->plan->n_graphs; g++) {
        const int own = lay_inputs(trainer, g);
        complete = own >= 0;
        inputs = complete && (size_t)own > inputs ? (size_t)own : inputs;
    }
    for (int i = 0; complete && i < QN_STAGES; i++) {
        struct qn_stage *stage = &trainer->stages[i];
        stage->rows = qn_arena_alloc(arena, (size_t)trainer->stage_bytes + 64, 1);
        stage->transfers = qn_arena_new(arena, struct qn_transfer, inputs + 1);
        stage->parking = qn_arena_new(arena, struct qn_transfer, parking + 1);
        complete &= stage->rows && stage->transfers && stage->parking;
    }
    trainer->results = qn_arena_alloc(arena, (size_t)largest_output(trainer->plan), 1);
    trainer->begun = qn_arena_new(arena, bool, (size_t)trainer->plan->persist.n_parameters + 1);
    if (!complete || !trainer->results || !trainer->begun)
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
    QN_TRY(qn_noise_open(trainer));
    QN_TRY(qn_cells_open(trainer));
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
    QN_REQUIRE(NULL, out && device && plan);
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
        qn_noise_collect(t, &t->records[i]);
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
        qn_transfer_wait(t->device, &t->records[i].write);
        qn_transfer_wait(t->device, &t->records[i].read);
        qn_norms_wait(t, &t->records[i]);
    }
    qn_trainer_close_plan(t);
    qn_plan_destroy(&t->own);
    qn_arena_free(&t->arena);
    free(t->covered);
    free(t);
    *trainer = NULL;
}

/* --- tensors by name --- */

static bool name_state(const struct qn_persist *persist, const struct qn_node *node, int *index,
                       char text[128], struct qn_named *named)
{
    for (int i = 0; i < persist->n_moving; i++) {
        const struct qn_moving *moving = &persist->moving[i];
        if (moving->node != node || moving->value < 0 || (*index)-- > 0)
            continue;
        snprintf(text, 128, "%s.%s", node->name, node->op->state[moving->index].name);
        const struct qn_operand *operand = &persist->values[moving->value].operand;
        *named = (struct qn_named){text, moving->value, operand->dtype, operand->shape};
        return true;
    }
    return false;
}

static bool name_node(const struct qn_trainer *trainer, const struct qn_bound *bound, int n,
                      int *index, char text[128], struct qn_named *named)
{
    const struct qn_persist *persist = &trainer->plan->persist;
    const struct qn_node *node = &bound->graph->nodes[n];
    if (node->kind == QN_NODE_OPERATOR)
        return name_state(persist, node, index, text, named);
    if (bound->parameter[n] < 0 || persist->parameters[bound->parameter[n]].node != node ||
        (*index)-- > 0)
        return false;
    const int value = persist->parameters[bound->parameter[n]].value;
    *named = (struct qn_named){node->name, value, qn_trainer_tensor_type(trainer, value),
                               node->leaf.shape};
    return true;
}

bool qn_trainer_named(const struct qn_trainer *trainer, int index, char text[128],
                      struct qn_named *named)
{
    const struct qn_persist *persist = &trainer->plan->persist;
    for (int g = 0; g < persist->n_graphs; g++)
        for (int n = 0; n < persist->graphs[g].graph->n_nodes; n++)
            if (name_node(trainer, &persist->graphs[g], n, &index, text, named))
                return true;
    return false;
}
