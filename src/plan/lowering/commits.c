/* SPDX-License-Identifier: MIT
 *
 * What operators commit once an update: the states of all nodes that lie side by side and move
 * alike in one launch.
 */
#include "base/log.h"
#include "base/shape.h"
#include "plan/lowering/lowering.h"

/* Marks the nodes of the first graph, which has all running averages, whose averages the run
 * gathers. */
static void mark_gathered(struct lowering *l, const struct qn_run_of *run)
{
    const struct qn_persist *persist = l->problem->persist;
    const struct qn_bound *bound = &persist->graphs[run->graph];
    const int nodes = bound->graph->n_nodes;
    bool *used = qn_arena_new(l->how->arena, bool, (size_t)nodes + 1);
    if (!used) {
        l->status = qn_fail(l->how->log, QN_ERR_MEMORY, "plan: out of host memory");
        return;
    }
    qn_run_mark(&persist->runs, run, bound->graph, used);
    for (const struct qn_moving *m = persist->moving; m < persist->moving + persist->n_moving; m++)
        for (int n = 0; n < nodes && m->gather >= 0; n++)
            if (used[n] && bound->gather[n][m->index] == m->gather)
                l->used[m->node - l->graph->nodes] = true;
}

/* The group by which the node commits; NULL: it has nothing to commit. */
static const struct qn_group *commit_of(const struct lowering *l, int n)
{
    const struct qn_node *node = &l->graph->nodes[n];
    if (l->used[n] && node->kind == QN_NODE_OPERATOR)
        for (const struct qn_group *g = node->op->groups; g->name; g++)
            if (g->phase & QN_PHASE_UPDATE)
                return g;
    return NULL;
}

/* Nodes that commit in one launch: their number, the first and the last. */
struct commit {
    const struct qn_group *group;
    int first, last;
};

/* Whether node n's value `ref` begins where that of the last node ends. */
static bool is_next(struct lowering *l, const struct commit *commit, int n, struct qn_ref ref)
{
    const struct qn_value *values = l->problem->values;
    const struct qn_value *last = &values[qn_lower_value_of(l, commit->last, ref)];
    const struct qn_value *next = &values[qn_lower_value_of(l, n, ref)];
    return next->block == last->block &&
           next->block_offset ==
               last->block_offset + qn_round_up(last->bytes, l->how->facts->alignment);
}

static bool joins(struct lowering *l, const struct commit *commit, int n)
{
    const struct qn_node *first = &l->graph->nodes[commit->first], *node = &l->graph->nodes[n];
    if (node->op != first->op || !node->op->commits_like ||
        !node->op->commits_like(node->attr, first->attr))
        return false;
    for (int i = 0; i < QN_MAX_READS && commit->group->read[i].ref.kind; i++)
        if (!is_next(l, commit, n, commit->group->read[i].ref))
            return false;
    return true;
}

/* What the nodes have of `ref`, as one value. */
static int span_of(struct lowering *l, const struct commit *commit, struct qn_ref ref)
{
    const int first = qn_lower_value_of(l, commit->first, ref);
    const struct qn_value *from = &l->problem->values[first];
    const struct qn_value *to = &l->problem->values[qn_lower_value_of(l, commit->last, ref)];
    const int64_t size = qn_dtype_size(from->operand.dtype);
    return commit->first == commit->last
               ? first
               : qn_lower_add_slice(l, from->block, from->block_offset / size,
                                    (to->block_offset + to->bytes - from->block_offset) / size);
}

static void add_commit(struct lowering *l, const struct commit *commit)
{
    const struct qn_node *first = &l->graph->nodes[commit->first];
    const char *name = commit->first == commit->last ? first->name : NULL;
    struct qn_task *task = qn_lower_add_own(l, first->op->name, name, first->attr);
    task->group = commit->group;
    for (int i = 0; i < QN_MAX_READS && task->group->read[i].ref.kind; i++) {
        const int value = span_of(l, commit, task->group->read[i].ref);
        task->reads[task->n_reads++] =
            (struct qn_use){value, task->group->read[i].ref, l->problem->values[value].operand};
    }
    for (int i = 0; i < QN_MAX_WRITES && task->group->write[i].ref.kind; i++) {
        const int value = span_of(l, commit, task->group->write[i].ref);
        task->writes[task->n_writes++] =
            (struct qn_output_use){.value = value,
                                   .ref = task->group->write[i].ref,
                                   .operand = l->problem->values[value].operand,
                                   .in_place = -1};
    }
}

/* Adds the commits of the marked nodes. */
static void add_marked(struct lowering *l)
{
    struct commit commit = {0};
    for (int n = 0; n < l->graph->n_nodes; n++) {
        const struct qn_group *group = commit_of(l, n);
        if (!group)
            continue;
        const bool more = commit.group && joins(l, &commit, n);
        if (commit.group && !more)
            add_commit(l, &commit);
        commit = (struct commit){group, more ? commit.first : n, n};
    }
    if (commit.group)
        add_commit(l, &commit);
}

void qn_lower_add_commits(struct lowering *l)
{
    const struct qn_run_set *runs = &l->problem->persist->runs;
    for (int r = 0; r < runs->n_runs; r++)
        if (runs->run[r].what != QN_RUN_EVALUATE)
            mark_gathered(l, &runs->run[r]);
    add_marked(l);
    l->problem->n_forward = l->problem->n_tasks;
}
