/* SPDX-License-Identifier: MIT
 *
 * A group of members: opening them, and their updates.
 */
#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "group/member.h"
#include "run/trainer.h"

#include <stdlib.h>
#include <string.h>

/* --- opening --- */

static qn_status copy_given(struct qn_device_group *group, const struct qn_group_member *members)
{
    const size_t count = (size_t)group->count, all = (size_t)group->all;
    group->given = calloc(count, sizeof *group->given);
    group->members = calloc(count, sizeof *group->members);
    group->counts = calloc(all, sizeof *group->counts);
    group->shares = calloc(all, sizeof *group->shares);
    if (!group->given || !group->members || !group->counts || !group->shares)
        return qn_fail(&group->log, QN_ERR_MEMORY, "group: out of host memory");
    memcpy(group->given, members, count * sizeof *members);
    for (int m = 0; m < group->count; m++)
        group->members[m] = (struct qn_member){.group = group, .given = &group->given[m]};
    for (int m = 0; m < group->all; m++)
        group->shares[m] = group->params.transports ? group->params.shares[m] : members[m].share;
    return QN_OK;
}

static qn_status open_transports(struct qn_device_group *group)
{
    const qn_transport *given = group->params.transports;
    if (!given)
        QN_TRY(qn_hub_open(&group->hub, group->count, group->params.timeout));
    for (int m = 0; m < group->count; m++) {
        qn_transport *transport = &group->members[m].transport;
        if (given)
            *transport = given[m];
        else
            QN_TRY(qn_hub_transport(group->hub, m, transport));
    }
    return QN_OK;
}

static qn_status refuse_cells(const struct qn_device_group *group, const struct qn_plan *plan)
{
    for (int c = 0; c < plan->runs.n_cells; c++)
        if (qn_cell_is_kept(&plan->runs.cell[c]))
            return qn_fail(&group->log, QN_ERR_ARGUMENT,
                           "group: %s: a bank takes rows in the order of one device's micro-steps",
                           plan->runs.cell[c].name);
    return QN_OK;
}

static bool reads_rows(const struct qn_plan *plan, const struct qn_graph *graph)
{
    for (int n = 0; n < graph->n_nodes; n++)
        if (qn_cell_of_samples(&plan->runs, &graph->nodes[n]))
            return true;
    return false;
}

/* Whole runs go over what micro-steps of all members have left in cells; of the rest of the graph
 * each member computes all, and so nothing that it shares with micro-steps. */
static qn_status check_whole_runs(const struct qn_device_group *group, const struct qn_plan *plan)
{
    for (int r = 0; r < plan->runs.n_runs; r++) {
        const struct qn_run_of *run = &plan->runs.run[r];
        if (run->whole && !reads_rows(plan, plan->graphs[run->graph]))
            return qn_fail(&group->log, QN_ERR_ARGUMENT,
                           "group: run '%s' computes all samples of a cycle at once, of which each "
                           "member has its own",
                           run->name);
    }
    for (int p = 0; p < plan->persist.n_parameters; p++) {
        const struct qn_parameter *parameter = &plan->persist.parameters[p];
        if (parameter->trainable && parameter->by_steps && parameter->by_whole)
            return qn_fail(&group->log, QN_ERR_ARGUMENT,
                           "group: %s: gets gradients of micro-steps and of runs over the whole "
                           "cycle",
                           parameter->node->name);
    }
    return QN_OK;
}

static qn_status check_plans(const struct qn_device_group *group)
{
    for (int m = 0; m < group->count; m++) {
        const struct qn_plan *plan = group->given[m].plan;
        QN_REQUIRE(&group->log, plan && group->given[m].device);
        if (plan->persist.early)
            return qn_fail(&group->log, QN_ERR_ARGUMENT,
                           "group: early_updates do not wait for the other members");
        QN_TRY(refuse_cells(group, plan));
        QN_TRY(check_whole_runs(group, plan));
        for (int o = 0; o < m; o++)
            QN_REQUIRE(&group->log, group->given[o].device != group->given[m].device);
    }
    return QN_OK;
}

