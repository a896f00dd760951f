/* SPDX-License-Identifier: MIT
 *
 * At one moment of the backward pass, what is read later is alive or made again, and what is alive
 * fits: minimum cuts (plan/cut.h) say how many seconds that takes at least. Many moments are looked
 * at, each alone; the most that one of them says counts. Nothing is counted twice: of bytes that
 * two values may share, only one's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "bound.h"
#include "plan/search/cut.h"

#include <math.h>

/* The first backward tasks, where most is alive, and every so many of those after them. */
enum { FIRST_ONES = 24, STRIDE = 12 };

struct bounding {
    const struct qn_problem *problem;
    struct qn_arena arena;
    int *first, *last; /* by value: backward task that makes it first or uses it last; -1 */
    bool *seen;        /* by value: was counted */
};

static void find_lives(struct bounding *b)
{
    const struct qn_problem *p = b->problem;
    for (int v = 0; v < p->n_values; v++)
        b->first[v] = b->last[v] = -1;
    for (int t = p->n_forward; t < qn_tasks_required(p); t++) {
        for (int i = 0; i < p->tasks[t].n_reads; i++)
            b->last[p->tasks[t].reads[i].value] = t;
        for (int i = 0; i < p->tasks[t].n_writes; i++) {
            const int v = p->tasks[t].writes[i].value;
            b->first[v] = b->first[v] < 0 ? t : b->first[v];
            b->last[v] = t;
        }
    }
}

static bool is_there(const struct bounding *b, int value, int moment)
{
    const struct qn_problem *p = b->problem;
    const bool made = b->first[value] >= 0 && b->first[value] <= moment;
    switch (p->values[value].life) {
    case QN_LIFE_TRAINING:
        return true;
    case QN_LIFE_CYCLE:
        return made;
    default:
        return made && p->producer[value] < 0 && moment <= b->last[value];
    }
}

static int64_t count(struct bounding *b, int value)
{
    const int root = qn_value_root(b->problem, value);
    const int64_t bytes = b->seen[root] ? 0 : b->problem->values[root].bytes;
    b->seen[root] = true;
    return bytes;
}

/* Alive at a moment, whatever is kept: with what the task reads, without what its results may take
 * the place of. */
static int64_t fixed_bytes(struct bounding *b, int moment)
{
    const struct qn_problem *p = b->problem;
    const struct qn_task *task = &p->tasks[moment];
    int64_t bytes = task->scratch;
    for (int v = 0; v < p->n_values; v++)
        b->seen[v] = false;
    for (int v = 0; v < p->n_values; v++)
        if (is_there(b, v, moment))
            bytes += count(b, v);
    for (int i = 0; i < task->n_reads; i++)
        if (p->values[task->reads[i].value].life == QN_LIFE_MICRO)
            bytes += count(b, task->reads[i].value);
    for (int i = 0; i < task->n_writes; i++)
        if (task->writes[i].in_place >= 0)
            bytes -= p->values[task->writes[i].value].bytes;
    return bytes;
}

static struct qn_cut cut_at(struct bounding *b, int moment, double price, struct qn_arena *arena)
{
    struct qn_cut cut;
    assert_true(qn_cut_find(b->problem, moment, 0, price, arena, &cut));
    return cut;
}

/* At a price, the cheapest choice with what it needs beyond the room paid for is no dearer than any
 * choice that fits. The best price is that between two choices, one too large and one that fits,
 * beside which there is no cheaper one. */
static double least_in(struct bounding *b, int moment, int64_t room, struct qn_arena *arena)
{
    struct qn_cut large = cut_at(b, moment, 0, arena), fits = cut_at(b, moment, INFINITY, arena);
    if (large.bytes <= room)
        return 0;
    if (fits.bytes > room)
        return INFINITY;
    for (;;) {
        const double price = (fits.seconds - large.seconds) / (double)(large.bytes - fits.bytes);
        const struct qn_cut cut = cut_at(b, moment, price, arena);
        if (cut.bytes >= large.bytes || cut.bytes <= fits.bytes)
            return cut.seconds + price * (double)(cut.bytes - room);
        *(cut.bytes > room ? &large : &fits) = cut;
    }
}

static double least_at(struct bounding *b, int moment, int64_t bytes)
{
    struct qn_arena arena = {0};
    const double seconds = least_in(b, moment, bytes - fixed_bytes(b, moment), &arena);
    qn_arena_free(&arena);
    return seconds;
}

double test_least_recompute(const struct qn_problem *problem, int64_t bytes)
{
    const size_t values = (size_t)problem->n_values + 1;
    struct bounding b = {.problem = problem};
    double most = 0;
    b.first = qn_arena_new(&b.arena, int, values);
    b.last = qn_arena_new(&b.arena, int, values);
    b.seen = qn_arena_new(&b.arena, bool, values);
    assert_true(b.first && b.last && b.seen);
    find_lives(&b);
    for (int i = 0, t; (t = problem->n_forward + i) < qn_tasks_required(problem);
         i += i < FIRST_ONES ? 1 : STRIDE)
        most = fmax(most, least_at(&b, t, bytes));
    qn_arena_free(&b.arena);
    return most;
}
