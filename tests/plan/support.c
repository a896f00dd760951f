/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_log(void *user, qn_log_level level, const char *text)
{
    (void)user;
    (void)level;
    print_message("  log: %s\n", text);
}

struct qn_facts test_facts(void)
{
    struct qn_facts facts;
    qn_facts_default(&facts, true);
    facts.flops = 1e11;
    facts.bytes_per_second = 1e10;
    facts.launch_seconds = 1e-5;
    facts.max_alloc_bytes = 1 << 30;
    facts.global_bytes = (int64_t)4 << 30;
    return facts;
}

static qn_graph *new_graph(void)
{
    qn_graph *graph;
    const qn_graph_params params = {.log = {print_log, NULL, QN_LOG_WARNING}};
    assert_int_equal(qn_graph_create(&graph, &params), QN_OK);
    return graph;
}

qn_graph *test_model(const char *name, const qn_model_option *options, int n_options)
{
    const qn_model_data data = {.channels = 1, .height = 28, .width = 28, .classes = 10};
    qn_graph *graph = new_graph();
    assert_int_equal(qn_model_build(graph, name, &data, options, n_options), QN_OK);
    return graph;
}

qn_graph *test_chain(int length, int64_t width)
{
    qn_graph *graph = new_graph();
    qn_tensor x = qn_input(graph, "x", QN_F32, 2, (int64_t[]){QN_BATCH, width});
    for (int i = 0; i < length; i++) {
        char name[32];
        snprintf(name, sizeof name, "w%d", i);
        qn_tensor weight = qn_parameter(graph, name, 2, (int64_t[]){width, width}, NULL);
        x = qn_sigmoid(graph, qn_linear(graph, x, weight, (qn_tensor){0}));
    }
    qn_loss(graph, x, "mean", NULL);
    assert_int_equal(qn_graph_status(graph), QN_OK);
    return graph;
}

qn_plan *test_plan(const qn_graph *graph, const qn_plan_params *params)
{
    qn_plan *plan;
    struct qn_facts facts = test_facts();
    assert_int_equal(qn_plan_create(&plan, graph, &facts, params, NULL), QN_OK);
    return plan;
}

struct test_budgets test_budgets(const qn_graph *graph, const qn_plan_params *params,
                                 bool (*wanted)(const qn_plan_point *point))
{
    static qn_plan_point points[TEST_MOST_POINTS];
    struct test_budgets found = {.count = 0};
    qn_plan_params roomy = *params;
    roomy.budget = INT64_C(3) << 30;
    qn_plan *plan = test_plan(graph, &roomy);
    const int count = qn_plan_frontier(plan, points, TEST_MOST_POINTS);
    assert_in_range(count, 1, TEST_MOST_POINTS);
    for (int i = 0; i < count; i++)
        if (wanted(&points[i]))
            found.bytes[found.count++] = points[i].bytes;
    qn_plan_destroy(&plan);
    return found;
}

/* --- invariants --- */

/* On the device, or in host memory: pool -1. */
static int64_t bytes_of(const struct qn_storage *s)
{
    return s->host_bytes ? s->host_bytes : s->bytes;
}

static bool overlap(const struct qn_storage *a, const struct qn_storage *b)
{
    return a->pool == b->pool && a->start <= b->end && b->start <= a->end &&
           a->offset < b->offset + bytes_of(b) && b->offset < a->offset + bytes_of(a);
}

static void check_place(const qn_plan *plan, const struct qn_storage *s)
{
    if (s->host_bytes) {
        assert_true(s->pool == -1 && s->bytes == 0);
        assert_true(s->offset + s->host_bytes <= plan->program.host_bytes);
        return;
    }
    assert_true(s->offset % plan->facts.alignment == 0);
    assert_true(s->pool >= 0 && s->pool < plan->placement.n_pools);
    assert_true(s->offset + s->bytes <= plan->placement.pool_bytes[s->pool]);
}

static void check_storages(const qn_plan *plan)
{
    const struct qn_program *program = &plan->program;
    for (int i = 0; i < program->n_storages; i++) {
        const struct qn_storage *s = &program->storages[i];
        assert_true(s->start <= s->end && s->end < program->length);
        check_place(plan, s);
        for (int j = 0; j < i; j++)
            assert_false(overlap(s, &program->storages[j]));
    }
}

static void check_live(const qn_plan *plan)
{
    const struct qn_program *program = &plan->program;
    int64_t peak = 0;
    for (int t = 0; t < program->length; t++) {
        int64_t live = 0;
        for (int i = 0; i < program->n_storages; i++)
            if (program->storages[i].start <= t && program->storages[i].end >= t)
                live += program->storages[i].bytes;
        assert_int_equal(live, program->live[t]);
        peak = live > peak ? live : peak;
    }
    assert_int_equal(peak, program->live_peak);
}

