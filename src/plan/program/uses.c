/* SPDX-License-Identifier: MIT */
#include "plan/program/uses.h"

#include "base/arena.h"

enum qn_use_kind qn_use_of(const struct qn_task *task, int value)
{
    for (int i = 0; i < task->n_writes; i++)
        if (task->writes[i].value == value)
            return task->writes[i].accumulates ? QN_USE_READ : QN_USE_WRITE;
    for (int i = 0; i < task->n_reads; i++)
        if (task->reads[i].value == value)
            return QN_USE_READ;
    return QN_USE_NONE;
}

/* The items of pairs (of, item), sorted by `of`: list[where[of]] .. list[where[of + 1] - 1]. Two
 * rounds: the first counts the items of each `of`, the second one fills `list`. */
struct listing {
    int *list, *where;
    bool fill;
};

static void add_pair(struct listing *l, int of, int item)
{
    if (l->fill)
        l->list[--l->where[of]] = item;
    else
        l->where[of]++;
}

static int value_of(const struct qn_task *task, int use)
{
    return use < task->n_reads ? task->reads[use].value : task->writes[use - task->n_reads].value;
}

static bool is_first_use(const struct qn_task *task, int use)
{
    for (int i = 0; i < use; i++)
        if (value_of(task, i) == value_of(task, use))
            return false;
    return true;
}

static void list_pairs(const struct qn_problem *problem, struct listing *users,
                       struct listing *heirs)
{
    for (int t = 0; t < problem->n_tasks; t++) {
        const struct qn_task *task = &problem->tasks[t];
        for (int i = 0; i < task->n_reads + task->n_writes; i++)
            if (is_first_use(task, i))
                add_pair(users, value_of(task, i), t);
        for (int i = 0; i < task->n_writes; i++)
            if (task->writes[i].in_place >= 0 && !task->writes[i].accumulates &&
                problem->values[task->writes[i].value].life == QN_LIFE_MICRO)
                add_pair(heirs, task->writes[i].in_place, task->writes[i].value);
    }
}

static bool sum_up(struct listing *l, int values, struct qn_arena *arena)
{
    for (int v = 1; v <= values; v++)
        l->where[v] += l->where[v - 1];
    l->list = qn_arena_new(arena, int, (size_t)l->where[values] + 1);
    l->fill = true;
    return l->list;
}

static bool list_writes(struct qn_uses *uses, const struct qn_problem *problem,
                        struct qn_arena *arena)
{
    uses->writes = qn_arena_new(arena, bool, (size_t)uses->users[problem->n_values] + 1);
    for (int v = 0; uses->writes && v < problem->n_values; v++)
        for (int u = uses->users[v]; u < uses->users[v + 1]; u++)
            uses->writes[u] = qn_use_of(&problem->tasks[uses->user[u]], v) == QN_USE_WRITE;
    return uses->writes;
}

bool qn_uses_find(struct qn_uses *uses, const struct qn_problem *problem, struct qn_arena *arena)
{
    const int values = problem->n_values;
    struct listing users = {.where = qn_arena_new(arena, int, (size_t)values + 1)};
    struct listing heirs = {.where = qn_arena_new(arena, int, (size_t)values + 1)};
    if (!users.where || !heirs.where)
        return false;
    list_pairs(problem, &users, &heirs);
    if (!sum_up(&users, values, arena) || !sum_up(&heirs, values, arena))
        return false;
    list_pairs(problem, &users, &heirs);
    *uses = (struct qn_uses){
        .user = users.list, .users = users.where, .heir = heirs.list, .heirs = heirs.where};
    return list_writes(uses, problem, arena);
}
