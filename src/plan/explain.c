/* SPDX-License-Identifier: MIT
 *
 * Where one tensor lives in a plan, and why.
 */
#include "base/log.h"
#include "base/text.h"
#include "plan/plan.h"

#include <inttypes.h>
#include <string.h>

struct explaining {
    const struct qn_plan *plan;
    const struct qn_phase_run *phase; /* the first micro-step */
    struct qn_text *text;
    int value;
};

static const struct qn_value *value_of(const struct explaining *e)
{
    return &e->phase->problem->values[e->value];
}

static const struct qn_task *task_at(const struct explaining *e, int step)
{
    return &e->phase->problem->tasks[e->phase->steps[step].task];
}

static bool is_value(const struct explaining *e, int value)
{
    return value == e->value || qn_value_root(e->phase->problem, value) == e->value;
}

/* "step 12, conv1: weight gradient" */
static void add_step(const struct explaining *e, int step)
{
    const struct qn_task *task = task_at(e, step);
    qn_text_add(e->text, "step %d, %s: %s", step, task->name, qn_task_does(task));
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

/* --- what lies there all the time --- */

static void add_persistent(const struct explaining *e)
{
    const struct qn_value *value = value_of(e);
    const int root = qn_value_root(e->phase->problem, e->value);
    qn_text_add(e->text, "  ");
    add_place(e, e->plan->program.persistent[root], value->block_offset);
    qn_text_add(e->text, value->life == QN_LIFE_RUN
                             ? " during the whole run: every update goes on from it\n"
                             : " from its first sum to the update: micro-steps add to it\n");
}

/* --- what lives between steps --- */

/* The value that the write took the bytes of; NULL: it has its own. */
static const char *taken_from(const struct explaining *e, int step, int write)
{
    const struct qn_step *at = &e->phase->steps[step];
    const struct qn_task *task = task_at(e, step);
    for (int r = 0; r < task->n_reads; r++)
        if (task->reads[r].value == task->writes[write].in_place && at->read[r] == at->write[write])
            return e->phase->problem->values[task->reads[r].value].name;
    return NULL;
}

static void add_write(const struct explaining *e, int step, int write)
{
    const struct qn_step *at = &e->phase->steps[step];
    const char *over = taken_from(e, step, write);
    qn_text_add(e->text, task_at(e, step)->kind == QN_TASK_FETCH ? "  back from host memory in "
                         : at->recomputed                        ? "  made again in "
                                                                 : "  made in ");
    add_step(e, step);
    qn_text_add(e->text, "; ");
    add_place(e, at->write[write], 0);
    if (over)
        qn_text_add(e->text, ", in the place of %s", over);
    if (at->recomputed || task_at(e, step)->kind == QN_TASK_FETCH)
        qn_text_add(e->text, "; costs %.3g ms", 1e3 * task_at(e, step)->seconds);
    qn_text_add(e->text, "\n");
}

/* Number of the write by which the step begins a life of the value; -1. */
static int begins(const struct explaining *e, int step)
{
    const struct qn_task *task = task_at(e, step);
    for (int w = 0; w < task->n_writes; w++)
        if (is_value(e, task->writes[w].value) && !task->writes[w].accumulates)
            return w;
    return -1;
}

static bool uses(const struct explaining *e, int step)
{
    const struct qn_task *task = task_at(e, step);
    for (int r = 0; r < task->n_reads; r++)
        if (is_value(e, task->reads[r].value))
            return true;
    for (int w = 0; w < task->n_writes; w++)
        if (is_value(e, task->writes[w].value) && task->writes[w].accumulates)
            return true;
    return false;
}

/* Between two uses that are far apart: it was kept, or given up. */
static void add_gap(const struct explaining *e, int from, int to, bool kept)
{
    char size[32];
    if (to - from < 3)
        return;
    qn_text_add(e->text,
                kept ? "    kept through %d steps, for what comes next\n"
                     : "    given up for %d steps: %s for others\n",
                to - from - 1, qn_size_text(value_of(e)->bytes, size, sizeof size));
}

static void add_lives(const struct explaining *e)
{
    for (int i = 0, last = -1; i < e->phase->n_steps; i++) {
        const int write = begins(e, i);
        const bool used = uses(e, i);
        if (write < 0 && !used)
            continue;
        if (last >= 0)
            add_gap(e, last, i, write < 0 || used);
        if (used) {
            qn_text_add(e->text, "  used in ");
            add_step(e, i);
            qn_text_add(e->text, "\n");
        }
        if (write >= 0)
            add_write(e, i, write);
        last = i;
    }
}

/* --- all of one name --- */

qn_status qn_plan_explain(const qn_plan *plan, const char *name, char **out)
{
    if (!plan || !name || !out)
        return QN_ERR_ARGUMENT;
    struct qn_text text = {0};
    struct explaining e = {.plan = plan, .phase = &plan->program.phases[0], .text = &text};
    *out = NULL;
    for (; e.value < e.phase->problem->n_values; e.value++) {
        if (strcmp(value_of(&e)->name, name) != 0 || value_of(&e)->host_bytes)
            continue;
        add_head(&e);
        if (value_of(&e)->life == QN_LIFE_MICRO)
            add_lives(&e);
        else
            add_persistent(&e);
    }
    if (!text.length)
        return qn_fail(&plan->log, QN_ERR_ARGUMENT, "plan: no tensor is called %s", name);
    *out = qn_text_take(&text);
    return *out ? QN_OK : qn_fail(&plan->log, QN_ERR_MEMORY, "plan: out of host memory");
}
