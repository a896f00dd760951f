/* SPDX-License-Identifier: MIT
 *
 * Minimum cuts against all choices that there are, on small random problems.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "plan/search/cut.h"

#include <stdlib.h>
#include <string.h>

enum { FORWARD = 9, BACKWARD = 5, TASKS = FORWARD + BACKWARD, VALUES = 2 * FORWARD, ROUNDS = 300 };
static const double EARLY = 0.3;

/* Forward task t makes values 2 t and 2 t + 1; now and then it cannot be repeated. */
struct random_problem {
    struct qn_problem problem;
    struct qn_task tasks[TASKS];
    struct qn_value values[VALUES];
    int producer[VALUES];
};

static void draw_reads(struct qn_task *task, int values)
{
    task->n_reads = values ? rand() % 4 : 0;
    for (int i = 0; i < task->n_reads; i++)
        task->reads[i].value = rand() % values;
}

static void draw_problem(struct random_problem *r)
{
    memset(r, 0, sizeof *r);
    for (int t = 0; t < TASKS; t++) {
        struct qn_task *task = &r->tasks[t];
        const bool backward = t >= FORWARD;
        *task = (struct qn_task){.kind = QN_TASK_GROUP,
                                 .seconds = (1 + rand() % 100) * 1e-3,
                                 .backward = backward,
                                 .repeatable = !backward && rand() % 8 > 0,
                                 .n_writes = backward ? 0 : 2};
        draw_reads(task, backward ? VALUES : 2 * t);
        for (int i = 0; i < task->n_writes; i++) {
            task->writes[i].value = 2 * t + i;
            r->producer[2 * t + i] = t;
            r->values[2 * t + i].bytes = (1 + rand() % 64) * INT64_C(65536);
            r->values[2 * t + i].life = rand() % 16 ? QN_LIFE_MICRO : QN_LIFE_CYCLE;
        }
    }
    r->problem = (struct qn_problem){.tasks = r->tasks,
                                     .n_tasks = TASKS,
                                     .n_forward = FORWARD,
                                     .values = r->values,
                                     .n_values = VALUES,
                                     .producer = r->producer};
}

/* --- what a choice is --- */

struct choice {
    int64_t bytes;
    double seconds;
    bool possible;
};

static void need(const struct qn_task *task, bool *needed)
{
    for (int i = 0; i < task->n_reads; i++)
        needed[task->reads[i].value] = true;
}

/* `again`: a bit for each forward task that is run again after the moment. */
static struct choice evaluate(const struct qn_problem *p, int moment, unsigned again)
{
    bool needed[VALUES] = {false}, now[VALUES] = {false};
    struct choice c = {.possible = true};
    need(&p->tasks[moment], now);
    for (int t = moment + 1; t < TASKS; t++)
        need(&p->tasks[t], needed);
    for (int t = 0; t < FORWARD; t++)
        if (again >> t & 1u) {
            need(&p->tasks[t], needed);
            c.possible &= p->tasks[t].repeatable;
            c.seconds += p->tasks[t].seconds;
        }
    for (int v = 0; v < VALUES; v++)
        if (needed[v] && !now[v] && p->values[v].life == QN_LIFE_MICRO &&
            !(again >> p->producer[v] & 1u))
            c.bytes += qn_cut_weight(p, v, EARLY);
    return c;
}

static unsigned bits_of(const bool *drop)
{
    unsigned bits = 0;
    for (int t = 0; t < FORWARD; t++)
        bits |= (unsigned)drop[t] << t;
    return bits;
}

/* --- tests --- */

/* How much a choice lies below the line through two cuts, in seconds. */
static double below(const struct qn_cut *a, const struct qn_cut *b, const struct choice *c)
{
    const double share = (double)(a->bytes - c->bytes) / (double)(a->bytes - b->bytes);
    return a->seconds + share * (b->seconds - a->seconds) - c->seconds;
}

static void check_hull(const struct qn_problem *p, int moment, const struct qn_cut *cuts, int count)
{
    for (unsigned again = 0; again < 1u << FORWARD; again++) {
        const struct choice c = evaluate(p, moment, again);
        if (!c.possible)
            continue;
        assert_true(c.bytes >= cuts[count - 1].bytes);
        for (int i = 0; i + 1 < count; i++)
            assert_true(below(&cuts[i], &cuts[i + 1], &c) < 1e-6);
    }
}

