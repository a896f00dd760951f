/* SPDX-License-Identifier: MIT */
#include "plan/program/schedule.h"

#include <limits.h>
#include <string.h>

enum { MOST_PASSES = 6 };

struct schedule {
    const struct qn_problem *problem;
    const struct qn_policy *policy;
    bool *there; /* by task: was run again, and the values it made are still held */
    int *held;   /* the tasks t with there[t] */
    int n_held;
    bool *needed;   /* by task: is about to be run again */
    int *next_read; /* by value: the next backward task that reads it; INT_MAX: none */
    int *later;     /* by backward task and read: next_read of its value after this read */
    int *stack;
    int capacity;
    struct qn_steps *steps;
};

static bool append(struct schedule *s, int task)
{
    if (s->steps->count == s->capacity)
        return false;
    s->steps->task[s->steps->count++] = task;
    s->steps->seconds += s->problem->tasks[task].seconds;
    return true;
}

/* --- when values are read next --- */

/* Walks backward from the last task: afterwards next_read holds for the first backward task, and
 * later[] holds the value of next_read after each read. */
static void find_reads(struct schedule *s)
{
    for (int v = 0; v < s->problem->n_values; v++)
        s->next_read[v] = INT_MAX;
    for (int t = qn_tasks_required(s->problem) - 1; t >= s->problem->n_forward; t--)
        for (int i = 0; i < s->problem->tasks[t].n_reads; i++) {
            int value = s->problem->tasks[t].reads[i].value;
            s->later[t * QN_MAX_READS + i] = s->next_read[value];
            s->next_read[value] = t;
        }
}

static void pass_reads(struct schedule *s, int task)
{
    for (int i = s->problem->tasks[task].n_reads - 1; i >= 0; i--)
        s->next_read[s->problem->tasks[task].reads[i].value] = s->later[task * QN_MAX_READS + i];
}

/* Whether a backward task in the policy's window from `now` on reads what `task` makes. */
static bool read_soon(const struct schedule *s, int task, int now)
{
    const struct qn_task *maker = &s->problem->tasks[task];
    for (int i = 0; i < maker->n_writes; i++) {
        int next = s->next_read[maker->writes[i].value];
        if (next != INT_MAX && (!s->policy->window || next - now <= s->policy->window))
            return true;
    }
    return false;
}

/* --- making again --- */

/* The dropped forward task behind a read, if it has to be run again; -1 otherwise. */
static int lost_producer(const struct schedule *s, const struct qn_use *read)
{
    int task = s->problem->producer[read->value];
    bool lost = task >= 0 && s->policy->drop[task] && s->problem->tasks[task].repeatable &&
                !s->there[task] && !s->needed[task];
    return lost ? task : -1;
}

static void push_lost(struct schedule *s, int task, int *depth)
{
    const struct qn_task *reader = &s->problem->tasks[task];
    for (int i = 0; i < reader->n_reads; i++) {
        int lost = lost_producer(s, &reader->reads[i]);
        if (lost >= 0) {
            s->needed[lost] = true;
            s->stack[(*depth)++] = lost;
        }
    }
}

/* Drops recomputed values that are not read soon. */
static void forget(struct schedule *s, int now)
{
    int kept = 0;
    for (int i = 0; i < s->n_held; i++) {
        const int task = s->held[i];
        s->there[task] = read_soon(s, task, now);
        if (s->there[task])
            s->held[kept++] = task;
    }
    s->n_held = kept;
}

/* Runs again, in forward order, the tasks that make dropped values which backward task `now` needs,
 * directly or through tasks that run again. */
static bool restore(struct schedule *s, int now)
{
    int depth = 0, first = s->problem->n_forward, last = -1;
    if (s->policy->window)
        forget(s, now);
    push_lost(s, now, &depth);
    while (depth) {
        int lost = s->stack[--depth];
        first = lost < first ? lost : first;
        last = lost > last ? lost : last;
        push_lost(s, lost, &depth);
    }
    for (int t = first; t <= last; t++) {
        if (!s->needed[t])
            continue;
        s->needed[t] = false;
        s->there[t] = true;
        s->held[s->n_held++] = t;
        if (!append(s, t))
            return false;
        s->steps->recomputed++;
    }
    return true;
}

