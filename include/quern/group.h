/* SPDX-License-Identifier: MIT
 *
 * Several devices that train one model: every member computes a share of each cycle by its own
 * plan, inside its own budget, and the gradient is that of the whole effective batch.
 */
#ifndef QUERN_GROUP_H
#define QUERN_GROUP_H

#include <quern/train.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Gradients are on their way from member to member in buckets of at most so many. */
enum { QN_BUCKET_BYTES = 1 << 20 };

/* --- how bytes get from member to member --- */

/* What a member of a group sends and receives by. Messages between two members arrive in the order
 * in which they were sent, and go to the receptions in the order in which those were begun. The
 * functions are called on the thread of the member, and of member 0 on one that helps it while it
 * writes a checkpoint: one of both at a time, of several members at the same time. What they return
 * but QN_OK ends the member's call, and the group with it. */
typedef struct qn_transport {
    void *user;
    int member, members; /* number of this one, from 0, and how many there are */
    /* Begins to send or to receive `count` bytes, which stay until the ticket was waited for. Both
     * return without waiting for the other member. */
    qn_status (*send)(void *user, int to, const void *bytes, int64_t count, void **ticket);
    qn_status (*receive)(void *user, int from, void *bytes, int64_t count, void **ticket);
    /* Waits and sets *ticket to NULL; of a ticket that is NULL: does nothing. */
    qn_status (*wait)(void *user, void **ticket);
    /* Each member gives `count` bytes and receives those of all, one after another in the order of
     * members; nobody returns before all have called. */
    qn_status (*gather)(void *user, const void *own, int64_t count, void *all);
    /* This member goes on no more: what others wait for ends with QN_ERR_MEMBER. NULL: they find
     * out by themselves. */
    void (*fail)(void *user);
    double timeout; /* seconds for which a member waits for another; 0: as long as it takes */
} qn_transport;

/* For functions of tables: makes `line` what qn_last_error gives on this thread, and gives
 * `status`. Thread-safety: Safe. */
QN_API qn_status qn_transport_error(qn_status status, const char *line);

/* The transport between members of one process. Thread-safety: Safe, by the functions of its
 * tables. Lifetime: until qn_hub_close; the members' threads have ended then. */
typedef struct qn_hub qn_hub;

/* `timeout`: seconds after which a member that waits for another gives up, with QN_ERR_MEMBER; 0:
 * ten minutes. */
QN_API qn_status qn_hub_open(qn_hub **hub, int members, double timeout);
QN_API void qn_hub_close(qn_hub **hub);
/* The table of one of its members; its `user` is borrowed from the hub. */
QN_API qn_status qn_hub_transport(qn_hub *hub, int member, qn_transport *transport);

/* --- shares --- */

/* Splits `samples` into consecutive ranges, counts[i] for member i, in multiples of `unit` samples
 * but for a last short one: by largest remainder, the first of equal ones; what is left of a short
 * unit goes with the last unit that is given. `shares`: at least 0, not all 0; NULL: equal ones.
 * QN_ERR_ARGUMENT: a share that is no number or below 0, or none above 0. */
QN_API qn_status qn_group_split(int64_t samples, int64_t unit, const double *shares, int members,
                                int64_t *counts);

/* --- the group --- */

/* Trainers of the members that this process has, each with a thread of its own while the group
 * works; they go through the same updates.
 * Thread-safety: Unsafe. Lifetime: until qn_group_close; devices, plans and transports must outlive
 * it. After a failure of any member every call gives QN_ERR_MEMBER, or the member's own status. */
typedef struct qn_device_group qn_group;

/* A member: no other has its device object or its plan. The plan's batch sizes are what
 * qn_group_split gives the member of those of the training; of a member without samples any. */
typedef struct qn_group_member {
    qn_device *device;
    const qn_plan *plan;
    double share; /* of the samples, beside those of the others */
} qn_group_member;

typedef struct qn_group_params {
    qn_trainer_params trainer; /* of each member */
    int64_t unit;              /* of qn_group_split; 0: 1 */
    /* Of each member of this process, whose shares are here those of all members in `shares`; NULL:
     * there are no other processes. */
    const qn_transport *transports;
    const double *shares; /* with transports: of all members */
    double timeout;       /* without them: of qn_hub_open */
    qn_log log;
} qn_group_params;

