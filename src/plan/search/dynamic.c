/* SPDX-License-Identifier: MIT
 *
 * The recursion of rotor (Beaumont, Eyraud-Dubois, Herrmann, Joly, Shilova, "Optimal checkpointing
 * for heterogeneous chains", 2019): a section either keeps one of its savings from its forward to
 * its backward tasks, or keeps nothing and is made again from an earlier value, as often as that is
 * cheaper (as in the recursions of Griewank and of Gruslys et al.). Two additions: the value with
 * which a stretch begins is dropped after its last use, unless it is pinned; and gradients are
 * counted where they are alive. Bytes are counted in units (table.unit), rounded up.
 */
#include "plan/search/dynamic.h"

#include <math.h>
#include <string.h>

/* WORK: units * sections^3 is at most this. MOST_PASSES: steps of a list over tasks at most. */
enum { WORK = 14000000, MOST_UNITS = 1000, MOST_PASSES = 8 };

/* A choice: j < SAVE keeps the value between sections j and j + 1; SAVE + i keeps saving i. */
enum { NONE = 255, SAVE = QN_MOST_SECTIONS };

struct table {
    const struct qn_problem *problem;
    const struct qn_section *sections;
    int count;
    int units;
    int64_t unit; /* bytes of a unit */
    float *seconds;
    uint8_t *choice;
    struct qn_steps *steps; /* the list being made */
    int capacity;
};

/* The steps of sections first .. last, forward and backward; at their beginning the value that
 * section `first` reads is alive, and its bytes count. */
struct stretch {
    bool pinned; /* that value stays alive until the end */
    int first, last;
};

static size_t row_of(const struct table *t, struct stretch at)
{
    const size_t n = (size_t)t->count;
    return ((at.pinned * n + (size_t)at.first) * n + (size_t)at.last) * ((size_t)t->units + 1);
}

static int units_for(const struct table *t, int64_t bytes)
{
    const int64_t units = (bytes + t->unit - 1) / t->unit;
    return units > t->units ? t->units + 1 : (int)units;
}

/* The first pass runs every forward task, even one whose results are dropped. */
static bool is_first_pass(const struct table *t, struct stretch at)
{
    return at.last == t->count - 1;
}

/* --- filling --- */

/* Offers a choice to the row of a stretch: for m >= max(need, less) units it takes
 * seconds + a[m - less] + b[m] seconds; a, b may be NULL: 0. */
static void offer(const struct table *t, struct stretch at, int choice, int need, double seconds,
                  const float *a, int less, const float *b)
{
    float *row = &t->seconds[row_of(t, at)];
    uint8_t *choices = &t->choice[row_of(t, at)];
    for (int m = need > less ? need : less; m <= t->units; m++) {
        const float other = (float)seconds + (a ? a[m - less] : 0) + (b ? b[m] : 0);
        if (other < row[m]) {
            row[m] = other;
            choices[m] = (uint8_t)choice;
        }
    }
}

/* Offers the choices that keep the value between two sections and nothing before it. */
static void offer_boundaries(const struct table *t, struct stretch at)
{
    const struct qn_section *first = &t->sections[at.first];
    const int64_t gradients = t->sections[at.last].gradients;
    int64_t most = first->pass[1];
    double seconds = 0;
    for (int j = at.first; j < at.last; j++) {
        if (j > at.first && first->in_bytes + t->sections[j].pass[0] > most)
            most = first->in_bytes + t->sections[j].pass[0];
        seconds += t->sections[j].seconds;
        const struct stretch behind = {false, j + 1, at.last}, before = {at.pinned, at.first, j};
        offer(t, at, j, units_for(t, most + gradients), seconds, &t->seconds[row_of(t, behind)],
              units_for(t, first->in_bytes), &t->seconds[row_of(t, before)]);
    }
}

/* Offers the choices that keep a saving of the first section while the others run. */
static void offer_savings(const struct table *t, struct stretch at)
{
    const struct qn_section *first = &t->sections[at.first];
    const bool again = at.first == at.last && !is_first_pass(t, at);
    const int count = again ? first->n_again : first->n_savings;
    for (int i = 0; i < count; i++) {
        const struct qn_saving *saving = again ? &first->again[i] : &first->saving[i];
        const int64_t forward = saving->forward[at.pinned] + t->sections[at.last].gradients;
        const int64_t backward = saving->backward[at.pinned];
        const struct stretch behind = {saving->holds_end, at.first + 1, at.last};
        const float *rest = at.first < at.last ? &t->seconds[row_of(t, behind)] : NULL;
        offer(t, at, SAVE + i, units_for(t, forward > backward ? forward : backward),
              saving->seconds, rest, rest ? units_for(t, saving->held[at.pinned]) : 0, NULL);
    }
}

static void fill(const struct table *t)
{
    for (int length = 0; length < t->count; length++)
        for (int first = 0; first + length < t->count; first++)
            for (int pinned = 0; pinned < 2; pinned++) {
                const struct stretch at = {pinned, first, first + length};
                for (int m = 0; m <= t->units; m++) {
                    t->seconds[row_of(t, at) + (size_t)m] = INFINITY;
                    t->choice[row_of(t, at) + (size_t)m] = NONE;
                }
                offer_savings(t, at);
                offer_boundaries(t, at);
            }
}

