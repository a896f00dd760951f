/* SPDX-License-Identifier: MIT
 *
 * Saving what members keep apart: member 0 writes, and asks each of the others for its plan and for
 * what it needs, until it tells them that it has ended. Meanwhile it tells them that it is at it: a
 * file may take longer than they wait for one who is silent.
 */
#include "base/log.h"
#include "base/text.h"
#include "group/member.h"
#include "group/pulse.h"
#include "run/checkpoint.h"

#include <stdlib.h>
#include <string.h>

/* What member 0 asks for; or that there is nothing more, and `offset` is the status; or that it is
 * at work; or for the text of the plan, of which an answer has the bytes and another one the text.
 */
enum { ENDED = -1, AT_WORK = -2, PLAN = -3 };
struct request {
    int64_t value, offset, bytes;
};

enum { MOST_BYTES = 1 << 24 }; /* of one request */
enum { PULSES = 4 };           /* in the time for which the others wait */

static qn_status pass(const struct qn_transport *t, int to, const void *bytes, int64_t count)
{
    void *ticket = NULL;
    QN_TRY(t->send(t->user, to, bytes, count, &ticket));
    return t->wait(t->user, &ticket);
}

static qn_status take(const struct qn_transport *t, int from, void *bytes, int64_t count)
{
    void *ticket = NULL;
    QN_TRY(t->receive(t->user, from, bytes, count, &ticket));
    return t->wait(t->user, &ticket);
}

/* --- member 0 --- */

struct writer {
    const struct qn_transport *transport;
    struct qn_pulse pulse;
};

static qn_status tell(const struct qn_transport *t, struct request request)
{
    for (int m = 1; m < t->members; m++)
        QN_TRY(pass(t, m, &request, sizeof request));
    return QN_OK;
}

static qn_status beat(void *user)
{
    const struct writer *w = user;
    return tell(w->transport, (struct request){.value = AT_WORK});
}

static qn_status ask_once(struct writer *w, int owner, const struct request *request, void *host)
{
    pthread_mutex_lock(&w->pulse.lock);
    qn_status status = pass(w->transport, owner, request, sizeof *request);
    if (status == QN_OK)
        status = take(w->transport, owner, host, request->bytes);
    pthread_mutex_unlock(&w->pulse.lock);
    return status;
}

static qn_status ask(void *user, int owner, int value, int64_t offset, void *host, int64_t bytes)
{
    for (int64_t done = 0, size; done < bytes; done += size) {
        size = bytes - done < MOST_BYTES ? bytes - done : MOST_BYTES;
        const struct request request = {value, offset + done, size};
        QN_TRY(ask_once(user, owner, &request, (char *)host + done));
    }
    return QN_OK;
}

static qn_status take_plan(const struct qn_transport *t, int from, struct qn_text *plans)
{
    const struct request request = {.value = PLAN};
    int64_t bytes = 0;
    QN_TRY(pass(t, from, &request, sizeof request));
    QN_TRY(take(t, from, &bytes, sizeof bytes));
    char *text = bytes > 0 && bytes <= MOST_BYTES ? calloc(1, (size_t)bytes + 1) : NULL;
    if (!text)
        return qn_fail(NULL, QN_ERR_MEMBER, "save: member %d gave no plan", from);
    const qn_status status = take(t, from, text, bytes);
    qn_text_add(plans, "%s%s", from > 1 ? ",\n" : "", text);
    free(text);
    return status;
}

/* Those of all others, with commas; NULL: there are none, or the host has no room for them. */
static qn_status take_plans(const struct qn_transport *t, char **plans)
{
    struct qn_text text = {0};
    qn_status status = QN_OK;
    *plans = NULL;
    for (int m = 1; m < t->members && status == QN_OK; m++)
        status = take_plan(t, m, &text);
    if (t->members > 1)
        *plans = qn_text_take(&text);
    return status;
}

