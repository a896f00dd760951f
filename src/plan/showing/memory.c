/* SPDX-License-Identifier: MIT
 *
 * The map of a plan's memory: every array with its addresses, its steps, and why it is there.
 */
#include "base/text.h"
#include "plan/plan.h"

#include <inttypes.h>
#include <stdlib.h>

/* What the steps of a phase, and then those of the one that goes on with its values, do with a
 * storage; steps, counted through both, -1: none. */
struct usage {
    int made, used;      /* the first that writes it, the last that touches it */
    int before, longest; /* the last one so far; the most steps that passed it by */
};

struct mapping {
    const struct qn_plan *plan;
    const struct qn_phase_run *phase;
    struct usage *usage; /* of its storages, from phase->first_storage on */
    struct qn_text text;
    int arrays;
};

/* The phase that a step belongs to, and its number there. */
struct at {
    const struct qn_phase_run *phase;
    int step;
};

static struct at find_step(const struct mapping *m, int step)
{
    const struct qn_phase_run *phase = m->phase;
    return step < phase->n_steps
               ? (struct at){phase, step}
               : (struct at){&m->plan->program.phases[phase->next], step - phase->n_steps};
}

static int count_steps(const struct mapping *m)
{
    const struct qn_phase_run *phase = m->phase;
    return phase->n_steps + (phase->next < 0 ? 0 : m->plan->program.phases[phase->next].n_steps);
}

static const struct qn_task *task_at(const struct mapping *m, int step)
{
    const struct at at = find_step(m, step);
    return &at.phase->problem->tasks[at.phase->steps[at.step].task];
}

static void touch(struct mapping *m, int storage, int step, bool writes)
{
    const int at = storage - m->phase->first_storage;
    if (storage < 0 || at < 0 || at >= m->phase->n_storages)
        return;
    struct usage *u = &m->usage[at];
    if (writes && u->made < 0)
        u->made = step;
    if (u->before >= 0 && step - u->before - 1 > u->longest)
        u->longest = step - u->before - 1;
    u->before = u->used = step;
}

static void find_usage(struct mapping *m)
{
    for (int i = 0; i < m->phase->n_storages; i++)
        m->usage[i] = (struct usage){-1, -1, -1, 0};
    for (int i = 0; i < count_steps(m); i++) {
        const struct at at = find_step(m, i);
        const struct qn_step *step = &at.phase->steps[at.step];
        const struct qn_task *task = task_at(m, i);
        for (int r = 0; r < task->n_reads; r++)
            touch(m, step->read[r], i, false);
        for (int w = 0; w < task->n_writes; w++)
            touch(m, step->write[w], i, true);
        touch(m, step->scratch, i, true);
    }
}

/* --- why --- */

static void add_step(struct qn_text *why, const struct mapping *m, const char *what, int step)
{
    const struct at at = find_step(m, step);
    qn_text_add(why, "%s step %d", what, at.step);
    if (at.phase != m->phase)
        qn_text_add(why, " of %s", at.phase->name);
    qn_text_add(why, ", %s: %s", task_at(m, step)->name, qn_task_does(task_at(m, step)));
}

static void add_wait(struct qn_text *why, const struct mapping *m, const struct usage *u)
{
    const struct qn_task *maker = task_at(m, u->made);
    if (u->longest < 2)
        return;
    qn_text_add(why, "; kept through %d steps", u->longest);
    if (qn_task_repeats(maker))
        qn_text_add(why, ", since making it again would cost %.3g ms", 1e3 * maker->seconds);
}

static void add_why(struct qn_text *why, const struct mapping *m, const struct qn_storage *s,
                    const struct usage *u)
{
    if (u->made < 0)
        return;
    if (s->tag == QN_TAG_SCRATCH) {
        add_step(why, m, "room that it needs while it runs:", u->made);
        return;
    }
    const bool fetched = task_at(m, u->made)->kind == QN_TASK_FETCH;
    const struct at made = find_step(m, u->made);
    add_step(why, m,
             fetched                                   ? "back from host memory in"
             : made.phase->steps[made.step].recomputed ? "made again in"
                                                       : "made in",
             u->made);
    if (u->used > u->made)
        add_step(why, m, "; last used in", u->used);
    add_wait(why, m, u);
}

static const char *why_persistent(const struct qn_value *value)
{
    return value->life == QN_LIFE_TRAINING
               ? "during the whole training: every update goes on from it"
               : "from its first sum to the update: micro-steps add to it";
}

/* --- arrays --- */

/* `offset`: of the array within the storage. */
static void add_array(struct mapping *m, const struct qn_storage *s, const char *name,
                      int64_t bytes, int64_t offset, const char *why)
{
    qn_text_add(&m->text, "%s[", m->arrays++ ? ",\n" : "");
    qn_text_json(&m->text, name);
    qn_text_add(&m->text, ",%d,%d,%d,%" PRId64 ",%d,%" PRId64 ",", (int)s->tag, s->start, s->end,
                bytes, s->pool, s->offset + offset);
    qn_text_json(&m->text, why);
    qn_text_add(&m->text, "]");
}

