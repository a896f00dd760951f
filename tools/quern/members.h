/* SPDX-License-Identifier: MIT
 *
 * Several devices that train one model, of this process and of those that mpirun started with it
 * (ranks.h): a session for each of this process. Those behind the first borrow all from
 * it but their settings of memory, their device, its tuning, their plan and their trainer.
 */
#ifndef QUERN_TOOL_MEMBERS_H
#define QUERN_TOOL_MEMBERS_H

#include "member_list.h"
#include "session.h"

#include <cjson/cJSON.h>

enum { MAX_ALL_MEMBERS = 256 }; /* of all processes */

struct members {
    int count;      /* of this process */
    int first, all; /* number of the first of these, of how many; others are of other ranks */
    struct member {
        struct session *session;          /* [0]: that of the training */
        struct recipe *recipe;            /* with what is said of this device */
        char device[MEMBER_DEVICE_BYTES]; /* text that it matches; "": any */
    } member[MAX_MEMBERS];
    double share[MAX_ALL_MEMBERS]; /* by number */
    bool measured;                 /* the shares are (members_auto.c) */
    int64_t unit;                  /* samples that a share has multiples of */
    int round, rounds; /* ranks of one machine tune one after another: which this one is, of most */
    qn_transport transports[MAX_MEMBERS];
    cJSON *told; /* by number: what members_tell has gathered; NULL: nothing */
    qn_group *group;
};

/* Reads what the recipe says of several devices; of fewer than two, in one process,
 * session->members stays NULL. Needs the graph; refuses what does not train on several before
 * anything is opened. */
int members_read(struct session *session, const struct arguments *arguments);
/* With those of the other ranks, which all call it, numbers the members and reads their shares. */
int members_join(struct session *session);
void members_close(struct session *session);
/* Refuses what several devices do not train. */
int members_check(struct session *session);
/* Samples that shares are multiples of: of batch norm's group, or of pairs whose negatives are
 * those of a micro-batch. Needs the graph. */
int64_t members_unit(const struct session *session);
/* Whether the loss is over the whole cycle: every member computes all of it, from the rows of all.
 */
bool members_see_whole(const struct session *session);
/* The number of the member that a session is of, and "member NUMBER" for messages; without members
 * 0 and NULL. */
int members_number(const struct session *session);
enum { MEMBERS_NAME_BYTES = 32 };
const char *members_name(const struct session *session, char name[MEMBERS_NAME_BYTES]);

/* The devices of all, or session_device. Of several ranks on one machine each takes devices that
 * the others have not. All call it (members_devices.c). */
int members_devices(struct session *session, const struct arguments *arguments);
/* What the member of a session is to plan for; without members settings_plan. */
int members_plan_params(struct session *session, qn_plan_params *params);
/* Makes the plan of each with tuned kernels. All ranks call it; what one times on a machine the
 * next ones know. */
int members_plan(struct session *session, enum tune_mode mode);
/* Opens the trainers of all plans, together, or session_trainer. */
int members_trainers(struct session *session);
void members_close_trainers(struct session *session);
/* Takes shares, "3:1", of as many numbers as there are members; NULL: equal ones. */
int members_share(struct session *session, const char *said);
/* How many of a cycle's samples each member computes. */
int members_split(struct session *session, int64_t samples, int64_t counts[MAX_ALL_MEMBERS]);
/* Which of a cycle's samples those of this process compute; without members all. Changes nothing:
 * other threads may call it. */
void members_range(const struct session *session, int64_t samples, int64_t *first, int64_t *count);
/* Where shares are measured, all ranks call it: settles them, writes them into the recipe and makes
 * the plans for them (members_auto.c). Needs plans; a signal ends it with its code. */
int members_settle(struct session *session, enum tune_mode mode);
/* Loads the weights and adapters that the recipe names into all. */
int members_weights(struct session *session);
/* Puts the state of a checkpoint into all. */
int members_restore(struct session *session, const qn_checkpoint *checkpoint);
/* The session of a member, from 0; without members the session is the only one. NULL past the last.
 */
struct session *members_session(struct session *session, int member);

/* --- what is told of them, of all ranks on rank 0 (members_told.c) --- */

/* Gathers what the following say, as it is now. All ranks call it; without members does nothing. */
int members_tell(struct session *session);
/* A column for each member, with its plan; with what it did in this run. */
void members_print(const struct session *session);
void members_report(const struct session *session);
/* The plans of all, and what the summary says of each, in lists; NULL when out of memory. */
cJSON *members_plans(const struct session *session);
cJSON *members_summaries(const struct session *session);
/* Bytes and budgets of all. */
struct members_bytes {
    int64_t peak, allocated, budget;
};
struct members_bytes members_bytes(const struct session *session);
/* The session of the member for which no plan was made; without members the session. */
const struct session *members_refused(const struct session *session);

/* --- the training --- */

/* One update, by all members, or by the trainer. */
int members_step(struct session *session, const qn_cycle *cycle, qn_metrics *previous);
int members_finish(struct session *session, qn_metrics *last);
/* Evaluations of any member read the averages of all between a call with `shown` and one without,
 * which all ranks make (qn_group_show_averages). */
int members_show_averages(struct session *session, bool shown);
/* Has `fn` called for the samples that each member evaluates (qn_group_evaluate), or for all of
 * them with the trainer; part->member is the number of its session. `fn` sets no failure: it may be
 * on a thread of its own. */
int members_evaluate(struct session *session, int64_t samples, qn_part_fn fn, void *user);
/* A checkpoint of all, which rank 0 writes; all call it, the others with "" and NULL. */
int members_save(struct session *session, const char *dir, const qn_save_params *params);

#endif
