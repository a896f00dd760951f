/* SPDX-License-Identifier: MIT
 *
 * The hash of a plan: what the model computes, how it is trained, and which steps run where. Two
 * plans with one hash give the same bits from the same data.
 */
#include "base/text.h"
#include "op/optimizer.h"
#include "plan/plan.h"
#include "plan/cost/tuning.h"

#include <string.h>

static void add_text(uint64_t *hash, const char *text)
{
    *hash = qn_hash(*hash, text, strlen(text) + 1);
}

/* Adds an integer of any type as 64 bits. */
static void add_number(uint64_t *hash, int64_t number)
{
    *hash = qn_hash(*hash, &number, sizeof number);
}

/* --- the model --- */

static void add_leaf(uint64_t *hash, const struct qn_node *node)
{
    const struct qn_shape *shape = &node->leaf.shape;
    add_number(hash, node->leaf.dtype);
    add_number(hash, node->frozen);
    *hash = qn_hash(*hash, &node->rate, sizeof node->rate);
    *hash = qn_hash(*hash, &node->decay, sizeof node->decay);
    add_number(hash, shape->rank);
    *hash = qn_hash(*hash, shape->dim, (size_t)shape->rank * sizeof *shape->dim);
    if (node->kind == QN_NODE_CONSTANT)
        *hash = qn_hash(*hash, node->values, (size_t)qn_operand_bytes(&node->leaf));
}

static void add_node(uint64_t *hash, const struct qn_node *node)
{
    add_text(hash, node->name);
    add_number(hash, node->kind);
    if (node->kind != QN_NODE_OPERATOR) {
        add_leaf(hash, node);
        return;
    }
    add_text(hash, node->op->name);
    *hash = qn_hash(*hash, node->in, sizeof node->in);
    *hash = qn_hash(*hash, node->attr, (size_t)node->op->attr_size);
}

static void add_graph(uint64_t *hash, const struct qn_graph *graph)
{
    add_number(hash, graph->storage);
    for (int n = 0; n < graph->n_nodes; n++)
        add_node(hash, &graph->nodes[n]);
    for (int i = 0; i < graph->n_losses; i++) {
        const struct qn_graph_loss *loss = &graph->losses[i];
        add_number(hash, loss->node);
        add_number(hash, loss->reduction);
        *hash = qn_hash(*hash, &loss->coefficient, sizeof loss->coefficient);
    }
    for (int i = 0; i < graph->n_outputs; i++) {
        add_text(hash, graph->outputs[i].name);
        add_number(hash, graph->outputs[i].tensor);
    }
}

static void add_optimizer_settings(uint64_t *hash, const struct qn_plan *plan)
{
    const struct qn_optimizer_attr attr =
        qn_optimizer_settings(&plan->params.optimizer, plan->graphs[0]->storage == QN_F16);
    *hash = qn_hash(*hash, &attr, sizeof attr);
    if (plan->params.optimizer.no_master)
        add_text(hash, "no master");
    if (plan->params.optimizer.ema > 0)
        *hash = qn_hash(*hash, &plan->params.optimizer.ema, sizeof plan->params.optimizer.ema);
}

/* Only where there are any, so that other plans have the hash that they have had. */
static void add_norm_groups(uint64_t *hash, const struct qn_plan_params *params)
{
    if (params->norm_groups && *params->norm_groups)
        add_text(hash, params->norm_groups);
}

/* --- the steps --- */

static void add_step(uint64_t *hash, const struct qn_step *step, const struct qn_task *task)
{
    add_text(hash, task->name);
    if (task->group) {
        add_text(hash, task->op->name);
        add_text(hash, task->group->name);
        add_text(hash, task->group->variant[task->variant].name);
        add_text(hash, qn_setting_name(&task->group->variant[task->variant], task->setting));
    }
    *hash = qn_hash(*hash, step->read, (size_t)task->n_reads * sizeof *step->read);
    *hash = qn_hash(*hash, step->write, (size_t)task->n_writes * sizeof *step->write);
}

/* What backward runs add up comes from the last micro-step first: the bits of earlier versions of
 * the library, which began with the first, are not those of such a plan. */
static void add_phase(uint64_t *hash, const struct qn_phase_run *phase)
{
    const int run = phase->problem->run;
    if (run >= 0 && phase->problem->persist->runs.run[run].what == QN_RUN_BACKWARD)
        add_text(hash, "last micro-step first");
    for (int i = 0; i < phase->n_steps; i++)
        add_step(hash, &phase->steps[i], &phase->problem->tasks[phase->steps[i].task]);
    add_number(hash, phase->problem->batch);
}