static bool allocate(struct schedule *s, struct qn_arena *arena)
{
    size_t n = (size_t)s->problem->n_tasks;
    s->capacity = MOST_PASSES * s->problem->n_tasks;
    s->steps->task = qn_arena_new(arena, int, (size_t)s->capacity + 1);
    s->there = qn_arena_new(arena, bool, n + 1);
    s->needed = qn_arena_new(arena, bool, n + 1);
    s->held = qn_arena_new(arena, int, n + 1);
    s->stack = qn_arena_new(arena, int, n + 1);
    s->next_read = qn_arena_new(arena, int, (size_t)s->problem->n_values + 1);
    s->later = qn_arena_new(arena, int, n *QN_MAX_READS + 1);
    return s->steps->task && s->there && s->needed && s->held && s->stack && s->next_read &&
           s->later;
}

bool qn_steps_make(const struct qn_problem *problem, const struct qn_policy *policy,
                   struct qn_arena *arena, struct qn_steps *steps)
{
    struct schedule s = {.problem = problem, .policy = policy, .steps = steps};
    *steps = (struct qn_steps){.task = NULL};
    if (!allocate(&s, arena))
        return false;
    find_reads(&s);
    bool fits = true;
    for (int t = 0; fits && t < qn_tasks_required(problem); t++) {
        if (policy->drop && t >= problem->n_forward)
            fits = restore(&s, t);
        fits = fits && append(&s, t);
        if (t >= problem->n_forward)
            pass_reads(&s, t);
    }
    if (!fits)
        steps->count = 0;
    return true;
}

bool qn_steps_part(const struct qn_problem *problem, const struct qn_steps *steps)
{
    for (int i = 0; i < problem->n_forward; i++)
        if (i >= steps->count || steps->task[i] != i)
            return false;
    return true;
}

/* --- checking --- */

/* How often each value that a task reads, then each that it writes, was written before. */
struct before {
    int count[QN_MAX_READS + QN_MAX_WRITES];
};

static struct before look(const struct qn_task *task, const int *writes)
{
    struct before before = {{0}};
    for (int i = 0; i < task->n_reads; i++)
        before.count[i] = writes[task->reads[i].value];
    for (int i = 0; i < task->n_writes; i++)
        before.count[QN_MAX_READS + i] = writes[task->writes[i].value];
    return before;
}

static void count_writes(const struct qn_task *task, int *writes)
{
    for (int i = 0; i < task->n_writes; i++)
        writes[task->writes[i].value]++;
}

static void look_at_all(const struct qn_problem *problem, int *writes, struct before *expected)
{
    for (int t = 0; t < qn_tasks_required(problem); t++) {
        expected[t] = look(&problem->tasks[t], writes);
        count_writes(&problem->tasks[t], writes);
    }
}

/* Whether a store or fetch can run: the value that the store copies is written; the fetch's store
 * has run. */
static bool can_park(const struct qn_problem *problem, int task, const bool *ran, const int *writes)
{
    return problem->tasks[task].kind == QN_TASK_STORE
               ? writes[problem->tasks[task].reads[0].value] > 0
               : ran[task - 1];
}

/* `ran` (by task) and `writes` (by value: how often it was written) are zeroed to begin; repeated
 * tasks, stores and fetches do not count as writes. */
static bool can_run(const struct qn_problem *problem, const struct qn_steps *steps,
                    const struct before *expected, bool *ran, int *writes)
{
    int first_runs = 0;
    for (int i = 0; i < steps->count; i++) {
        const int t = steps->task[i];
        if (t < 0 || t >= problem->n_tasks)
            return false;
        if (qn_task_parks(&problem->tasks[t])) {
            if (!can_park(problem, t, ran, writes))
                return false;
            ran[t] = true;
            continue;
        }
        if (ran[t] && !problem->tasks[t].repeatable)
            return false;
        if (ran[t])
            continue;
        const struct before now = look(&problem->tasks[t], writes);
        if (memcmp(&now, &expected[t], sizeof now) != 0)
            return false;
        count_writes(&problem->tasks[t], writes);
        ran[t] = true;
        first_runs++;
    }
    return first_runs == qn_tasks_required(problem);
}

qn_status qn_steps_check(const struct qn_problem *problem, const struct qn_steps *steps)
{
    struct qn_arena arena = {0};
    const size_t n = (size_t)problem->n_tasks + 1, values = (size_t)problem->n_values + 1;
    struct before *expected = qn_arena_new(&arena, struct before, n);
    int *writes = qn_arena_new(&arena, int, values), *again = qn_arena_new(&arena, int, values);
    bool *ran = qn_arena_new(&arena, bool, n);
    qn_status status = expected && writes && again && ran ? QN_OK : QN_ERR_MEMORY;
    if (status == QN_OK) {
        look_at_all(problem, writes, expected);
        status = can_run(problem, steps, expected, ran, again) ? QN_OK : QN_ERR_FORMAT;
    }
    qn_arena_free(&arena);
    return status;
}