static qn_status write_lent(struct qn_member *member, struct writer *writer, const char *plans)
{
    const struct qn_device_group *group = member->group;
    const struct qn_lender lender = {writer, ask, plans};
    QN_TRY(qn_pulse_begin(&writer->pulse));
    member->trainer->lender = &lender;
    const qn_status status = qn_checkpoint_save(member->trainer, group->folder, group->saving);
    member->trainer->lender = NULL;
    const qn_status told = qn_pulse_end(&writer->pulse);
    return told == QN_OK ? status : told;
}

static qn_status write_checkpoint(struct qn_member *member, struct writer *writer)
{
    char *plans = NULL;
    qn_status status = take_plans(writer->transport, &plans);
    if (status == QN_OK)
        status = write_lent(member, writer, plans);
    free(plans);
    return status;
}

/* What cannot be written is no failure of the group: the others are told, and all go on. */
static qn_status write_all(struct qn_member *member)
{
    const struct qn_transport *t = &member->transport;
    struct writer writer = {
        .transport = t, .pulse = {.beat = beat, .user = &writer, .seconds = t->timeout / PULSES}};
    member->saved = write_checkpoint(member, &writer);
    if (member->saved == QN_ERR_MEMBER || member->saved == QN_ERR_DEVICE)
        return member->saved;
    return tell(t, (struct request){.value = ENDED, .offset = member->saved});
}

/* --- the others --- */

static qn_status check(const struct qn_member *member, const struct request *request)
{
    const struct qn_persist *persist = &member->trainer->plan->persist;
    if (request->value < 0 || request->value >= persist->n_values || request->offset < 0 ||
        request->bytes < 0 || request->bytes > MOST_BYTES)
        return qn_fail(NULL, QN_ERR_MEMBER, "save: member 0 asks for what there is not");
    return QN_OK;
}

static qn_status answer(struct qn_member *member, const struct request *request, void *room)
{
    QN_TRY(check(member, request));
    QN_TRY(
        qn_shard_read(member->trainer, (int)request->value, request->offset, room, request->bytes));
    return pass(&member->transport, 0, room, request->bytes);
}

static qn_status answer_plan(struct qn_member *member)
{
    char *text = qn_train_plan_json(member->trainer);
    const int64_t bytes = text ? (int64_t)strlen(text) : 0;
    qn_status status = pass(&member->transport, 0, &bytes, sizeof bytes);
    if (status == QN_OK && text)
        status = pass(&member->transport, 0, text, bytes);
    free(text);
    return status;
}

static qn_status answer_all(struct qn_member *member, void *room)
{
    struct request request;
    for (;;) {
        QN_TRY(take(&member->transport, 0, &request, sizeof request));
        if (request.value == ENDED)
            break;
        if (request.value == PLAN)
            QN_TRY(answer_plan(member));
        else if (request.value != AT_WORK)
            QN_TRY(answer(member, &request, room));
    }
    member->saved = (qn_status)request.offset;
    return QN_OK;
}

static qn_status serve(struct qn_member *member)
{
    void *room = malloc(MOST_BYTES);
    const qn_status status =
        room ? answer_all(member, room) : qn_fail(NULL, QN_ERR_MEMORY, "save: out of host memory");
    free(room);
    return status;
}

/* --- both --- */

static qn_status save(struct qn_member *member)
{
    return member->transport.member == 0 ? write_all(member) : serve(member);
}

qn_status qn_group_save(qn_group *group, const char *dir, const qn_save_params *params)
{
    QN_REQUIRE(NULL, group && dir);
    QN_TRY(qn_group_check_averages(group));
    group->folder = dir;
    group->saving = params;
    QN_TRY(qn_members_do(group, save));
    const struct qn_member *first = group->members;
    if (first->saved == QN_OK || first->transport.member == 0)
        return first->saved;
    return qn_fail(&group->log, first->saved, "save: member 0 could not write it");
}
