/* SPDX-License-Identifier: MIT */
#include "plan/search/boundaries.h"

static const double CHEAP_FLOPS_PER_BYTE = 8;

/* Whether running the task again takes little time for the bytes that it writes. */
static bool is_cheap(const struct qn_task *task)
{
    return qn_task_repeats(task) && task->flops <= CHEAP_FLOPS_PER_BYTE * task->bytes;
}

bool qn_pays(const struct qn_task *task, int64_t saved, double bytes_per_second)
{
    return saved > 0 ? (double)saved >= bytes_per_second * task->seconds
                     : bytes_per_second <= 0 || is_cheap(task);
}

/* Fills in b->saved and b->total. `read` (by value: read by a backward task) is zeroed to begin. */
static void find_saved(const struct qn_problem *problem, bool *read, struct qn_boundaries *b)
{
    for (int t = problem->n_forward; t < qn_tasks_required(problem); t++)
        for (int i = 0; i < problem->tasks[t].n_reads; i++)
            read[problem->tasks[t].reads[i].value] = true;
    for (int t = 0; t < problem->n_forward; t++) {
        const struct qn_task *task = &problem->tasks[t];
        for (int i = 0; i < task->n_writes; i++) {
            const struct qn_value *value = &problem->values[task->writes[i].value];
            if (read[task->writes[i].value] && value->life == QN_LIFE_MICRO)
                b->saved[t] += value->bytes;
        }
        b->total += b->saved[t];
    }
}

/* By value: the last forward task that reads it; -1: none. */
static void find_last_reads(const struct qn_problem *problem, int *last)
{
    for (int v = 0; v < problem->n_values; v++)
        last[v] = -1;
    for (int t = 0; t < problem->n_forward; t++)
        for (int i = 0; i < problem->tasks[t].n_reads; i++)
            last[problem->tasks[t].reads[i].value] = t;
}

/* `last` as from find_last_reads. `ends`, by forward task (how many values it reads for the last
 * time), is zeroed to begin. */
static void find_crosses(const struct qn_problem *problem, const int *last, int *ends, int *crosses)
{
    int crossing = 0;
    for (int t = 0; t < problem->n_forward; t++) {
        const struct qn_task *task = &problem->tasks[t];
        crossing -= ends[t];
        int made = 0, value = -1;
        for (int i = 0; task->kind == QN_TASK_GROUP && i < task->n_writes; i++) {
            int v = task->writes[i].value;
            if (problem->values[v].life == QN_LIFE_MICRO && last[v] > t) {
                made++;
                value = v;
                ends[last[v]]++;
            }
        }
        crossing += made;
        crosses[t] = made == 1 && crossing == 1 && task->repeatable ? value : -1;
    }
}

bool qn_boundaries_find(const struct qn_problem *problem, struct qn_arena *arena,
                        struct qn_boundaries *b)
{
    const size_t values = (size_t)problem->n_values + 1, forward = (size_t)problem->n_forward + 1;
    bool *read = qn_arena_new(arena, bool, values);
    int *last = qn_arena_new(arena, int, values), *ends = qn_arena_new(arena, int, forward);
    *b = (struct qn_boundaries){.crosses = qn_arena_new(arena, int, forward),
                                .saved = qn_arena_new(arena, int64_t, forward)};
    if (!read || !last || !ends || !b->crosses || !b->saved)
        return false;
    find_saved(problem, read, b);
    find_last_reads(problem, last);
    find_crosses(problem, last, ends, b->crosses);
    return true;
}
