/* SPDX-License-Identifier: MIT */
#include "group/member.h"

#include "base/log.h"
#include "group/threads.h"

#include <stdio.h>

/* Does the present work and keeps its status and line. */
static void do_work(struct qn_member *member)
{
    member->status = member->group->work(member);
    if (member->status == QN_OK)
        return;
    snprintf(member->error, sizeof member->error, "%s", qn_last_error());
    if (member->transport.fail)
        member->transport.fail(member->transport.user);
    qn_exchange_drain(&member->exchange);
}

/* Waits for the next work; false: there is none any more. */
static bool await_work(struct qn_device_group *group, unsigned *job)
{
    pthread_mutex_lock(&group->lock);
    while (group->job == *job && !group->ending)
        pthread_cond_wait(&group->changed, &group->lock);
    *job = group->job;
    const bool more = !group->ending;
    pthread_mutex_unlock(&group->lock);
    return more;
}

static void end_work(struct qn_device_group *group)
{
    pthread_mutex_lock(&group->lock);
    group->busy--;
    pthread_cond_broadcast(&group->changed);
    pthread_mutex_unlock(&group->lock);
}

static void *run_member(void *user)
{
    struct qn_member *member = user;
    unsigned job = 0;
    while (await_work(member->group, &job)) {
        do_work(member);
        end_work(member->group);
    }
    return NULL;
}

qn_status qn_members_start(struct qn_device_group *group)
{
    bool started = group->open = qn_lock_open(&group->lock, &group->changed);
    for (int m = 1; started && m < group->count; m++) {
        struct qn_member *member = &group->members[m];
        started = member->running = qn_thread_start(&member->thread, run_member, member);
    }
    return started ? QN_OK
                   : qn_fail(&group->log, QN_ERR_MEMORY, "group: no thread could be started");
}

/* The member to blame: one that failed by itself, if there is one. */
static const struct qn_member *first_failure(const struct qn_device_group *group)
{
    const struct qn_member *first = NULL;
    for (int m = 0; m < group->count; m++) {
        const struct qn_member *member = &group->members[m];
        if (member->status != QN_OK &&
            (!first || (first->status == QN_ERR_MEMBER && member->status != QN_ERR_MEMBER)))
            first = member;
    }
    return first;
}

static qn_status tell_failure(struct qn_device_group *group)
{
    const struct qn_member *member = first_failure(group);
    if (!member)
        return QN_OK;
    group->failed = member->status;
    return qn_fail(&group->log, member->status, "member %d: %s", member->transport.member,
                   member->error);
}

qn_status qn_members_do(struct qn_device_group *group, qn_member_work work)
{
    if (group->failed != QN_OK)
        return qn_fail(NULL, group->failed, "group: a member has failed");
    pthread_mutex_lock(&group->lock);
    group->work = work;
    group->busy = group->count - 1;
    group->job++;
    pthread_cond_broadcast(&group->changed);
    pthread_mutex_unlock(&group->lock);
    do_work(&group->members[0]);
    pthread_mutex_lock(&group->lock);
    while (group->busy > 0)
        pthread_cond_wait(&group->changed, &group->lock);
    pthread_mutex_unlock(&group->lock);
    return tell_failure(group);
}

void qn_members_stop(struct qn_device_group *group)
{
    if (!group->open)
        return;
    pthread_mutex_lock(&group->lock);
    group->ending = true;
    pthread_cond_broadcast(&group->changed);
    pthread_mutex_unlock(&group->lock);
    for (int m = 1; m < group->count; m++)
        if (group->members[m].running)
            pthread_join(group->members[m].thread, NULL);
    qn_lock_close(&group->lock, &group->changed);
    group->open = false;
}
