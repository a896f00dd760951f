/* SPDX-License-Identifier: MIT */
#include "plan/search/anneal.h"

#include "plan/search/timeline.h"

#include <math.h>
#include <string.h>

/* First temperature over the first objective; last temperature over the first temperature. */
static const double HOT = 1e-2, COLD = 1e-3;

/* Slots: how far below a drawn place an empty one is looked for; half the longest hop of a draw. */
enum { NEAR = 8 };

struct annealer {
    struct qn_timeline timeline;
    int64_t target;
    bool within;
    uint64_t random;
    int *movable; /* forward tasks that may run again, and fetches */
    int n_movable;
    double objective, best;
    bool fits;      /* the peak of the best list is at most the target */
    int *best_task; /* the best list: task by place */
};

/* splitmix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014). */
static uint64_t draw(struct annealer *a)
{
    uint64_t z = a->random += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static int draw_below(struct annealer *a, int count)
{
    return (int)((draw(a) >> 32) * (uint64_t)count >> 32);
}

static double draw_uniform(struct annealer *a)
{
    return (double)(draw(a) >> 11) * 0x1p-53;
}

static double objective_of(const struct annealer *a)
{
    const int64_t peak = qn_timeline_peak(&a->timeline);
    return (double)(peak > a->target ? peak : a->target) * a->timeline.seconds;
}

/* --- moves --- */

/* A move: the steps that it added and removed, in that order. */
enum { MOST_CHANGES = 24 };
struct move {
    struct {
        int task, place;
        bool added;
    } change[MOST_CHANGES];
    int count;
};

static void add(struct annealer *a, struct move *m, int task, int place)
{
    qn_timeline_add(&a->timeline, task, place);
    m->change[m->count].task = task;
    m->change[m->count].place = place;
    m->change[m->count++].added = true;
}

static void remove_run(struct annealer *a, struct move *m, int task, int place)
{
    qn_timeline_remove(&a->timeline, task, place);
    m->change[m->count].task = task;
    m->change[m->count].place = place;
    m->change[m->count++].added = false;
}

static void take_back(struct annealer *a, struct move *m)
{
    while (m->count--) {
        const int task = m->change[m->count].task, place = m->change[m->count].place;
        if (m->change[m->count].added)
            qn_timeline_remove(&a->timeline, task, place);
        else
            qn_timeline_add(&a->timeline, task, place);
    }
}

/* Draws a place a little before a step that uses a value which the task makes; with probability 1/4
 * any place. */
static int draw_place(struct annealer *a, int task)
{
    const struct qn_timeline *t = &a->timeline;
    const struct qn_task *maker = &t->problem->tasks[task];
    const int value = maker->writes[draw_below(a, maker->n_writes)].value;
    const int users = t->uses.users[value + 1] - t->uses.users[value];
    const int user = t->uses.user[t->uses.users[value] + draw_below(a, users)];
    const struct qn_runs *runs = &t->runs[user];
    if (!runs->count || draw_below(a, 4) == 0)
        return draw_below(a, t->places);
    int place = runs->place[draw_below(a, runs->count)];
    for (int steps = draw_below(a, 4); place > 0 && steps >= 0; steps--)
        place -= 1 + draw_below(a, 2 * NEAR);
    return place > 0 ? place : 0;
}

/* The nearest empty place at or below `place`; -1: none within NEAR places. */
static int empty_below(const struct qn_timeline *t, int place)
{
    for (int tries = 0; place >= 0 && tries < NEAR; tries++, place--)
        if (t->task[place] < 0)
            return place;
    return -1;
}

/* Also makes some of the values that the new step reads again, right before it. */
static void add_makers(struct annealer *a, struct move *m, int task, int place)
{
    const struct qn_task *reader = &a->timeline.problem->tasks[task];
    for (int i = 0; i < reader->n_reads && m->count < MOST_CHANGES; i++) {
        const int maker = a->timeline.problem->producer[reader->reads[i].value];
        if (maker < 0 || !a->timeline.problem->tasks[maker].repeatable || draw_below(a, 2))
            continue;
        const int below = empty_below(&a->timeline, place - 1);
        if (below < 0 || !qn_timeline_may_add(&a->timeline, maker, below))
            continue;
        add(a, m, maker, below);
        add_makers(a, m, maker, below);
    }
}

static bool lives_at(const struct qn_timeline *t, int value, int place)
{
    const struct qn_lives *lives = &t->lives[value];
    for (int i = 0; i < lives->count; i++)
        if (lives->life[i].start < place && lives->life[i].end >= place)
            return true;
    return false;
}

/* Adds a step and, right before it, steps that make what it reads and what would not be alive
 * there: a chain of cheap steps may pay off where none of its steps alone does. */
static void add_chain(struct annealer *a, struct move *m, int task, int place)
{
    const struct qn_timeline *t = &a->timeline;
    const struct qn_task *reader = &t->problem->tasks[task];
    bool lives[QN_MAX_READS];
    for (int i = 0; i < reader->n_reads; i++)
        lives[i] = lives_at(t, reader->reads[i].value, place);
    add(a, m, task, place);
    for (int i = 0; i < reader->n_reads && m->count < MOST_CHANGES; i++) {
        const int maker = t->problem->producer[reader->reads[i].value];
        const int below = empty_below(t, place - 1);
        if (!lives[i] && maker >= 0 && t->problem->tasks[maker].repeatable && below >= 0 &&
            qn_timeline_may_add(t, maker, below))
            add_chain(a, m, maker, below);
    }
}

/* Adds a store right after the step that first makes the value, unless there is one. False: there
 * is no place for it. */
static bool has_store(struct annealer *a, struct move *m, int fetch)
{
    const struct qn_timeline *t = &a->timeline;
    const int store = fetch - 1;
    if (t->runs[store].count)
        return true;
    int place = t->lives[t->problem->tasks[store].reads[0].value].life[0].start + 1;
    for (int tries = 0; tries < NEAR && place < t->places; tries++, place++)
        if (t->task[place] < 0) {
            add(a, m, store, place);
            return true;
        }
    return false;
}

/* Removes the store of a fetch of which no step is left. */
static void remove_store(struct annealer *a, struct move *m, int fetch)
{
    const struct qn_timeline *t = &a->timeline;
    if (!t->runs[fetch].count)
        remove_run(a, m, fetch - 1, t->runs[fetch - 1].place[0]);
}

static bool is_fetch(const struct annealer *a, int task)
{
    return a->timeline.problem->tasks[task].kind == QN_TASK_FETCH;
}

static bool add_fetch(struct annealer *a, struct move *m, int fetch)
{
    const int place = empty_below(&a->timeline, draw_place(a, fetch));
    if (place < 0 || !has_store(a, m, fetch))
        return false;
    if (a->timeline.task[place] < 0 && qn_timeline_may_add(&a->timeline, fetch, place)) {
        add(a, m, fetch, place);
        return true;
    }
    take_back(a, m);
    return false;
}

static bool add_one(struct annealer *a, struct move *m, int task)
{
    if (is_fetch(a, task))
        return add_fetch(a, m, task);
    const int place = empty_below(&a->timeline, draw_place(a, task));
    if (place < 0 || !qn_timeline_may_add(&a->timeline, task, place))
        return false;
    if (draw_below(a, 2)) {
        add_chain(a, m, task, place);
        return true;
    }
    add(a, m, task, place);
    if (draw_below(a, 2))
        add_makers(a, m, task, place);
    return true;
}

/* After the step was removed: removes some of the steps before it that made what it read. */
static void remove_makers(struct annealer *a, struct move *m, int task, int place)
{
    const struct qn_task *reader = &a->timeline.problem->tasks[task];
    for (int i = 0; i < reader->n_reads && m->count < MOST_CHANGES; i++) {
        const int maker = a->timeline.problem->producer[reader->reads[i].value];
        const struct qn_runs *runs = maker >= 0 ? &a->timeline.runs[maker] : NULL;
        int last = runs ? runs->count - 1 : -1;
        while (last >= 0 && runs->place[last] > place)
            last--;
        if (last < 1 || draw_below(a, 4) == 0)
            continue;
        const int at = runs->place[last];
        if (!qn_timeline_may_remove(&a->timeline, maker, at))
            continue;
        remove_run(a, m, maker, at);
        remove_makers(a, m, maker, at);
    }
}

static bool remove_one(struct annealer *a, struct move *m)
{
    const int task = a->movable[draw_below(a, a->n_movable)];
    const struct qn_runs *runs = &a->timeline.runs[task];
    if (!runs->count)
        return false;
    const int place = runs->place[draw_below(a, runs->count)];
    if (!qn_timeline_may_remove(&a->timeline, task, place))
        return false;
    remove_run(a, m, task, place);
    return true;
}

enum { ADD, REMOVE, ROTATE, KINDS };

/* Makes a random move. False: the list is unchanged. */
static bool try_move(struct annealer *a, struct move *m)
{
    const int kind = draw_below(a, KINDS);
    m->count = 0;
    if (kind == ADD)
        return add_one(a, m, a->movable[draw_below(a, a->n_movable)]);
    if (!remove_one(a, m))
        return false;
    if (kind == REMOVE) {
        if (is_fetch(a, m->change[0].task))
            remove_store(a, m, m->change[0].task);
        else if (draw_below(a, 2))
            remove_makers(a, m, m->change[0].task, m->change[0].place);
        return true;
    }
    const int task = m->change[0].task, place = empty_below(&a->timeline, draw_place(a, task));
    if (place >= 0 && qn_timeline_may_add(&a->timeline, task, place)) {
        add(a, m, task, place);
        return true;
    }
    take_back(a, m);
    return false;
}

static void take_as_best(struct annealer *a)
{
    a->fits = qn_timeline_peak(&a->timeline) <= a->target;
    a->best = a->objective;
    memcpy(a->best_task, a->timeline.task, (size_t)a->timeline.places * sizeof *a->best_task);
}

/* A list within the target is better than one above it; else the lesser objective is better. */
static void note_best(struct annealer *a)
{
    const bool fits = qn_timeline_peak(&a->timeline) <= a->target;
    if (fits == a->fits ? a->objective < a->best : fits)
        take_as_best(a);
}

static void step(struct annealer *a, double heat)
{
    struct move m;
    if (!try_move(a, &m))
        return;
    const double now = objective_of(a), worse = now - a->objective;
    const bool leaves = a->within && a->fits && qn_timeline_peak(&a->timeline) > a->target;
    if (leaves || (worse > 0 && worse > -heat * log(1 - draw_uniform(a)))) {
        take_back(a, &m);
        return;
    }
    a->objective = now;
    note_best(a);
}

static void run(struct annealer *a, int64_t moves)
{
    const double hot = HOT * a->objective, cooling = pow(COLD, 1.0 / (double)(moves + 1));
    double heat = hot;
    for (int64_t i = 0; i < moves; i++) {
        step(a, heat);
        heat *= cooling;
    }
}

/* --- beginning and end --- */

static bool open(struct annealer *a, const struct qn_problem *problem, const struct qn_steps *from,
                 const struct qn_anneal_params *params, struct qn_arena *arena)
{
    *a = (struct annealer){
        .target = params->target, .within = params->within, .random = params->seed};
    if (!qn_timeline_open(&a->timeline, problem, problem->facts->alignment, from, arena))
        return false;
    a->movable = qn_arena_new(arena, int, (size_t)problem->n_tasks + 1);
    a->best_task = qn_arena_new(arena, int, (size_t)a->timeline.places);
    if (!a->movable || !a->best_task)
        return false;
    for (int t = 0; t < problem->n_tasks; t++)
        if (qn_task_repeats(&problem->tasks[t]) || problem->tasks[t].kind == QN_TASK_FETCH)
            a->movable[a->n_movable++] = t;
    a->objective = objective_of(a);
    take_as_best(a);
    return true;
}

/* Makes the timeline the best list seen. */
static void restore_best(struct annealer *a)
{
    for (int s = 0; s < a->timeline.places; s++)
        if (a->timeline.task[s] >= 0 && a->best_task[s] != a->timeline.task[s])
            qn_timeline_remove(&a->timeline, a->timeline.task[s], s);
    for (int s = 0; s < a->timeline.places; s++)
        if (a->best_task[s] >= 0 && a->timeline.task[s] < 0)
            qn_timeline_add(&a->timeline, a->best_task[s], s);
}

bool qn_anneal(const struct qn_problem *problem, const struct qn_steps *from,
               const struct qn_anneal_params *params, struct qn_arena *arena,
               struct qn_steps *steps, int64_t *peak)
{
    struct annealer a;
    if (!open(&a, problem, from, params, arena))
        return false;
    if (a.n_movable)
        run(&a, params->moves);
    restore_best(&a);
    *peak = qn_timeline_peak(&a.timeline);
    return qn_timeline_steps(&a.timeline, arena, steps);
}