static void add_program(uint64_t *hash, const struct qn_program *program)
{
    for (int p = 0; p < program->n_phases; p++)
        add_phase(hash, &program->phases[p]);
    for (int i = 0; i < program->n_storages; i++) {
        add_number(hash, program->storages[i].pool);
        add_number(hash, program->storages[i].offset);
        add_number(hash, program->storages[i].bytes);
        if (program->storages[i].host_bytes)
            add_number(hash, program->storages[i].host_bytes);
    }
    for (int i = 0; i < program->n_cycles; i++) {
        add_number(hash, program->cycles[i].batch);
        if (program->cycles[i].whole != program->cycles[i].batch)
            add_number(hash, program->cycles[i].whole);
        add_number(hash, program->cycles[i].micro_steps);
        add_number(hash, program->cycles[i].remainder);
    }
}

/* --- several runs --- */

/* Whether the runs are those of qn_plan_create: a training and perhaps its evaluation, no cells. */
static bool is_plain(const struct qn_run_set *runs)
{
    const struct qn_run_of *first = &runs->run[0], *second = &runs->run[1];
    return !runs->n_cells && first->what == QN_RUN_TRAIN && !first->whole &&
           (runs->n_runs == 1 || (runs->n_runs == 2 && second->what == QN_RUN_EVALUATE &&
                                  second->graph == 0 && !second->samples));
}

static void add_cell(uint64_t *hash, const struct qn_cell_of *cell)
{
    add_text(hash, cell->name);
    add_number(hash, cell->kind);
    add_number(hash, cell->gradient >= 0);
    add_number(hash, cell->operand.shape.dim[0]);
    *hash = qn_hash(*hash, &cell->first, sizeof cell->first);
    if (cell->start)
        add_number(hash, cell->start);
}

/* Adds the graphs and, unless the runs are plain, runs and cells. */
static void add_runs(uint64_t *hash, const struct qn_plan *plan)
{
    const struct qn_run_set *runs = &plan->runs;
    for (int g = 0; g < plan->n_graphs; g++)
        add_graph(hash, plan->graphs[g]);
    for (int r = 0; r < runs->n_runs && !is_plain(runs); r++) {
        add_number(hash, runs->run[r].graph);
        add_number(hash, runs->run[r].what);
        add_number(hash, runs->run[r].whole);
        add_number(hash, runs->run[r].pass);
        add_number(hash, runs->run[r].samples);
    }
    for (int c = 0; c < runs->n_cells; c++)
        add_cell(hash, &runs->cell[c]);
}

/* --- what a search depends on --- */

static void add_facts(uint64_t *hash, const struct qn_facts *facts)
{
    add_text(hash, facts->name);
#define FLAG(name) add_number(hash, facts->name);
#define INTEGER FLAG
#define BITS FLAG
#define NEWER FLAG
#define WHOLE FLAG
#define REAL(name) *hash = qn_hash(*hash, &facts->name, sizeof facts->name);
#define ADD(name, type, least, most) type(name)
    QN_FACTS_LIST(ADD)
#undef ADD
#undef REAL
#undef WHOLE
#undef NEWER
#undef BITS
#undef INTEGER
#undef FLAG
}

/* Without the budget, since a frontier is for all budgets, and without the tuning. */
static void add_params(uint64_t *hash, const struct qn_plan_params *params)
{
    const char *texts[] = {params->chosen, params->variants, params->optimizer.name};
    for (int i = 0; i < QN_MAX_BATCH_SIZES; i++)
        add_number(hash, params->batch[i]);
    add_number(hash, params->micro_batch);
    add_number(hash, params->recompute);
    add_number(hash, params->effort);
    add_number(hash, params->early_updates);
    add_number(hash, params->park);
    for (int i = 0; i < QN_MAX_BATCH_SIZES; i++)
        if (params->whole[i])
            add_number(hash, params->whole[i]);
    if (params->members > 1) {
        add_number(hash, params->members);
        add_number(hash, params->member);
    }
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        add_text(hash, texts[i] ? texts[i] : "");
}

static void add_wishes(uint64_t *hash, const struct qn_graph *graph)
{
    for (int n = 0; n < graph->n_nodes; n++)
        add_number(hash, graph->nodes[n].recompute);
}

uint64_t qn_plan_training(const struct qn_plan *plan)
{
    uint64_t hash = QN_HASH_START;
    add_runs(&hash, plan);
    for (int g = 0; g < plan->n_graphs; g++)
        add_wishes(&hash, plan->graphs[g]);
    add_optimizer_settings(&hash, plan);
    add_params(&hash, &plan->params);
    return hash;
}

uint64_t qn_plan_question(const struct qn_plan *plan)
{
    uint64_t hash = qn_plan_training(plan);
    add_norm_groups(&hash, &plan->params);
    add_facts(&hash, &plan->facts);
    add_text(&hash, plan->params.tuning ? plan->params.tuning : "");
    return hash;
}

uint64_t qn_plan_hash(const struct qn_plan *plan)
{
    uint64_t hash = QN_HASH_START;
    add_runs(&hash, plan);
    add_text(&hash, plan->info.optimizer);
    add_optimizer_settings(&hash, plan);
    add_norm_groups(&hash, &plan->params);
    add_program(&hash, &plan->program);
    return hash;
}