static void cuts_are_the_hull_of_all_choices(void **state)
{
    (void)state;
    int most = 0;
    srand(1);
    for (int round = 0; round < ROUNDS; round++) {
        struct random_problem r;
        struct qn_cut cuts[QN_MOST_CUTS];
        struct qn_arena arena = {0};
        const int moment = FORWARD + rand() % BACKWARD;
        int count;
        draw_problem(&r);
        assert_true(qn_cuts_find(&r.problem, moment, EARLY, QN_MOST_CUTS, &arena, cuts, &count));
        assert_true(cuts[0].seconds == 0);
        for (int i = 0; i < count; i++) {
            const struct choice c = evaluate(&r.problem, moment, bits_of(cuts[i].drop));
            assert_true(c.possible && c.bytes == cuts[i].bytes && c.seconds == cuts[i].seconds);
            assert_true(i == 0 || cuts[i].bytes < cuts[i - 1].bytes ||
                        (count == 2 && cuts[i].bytes == cuts[0].bytes));
        }
        if (cuts[0].bytes > cuts[count - 1].bytes)
            check_hull(&r.problem, moment, cuts, count);
        most = count > most ? count : most;
        qn_arena_free(&arena);
    }
    assert_true(most > 4);
}

/* The ends are always there, and what lies between is on the hull. */
static void fewer_cuts_are_some_of_them(void **state)
{
    (void)state;
    srand(2);
    for (int round = 0; round < ROUNDS; round++) {
        struct random_problem r;
        struct qn_cut all[QN_MOST_CUTS], some[QN_MOST_CUTS];
        struct qn_arena arena = {0};
        int n_all, n_some;
        draw_problem(&r);
        assert_true(qn_cuts_find(&r.problem, FORWARD, EARLY, QN_MOST_CUTS, &arena, all, &n_all));
        assert_true(qn_cuts_find(&r.problem, FORWARD, EARLY, 4, &arena, some, &n_some));
        assert_in_range(n_some, 2, 4);
        for (int i = 0, k = 0; i < n_some; i++) {
            while (k < n_all && all[k].bytes != some[i].bytes)
                k++;
            assert_true(k < n_all);
        }
        assert_true(some[n_some - 1].bytes == all[n_all - 1].bytes);
        qn_arena_free(&arena);
    }
}

/* A device that takes a thousand years for a task has the same choices. */
static void slow_tasks_are_cut_alike(void **state)
{
    (void)state;
    srand(4);
    for (int round = 0; round < ROUNDS; round++) {
        struct random_problem r;
        struct qn_cut fast[QN_MOST_CUTS], slow[QN_MOST_CUTS];
        struct qn_arena arena = {0};
        int n_fast, n_slow;
        draw_problem(&r);
        assert_true(qn_cuts_find(&r.problem, FORWARD, EARLY, QN_MOST_CUTS, &arena, fast, &n_fast));
        for (int t = 0; t < TASKS; t++)
            r.tasks[t].seconds *= 0x1p42;
        assert_true(qn_cuts_find(&r.problem, FORWARD, EARLY, QN_MOST_CUTS, &arena, slow, &n_slow));
        assert_int_equal(n_slow, n_fast);
        for (int i = 0; i < n_fast; i++)
            assert_int_equal(bits_of(slow[i].drop), bits_of(fast[i].drop));
        qn_arena_free(&arena);
    }
}

/* Much is kept until backward task 1, which makes what stays to the end; with what task 3 makes
 * that weighs more than a quarter of what was kept. */
static void moments_are_where_bytes_are_scarce(void **state)
{
    (void)state;
    enum { BACK = FORWARD };
    struct random_problem r;
    struct qn_arena arena = {0};
    int moments[QN_MOST_MOMENTS], count;
    srand(3);
    draw_problem(&r);
    for (int t = 0; t < TASKS; t++) {
        r.tasks[t].n_reads = r.tasks[t].n_writes = 0;
        r.tasks[t].repeatable = t < FORWARD;
    }
    r.tasks[0].n_writes = 1;
    r.values[0] = (struct qn_value){.bytes = 1000, .life = QN_LIFE_MICRO};
    r.tasks[BACK + 1].n_reads = 1;
    r.tasks[BACK + 1].reads[0].value = 0;
    r.tasks[BACK + 1].n_writes = r.tasks[BACK + 3].n_writes = 1;
    r.tasks[BACK + 1].writes[0].value = VALUES - 2;
    r.tasks[BACK + 3].writes[0].value = VALUES - 1;
    r.producer[VALUES - 2] = r.producer[VALUES - 1] = -1;
    r.values[VALUES - 2] = (struct qn_value){.bytes = 300, .life = QN_LIFE_CYCLE};
    r.values[VALUES - 1] = (struct qn_value){.bytes = 400, .life = QN_LIFE_MICRO};
    assert_true(qn_moments_find(&r.problem, &arena, moments, &count));
    assert_int_equal(count, 2);
    assert_int_equal(moments[0], BACK + 1);
    assert_int_equal(moments[1], BACK + 3);
    qn_arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cuts_are_the_hull_of_all_choices),
        cmocka_unit_test(fewer_cuts_are_some_of_them),
        cmocka_unit_test(slow_tasks_are_cut_alike),
        cmocka_unit_test(moments_are_where_bytes_are_scarce),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