/* Of a block its members are told. */
static void add_persistent(struct mapping *m)
{
    const struct qn_program *program = &m->plan->program;
    const struct qn_problem *problem = qn_program_main(program)->problem;
    bool *block = calloc((size_t)m->plan->persist.n_values + 1, sizeof *block);
    m->text.failed |= !block;
    for (int v = 0; block && v < m->plan->persist.n_values; v++)
        if (qn_value_root(problem, v) != v)
            block[qn_value_root(problem, v)] = true;
    for (int v = 0; block && v < m->plan->persist.n_values; v++) {
        const struct qn_value *value = &problem->values[v];
        const int storage = program->persistent[qn_value_root(problem, v)];
        if (storage >= 0 && !block[v])
            add_array(m, &program->storages[storage], value->name, value->bytes,
                      value->block_offset, why_persistent(value));
    }
    free(block);
}

static void add_phase_arrays(struct mapping *m)
{
    m->usage = calloc((size_t)m->phase->n_storages + 1, sizeof *m->usage);
    m->text.failed |= !m->usage;
    if (!m->usage)
        return;
    find_usage(m);
    for (int i = 0; i < m->phase->n_storages; i++) {
        const struct qn_storage *s = &m->plan->program.storages[m->phase->first_storage + i];
        struct qn_text why = {0};
        if (s->host_bytes)
            continue;
        add_why(&why, m, s, &m->usage[i]);
        add_array(m, s, s->name, s->bytes, 0, why.bytes ? why.bytes : "");
        m->text.failed |= why.failed;
        qn_text_free(&why);
    }
    free(m->usage);
}

/* --- around them --- */

static void add_phases(struct mapping *m)
{
    const struct qn_program *program = &m->plan->program;
    qn_text_add(&m->text, "\"phases\":[");
    for (int p = 0; p < program->n_phases; p++) {
        m->phase = &program->phases[p];
        qn_text_add(&m->text, "%s\n{\"name\":", p ? "," : "");
        qn_text_json(&m->text, m->phase->name);
        qn_text_add(&m->text, ",\"start\":%d,\"steps\":[", m->phase->start);
        for (int i = 0; i < m->phase->n_steps; i++) {
            struct qn_text label = {0};
            qn_text_add(&label, "%s: %s%s", task_at(m, i)->name, qn_task_does(task_at(m, i)),
                        m->phase->steps[i].recomputed ? ", again" : "");
            qn_text_add(&m->text, "%s", i ? "," : "");
            qn_text_json(&m->text, label.bytes ? label.bytes : "");
            m->text.failed |= label.failed;
            qn_text_free(&label);
        }
        qn_text_add(&m->text, "]}");
    }
    qn_text_add(&m->text, "],\n");
}

static void add_numbers(struct mapping *m)
{
    const struct qn_plan *plan = m->plan;
    qn_text_add(&m->text,
                "{\"length\":%d,\"peak_at\":%d,\"peak_bytes\":%" PRId64 ",\"budget_bytes\":%" PRId64
                ",\"clblast_bytes\":%" PRId64 ",\"pools\":[",
                plan->program.length, plan->program.peak_at, plan->info.peak_bytes,
                plan->info.budget_bytes, plan->program.blas_temp);
    for (int i = 0; i < plan->placement.n_pools; i++)
        qn_text_add(&m->text, "%s%" PRId64, i ? "," : "", plan->placement.pool_bytes[i]);
    qn_text_add(&m->text, "],\n\"tags\":[");
    for (int tag = 0; tag < QN_TAG_COUNT; tag++) {
        qn_text_add(&m->text, "%s", tag ? "," : "");
        qn_text_json(&m->text, qn_tag_name((qn_tag)tag));
    }
    qn_text_add(&m->text, "],\n\"live\":[");
    for (int i = 0; i < plan->program.length; i++)
        qn_text_add(&m->text, "%s%" PRId64, i ? "," : "", plan->program.live[i]);
    qn_text_add(&m->text, "],\n");
}

char *qn_plan_memory_json(const qn_plan *plan)
{
    if (!plan)
        return NULL;
    struct mapping m = {.plan = plan};
    add_numbers(&m);
    add_phases(&m);
    qn_text_add(&m.text, "\"arrays\":[");
    add_persistent(&m);
    for (int p = 0; p < plan->program.n_phases; p++) {
        m.phase = &plan->program.phases[p];
        add_phase_arrays(&m);
    }
    qn_text_add(&m.text, "]}");
    return qn_text_take(&m.text);
}