/* What members must agree on: parameters, losses, optimizer and settings of the training. */
static uint64_t digest(const struct qn_device_group *group, const struct qn_plan *plan)
{
    const struct qn_persist *persist = &plan->persist;
    const qn_trainer_params *t = &group->params.trainer;
    const double settings[] = {(double)t->seed,
                               t->weight_decay,
                               t->clip,
                               (double)(group->params.unit ? group->params.unit : 1),
                               persist->shard.members,
                               persist->averaging ? persist->averaging->decay : 0};
    uint64_t hash = qn_hash(QN_HASH_START, settings, sizeof settings);
    for (int p = 0; p < persist->n_parameters; p++) {
        const struct qn_node *node = persist->parameters[p].node;
        const int64_t count = qn_operand_count(&node->leaf);
        hash = qn_hash(hash, node->name, strlen(node->name) + 1);
        hash = qn_hash(hash, &count, sizeof count);
    }
    for (int l = 0; l < plan->n_losses; l++)
        hash = qn_hash(hash, &plan->losses[l].coefficient, sizeof plan->losses[l].coefficient);
    hash = qn_hash(hash, persist->optimizer->name, strlen(persist->optimizer->name) + 1);
    return qn_hash(hash, group->shares, (size_t)group->all * sizeof *group->shares);
}

static qn_status compare(struct qn_member *member)
{
    const struct qn_device_group *group = member->group;
    const uint64_t own = digest(group, member->given->plan);
    uint64_t *all = calloc((size_t)group->all, sizeof *all);
    if (!all)
        return qn_fail(NULL, QN_ERR_MEMORY, "out of host memory");
    qn_status status = member->transport.gather(member->transport.user, &own, sizeof own, all);
    for (int m = 0; status == QN_OK && m < group->all; m++)
        if (all[m] != own)
            status = qn_fail(NULL, QN_ERR_ARGUMENT,
                             "its model, settings or shares are not those of member %d", m);
    free(all);
    return status;
}

/* The plan of one that shares the optimizer's work is for its own number. */
static qn_status check_number(const struct qn_member *member)
{
    const struct qn_shard *shard = &member->given->plan->persist.shard;
    if (!shard->members ||
        (shard->members == member->group->all && shard->member == member->transport.member))
        return QN_OK;
    return qn_fail(NULL, QN_ERR_ARGUMENT, "its plan is for member %d of %d, and it is %d of %d",
                   shard->member, shard->members, member->transport.member, member->group->all);
}

static qn_status open_member(struct qn_member *member)
{
    QN_TRY(compare(member));
    QN_TRY(check_number(member));
    QN_TRY(qn_trainer_open(&member->trainer, member->given->device, member->given->plan,
                           &member->group->params.trainer));
    return qn_exchange_open(&member->exchange, member->trainer, &member->transport,
                            member->group->counts);
}

static qn_status open_group(struct qn_device_group *group, const struct qn_group_member *members)
{
    QN_REQUIRE(&group->log, group->params.unit >= 0 && group->params.timeout >= 0);
    QN_TRY(copy_given(group, members));
    QN_TRY(check_plans(group));
    QN_TRY(open_transports(group));
    QN_TRY(qn_members_start(group));
    return qn_members_do(group, open_member);
}

qn_status qn_group_open(qn_group **out, const qn_group_member *members, int count,
                        const qn_group_params *params)
{
    if (out)
        *out = NULL;
    QN_REQUIRE(NULL, out && members && count > 0 && count <= QN_MAX_GROUP);
    QN_REQUIRE(NULL, !params || !params->transports || params->shares);
    struct qn_device_group *group = calloc(1, sizeof *group);
    if (!group)
        return qn_fail(NULL, QN_ERR_MEMORY, "group: out of host memory");
    if (params) {
        group->params = *params;
        group->log = params->log;
    }
    group->count = count;
    group->all = group->params.transports ? group->params.transports->members : count;
    const qn_status status = open_group(group, members);
    if (status != QN_OK)
        qn_group_close(&group);
    *out = group;
    return status;
}

