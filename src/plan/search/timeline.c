/* SPDX-License-Identifier: MIT */
#include "plan/search/timeline.h"

#include "base/shape.h"

#include <string.h>

/* --- the tree: adds bytes to a range of places, knows the largest of all --- */

static void add_to(struct qn_timeline *t, int node, int64_t bytes)
{
    t->tree[node].largest += bytes;
    if (node < t->places)
        t->tree[node].sum += bytes;
}

/* tree[n].largest = max(of both children) + tree[n].sum. False when nothing changed. */
static bool gather(struct qn_timeline *t, int node)
{
    const int64_t left = t->tree[2 * node].largest, right = t->tree[2 * node + 1].largest;
    const int64_t before = t->tree[node].largest;
    t->tree[node].largest = (left > right ? left : right) + t->tree[node].sum;
    return t->tree[node].largest != before;
}

/* Adds bytes to the places of a span: climbs from the leaves at both ends to their common ancestor,
 * adding to the subtrees between; from there on as far as anything changes. */
static void add_span(struct qn_timeline *t, struct qn_span span, int64_t bytes)
{
    if (span.start > span.end || !bytes)
        return;
    int left = span.start + t->places, right = span.end + t->places;
    add_to(t, left, bytes);
    if (left != right)
        add_to(t, right, bytes);
    for (; left >> 1 != right >> 1; left >>= 1, right >>= 1) {
        if (!(left & 1))
            add_to(t, left + 1, bytes);
        if (right & 1)
            add_to(t, right - 1, bytes);
        gather(t, left >> 1);
        gather(t, right >> 1);
    }
    while ((left >>= 1) && gather(t, left))
        ;
}

/* Moves `bytes` from span `old` to span `now`: only places in exactly one of them change. */
static void move_span(struct qn_timeline *t, struct qn_span old, struct qn_span now, int64_t bytes)
{
    if (old.start > old.end || now.start > now.end) {
        add_span(t, old, -bytes);
        add_span(t, now, bytes);
        return;
    }
    add_span(t, (struct qn_span){now.start, old.start - 1}, bytes);
    add_span(t, (struct qn_span){old.start, now.start - 1}, -bytes);
    add_span(t, (struct qn_span){old.end + 1, now.end}, bytes);
    add_span(t, (struct qn_span){now.end + 1, old.end}, -bytes);
}

/* --- lives --- */

static bool is_micro(const struct qn_timeline *t, int value)
{
    return t->briefs[value].micro;
}

/* Lists the steps that use the value, in order, in t->events; gives their number. */
static int list_events(struct qn_timeline *t, int value)
{
    struct qn_event *events = t->events;
    int count = 0;
    for (int u = t->uses.users[value]; u < t->uses.users[value + 1]; u++) {
        const struct qn_runs *runs = &t->runs[t->uses.user[u]];
        for (int r = 0; r < runs->count; r++) {
            int at = count++;
            for (; at > 0 && events[at - 1].place > runs->place[r]; at--)
                events[at] = events[at - 1];
            events[at] = (struct qn_event){runs->place[r], t->uses.writes[u]};
        }
    }
    return count;
}

static void find_lives(struct qn_timeline *t, int value)
{
    const struct qn_event *events = t->events;
    struct qn_lives *lives = &t->lives[value];
    const int count = list_events(t, value);
    lives->count = 0;
    for (int i = 0; i < count; i++) {
        if (events[i].write)
            lives->life[lives->count++] = (struct qn_span){events[i].place, events[i].place};
        else if (lives->count)
            lives->life[lives->count - 1].end = events[i].place;
    }
}

static bool ends_at(const struct qn_timeline *t, int value, int place)
{
    const struct qn_lives *lives = &t->lives[value];
    for (int i = 0; i < lives->count; i++)
        if (lives->life[i].end == place)
            return true;
    return false;
}

/* Whether the task, which begins a life of `value` in this place, writes it over the bytes of a
 * value whose life ends there and whose bytes no earlier write of the task took. */
static bool takes_over(const struct qn_timeline *t, int task, int value, int place)
{
    const struct qn_task *maker = &t->problem->tasks[task];
    int w = 0;
    while (maker->writes[w].value != value)
        w++;
    const int over = maker->writes[w].in_place;
    if (over < 0 || qn_use_of(maker, over) != QN_USE_READ || !ends_at(t, over, place))
        return false;
    for (int i = 0; i < w; i++)
        if (maker->writes[i].in_place == over)
            return false;
    return true;
}

