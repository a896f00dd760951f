/* SPDX-License-Identifier: MIT
 *
 * Calls without addresses, the choice of a kernel variant, and what a task costs.
 */
#include "plan/cost/price.h"

#include "base/log.h"
#include "base/shape.h"
#include "op/blas.h"
#include "plan/cost/seconds.h"
#include "plan/cost/tuning.h"

#include <stdio.h>
#include <string.h>

/* Beta of a write: 1 if it accumulates within its micro-step, or goes to an accumulator of the
 * cycle after the first micro-step; else 0. */
static float beta_of(const struct qn_value *value, const struct qn_output_use *write, bool first)
{
    bool add = write->accumulates || (value->life == QN_LIFE_CYCLE && !first);
    return add ? 1.0f : 0.0f;
}

static void copy_operands(struct qn_operand *to, const struct qn_operand *from, int count)
{
    memcpy(to, from, (size_t)count * sizeof *to);
}

/* Fills in the shape of every operand that node n has. */
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

/* Clears operands that the group may not read: both of two alternatives, those that qn_group_reads
 * excludes, and gradients of several outputs. qn_task_call sets again those that the task lists as
 * reads. */
static void drop_unread(const struct qn_group *group, struct qn_call *call)
{
    for (int i = 0; i < QN_MAX_READS && group->read[i].ref.kind; i++) {
        const struct qn_read *read = &group->read[i];
        const bool one_of_some = read->ref.kind == QN_REF_DOUT && call->op->n_out > 1;
        if (read->or_.kind || one_of_some || !qn_group_reads(group, call->attr, i))
            *qn_call_operand(call, read->ref) = (struct qn_operand){0};
        if (read->or_.kind)
            *qn_call_operand(call, read->or_) = (struct qn_operand){0};
    }
}

/* Clears the gradients that the group makes; qn_task_call sets again those that the task writes: a
 * group may be lowered to several tasks. */
static void drop_unwritten(const struct qn_group *group, struct qn_call *call)
{
    for (int i = 0; i < QN_MAX_WRITES && group->write[i].ref.kind; i++)
        if (group->write[i].ref.kind == QN_REF_DIN)
            call->din[group->write[i].ref.index] = (struct qn_operand){0};
}

/* The position of the ring that the tensor is; 0: it is none. */
static int slot_of(const struct qn_problem *problem, uint32_t tensor)
{
    const struct qn_run_set *runs = &problem->persist->runs;
    const uint32_t input = problem->bound->graph->tensors[tensor].node;
    for (int c = 0; c < runs->n_cells && tensor; c++)
        if (runs->cell[c].kind == QN_CELL_RING &&
            runs->cell[c].value == problem->bound->leaf[input])
            return runs->cell[c].slot;
    return 0;
}

