/* SPDX-License-Identifier: MIT
 *
 * Where the tensors of one name live in a plan, phase by phase, and why.
 */
#include "base/log.h"
#include "base/text.h"
#include "plan/plan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct explaining {
    const struct qn_plan *plan;
    const char *name;
    const struct qn_phase_run *phase;
    struct qn_text *text;
    int value; /* of the phase's problem */
};

static const struct qn_value *value_of(const struct explaining *e)
{
    return &e->phase->problem->values[e->value];
}

static bool is_persistent(const struct explaining *e)
{
    return value_of(e)->life != QN_LIFE_MICRO;
}

static const struct qn_task *task_at(const struct explaining *e, int step)
{
    return &e->phase->problem->tasks[e->phase->steps[step].task];
}

/* Whether a task that names `value` touches e->value: `value` is e->value, a part of it, or its
 * block. */
static bool is_value(const struct explaining *e, int value)
{
    const struct qn_problem *problem = e->phase->problem;
    return value == e->value || qn_value_root(problem, value) == e->value ||
           value == qn_value_root(problem, e->value);
}

/* Moves e->value to the next value on the device that is called e->name. */
static bool find_next(struct explaining *e)
{
    while (++e->value < e->phase->problem->n_values)
        if (strcmp(value_of(e)->name, e->name) == 0 && !value_of(e)->host_bytes)
            return true;
    return false;
}

/* "made in step 12, conv1: forward" */
static void add_step(const struct explaining *e, const char *what, int step)
{
    const struct qn_task *task = task_at(e, step);
    qn_text_add(e->text, "    %s step %d, %s: %s", what, step, task->name, qn_task_does(task));
}

static void add_place(const struct explaining *e, int storage, int64_t offset)
{
    const struct qn_storage *place = &e->plan->program.storages[storage];
    qn_text_add(e->text, "pool %d at byte %" PRId64, place->pool, place->offset + offset);
}

static void add_head(const struct explaining *e)
{
    char size[32];
    const struct qn_value *value = value_of(e);
    const struct qn_shape *shape = &value->operand.shape;
    qn_text_add(e->text, "%s, %s: %s", value->name, qn_tag_name(value->tag),
                qn_dtype_name(value->operand.dtype));
    for (int i = 0; i < shape->rank; i++)
        qn_text_add(e->text, "%s%" PRId64, i ? " x " : " ", shape->dim[i]);
    qn_text_add(e->text, ", %s\n", qn_size_text(value->bytes, size, sizeof size));
}

/* --- persistent values --- */

static void add_persistent(const struct explaining *e)
{
    const struct qn_value *value = value_of(e);
    const int root = qn_value_root(e->phase->problem, e->value);
    add_head(e);
    qn_text_add(e->text, "  ");
    add_place(e, e->plan->program.persistent[root], value->block_offset);
    qn_text_add(e->text, value->life == QN_LIFE_TRAINING
                             ? " during the whole run: every update goes on from it\n"
                             : " from its first sum to the update: micro-steps add to it\n");
}

/* --- values of a phase --- */

/* Name of the value whose bytes the write took over; NULL: it has bytes of its own. */
static const char *taken_from(const struct explaining *e, int step, int write)
{
    const struct qn_step *at = &e->phase->steps[step];
    const struct qn_task *task = task_at(e, step);
    for (int r = 0; r < task->n_reads; r++)
        if (task->reads[r].value == task->writes[write].in_place && at->read[r] == at->write[write])
            return e->phase->problem->values[task->reads[r].value].name;
    return NULL;
}

static bool is_at_peak(const struct explaining *e, int storage)
{
    const struct qn_program *program = &e->plan->program;
    return program->storages[storage].start <= program->peak_at &&
           program->storages[storage].end >= program->peak_at;
}

static void add_write(const struct explaining *e, int step, int write)
{
    const struct qn_step *at = &e->phase->steps[step];
    const bool fetched = task_at(e, step)->kind == QN_TASK_FETCH;
    const char *over = taken_from(e, step, write);
    add_step(e,
             value_of(e)->life == QN_LIFE_CYCLE ? "added to in"
             : is_persistent(e)                 ? "written in"
             : fetched                          ? "back from host memory in"
             : at->recomputed                   ? "made again in"
                                                : "made in",
             step);
    if (!is_persistent(e)) {
        qn_text_add(e->text, "; ");
        add_place(e, at->write[write], 0);
        qn_text_add(e->text, "%s%s%s", over ? ", in the place of " : "", over ? over : "",
                    is_at_peak(e, at->write[write]) ? ", there at the peak" : "");
    }
    if (at->recomputed || fetched)
        qn_text_add(e->text, "; costs %.3g ms", 1e3 * task_at(e, step)->seconds);
    qn_text_add(e->text, "\n");
}

/* Number of the write by which the step begins a life of the value; -1: it does not. */
static int begins(const struct explaining *e, int step)
{
    const struct qn_task *task = task_at(e, step);
    for (int w = 0; w < task->n_writes; w++)
        if (is_value(e, task->writes[w].value) && !task->writes[w].accumulates)
            return w;
    return -1;
}

