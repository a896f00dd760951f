/* SPDX-License-Identifier: MIT
 *
 * Of all values that live through the peak, the one with the largest bytes * idle seconds /
 * transfer seconds is parked. Its store comes right after the step that makes it, its fetch right
 * before the next step that reads it. On lists that recompute this combines both, as Beaumont et
 * al. do for chains ("Efficient combination of rematerialization and offloading for training DNNs",
 * NeurIPS 2021).
 */
#include "plan/search/park.h"

#include <stdlib.h>

/* Slots `from` and `to` use a value; no place in between does. */
struct qn_gap {
    int fetch; /* the task that would bring the value back */
    int from, to;
    double worth; /* bytes * idle seconds / transfer seconds */
};

/* Gaps of at most so many steps are ignored. */
enum { SHORTEST = 3 };

/* --- finding gaps --- */

struct walk {
    struct qn_parking *parking;
    int *fetch;      /* by value: the task that brings it back; -1: none */
    int *place;      /* by value: place of its last use; -1: none */
    int *step;       /* by value: number of that step */
    double *seconds; /* by value: seconds of all steps before that step */
};

static const struct qn_task *task_of(const struct qn_parking *p, int task)
{
    return &p->timeline.problem->tasks[task];
}

static double transfer_seconds(const struct qn_parking *p, int fetch)
{
    return task_of(p, fetch)->seconds + task_of(p, fetch - 1)->seconds;
}

static int64_t parked_bytes(const struct qn_parking *p, int fetch)
{
    return p->timeline.problem->values[task_of(p, fetch)->writes[0].value].bytes;
}

static void note_gap(struct walk *w, int value, int place, int step, double seconds)
{
    struct qn_parking *p = w->parking;
    const int fetch = w->fetch[value];
    if (fetch < 0 || w->place[value] < 0 || step - w->step[value] <= SHORTEST)
        return;
    const double idle = seconds - w->seconds[value];
    p->gaps[p->n_gaps++] =
        (struct qn_gap){fetch, w->place[value], place,
                        (double)parked_bytes(p, fetch) * idle / transfer_seconds(p, fetch)};
}

static void use(struct walk *w, int value, int place, int step, double seconds)
{
    w->place[value] = place;
    w->step[value] = step;
    w->seconds[value] = seconds;
}

/* Notes a gap before each read of the step; a write begins a new life and ends no gap. */
static void walk_step(struct walk *w, int place, int step, double seconds)
{
    const struct qn_task *task = task_of(w->parking, w->parking->timeline.task[place]);
    for (int i = 0; i < task->n_reads; i++) {
        note_gap(w, task->reads[i].value, place, step, seconds);
        use(w, task->reads[i].value, place, step, seconds);
    }
    for (int i = 0; i < task->n_writes; i++)
        use(w, task->writes[i].value, place, step, seconds);
}

static void walk(struct walk *w)
{
    const struct qn_timeline *t = &w->parking->timeline;
    double seconds = 0;
    for (int place = 0, step = 0; place < t->places; place++)
        if (t->task[place] >= 0) {
            walk_step(w, place, step++, seconds);
            seconds += task_of(w->parking, t->task[place])->seconds;
        }
}

static int compare_gaps(const void *a, const void *b)
{
    const struct qn_gap *x = a, *y = b;
    if (x->worth != y->worth)
        return x->worth > y->worth ? -1 : 1;
    return x->fetch != y->fetch ? x->fetch - y->fetch : x->from - y->from;
}

static int count_reads(const struct qn_problem *problem, const struct qn_steps *steps)
{
    int count = 0;
    for (int i = 0; i < steps->count; i++)
        count += problem->tasks[steps->task[i]].n_reads;
    return count;
}

static bool find_gaps(struct qn_parking *p, const struct qn_steps *steps, struct qn_arena *arena)
{
    const struct qn_problem *problem = p->timeline.problem;
    const size_t values = (size_t)problem->n_values + 1;
    struct walk w = {p, qn_arena_new(arena, int, values), qn_arena_new(arena, int, values),
                     qn_arena_new(arena, int, values), qn_arena_new(arena, double, values)};
    p->gaps = qn_arena_new(arena, struct qn_gap, (size_t)count_reads(problem, steps) + 1);
    if (!p->gaps || !w.fetch || !w.place || !w.step || !w.seconds)
        return false;
    for (int v = 0; v < problem->n_values; v++)
        w.fetch[v] = w.place[v] = -1;
    for (int t = qn_tasks_required(problem); t < problem->n_tasks; t++)
        if (problem->tasks[t].kind == QN_TASK_FETCH)
            w.fetch[problem->tasks[t].writes[0].value] = t;
    walk(&w);
    qsort(p->gaps, (size_t)p->n_gaps, sizeof *p->gaps, compare_gaps);
    return true;
}

bool qn_parking_open(struct qn_parking *p, const struct qn_problem *problem,
                     const struct qn_steps *steps, struct qn_arena *arena)
{
    *p = (struct qn_parking){.n_gaps = 0};
    return qn_timeline_open(&p->timeline, problem, problem->facts->alignment, steps, arena) &&
           find_gaps(p, steps, arena);
}

/* --- parking --- */

/* The first empty place from `from` on towards `to`, `to` excluded; -1: there is none. */
static int empty_place(const struct qn_timeline *t, int from, int to)
{
    const int way = from < to ? 1 : -1;
    for (int place = from; place != to; place += way)
        if (t->task[place] < 0)
            return place;
    return -1;
}

/* Adds the fetch of a gap, and its store if there is none. False: no empty place for them, or the
 * value has QN_MOST_RUNS lives. */
static bool park(struct qn_timeline *t, const struct qn_gap *gap)
{
    const int store = gap->fetch - 1, value = t->problem->tasks[store].reads[0].value;
    const int fetched = empty_place(t, gap->to - 1, gap->from);
    const int stored = t->runs[store].count
                           ? t->runs[store].place[0]
                           : empty_place(t, t->lives[value].life[0].start + 1, fetched);
    if (fetched < 0 || stored < 0 || stored >= fetched || t->lives[value].count == QN_MOST_RUNS)
        return false;
    if (!t->runs[store].count)
        qn_timeline_add(t, store, stored);
    qn_timeline_add(t, gap->fetch, fetched);
    return true;
}

bool qn_parking_step(struct qn_parking *p)
{
    const int peak = qn_timeline_peak_place(&p->timeline);
    for (int i = 0; i < p->n_gaps; i++) {
        struct qn_gap *gap = &p->gaps[i];
        if (gap->from >= peak || gap->to <= peak)
            continue;
        const bool parked = park(&p->timeline, gap);
        gap->to = gap->from; /* never tried again */
        if (parked)
            return true;
    }
    return false;
}