void qn_group_close(qn_group **group)
{
    if (!group || !*group)
        return;
    struct qn_device_group *g = *group;
    qn_members_stop(g);
    for (int m = 0; g->members && m < g->count; m++) {
        qn_exchange_close(&g->members[m].exchange);
        qn_trainer_close(&g->members[m].trainer);
    }
    qn_hub_close(&g->hub);
    free(g->given);
    free(g->members);
    free(g->counts);
    free(g->shares);
    free(g);
    *group = NULL;
}

/* --- updates --- */

/* The range of the present cycle that is the member's. */
static qn_cycle own_cycle(const struct qn_member *member)
{
    const struct qn_device_group *group = member->group;
    qn_cycle own = *group->cycle;
    own.samples = group->counts[member->transport.member];
    own.whole = group->cycle->samples;
    own.first = qn_member_first(member);
    own.measure_noise = false; /* the first micro-step of a member is none of the whole cycle */
    return own;
}

static qn_status step(struct qn_member *member)
{
    qn_cycle own = own_cycle(member);
    own.reduce = &member->exchange.reduce;
    QN_TRY(qn_trainer_step(member->trainer, &own, &member->metrics));
    member->exchange.figures.updates++;
    member->exchange.figures.samples += own.samples;
    return QN_OK;
}

/* Gives every member its range of the cycle. */
static qn_status divide(struct qn_device_group *group, const qn_cycle *cycle)
{
    QN_REQUIRE(&group->log, !cycle->first && !cycle->whole && !cycle->reduce);
    QN_TRY(qn_group_check_averages(group));
    QN_TRY(qn_group_split(cycle->samples, group->params.unit ? group->params.unit : 1,
                          group->shares, group->all, group->counts));
    group->cycle = cycle;
    return QN_OK;
}

qn_status qn_group_step(qn_group *group, const qn_cycle *cycle, qn_metrics *previous)
{
    QN_REQUIRE(NULL, group && cycle);
    QN_TRY(divide(group, cycle));
    QN_TRY(qn_members_do(group, step));
    if (previous)
        *previous = group->members[0].metrics;
    return QN_OK;
}

static qn_status finish(struct qn_member *member)
{
    return qn_trainer_finish(member->trainer, &member->metrics);
}

qn_status qn_group_finish(qn_group *group, qn_metrics *last)
{
    QN_REQUIRE(NULL, group);
    QN_TRY(qn_members_do(group, finish));
    if (last)
        *last = group->members[0].metrics;
    return QN_OK;
}

/* --- timing --- */

static qn_status time_own(struct qn_member *member)
{
    const qn_transport *transport = &member->transport;
    const qn_cycle own = own_cycle(member);
    double seconds = 0;
    QN_TRY(transport->gather(transport->user, &seconds, sizeof seconds, member->seconds));
    const double began = qn_clock();
    if (own.samples) {
        QN_TRY(qn_trainer_accumulate(member->trainer, &own));
        seconds = qn_clock() - began;
    }
    return transport->gather(transport->user, &seconds, sizeof seconds, member->seconds);
}

qn_status qn_group_time(qn_group *group, const qn_cycle *cycle, double *seconds)
{
    QN_REQUIRE(NULL, group && cycle && seconds);
    QN_TRY(divide(group, cycle));
    double *rooms = calloc((size_t)group->count * (size_t)group->all, sizeof *rooms);
    if (!rooms)
        return qn_fail(&group->log, QN_ERR_MEMORY, "group: out of host memory");
    for (int m = 0; m < group->count; m++)
        group->members[m].seconds = rooms + m * group->all;
    const qn_status status = qn_members_do(group, time_own);
    memcpy(seconds, rooms, (size_t)group->all * sizeof *seconds);
    free(rooms);
    return status;
}

/* --- looking on --- */

qn_trainer *qn_group_trainer(const qn_group *group, int member)
{
    return group && member >= 0 && member < group->count ? group->members[member].trainer : NULL;
}

qn_status qn_group_measure(const qn_group *group, int member, qn_group_figures *figures)
{
    QN_REQUIRE(NULL, group && figures && member >= 0 && member < group->count);
    *figures = group->members[member].exchange.figures;
    return QN_OK;
}