static bool reads(const struct explaining *e, int step)
{
    const struct qn_task *task = task_at(e, step);
    for (int r = 0; r < task->n_reads; r++)
        if (is_value(e, task->reads[r].value))
            return true;
    return false;
}

static bool adds(const struct explaining *e, int step)
{
    const struct qn_task *task = task_at(e, step);
    for (int w = 0; w < task->n_writes; w++)
        if (is_value(e, task->writes[w].value) && task->writes[w].accumulates)
            return true;
    return false;
}

/* Of a kept micro-step: where the phase goes on with a value that the one before it has made. */
static void add_kept(const struct explaining *e)
{
    const struct qn_phase_run *before = &e->plan->program.phases[e->phase->before];
    struct explaining there = *e;
    there.phase = before;
    int made = before->n_steps - 1;
    while (made >= 0 && begins(&there, made) < 0)
        made--;
    if (made < 0 || is_persistent(e))
        return;
    const struct qn_task *task = task_at(&there, made);
    qn_text_add(e->text, "    kept since step %d of %s, %s: %s\n", made, before->name, task->name,
                qn_task_does(task));
}

/* Text on steps `from` and `to`, two uses of the value with no use in between: if the value was
 * kept, what making it again would cost; if not, how many bytes that left to others. */
static void add_gap(const struct explaining *e, int from, int to, bool kept)
{
    char size[32];
    const struct qn_problem *problem = e->phase->problem;
    if (to - from < 3 || is_persistent(e))
        return;
    const int producer = problem->producer ? problem->producer[e->value] : -1;
    qn_size_text(value_of(e)->bytes, size, sizeof size);
    qn_text_add(e->text, "      %s %d steps", kept ? "kept through" : "given up for",
                to - from - 1);
    if (!kept)
        qn_text_add(e->text, ": %s for others%s\n", size,
                    e->plan->params.recompute == QN_RECOMPUTE_AUTO ? "" : ", as was asked for");
    else if (producer >= 0 && qn_task_repeats(&problem->tasks[producer]))
        qn_text_add(e->text, ": %s; making it again would cost %.3g ms\n", size,
                    1e3 * problem->tasks[producer].seconds);
    else
        qn_text_add(e->text, ": %s; it cannot be made again\n", size);
}

static void add_uses(const struct explaining *e)
{
    for (int i = 0, last = -1; i < e->phase->n_steps; i++) {
        const int write = begins(e, i);
        const bool read = reads(e, i), added = adds(e, i);
        if (write < 0 && !read && !added)
            continue;
        if (last < 0 && e->phase->before >= 0 && write < 0)
            add_kept(e);
        if (last >= 0)
            add_gap(e, last, i, write < 0 || read || added);
        if (read || added) {
            add_step(e, added ? "added to in" : "used in", i);
            qn_text_add(e->text, "\n");
        }
        if (write >= 0)
            add_write(e, i, write);
        last = i;
    }
}

/* All uses of the values called e->name in a phase; NULL when out of memory. */
static char *phase_text(const struct explaining *of, const struct qn_phase_run *phase)
{
    struct qn_text text = {0};
    struct explaining e = *of;
    e.phase = phase;
    e.text = &text;
    e.value = -1;
    while (find_next(&e)) {
        struct qn_text uses = {0};
        struct explaining inner = e;
        inner.text = &uses;
        add_uses(&inner);
        if (uses.length) {
            qn_text_add(&text, "  ");
            add_head(&e);
            qn_text_add(&text, "%s", uses.bytes);
        }
        text.failed |= uses.failed;
        qn_text_free(&uses);
    }
    return qn_text_take(&text);
}

/* A phase with the same text as an earlier one refers to that one. */
static void add_phases(const struct explaining *e)
{
    const struct qn_program *program = &e->plan->program;
    char *texts[QN_MAX_PHASES] = {NULL};
    for (int p = 0; p < program->n_phases; p++) {
        int like = 0;
        texts[p] = phase_text(e, &program->phases[p]);
        e->text->failed |= !texts[p];
        if (!texts[p] || !*texts[p])
            continue;
        while (like < p && (!texts[like] || strcmp(texts[like], texts[p]) != 0))
            like++;
        qn_text_add(e->text, like < p ? "%s: as in %s\n" : "%s:\n%s", program->phases[p].name,
                    like < p ? program->phases[like].name : texts[p]);
    }
    for (int p = 0; p < program->n_phases; p++)
        free(texts[p]);
}

qn_status qn_plan_explain(const qn_plan *plan, const char *name, char **out)
{
    QN_REQUIRE(NULL, plan && name && out);
    struct qn_text text = {0};
    struct explaining e = {.plan = plan,
                           .name = name,
                           .phase = qn_program_main(&plan->program),
                           .text = &text,
                           .value = -1};
    *out = NULL;
    while (find_next(&e))
        if (is_persistent(&e))
            add_persistent(&e);
    add_phases(&e);
    if (!text.length && !text.failed)
        return qn_fail(&plan->log, QN_ERR_ARGUMENT, "plan: no tensor is called %s", name);
    *out = qn_text_take(&text);
    return *out ? QN_OK : qn_fail(&plan->log, QN_ERR_MEMORY, "plan: out of host memory");
}
