/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/shape.h"
#include "sets.h"

struct making {
    const struct qn_problem *problem;
    struct test_sets *sets;
    int *bit;          /* by value: -1: no forward task writes it, or it is persistent */
    int *first, *last; /* by value: the fixed tasks between which it is used */
};

static bool is_micro(const struct making *m, int value)
{
    return m->problem->values[value].life == QN_LIFE_MICRO;
}

static bool is_movable(const struct qn_task *task)
{
    return task->repeatable && task->kind == QN_TASK_GROUP;
}

static uint64_t set_of(const struct making *m, int value)
{
    return m->bit[value] < 0 ? 0 : UINT64_C(1) << m->bit[value];
}

static int64_t bytes_of(const struct making *m, int value)
{
    return qn_round_up(m->problem->values[value].bytes, m->problem->facts->alignment);
}

static int *new_numbers(struct qn_arena *arena, int count)
{
    int *numbers = qn_arena_new(arena, int, (size_t)count + 1);
    assert_non_null(numbers);
    for (int i = 0; i < count; i++)
        numbers[i] = -1;
    return numbers;
}

static void number_values(struct making *m)
{
    int count = 0;
    for (int v = 0; v < m->problem->n_values; v++) {
        if (m->problem->producer[v] < 0 || !is_micro(m, v))
            continue;
        assert_true(count < TEST_MOST_VALUES);
        m->bit[v] = count;
        m->sets->bytes[count++] = bytes_of(m, v);
    }
    for (int i = 0; i < TEST_MOST_VALUES / 8; i++)
        for (int set = 1; set < TEST_BYTE; set++)
            for (int b = 0; b < 8; b++)
                if (set >> b & 1)
                    m->sets->sum[i][set] += m->sets->bytes[8 * i + b];
}

/* --- tasks --- */

static bool reads(const struct qn_task *task, int value)
{
    bool found = false;
    for (int i = 0; i < task->n_reads; i++)
        found |= task->reads[i].value == value;
    return found;
}

/* Of two writes that could take over the same bytes the first one does. */
static bool may_take(const struct qn_task *task, int write)
{
    const int over = task->writes[write].in_place;
    bool may = over >= 0 && !task->writes[write].accumulates && reads(task, over);
    for (int i = 0; i < write; i++)
        may &= task->writes[i].in_place != over;
    return may;
}

static void add_action(const struct making *m, int number, struct test_action *action)
{
    const struct qn_task *task = &m->problem->tasks[number];
    *action =
        (struct test_action){.task = number,
                             .seconds = task->seconds,
                             .scratch = qn_round_up(task->scratch, m->problem->facts->alignment)};
    for (int i = 0; i < task->n_reads; i++)
        action->reads |= set_of(m, task->reads[i].value);
    for (int i = 0; i < task->n_writes; i++) {
        const int value = task->writes[i].value;
        *(task->writes[i].accumulates ? &action->reads : &action->writes) |= set_of(m, value);
        if (may_take(task, i) && set_of(m, task->writes[i].in_place)) {
            action->in_place[action->n_in_place].over = set_of(m, task->writes[i].in_place);
            action->in_place[action->n_in_place++].bytes = bytes_of(m, value);
        }
    }
}

static void add_actions(struct making *m)
{
    for (int t = 0; t < m->problem->n_tasks; t++) {
        const bool movable = is_movable(&m->problem->tasks[t]);
        add_action(m, t,
                   movable ? &m->sets->movable[m->sets->n_movable++]
                           : &m->sets->fixed[m->sets->n_fixed++]);
    }
    for (int i = 0; i < m->sets->n_fixed; i++)
        m->sets->from_fixed |= m->sets->fixed[i].writes;
}

/* --- places --- */

static void note_use(struct making *m, int value, int fixed)
{
    if (m->first[value] < 0)
        m->first[value] = fixed;
    m->last[value] = fixed;
}

static void find_uses(struct making *m)
{
    for (int i = 0; i < m->sets->n_fixed; i++) {
        const struct qn_task *task = &m->problem->tasks[m->sets->fixed[i].task];
        for (int r = 0; r < task->n_reads; r++)
            note_use(m, task->reads[r].value, i);
        for (int w = 0; w < task->n_writes; w++)
            note_use(m, task->writes[w].value, i);
    }
}

static void hold_gradients(struct making *m)
{
    for (int v = 0; v < m->problem->n_values; v++) {
        if (!is_micro(m, v) || m->bit[v] >= 0 || m->first[v] < 0)
            continue;
        for (int i = m->first[v]; i <= m->last[v]; i++) {
            m->sets->places[i].during += bytes_of(m, v);
            if (i > m->first[v])
                m->sets->places[i].before += bytes_of(m, v);
        }
    }
}

/* One gradient in the place of another. */
static void share_gradients(struct making *m)
{
    for (int i = 0; i < m->sets->n_fixed; i++) {
        const struct qn_task *task = &m->problem->tasks[m->sets->fixed[i].task];
        for (int w = 0; w < task->n_writes; w++) {
            const int over = task->writes[w].in_place;
            if (may_take(task, w) && m->bit[over] < 0 && m->last[over] == i)
                m->sets->places[i].during -= bytes_of(m, over);
        }
    }
}

static void look_ahead(struct test_sets *sets)
{
    for (int i = sets->n_fixed - 1; i >= 0; i--) {
        struct test_place *place = &sets->places[i], *next = place + 1;
        place->direct = next->direct | sets->fixed[i].reads;
        place->ahead = next->ahead | sets->fixed[i].writes;
        place->seconds = next->seconds + sets->fixed[i].seconds;
        place->useful = place->direct;
        for (int t = sets->n_movable - 1; t >= 0; t--)
            if (sets->movable[t].writes & place->useful)
                place->useful |= sets->movable[t].reads;
    }
}

void test_sets_make(const struct qn_problem *problem, struct qn_arena *arena,
                    struct test_sets *sets)
{
    const size_t tasks = (size_t)problem->n_tasks;
    struct making m = {.problem = problem, .sets = sets};
    *sets = (struct test_sets){.fixed = qn_arena_new(arena, struct test_action, tasks),
                               .movable = qn_arena_new(arena, struct test_action, tasks),
                               .places = qn_arena_new(arena, struct test_place, tasks + 1)};
    assert_true(sets->fixed && sets->movable && sets->places);
    m.bit = new_numbers(arena, problem->n_values);
    m.first = new_numbers(arena, problem->n_values);
    m.last = new_numbers(arena, problem->n_values);
    number_values(&m);
    add_actions(&m);
    find_uses(&m);
    hold_gradients(&m);
    share_gradients(&m);
    look_ahead(sets);
}
