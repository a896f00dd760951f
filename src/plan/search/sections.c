/* SPDX-License-Identifier: MIT */
#include "plan/search/sections.h"

#include "base/shape.h"
#include "plan/search/seeds.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* What a section may keep, from all to nothing; and for how long what was made again is held. */
enum { LEVELS = 6 };
static const int windows[] = {0, 8, 4, 2, 1};
enum { N_WINDOWS = sizeof windows / sizeof *windows };

struct sectioning {
    const struct qn_problem *problem;
    const int64_t *saved;
    struct qn_arena *arena;
    struct qn_sections *out;
    /* A walk along a list, from its end: values that count, and those of them that are alive. */
    int64_t *bytes, live;
    bool *alive;
    int64_t *before, *during; /* by backward task: bytes of what no section makes again */
    /* The section at hand as a problem of its own. */
    struct qn_problem own;
    int *number; /* by its tasks: the task */
    bool *drop;
};

static int64_t bytes_of(const struct sectioning *s, int value)
{
    return qn_round_up(s->problem->values[value].bytes, s->problem->facts->alignment);
}

/* --- walking back --- */

/* Bytes that the task writes over others, which are read for the last time. */
static int64_t taken_over(const struct sectioning *s, const struct qn_task *task)
{
    int64_t bytes = 0;
    for (int i = 0; i < task->n_writes; i++) {
        const int over = task->writes[i].in_place;
        bool takes = over >= 0 && !task->writes[i].accumulates && s->bytes[over] && !s->alive[over];
        for (int k = 0; k < i; k++)
            takes &= task->writes[k].in_place != over;
        bytes += takes ? s->bytes[task->writes[i].value] : 0;
    }
    return bytes;
}

static int64_t need(struct sectioning *s, int value)
{
    if (s->alive[value] || !s->bytes[value])
        return 0;
    s->alive[value] = true;
    s->live += s->bytes[value];
    return s->bytes[value];
}

/* From behind a task to before it; gives the bytes alive while it runs, without scratch. */
static int64_t step_back(struct sectioning *s, const struct qn_task *task)
{
    int64_t during = s->live - taken_over(s, task);
    for (int i = 0; i < task->n_writes; i++) {
        const int value = task->writes[i].value;
        if (task->writes[i].accumulates)
            continue;
        if (!s->alive[value])
            during += s->bytes[value];
        else
            s->live -= s->bytes[value];
        s->alive[value] = false;
    }
    for (int i = 0; i < task->n_writes; i++)
        during += task->writes[i].accumulates ? need(s, task->writes[i].value) : 0;
    for (int i = 0; i < task->n_reads; i++)
        during += need(s, task->reads[i].value);
    return during;
}

