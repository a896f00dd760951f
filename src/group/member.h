/* SPDX-License-Identifier: MIT
 *
 * A member of a group and its thread.
 */
#ifndef QN_GROUP_MEMBER_H
#define QN_GROUP_MEMBER_H

#include "group/exchange.h"

#include <pthread.h>

struct qn_member;
typedef qn_status (*qn_member_work)(struct qn_member *member);

struct qn_member {
    struct qn_device_group *group;
    const struct qn_group_member *given;
    qn_transport transport;
    struct qn_trainer *trainer;
    struct qn_exchange exchange;
    qn_metrics metrics; /* that the last work gave */
    double *seconds;    /* of all members, by qn_group_time */
    qn_status saved;    /* of the last qn_group_save */
    qn_status status;   /* of the last work */
    char error[QN_MEMBER_LINE];
    pthread_t thread;
    bool running;
};

struct qn_device_group {
    struct qn_log log;
    struct qn_group_params params;
    struct qn_group_member *given;
    struct qn_member *members;
    int count, all;  /* members of this process, and of the group */
    int64_t *counts; /* samples of each member of the group in the present cycle or evaluation */
    double *shares;  /* of all members */
    qn_hub *hub;     /* NULL: the transports were given */
    const qn_cycle *cycle;
    const struct qn_evaluating *evaluating; /* the present qn_group_evaluate */
    const char *folder;                     /* of the present qn_group_save, and its params */
    const qn_save_params *saving;
    bool averages; /* they are in the place of parameters */
    qn_status failed;
    /* The work of the members' threads: the first member's is done by the caller. */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    qn_member_work work;
    unsigned job; /* number of the present work */
    int busy;     /* threads that are still at it */
    bool ending, open;
};

/* As qn_group_split, but a member may be left without samples, whatever its share. */
qn_status qn_group_deal(int64_t samples, int64_t unit, const double *shares, int members,
                        int64_t *counts);
/* The first sample of a member, by the counts of the group. */
int64_t qn_member_first(const struct qn_member *member);

/* Starts the threads of all members but the first. */
qn_status qn_members_start(struct qn_device_group *group);
/* Has every member do the work at the same time; gives the first status that is not QN_OK and
 * repeats its line on this thread, that of a member that failed by itself before that of one whose
 * others failed. After a failure all transports are told, nothing is on its way, and the group has
 * failed. */
qn_status qn_members_do(struct qn_device_group *group, qn_member_work work);
void qn_members_stop(struct qn_device_group *group);

/* QN_ERR_ARGUMENT: averages are in the place of parameters (averages.c). */
qn_status qn_group_check_averages(const struct qn_device_group *group);

#endif