static void check_alive(const qn_plan *plan, int storage, int at)
{
    assert_true(storage >= 0 && storage < plan->program.n_storages);
    assert_true(plan->program.storages[storage].start <= at);
    assert_true(plan->program.storages[storage].end >= at);
}

static void check_steps(const qn_plan *plan)
{
    for (int p = 0; p < plan->program.n_phases; p++) {
        const struct qn_phase_run *phase = &plan->program.phases[p];
        for (int i = 0; i < phase->n_steps; i++) {
            const struct qn_step *step = &phase->steps[i];
            const struct qn_task *task = &phase->problem->tasks[step->task];
            for (int r = 0; r < task->n_reads; r++)
                check_alive(plan, step->read[r], phase->start + i);
            for (int w = 0; w < task->n_writes; w++)
                check_alive(plan, step->write[w], phase->start + i);
            if (step->scratch >= 0)
                check_alive(plan, step->scratch, phase->start + i);
        }
    }
}

/* After its optimizer nothing reads a parameter, or its gradient, in that phase. */
static void check_updates(const qn_plan *plan)
{
    for (int p = 0; p < plan->program.n_phases; p++) {
        const struct qn_phase_run *phase = &plan->program.phases[p];
        const struct qn_task *tasks = phase->problem->tasks;
        for (int i = 0; i < phase->n_steps; i++) {
            const struct qn_task *update = &tasks[phase->steps[i].task];
            if (update->node >= 0 || strcmp(update->group->name, "step") != 0)
                continue;
            for (int later = i + 1; later < phase->n_steps; later++) {
                const struct qn_task *task = &tasks[phase->steps[later].task];
                for (int r = 0; r < task->n_reads; r++)
                    for (int u = 0; u < 2; u++)
                        assert_true(task->reads[r].value != update->reads[u].value);
            }
        }
    }
}

static void check_tags(const qn_plan *plan)
{
    int64_t sum = 0;
    for (int tag = 0; tag < QN_TAG_COUNT; tag++)
        sum += plan->info.bytes_by_tag[tag];
    assert_int_equal(sum, plan->info.live_bytes);
    assert_true(plan->info.live_bytes <= plan->info.peak_bytes);
    assert_true(plan->info.peak_bytes <= plan->info.budget_bytes);
    assert_true(plan->info.smallest_budget <= plan->info.peak_bytes);
}

void test_invariants(const qn_plan *plan)
{
    check_storages(plan);
    check_live(plan);
    check_steps(plan);
    check_updates(plan);
    check_tags(plan);
}

/* --- the interpreter --- */

enum { UNIT = 4, POISON = -1, SCRATCH = -2 };

struct memory {
    const qn_plan *plan;
    int *pool[QN_MAX_POOLS]; /* the value kept at each UNIT bytes of memory */
    int *host;               /* the same of the host's */
    bool wrong;              /* something else than the value meant was read */
};

/* Bytes [from, from + bytes) of a storage, in units. */
struct range {
    int *units;
    int64_t count;
};

static struct range range_of(const struct memory *m, int storage, int64_t from, int64_t bytes)
{
    const struct qn_storage *s = &m->plan->program.storages[storage];
    int *units = s->host_bytes ? m->host : m->pool[s->pool];
    assert_true(from % UNIT == 0 && from + bytes <= bytes_of(s));
    return (struct range){units + (s->offset + from) / UNIT, (bytes + UNIT - 1) / UNIT};
}

static void fill(struct range range, int number)
{
    for (int64_t i = 0; i < range.count; i++)
        range.units[i] = number;
}

static void expect(struct memory *m, struct range range, int number)
{
    for (int64_t i = 0; i < range.count; i++)
        m->wrong |= range.units[i] != number;
}

static void poison(struct memory *m, int storage)
{
    fill(range_of(m, storage, 0, bytes_of(&m->plan->program.storages[storage])), POISON);
}

static void poison_after(struct memory *m, int at)
{
    const struct qn_program *program = &m->plan->program;
    for (int i = 0; i < program->n_storages; i++)
        if (program->storages[i].end == at && at + 1 < program->length)
            poison(m, i);
}

/* Whether a phase's problem calls some bytes of a persistent value by a number of its own. */
static bool is_slice(const struct qn_problem *problem, int value)
{
    const int persistent = problem->persist->n_values;
    return value >= persistent && qn_value_root(problem, value) < persistent;
}

/* Persistent values are the same number in every phase; others are numbered by the phase, or by the
 * one that it goes on with. */