static int64_t scratch_of(const struct sectioning *s, const struct qn_task *task)
{
    return qn_round_up(task->scratch, s->problem->facts->alignment);
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* --- one saving --- */

/* What a section's list begins with, or ends with where no step of it makes that, is alive. */
static void forget_ends(struct sectioning *s, const struct qn_section *section)
{
    if (section->in >= 0)
        s->alive[section->in] = false;
    if (section->out >= 0)
        s->alive[section->out] = false;
    s->live = 0;
}

/* What lies between forward and backward steps: the value that the section ends with. */
static void cross(struct sectioning *s, const struct qn_section *section, struct qn_saving *saving,
                  bool pinned)
{
    const int out = section->out;
    saving->holds_end = out >= 0 && s->alive[out];
    saving->held[pinned] = s->live - (saving->holds_end ? s->bytes[out] : 0);
    if (out >= 0)
        need(s, out);
}

static void measure(struct sectioning *s, const struct qn_section *section,
                    struct qn_saving *saving, bool pinned)
{
    int next = section->end;
    if (pinned && section->in >= 0)
        need(s, section->in);
    for (int i = saving->count - 1; i >= saving->n_forward; i--) {
        const struct qn_task *task = &s->problem->tasks[saving->task[i]];
        const bool backward = saving->task[i] >= s->problem->n_forward;
        next = backward ? saving->task[i] : next;
        const int64_t others = backward ? s->during[next] : s->before[next];
        saving->backward[pinned] =
            larger(saving->backward[pinned], others + step_back(s, task) + scratch_of(s, task));
    }
    cross(s, section, saving, pinned);
    for (int i = saving->n_forward - 1; i >= 0; i--) {
        const struct qn_task *task = &s->problem->tasks[saving->task[i]];
        saving->forward[pinned] =
            larger(saving->forward[pinned], step_back(s, task) + scratch_of(s, task));
    }
    forget_ends(s, section);
}

static bool is_beaten(const struct qn_saving *by, const struct qn_saving *saving)
{
    bool beaten = by->seconds <= saving->seconds && by->holds_end <= saving->holds_end;
    for (int pinned = 0; pinned < 2; pinned++)
        beaten &= by->forward[pinned] <= saving->forward[pinned] &&
                  by->held[pinned] <= saving->held[pinned] &&
                  by->backward[pinned] <= saving->backward[pinned];
    return beaten;
}

/* Adds one unless another is as good. */
static void keep_saving(struct qn_saving *savings, int *count, const struct qn_saving *saving)
{
    int kept = 0;
    for (int i = 0; i < *count; i++)
        if (is_beaten(&savings[i], saving))
            return;
    for (int i = 0; i < *count; i++)
        if (!is_beaten(saving, &savings[i]))
            savings[kept++] = savings[i];
    if (kept < QN_MOST_SAVINGS)
        savings[kept++] = *saving;
    *count = kept;
}

/* `again`: the steps after the forward tasks alone, for section->again. */
static bool add_saving(struct sectioning *s, struct qn_section *section,
                       const struct qn_steps *steps, bool again)
{
    const int from = again ? s->own.n_forward : 0;
    struct qn_saving saving = {.task = qn_arena_new(s->arena, int, (size_t)steps->count + 1),
                               .count = steps->count - from,
                               .n_forward = s->own.n_forward - from};
    if (!saving.task)
        return false;
    for (int i = 0; i < saving.count; i++) {
        saving.task[i] = s->number[steps->task[from + i]];
        if (saving.task[i] < s->problem->n_forward)
            saving.seconds += s->problem->tasks[saving.task[i]].seconds;
    }
    measure(s, section, &saving, false);
    measure(s, section, &saving, true);
    keep_saving(again ? section->again : section->saving,
                again ? &section->n_again : &section->n_savings, &saving);
    return true;
}

/* Adds the steps of s->drop; with `nothing`, where all is dropped, to section->again as well. */
static bool try_policy(struct sectioning *s, struct qn_section *section, int window, bool nothing)
{
    struct qn_steps steps;
    const struct qn_policy policy = {s->drop, window};
    if (!qn_steps_make(&s->own, &policy, s->arena, &steps))
        return false;
    if (!steps.count)
        return true;
    return add_saving(s, section, &steps, false) &&
           (!nothing || add_saving(s, section, &steps, true));
}

static int compare_worths(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x == y ? 0 : x > y ? -1 : 1;
}

/* The bytes for a second that tasks of the section free, the most first. */
static int list_worths(const struct sectioning *s, double *worths)
{
    int count = 0;
    for (int t = 0; t < s->own.n_forward; t++)
        if (s->saved[s->number[t]] > 0)
            worths[count++] = (double)s->saved[s->number[t]] / s->own.tasks[t].seconds;
    qsort(worths, (size_t)count, sizeof *worths, compare_worths);
    return count;
}

static bool add_savings(struct sectioning *s, struct qn_section *section)
{
    double *worths = qn_arena_new(s->arena, double, (size_t)s->own.n_forward + 1);
    if (!worths)
        return false;
    const int count = list_worths(s, worths);
    memset(s->drop, 0, (size_t)s->own.n_tasks * sizeof *s->drop);
    if (!try_policy(s, section, 0, false))
        return false;
    for (int level = 1; level <= LEVELS; level++) {
        const int at = count * level / LEVELS;
        const double least = at < count ? worths[at] : 0;
        for (int t = 0; t < s->own.n_forward; t++)
            s->drop[t] = qn_pays(&s->own.tasks[t], s->saved[s->number[t]], least);
        for (int w = 0; w < (level == LEVELS ? N_WINDOWS : 1); w++)
            if (!try_policy(s, section, windows[w], level == LEVELS))
                return false;
    }
    return true;
}

/* --- a section as a problem --- */

static void take_task(struct sectioning *s, int task)
{
    const struct qn_task *taken = &s->problem->tasks[task];
    const int number = s->own.n_tasks++;
    s->own.tasks[number] = *taken;
    s->number[number] = task;
    for (int i = 0; task < s->problem->n_forward && i < taken->n_writes; i++) {
        const int value = taken->writes[i].value;
        s->own.producer[value] = number;
        s->bytes[value] = s->problem->values[value].life == QN_LIFE_MICRO ? bytes_of(s, value) : 0;
    }
}

static void begin_section(struct sectioning *s, struct qn_section *section)
{
    s->own.n_tasks = 0;
    if (section->in >= 0) {
        s->own.producer[section->in] = -1;
        s->bytes[section->in] = section->in_bytes;
    }
    for (int t = section->first; t <= section->last; t++)
        if (qn_task_repeats(&s->problem->tasks[t])) {
            take_task(s, t);
            section->seconds += s->problem->tasks[t].seconds;
        }
    s->own.n_forward = s->own.n_tasks;
    for (int t = section->backward; t < section->end; t++)
        take_task(s, t);
}

static void end_section(struct sectioning *s, const struct qn_section *section)
{
    if (section->in >= 0)
        s->bytes[section->in] = 0;
    for (int t = 0; t < s->own.n_forward; t++)
        for (int i = 0; i < s->own.tasks[t].n_writes; i++) {
            s->own.producer[s->own.tasks[t].writes[i].value] = -1;
            s->bytes[s->own.tasks[t].writes[i].value] = 0;
        }
}

static bool fill_section(struct sectioning *s, struct qn_section *section)
{
    begin_section(s, section);
    struct qn_saving pass = {
        .task = s->number, .count = s->own.n_forward, .n_forward = s->own.n_forward};
    for (int pinned = 0; pinned < 2; pinned++) {
        measure(s, section, &pass, pinned);
        section->pass[pinned] = pass.forward[pinned];
    }
    const bool done = add_savings(s, section);
    end_section(s, section);
    return done;
}

/* --- what no section makes again --- */

static void walk_others(struct sectioning *s)
{
    const struct qn_problem *p = s->problem;
    for (int v = 0; v < p->n_values; v++)
        if (p->values[v].life == QN_LIFE_MICRO &&
            (p->producer[v] < 0 || !qn_task_repeats(&p->tasks[p->producer[v]])))
            s->bytes[v] = bytes_of(s, v);
    for (int i = 0; i < s->out->count; i++) {
        struct qn_section *section = &s->out->items[i];
        for (int t = section->end - 1; t >= section->backward; t--) {
            s->during[t] = step_back(s, &p->tasks[t]);
            s->before[t] = s->live;
        }
        section->gradients = s->live;
        for (int t = section->last; t >= section->first; t--)
            if (qn_task_repeats(&p->tasks[t]))
                step_back(s, &p->tasks[t]);
    }
    s->live = 0;
    memset(s->bytes, 0, (size_t)p->n_values * sizeof *s->bytes);
    memset(s->alive, 0, (size_t)p->n_values * sizeof *s->alive);
}

/* --- cutting --- */

/* By forward task: the first and the last backward task of its node. */
struct owned {
    int *first, *last;
};

static bool find_owned(const struct sectioning *s, struct owned *owned)
{
    const struct qn_problem *p = s->problem;
    int *owner = qn_arena_new(s->arena, int, (size_t)p->bound->graph->n_nodes + 1);
    owned->first = qn_arena_new(s->arena, int, (size_t)p->n_forward + 1);
    owned->last = qn_arena_new(s->arena, int, (size_t)p->n_forward + 1);
    if (!owner || !owned->first || !owned->last)
        return false;
    for (int n = 0; n < p->bound->graph->n_nodes; n++)
        owner[n] = -1;
    for (int t = 0; t < p->n_forward; t++) {
        owned->first[t] = INT_MAX;
        owned->last[t] = -1;
        if (p->tasks[t].node >= 0)
            owner[p->tasks[t].node] = t;
    }
    for (int t = p->n_forward, at = p->n_forward - 1; t < p->n_tasks; t++) {
        const int node = p->tasks[t].node;
        at = node >= 0 && owner[node] >= 0 ? owner[node] : at;
        owned->first[at] = t < owned->first[at] ? t : owned->first[at];
        owned->last[at] = t;
    }
    return true;
}

/* By forward task: the first backward task of the part that ends with it, if all of those behind
 * come before; 0: they do not. */
static bool find_splits(const struct sectioning *s, int *split)
{
    struct owned owned;
    int first = INT_MAX, last = -1;
    if (!find_owned(s, &owned))
        return false;
    for (int t = 0; t < s->problem->n_forward; t++) {
        first = owned.first[t] < first ? owned.first[t] : first;
        split[t] = first;
    }
    for (int t = s->problem->n_forward - 1; t >= 0; t--) {
        split[t] = last < split[t] && split[t] != INT_MAX ? split[t] : 0;
        last = owned.last[t] > last ? owned.last[t] : last;
    }
    return true;
}

/* Ends a section behind a task and begins the next one. */
static void cut_behind(struct sectioning *s, int task, int value, int split)
{
    struct qn_section *section = &s->out->items[s->out->count++];
    section->last = task;
    section->backward = split;
    section->out = value;
    section[1].first = task + 1;
    section[1].end = split;
    section[1].in = value;
    section[1].in_bytes = bytes_of(s, value);
}

static void cut(struct sectioning *s, const int *crosses, const int *split)
{
    const struct qn_problem *p = s->problem;
    int64_t total = 0, since = 0;
    int count = 0;
    for (int t = 0; t < p->n_forward; t++) {
        total += s->saved[t];
        count += crosses[t] >= 0 && split[t];
    }
    const int64_t most = count < QN_MOST_SECTIONS ? -1 : total / (QN_MOST_SECTIONS - 1);
    s->out->items[0] = (struct qn_section){.end = p->n_tasks, .in = -1};
    for (int t = 0; t < p->n_forward; t++) {
        since += s->saved[t];
        if (crosses[t] < 0 || !split[t] || since <= most)
            continue;
        cut_behind(s, t, crosses[t], split[t]);
        since = 0;
    }
    struct qn_section *last = &s->out->items[s->out->count++];
    last->last = p->n_forward - 1;
    last->backward = p->n_forward;
    last->out = -1;
}

static bool allocate(struct sectioning *s)
{
    const size_t values = (size_t)s->problem->n_values + 1, tasks = (size_t)s->problem->n_tasks + 1;
    s->bytes = qn_arena_new(s->arena, int64_t, values);
    s->alive = qn_arena_new(s->arena, bool, values);
    s->before = qn_arena_new(s->arena, int64_t, tasks);
    s->during = qn_arena_new(s->arena, int64_t, tasks);
    s->number = qn_arena_new(s->arena, int, tasks);
    s->drop = qn_arena_new(s->arena, bool, tasks);
    s->own = *s->problem;
    s->own.tasks = qn_arena_new(s->arena, struct qn_task, tasks);
    s->own.producer = qn_arena_new(s->arena, int, values);
    s->out->items = qn_arena_new(s->arena, struct qn_section, QN_MOST_SECTIONS);
    for (size_t v = 0; s->own.producer && v < values; v++)
        s->own.producer[v] = -1;
    return s->bytes && s->alive && s->before && s->during && s->number && s->drop && s->own.tasks &&
           s->own.producer && s->out->items;
}

bool qn_sections_find(const struct qn_problem *problem, const struct qn_boundaries *boundaries,
                      struct qn_arena *arena, struct qn_sections *sections)
{
    struct sectioning s = {
        .problem = problem, .saved = boundaries->saved, .arena = arena, .out = sections};
    int *split = qn_arena_new(arena, int, (size_t)problem->n_forward + 1);
    *sections = (struct qn_sections){.count = 0};
    if (!split || !allocate(&s) || !find_splits(&s, split))
        return false;
    cut(&s, boundaries->crosses, split);
    walk_others(&s);
    for (int i = 0; i < sections->count; i++)
        if (!fill_section(&s, &sections->items[i]))
            return false;
    return true;
}