static void fill_slots(const struct qn_problem *problem, const struct qn_node *node,
                       struct qn_call *call)
{
    for (int i = 0; i < node->op->n_in; i++)
        call->slot[i] = slot_of(problem, node->in[i]);
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
    qn_call_choose(call, &task->group->variant[task->variant], task->setting);
    call->control = problem->values[problem->persist->control].operand;
    if (task->node >= 0) {
        fill_shapes(problem, &problem->bound->graph->nodes[task->node], task->node, call);
        fill_slots(problem, &problem->bound->graph->nodes[task->node], call);
        drop_unread(task->group, call);
        drop_unwritten(task->group, call);
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

/* --- the choice of a variant --- */

/* A variant of a task's group with one of its settings. */
struct candidate {
    int variant, setting;
};

/* The setting that `wishes` asks for with "op=variant" or "op=variant:setting"; -1: no such wish.
 */
static int wished(const char *wishes, const char *op, const struct qn_variant *variant)
{
    char wanted[96];
    const size_t length = (size_t)snprintf(wanted, sizeof wanted, "%s=%s", op, variant->name);
    for (const char *at = wishes; at && *at;) {
        const size_t word = strcspn(at, ",");
        if (word >= length && strncmp(at, wanted, length) == 0) {
            char setting[64];
            snprintf(setting, sizeof setting, "%.*s", (int)(word - length), at + length);
            if (!*setting)
                return 0;
            if (*setting == ':' && qn_setting_index(variant, setting + 1) >= 0)
                return qn_setting_index(variant, setting + 1);
        }
        at += word + (at[word] == ',');
    }
    return -1;
}

static bool failed_its_test(const struct qn_tuning *tuning, const struct qn_task *task,
                            const struct qn_variant *variant, int setting)
{
    const struct qn_self_test like = {.op = task->op->name,
                                      .variant = variant->name,
                                      .setting = qn_setting_name(variant, setting),
                                      .storage = qn_dtype_name(qn_task_storage(task))};
    const struct qn_self_test *test = tuning ? qn_tuning_test(tuning, &like) : NULL;
    return test && *test->reason;
}

/* The choice of the tuning entry of the task's key at the nearest batch; false if there is none, or
 * if that choice does not fit or failed its self-test since. */
static bool tuned(const struct qn_lowering *how, const struct qn_problem *problem,
                  const struct qn_task *task, struct qn_call *call, struct candidate *chosen)
{
    char key[QN_TASK_KEY];
    const char *why;
    const struct qn_tuned *entry =
        how->tuning ? qn_tuning_find(how->tuning, qn_task_key(problem, task, key), problem->batch)
                    : NULL;
    for (int v = 0; entry && v < QN_MAX_VARIANTS && task->group->variant[v].name; v++) {
        const struct qn_variant *variant = &task->group->variant[v];
        if (strcmp(variant->name, entry->variant) != 0)
            continue;
        *chosen = (struct candidate){v, qn_setting_index(variant, entry->setting)};
        return chosen->setting >= 0 && qn_call_fits(call, variant, chosen->setting, &why) &&
               !failed_its_test(how->tuning, task, variant, chosen->setting);
    }
    return false;
}

/* The first setting at which the variant fits and has not failed its self-test; -1: there is none.
 * Another than the default is taken where the device cannot launch that: numbers that are wrong at
 * the default are held against all settings (qn_trial_fail). */
static int first_setting(const struct qn_lowering *how, const struct qn_task *task,
                         struct qn_call *call, const struct qn_variant *variant)
{
    const char *why;
    for (int s = 0; s < qn_setting_count(variant); s++)
        if (qn_call_fits(call, variant, s, &why) && !failed_its_test(how->tuning, task, variant, s))
            return s;
    return -1;
}

/* The variant wished for, else the tuned one, else the first that fits and has not failed its
 * self-test. */
static bool choose(const struct qn_lowering *how, const struct qn_problem *problem,
                   const struct qn_task *task, struct qn_call *call, struct candidate *chosen)
{
    const char *why;
    bool found = false;
    for (int v = 0; v < QN_MAX_VARIANTS && task->group->variant[v].name; v++) {
        const struct qn_variant *variant = &task->group->variant[v];
        const int wish = wished(how->params->variants, task->op->name, variant);
        if (wish >= 0 && qn_call_fits(call, variant, wish, &why)) {
            *chosen = (struct candidate){v, wish};
            return true;
        }
        const int setting = found || wish >= 0 ? -1 : first_setting(how, task, call, variant);
        if (setting >= 0) {
            *chosen = (struct candidate){v, setting};
            found = true;
        }
    }
    struct candidate better;
    if (tuned(how, problem, task, call, &better))
        *chosen = better;
    return found;
}

/* --- costs --- */

/* Seconds of a task are at most this: an estimate may divide by a rate near 0, and sums of seconds
 * and their products with bytes must stay finite. */
static const double MOST_SECONDS = 1e12;

static double bounded(double seconds)
{
    return seconds >= 0 && seconds <= MOST_SECONDS ? seconds : MOST_SECONDS;
}

static void set_seconds(const struct qn_lowering *how, const struct qn_problem *problem,
                        struct qn_task *task, const struct qn_cost *cost)
{
    const struct qn_variant *variant = &task->group->variant[task->variant];
    char key[QN_TASK_KEY];
    const struct qn_tuned like = {.task = qn_task_key(problem, task, key),
                                  .batch = problem->batch,
                                  .variant = variant->name,
                                  .setting = qn_setting_name(variant, task->setting)};
    const double guess = qn_seconds_guess(how->calibration, how->kept, problem->batch);
    const struct qn_seconds counted =
        qn_seconds_counted(how->tuning, how->facts, guess, &like, cost);
    task->measured = counted.measured;
    task->seconds = bounded(counted.seconds);
}

/* Seconds of a task that copies between host and device. Uploads and downloads are the same in
 * every plan: they are estimated, never measured. */
static void price_transfer(const struct qn_lowering *how, const struct qn_problem *problem,
                           struct qn_task *task)
{
    const bool arrives = task->kind == QN_TASK_UPLOAD || task->kind == QN_TASK_FETCH;
    const struct qn_value *value =
        &problem->values[arrives ? task->writes[0].value : task->reads[0].value];
    const double measured =
        how->tuning ? qn_seconds_transfer(&how->tuning->transfers, value->bytes, arrives) : 0;
    task->seconds = (double)value->bytes / how->facts->bytes_per_second;
    if (!qn_task_parks(task))
        return;
    task->measured = measured > 0;
    const double guess = qn_seconds_guess(how->calibration, how->kept, problem->batch);
    task->seconds =
        bounded(measured > 0 ? measured : guess * qn_seconds_parked(how->facts, value->bytes));
}

qn_status qn_task_price(const struct qn_lowering *how, const struct qn_problem *problem,
                        struct qn_task *task)
{
    if (task->kind != QN_TASK_GROUP) {
        price_transfer(how, problem, task);
        return QN_OK;
    }
    struct qn_call call;
    qn_task_call(problem, task, true, &call);
    struct candidate chosen = {0};
    if (!choose(how, problem, task, &call, &chosen))
        return qn_fail(how->log, QN_ERR_DEVICE, "%s: no kernel variant of %s (%s) fits the device",
                       task->name, task->op->name, task->group->name);
    task->variant = chosen.variant;
    task->setting = chosen.setting;
    const struct qn_variant *variant = &task->group->variant[task->variant];
    struct qn_cost cost = {0};
    qn_call_choose(&call, variant, task->setting);
    variant->cost(&call, &cost);
    bool too_large = cost.scratch < 0 || cost.scratch > how->facts->max_alloc_bytes;
    if (too_large && how->too_large)
        *how->too_large = true;
    if (too_large)
        return qn_fail(how->log, QN_ERR_MEMORY,
                       "%s: its scratch is more than the largest allocation", task->name);
    task->scratch = cost.scratch;
    task->flops = cost.flops;
    task->bytes = cost.bytes;
    task->launches = cost.launches;
    set_seconds(how, problem, task, &cost);
    if (cost.blas[0])
        task->blas_temp = qn_blas_bytes(how->facts, cost.blas[0], cost.blas[1], cost.blas[2]);
    return QN_OK;
}
