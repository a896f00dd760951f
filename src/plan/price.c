/* SPDX-License-Identifier: MIT
 *
 * Calls without addresses, the choice of a kernel variant, and what a task costs.
 */
#include "base/log.h"
#include "base/shape.h"
#include "plan/problem.h"

#include <stdio.h>
#include <string.h>

/* Beta of a write: within a micro-step the lowering knows; accumulators of the cycle are written
 * anew by their first write in the first micro-step only. */
static float beta_of(const struct qn_value *value, const struct qn_output_use *write, bool first)
{
    bool add = write->accumulates || (value->life == QN_LIFE_CYCLE && !first);
    return add ? 1.0f : 0.0f;
}

static void copy_operands(struct qn_operand *to, const struct qn_operand *from, int count)
{
    memcpy(to, from, (size_t)count * sizeof *to);
}

/* The shapes of everything that the node has. */
static void fill_shapes(const struct qn_problem *problem, const struct qn_node *node, int n,
                        struct qn_call *call)
{
    const struct qn_shape_call *shapes = &problem->shapes.calls[n];
    copy_operands(call->in, shapes->in, QN_MAX_IN);
    copy_operands(call->out, shapes->out, QN_MAX_OUT);
    copy_operands(call->dout, shapes->out, QN_MAX_OUT);
    copy_operands(call->saved, shapes->saved, QN_MAX_SAVED);
    copy_operands(call->temp, shapes->temp, QN_MAX_TEMP);
    copy_operands(call->state, shapes->state, QN_MAX_STATE);
    copy_operands(call->gather, shapes->gather, QN_MAX_STATE);
    for (int i = 0; i < node->op->n_in; i++)
        if (node->in[i] && problem->wanted[node->in[i]] && !(node->op->no_gradient >> i & 1u))
            call->din[i] = shapes->in[i];
}

/* Of a read with an alternative only the chosen operand is there; add_reads put it in the task. */
static void drop_alternatives(const struct qn_group *group, struct qn_call *call)
{
    for (int i = 0; i < QN_MAX_READS && group->read[i].ref.kind; i++)
        if (group->read[i].or_.kind) {
            *qn_call_operand(call, group->read[i].ref) = (struct qn_operand){0};
            *qn_call_operand(call, group->read[i].or_) = (struct qn_operand){0};
        }
}

void qn_task_call(const struct qn_problem *problem, const struct qn_task *task, bool first,
                  struct qn_call *call)
{
    *call = (struct qn_call){.op = task->op,
                             .attr = task->attr,
                             .facts = problem->facts,
                             .name = task->name,
                             .node = (uint32_t)task->node,
                             .batch = problem->batch};
    call->control = problem->values[problem->persist->control].operand;
    if (task->node >= 0 && task->kind == QN_TASK_GROUP) {
        fill_shapes(problem, &problem->persist->graph->nodes[task->node], task->node, call);
        drop_alternatives(task->group, call);
    }
    for (int i = 0; i < task->n_reads; i++)
        *qn_call_operand(call, task->reads[i].ref) = task->reads[i].operand;
    for (int i = 0; i < task->n_writes; i++) {
        const struct qn_output_use *write = &task->writes[i];
        const struct qn_value *value = &problem->values[write->value];
        *qn_call_operand(call, write->ref) = write->operand;
        if (write->ref.kind == QN_REF_DIN)
            call->beta_in[write->ref.index] = beta_of(value, write, first);
        if (write->ref.kind == QN_REF_GATHER)
            call->beta_gather[write->ref.index] = beta_of(value, write, first);
    }
    if (task->scratch)
        qn_shape_set(&call->scratch, QN_F32, 1,
                     &(int64_t){qn_div_up(task->scratch, (int64_t)sizeof(float))});
}

/* Whether "op=variant" stands in the list of wishes. */
static bool wished(const char *wishes, const char *op, const char *variant)
{
    char wanted[96];
    int length = snprintf(wanted, sizeof wanted, "%s=%s", op, variant);
    for (const char *at = wishes; at && *at;) {
        size_t word = strcspn(at, ",");
        if (word == (size_t)length && strncmp(at, wanted, word) == 0)
            return true;
        at += word + (at[word] == ',');
    }
    return false;
}

static int choose_variant(const struct qn_lowering *how, const struct qn_task *task,
                          const struct qn_call *call)
{
    int chosen = -1;
    for (int v = 0; v < QN_MAX_VARIANTS && task->group->variant[v].name; v++) {
        const struct qn_variant *variant = &task->group->variant[v];
        const char *why = NULL;
        if (variant->fits && !variant->fits(call, &why))
            continue;
        if (wished(how->params->variants, task->op->name, variant->name))
            return v;
        if (chosen < 0)
            chosen = v;
    }
    return chosen;
}

static double seconds_of(const struct qn_facts *facts, const struct qn_cost *cost)
{
    double compute = cost->flops / facts->flops, move = cost->bytes / facts->bytes_per_second;
    return (compute > move ? compute : move) + cost->launches * facts->launch_seconds;
}

qn_status qn_task_price(const struct qn_lowering *how, const struct qn_problem *problem,
                        struct qn_task *task)
{
    if (task->kind != QN_TASK_GROUP) {
        task->seconds = (double)problem
                            ->values[task->kind == QN_TASK_UPLOAD ? task->writes[0].value
                                                                  : task->reads[0].value]
                            .bytes /
                        how->facts->bytes_per_second;
        return QN_OK;
    }
    struct qn_call call;
    qn_task_call(problem, task, true, &call);
    task->variant = choose_variant(how, task, &call);
    if (task->variant < 0)
        return qn_fail(how->log, QN_ERR_DEVICE, "%s: no kernel variant of %s (%s) fits the device",
                       task->name, task->op->name, task->group->name);
    struct qn_cost cost = {0};
    task->group->variant[task->variant].cost(&call, &cost);
    bool too_large = cost.scratch < 0 || cost.scratch > how->facts->max_alloc_bytes;
    if (too_large && how->too_large)
        *how->too_large = true;
    if (too_large)
        return qn_fail(how->log, QN_ERR_MEMORY,
                       "%s: its scratch is more than the largest allocation", task->name);
    task->scratch = cost.scratch;
    task->flops = cost.flops;
    task->bytes = cost.bytes;
    task->seconds = seconds_of(how->facts, &cost);
    if (cost.blas[0] && how->facts->blas_temp_bytes)
        task->blas_temp = how->facts->blas_temp_bytes(how->facts->blas_device, cost.blas[0],
                                                      cost.blas[1], cost.blas[2]);
    return QN_OK;
}