/* Updates `held` and the tree to the lives of the value, which had `before` lives. */
static void hold(struct qn_timeline *t, int value, int before)
{
    struct qn_lives *lives = &t->lives[value];
    for (int i = 0; i < lives->count || i < before; i++) {
        struct qn_span now = {0, -1};
        if (i < lives->count) {
            now = lives->life[i];
            if (t->briefs[value].heir)
                now.start += takes_over(t, t->task[now.start], value, now.start);
        }
        const struct qn_span old = i < before ? lives->held[i] : (struct qn_span){0, -1};
        move_span(t, old, now, t->briefs[value].bytes);
        lives->held[i] = now;
    }
}

/* --- steps --- */

/* After a step of the task was added or removed: updates the lives of the values that it uses, and
 * which values take over bytes. */
static void update(struct qn_timeline *t, int task)
{
    const struct qn_task *changed = &t->problem->tasks[task];
    int values[QN_MAX_READS + QN_MAX_WRITES], before[QN_MAX_READS + QN_MAX_WRITES], count = 0;
    for (int i = 0; i < changed->n_reads + changed->n_writes; i++) {
        const int value = i < changed->n_reads ? changed->reads[i].value
                                               : changed->writes[i - changed->n_reads].value;
        if (!is_micro(t, value))
            continue;
        values[count] = value;
        before[count++] = t->lives[value].count;
        find_lives(t, value);
    }
    for (int i = 0; i < count; i++)
        hold(t, values[i], before[i]);
    for (int i = 0; i < count; i++)
        for (int h = t->uses.heirs[values[i]]; h < t->uses.heirs[values[i] + 1]; h++)
            hold(t, t->uses.heir[h], t->lives[t->uses.heir[h]].count);
}

static void count_run(struct qn_timeline *t, int task, int place, int sign)
{
    const struct qn_task *run = &t->problem->tasks[task];
    t->seconds += sign * run->seconds;
    add_span(t, (struct qn_span){place, place}, sign * qn_round_up(run->scratch, t->alignment));
}

static void insert(struct qn_timeline *t, int task, int place)
{
    struct qn_runs *runs = &t->runs[task];
    int at = runs->count++;
    for (; at > 0 && runs->place[at - 1] > place; at--)
        runs->place[at] = runs->place[at - 1];
    runs->place[at] = place;
    t->task[place] = task;
    count_run(t, task, place, 1);
}

void qn_timeline_add(struct qn_timeline *t, int task, int place)
{
    insert(t, task, place);
    update(t, task);
}

void qn_timeline_remove(struct qn_timeline *t, int task, int place)
{
    struct qn_runs *runs = &t->runs[task];
    int at = 0;
    while (runs->place[at] != place)
        at++;
    for (runs->count--; at < runs->count; at++)
        runs->place[at] = runs->place[at + 1];
    t->task[place] = -1;
    count_run(t, task, place, -1);
    update(t, task);
}

bool qn_timeline_may_add(const struct qn_timeline *t, int task, int place)
{
    const struct qn_task *added = &t->problem->tasks[task];
    if (t->runs[task].count == QN_MOST_RUNS)
        return false;
    for (int i = 0; i < added->n_reads; i++) {
        const int value = added->reads[i].value;
        if (is_micro(t, value) &&
            (!t->lives[value].count || t->lives[value].life[0].start >= place))
            return false;
    }
    for (int i = 0; i < added->n_writes; i++)
        if (t->lives[added->writes[i].value].count == QN_MOST_RUNS)
            return false;
    return true;
}

bool qn_timeline_may_remove(const struct qn_timeline *t, int task, int place)
{
    const struct qn_task *removed = &t->problem->tasks[task];
    for (int i = 0; i < removed->n_writes; i++) {
        const struct qn_lives *lives = &t->lives[removed->writes[i].value];
        if (lives->life[0].start == place && lives->life[0].end > place)
            return false;
    }
    return true;
}

int qn_timeline_peak_place(const struct qn_timeline *t)
{
    int node = 1;
    while (node < t->places)
        node = 2 * node + (t->tree[2 * node + 1].largest > t->tree[2 * node].largest);
    return node - t->places;
}

