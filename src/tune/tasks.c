/* SPDX-License-Identifier: MIT */
#include "tune/tasks.h"

#include "plan/cost/tuning.h"

#include <stdlib.h>
#include <string.h>

static int64_t repeats_of(const struct qn_plan *plan, int phase)
{
    const struct qn_cycle_plan *cycle = &plan->program.cycles[0];
    for (int r = 0; r < plan->runs.n_runs; r++)
        if (phase == cycle->runs[r].later)
            return cycle->runs[r].laters + (phase == cycle->runs[r].first);
    return plan->program.phases[phase].kind != QN_EVALUATION_PHASE;
}

static struct qn_tune_task *find(const struct qn_tune_tasks *tasks, const char *key, int64_t batch)
{
    for (int i = 0; i < tasks->count; i++)
        if (tasks->list[i].problem->batch == batch && strcmp(tasks->list[i].key, key) == 0)
            return &tasks->list[i];
    return NULL;
}

static bool add(struct qn_arena *arena, struct qn_tune_tasks *tasks,
                const struct qn_problem *problem, const struct qn_task *task, int64_t repeats)
{
    char key[QN_TASK_KEY];
    struct qn_tune_task *known = find(tasks, qn_task_key(problem, task, key), problem->batch);
    if (!known) {
        known = &tasks->list[tasks->count];
        *known = (struct qn_tune_task){problem, task, qn_arena_strdup(arena, key), 0, false};
        tasks->count += known->key != NULL;
    }
    known->seconds += task->seconds * (double)repeats;
    return known->key != NULL;
}

static int by_seconds(const void *a, const void *b)
{
    const struct qn_tune_task *x = a, *y = b;
    if (x->seconds != y->seconds)
        return x->seconds < y->seconds ? 1 : -1;
    return strcmp(x->key, y->key);
}

bool qn_tune_tasks_of(const struct qn_plan *plan, struct qn_arena *arena,
                      struct qn_tune_tasks *tasks)
{
    int most = 0;
    for (int p = 0; p < plan->program.n_phases; p++)
        most += plan->program.phases[p].n_steps;
    *tasks = (struct qn_tune_tasks){qn_arena_new(arena, struct qn_tune_task, (size_t)most), 0};
    if (!tasks->list)
        return false;
    for (int p = 0; p < plan->program.n_phases; p++) {
        const struct qn_phase_run *phase = &plan->program.phases[p];
        for (int i = 0; i < phase->n_steps; i++) {
            const struct qn_task *task = &phase->problem->tasks[phase->steps[i].task];
            if (task->kind == QN_TASK_GROUP &&
                !add(arena, tasks, phase->problem, task, repeats_of(plan, p)))
                return false;
        }
    }
    qsort(tasks->list, (size_t)tasks->count, sizeof *tasks->list, by_seconds);
    return true;
}