/* Opens a trainer for each member. All begin with the same parameters, by the same seed; what is
 * written to one of them is to be written to all. Moreover QN_ERR_ARGUMENT: members of different
 * models or settings, plans with early updates, with banks, or with runs over all samples of a
 * cycle that read no cells of samples (qn_plan_params.whole). */
QN_API qn_status qn_group_open(qn_group **group, const qn_group_member *members, int count,
                               const qn_group_params *params);
QN_API void qn_group_close(qn_group **group);

/* One update, as qn_trainer_step, of which `cycle` is that of the whole group: samples of the whole
 * effective batch; first, whole and reduce are 0. `fetch` and `choose` are called on the members'
 * threads at the same time, each for samples of its own range. */
QN_API qn_status qn_group_step(qn_group *group, const qn_cycle *cycle, qn_metrics *previous);
QN_API qn_status qn_group_finish(qn_group *group, qn_metrics *last);

/* Times what members compute of a cycle of the group: each runs the micro-steps of its own range,
 * all begin together, and nobody adds anything up. seconds[m] is of member m of all, 0 of one
 * without samples. Changes no state; may be called between two updates. Waits. */
QN_API qn_status qn_group_time(qn_group *group, const qn_cycle *cycle, double *seconds);

/* What one member does of an evaluation: samples first .. first + count - 1. */
typedef struct qn_group_part {
    int member; /* of this process, from 0 */
    qn_trainer *trainer;
    int64_t first, count; /* count is above 0 */
} qn_group_part;

/* Whatever it returns but QN_OK ends the member's part, and the group with it; the line is that of
 * qn_last_error. */
typedef qn_status (*qn_part_fn)(void *user, const qn_group_part *part);

/* Deals out the samples of an evaluation, consecutive ranges by share as those of a cycle are, but
 * one by one, and calls `fn` for the range of each member of this process, on the members' threads
 * at the same time: there qn_trainer_evaluate and its like are for the part's trainer. A member for
 * which nothing is left is passed over. Members exchange nothing: metrics of their parts can be
 * joined (qn_metric_join). Between two updates; waits for the members of this process. */
QN_API qn_status qn_group_evaluate(qn_group *group, int64_t samples, qn_part_fn fn, void *user);

/* Writes a checkpoint as qn_checkpoint_save does, into `dir` of the process of member 0, which
 * reads what the others keep; called in every process of the group between two updates. Writing may
 * take longer than the time-out of the transports, in which the others hear that it goes on. A
 * checkpoint that could not be written leaves the group as it was; all processes are given the
 * status. Weights and checkpoints are read by each trainer for itself, from the same files. */
QN_API qn_status qn_group_save(qn_group *group, const char *dir, const qn_save_params *params);

/* Where members share the optimizer's work and keep averages (qn_optimizer.ema), each has its own
 * part of these, and evaluations of their trainers are refused with QN_ERR_ARGUMENT but between a
 * call with `shown` and one without: then the averages of all are in the place of the parameters of
 * all, and no device has a byte more. Both calls send as many bytes as parameters take, and are
 * made in every process of the group between two updates; updates and qn_group_save are refused in
 * between. Does nothing where each member has all averages, or there are none, or what is asked for
 * is so already. Waits. QN_ERR_MEMORY: the host has no room for a member's own parameters. */
QN_API qn_status qn_group_show_averages(qn_group *group, bool shown);

/* The trainer of a member of this process, from 0, for all but updates and saving; NULL past the
 * last. Parameters and state are the same in all; where members share the optimizer's work
 * (qn_plan_params.members), gradients are those of this member's samples but for what it updates,
 * masters of the others are read as they were rounded, and files of weights with averages are those
 * of qn_group_save. */
QN_API qn_trainer *qn_group_trainer(const qn_group *group, int member);

/* What a member did since the group was opened. */
typedef struct qn_group_figures {
    int64_t updates, samples; /* samples: of its own ranges */
    int64_t bytes_sent;       /* of gradients and parameters, and of rows of cells */
    int64_t bytes_told;       /* of numbers beside them, of which each update has a few */
    double computed;          /* seconds from the beginning of updates until its last gradients
                                 were on their way: of a large model, whose first ones have to
                                 leave room for them, also what others take */
    double waited;            /* seconds from there until the sums of all, or what they have
                                 updated, had arrived */
} qn_group_figures;
QN_API qn_status qn_group_measure(const qn_group *group, int member, qn_group_figures *figures);

#ifdef __cplusplus
}
#endif
#endif