bool qn_timeline_steps(const struct qn_timeline *t, struct qn_arena *arena, struct qn_steps *steps)
{
    int count = 0;
    for (int s = 0; s < t->places; s++)
        count += t->task[s] >= 0;
    *steps = (struct qn_steps){.task = qn_arena_new(arena, int, (size_t)count + 1)};
    if (!steps->task)
        return false;
    for (int s = 0; s < t->places; s++)
        if (t->task[s] >= 0) {
            steps->task[steps->count++] = t->task[s];
            steps->seconds += t->problem->tasks[t->task[s]].seconds;
        }
    for (int i = 0; i < t->problem->n_tasks; i++)
        if (t->problem->tasks[i].kind == QN_TASK_GROUP && t->runs[i].count)
            steps->recomputed += t->runs[i].count - 1;
    return true;
}

/* --- opening --- */

static bool make_briefs(struct qn_timeline *t, struct qn_arena *arena)
{
    const struct qn_problem *p = t->problem;
    t->briefs = qn_arena_alloc(arena, (size_t)p->n_values + 1, sizeof *t->briefs);
    for (int v = 0; t->briefs && v < p->n_values; v++) {
        t->briefs[v].bytes = qn_round_up(p->values[v].bytes, t->alignment);
        t->briefs[v].micro = p->values[v].life == QN_LIFE_MICRO;
    }
    for (int task = 0; t->briefs && task < p->n_tasks; task++)
        for (int i = 0; i < p->tasks[task].n_writes; i++)
            t->briefs[p->tasks[task].writes[i].value].heir |=
                p->tasks[task].writes[i].in_place >= 0;
    return t->briefs;
}

/* Allocates t->events for the value whose users have the most steps. */
static bool allocate_events(struct qn_timeline *t, struct qn_arena *arena)
{
    int most = 0;
    for (int v = 0; v < t->problem->n_values; v++)
        if (is_micro(t, v) && t->uses.users[v + 1] - t->uses.users[v] > most)
            most = t->uses.users[v + 1] - t->uses.users[v];
    t->events = qn_arena_alloc(arena, (size_t)most * QN_MOST_RUNS + 1, sizeof *t->events);
    return t->events;
}

static bool allocate(struct qn_timeline *t, struct qn_arena *arena)
{
    t->task = qn_arena_new(arena, int, (size_t)t->places);
    t->runs = qn_arena_alloc(arena, (size_t)t->problem->n_tasks + 1, sizeof *t->runs);
    t->lives = qn_arena_alloc(arena, (size_t)t->problem->n_values + 1, sizeof *t->lives);
    t->tree = qn_arena_alloc(arena, (size_t)t->places * 2, sizeof *t->tree);
    return t->task && t->runs && t->lives && t->tree && make_briefs(t, arena) &&
           qn_uses_find(&t->uses, t->problem, arena) && allocate_events(t, arena);
}

bool qn_runs_often(const struct qn_problem *problem, const struct qn_steps *steps,
                   struct qn_arena *arena, bool *often)
{
    int *writes = qn_arena_new(arena, int, (size_t)problem->n_values + 1);
    *often = false;
    for (int i = 0; writes && i < steps->count; i++) {
        const struct qn_task *task = &problem->tasks[steps->task[i]];
        for (int w = 0; w < task->n_writes; w++)
            *often |=
                !task->writes[w].accumulates && ++writes[task->writes[w].value] > QN_MOST_RUNS;
    }
    return writes;
}

enum { PLACES_PER_STEP = 8 };

bool qn_timeline_open(struct qn_timeline *t, const struct qn_problem *problem, int64_t alignment,
                      const struct qn_steps *steps, struct qn_arena *arena)
{
    *t = (struct qn_timeline){.problem = problem, .alignment = alignment, .places = 1};
    while (t->places < PLACES_PER_STEP * steps->count)
        t->places *= 2;
    if (!allocate(t, arena))
        return false;
    for (int s = 0; s < t->places; s++)
        t->task[s] = -1;
    for (int i = 0; i < steps->count; i++) {
        if (t->runs[steps->task[i]].count == QN_MOST_RUNS)
            return false;
        insert(t, steps->task[i], (int)((int64_t)t->places * (i + 1) / (steps->count + 1)));
    }
    for (int v = 0; v < problem->n_values; v++)
        if (is_micro(t, v))
            find_lives(t, v);
    for (int v = 0; v < problem->n_values; v++)
        if (is_micro(t, v))
            hold(t, v, 0);
    return true;
}