static int number_of(const struct qn_phase_run *phase, int phase_number, int value)
{
    if (is_slice(phase->problem, value))
        return qn_value_root(phase->problem, value);
    phase_number = phase->before < 0 ? phase_number : phase->before;
    return phase->problem->values[value].life == QN_LIFE_MICRO ? (phase_number + 1) * 100000 + value
                                                               : value;
}

/* Whether persistent value `part` is one of those that `value` is made of: all parts of a block, or
 * of a slice of one those that lie in it. */
static bool is_part(const struct qn_problem *problem, int part, int value)
{
    const struct qn_value *p = &problem->values[part], *v = &problem->values[value];
    if (!is_slice(problem, value))
        return p->block == value && !is_slice(problem, part);
    return part < problem->persist->n_values && p->block == v->block &&
           p->block_offset >= v->block_offset &&
           p->block_offset + p->bytes <= v->block_offset + v->bytes;
}

/* Writes a value, or checks that it is there. A block is its parts, each under its own number; what
 * lies between them belongs to nobody. */
static void touch(struct memory *m, int p, int value, int storage, bool write)
{
    const struct qn_phase_run *phase = &m->plan->program.phases[p];
    const struct qn_problem *problem = phase->problem;
    bool whole = true;
    for (int v = 0; v < problem->n_values; v++)
        if (is_part(problem, v, value)) {
            touch(m, p, v, storage, write);
            whole = false;
        }
    if (!whole)
        return;
    const struct qn_value *v = &problem->values[value];
    struct range range = range_of(m, storage, v->block >= 0 ? v->block_offset : 0,
                                  v->host_bytes ? v->host_bytes : v->bytes);
    if (write)
        fill(range, number_of(phase, p, value));
    else
        expect(m, range, number_of(phase, p, value));
}

/* Whether a write adds to what is there, which must then be the same value. The parts of the
 * gradient norm share one storage, but none adds to another. */
static bool adds(const struct qn_phase_run *phase, const struct qn_output_use *write)
{
    bool sum = write->ref.kind == QN_REF_DIN || write->ref.kind == QN_REF_GATHER;
    bool later = phase->problem->values[write->value].life == QN_LIFE_CYCLE && !phase->first;
    return sum && (write->accumulates || later);
}

static void run_step(struct memory *m, int p, int i)
{
    const struct qn_phase_run *phase = &m->plan->program.phases[p];
    const struct qn_step *step = &phase->steps[i];
    const struct qn_task *task = &phase->problem->tasks[step->task];
    for (int r = 0; r < task->n_reads; r++)
        touch(m, p, task->reads[r].value, step->read[r], false);
    for (int w = 0; w < task->n_writes; w++) {
        if (adds(phase, &task->writes[w]))
            touch(m, p, task->writes[w].value, step->write[w], false);
        touch(m, p, task->writes[w].value, step->write[w], true);
    }
    if (step->scratch >= 0)
        fill(range_of(m, step->scratch, 0, task->scratch), SCRATCH);
    poison_after(m, phase->start + i);
}

static int *poisoned(int64_t bytes)
{
    const int64_t units = bytes / UNIT + 1;
    int *memory = malloc((size_t)units * sizeof(int));
    assert_non_null(memory);
    fill((struct range){memory, units}, POISON);
    return memory;
}

static void open_memory(struct memory *m)
{
    const qn_plan *plan = m->plan;
    for (int p = 0; p < plan->placement.n_pools; p++)
        m->pool[p] = poisoned(plan->placement.pool_bytes[p]);
    m->host = poisoned(plan->program.host_bytes);
    for (int v = 0; v < plan->persist.n_values; v++)
        if (plan->persist.values[v].life == QN_LIFE_TRAINING && plan->program.persistent[v] >= 0)
            touch(m, 0, v, plan->program.persistent[v], true);
}

bool test_runs_on_poison(const qn_plan *plan)
{
    struct memory m = {.plan = plan};
    open_memory(&m);
    for (int p = 0; p < plan->program.n_phases; p++)
        for (int i = 0; i < plan->program.phases[p].n_steps; i++)
            run_step(&m, p, i);
    for (int p = 0; p < plan->placement.n_pools; p++)
        free(m.pool[p]);
    free(m.host);
    return !m.wrong;
}

void test_interpret(const qn_plan *plan)
{
    assert_true(test_runs_on_poison(plan));
}

void test_persist(const struct qn_lowering *how, const qn_graph *graph, struct qn_persist *persist)
{
    const struct qn_run_set runs = {.run = {{.name = "training"}}, .n_runs = 1};
    assert_int_equal(qn_persist_make(how, &graph, 1, &runs, persist), QN_OK);
}