/* --- a list from the table --- */

static void append(struct table *t, int task)
{
    if (t->steps->count < t->capacity)
        t->steps->task[t->steps->count] = task;
    t->steps->count++;
}

static void run_forward(struct table *t, int section, bool first_pass)
{
    for (int i = t->sections[section].first; i <= t->sections[section].last; i++) {
        const struct qn_task *task = &t->problem->tasks[i];
        if (first_pass || qn_task_repeats(task))
            append(t, i);
    }
}

static void list_stretch(struct table *t, struct stretch at, int units)
{
    const int choice = t->choice[row_of(t, at) + (size_t)units];
    const struct qn_section *first = &t->sections[at.first];
    const bool first_pass = is_first_pass(t, at);
    if (choice < SAVE) {
        for (int i = at.first; i <= choice; i++)
            run_forward(t, i, first_pass);
        list_stretch(t, (struct stretch){false, choice + 1, at.last},
                     units - units_for(t, first->in_bytes));
        list_stretch(t, (struct stretch){at.pinned, at.first, choice}, units);
        return;
    }
    const bool again = at.first == at.last && !first_pass;
    const struct qn_saving *saving =
        again ? &first->again[choice - SAVE] : &first->saving[choice - SAVE];
    if (!again)
        run_forward(t, at.first, first_pass);
    if (at.first < at.last)
        list_stretch(t, (struct stretch){saving->holds_end, at.first + 1, at.last},
                     units - units_for(t, saving->held[at.pinned]));
    for (int i = saving->n_forward; i < saving->count; i++)
        append(t, saving->task[i]);
}

/* Leaves out repeated steps whose results are not read. */
static bool leave_out(const struct qn_problem *problem, struct qn_steps *steps,
                      struct qn_arena *arena)
{
    bool *wanted = qn_arena_new(arena, bool, (size_t)problem->n_values + 1);
    int *runs = qn_arena_new(arena, int, (size_t)problem->n_tasks + 1);
    int kept = steps->count;
    if (!wanted || !runs)
        return false;
    for (int i = 0; i < steps->count; i++)
        runs[steps->task[i]]++;
    for (int i = steps->count - 1; i >= 0; i--) {
        const struct qn_task *task = &problem->tasks[steps->task[i]];
        bool used = runs[steps->task[i]]-- == 1;
        for (int w = 0; w < task->n_writes; w++) {
            used |= wanted[task->writes[w].value];
            wanted[task->writes[w].value] &= task->writes[w].accumulates;
        }
        for (int r = 0; used && r < task->n_reads; r++)
            wanted[task->reads[r].value] = true;
        if (used)
            steps->task[--kept] = steps->task[i];
    }
    memmove(steps->task, &steps->task[kept], (size_t)(steps->count - kept) * sizeof *steps->task);
    steps->count -= kept;
    return true;
}

/* steps->count is 0 where the list would be too long. */
static bool list_steps(struct table *t, int units, struct qn_arena *arena, struct qn_steps *steps)
{
    t->capacity = MOST_PASSES * t->problem->n_tasks;
    *steps = (struct qn_steps){.task = qn_arena_new(arena, int, (size_t)t->capacity + 1)};
    t->steps = steps;
    if (!steps->task)
        return false;
    list_stretch(t, (struct stretch){false, 0, t->count - 1}, units);
    if (steps->count > t->capacity) {
        steps->count = 0;
        return true;
    }
    if (!leave_out(t->problem, steps, arena))
        return false;
    for (int i = 0; i < steps->count; i++)
        steps->seconds += t->problem->tasks[steps->task[i]].seconds;
    steps->recomputed = steps->count - t->problem->n_tasks;
    return true;
}

/* --- all lists --- */

static bool open_table(struct table *t, int64_t most, struct qn_arena *arena)
{
    const int cube = t->count * t->count * t->count;
    t->units = WORK / cube < MOST_UNITS ? WORK / cube : MOST_UNITS;
    t->unit = most / t->units + 1;
    const size_t size =
        row_of(t, (struct stretch){true, t->count - 1, t->count - 1}) + (size_t)t->units + 1;
    t->seconds = qn_arena_new(arena, float, size);
    t->choice = qn_arena_new(arena, uint8_t, size);
    return t->seconds && t->choice;
}

bool qn_dynamic_lists(const struct qn_problem *problem, const struct qn_sections *sections,
                      int64_t most, struct qn_arena *arena, struct qn_steps *lists, int *count)
{
    struct table t = {.problem = problem, .sections = sections->items, .count = sections->count};
    int different = 0;
    *count = 0;
    if (!open_table(&t, most, arena))
        return false;
    fill(&t);
    const float *row = &t.seconds[row_of(&t, (struct stretch){false, 0, t.count - 1})];
    for (int m = 1; m <= t.units; m++)
        different += row[m] < row[m - 1];
    const int stride = different / QN_MOST_DYNAMIC + 1;
    for (int m = 1, i = 0; m <= t.units; m++) {
        if (!(row[m] < row[m - 1]) || i++ % stride)
            continue;
        if (!list_steps(&t, m, arena, &lists[*count]))
            return false;
        *count += lists[*count].count > 0;
    }
    return true;
}
