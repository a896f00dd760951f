/* SPDX-License-Identifier: MIT
 *
 * Saving what members keep apart: member 0 writes, and asks each of the others for what it needs,
 * until it tells them that it has ended.
 */
#include "base/log.h"
#include "group/member.h"
#include "run/trainer.h"

#include <stdlib.h>
#include <string.h>

/* What member 0 asks for; `bytes` 0: nothing more, and `offset` is the status. */
struct request {
    int64_t value, offset, bytes;
};

enum { MOST_BYTES = 1 << 24 }; /* of one request */

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

static qn_status ask(void *user, int owner, int value, int64_t offset, void *host, int64_t bytes)
{
    const struct qn_transport *t = user;
    for (int64_t done = 0, size; done < bytes; done += size) {
        size = bytes - done < MOST_BYTES ? bytes - done : MOST_BYTES;
        const struct request request = {value, offset + done, size};
        QN_TRY(pass(t, owner, &request, sizeof request));
        QN_TRY(take(t, owner, (char *)host + done, size));
    }
    return QN_OK;
}

/* What cannot be written is no failure of the group: the others are told, and all go on. */
static qn_status write_all(struct qn_member *member)
{
    const struct qn_device_group *group = member->group;
    struct qn_transport *t = &member->transport;
    const struct qn_lender lender = {t, ask};
    member->trainer->lender = &lender;
    member->saved = qn_checkpoint_save(member->trainer, group->folder, group->saving);
    member->trainer->lender = NULL;
    if (member->saved == QN_ERR_MEMBER || member->saved == QN_ERR_DEVICE)
        return member->saved;
    const struct request end = {.offset = member->saved};
    for (int m = 1; m < t->members; m++)
        QN_TRY(pass(t, m, &end, sizeof end));
    return QN_OK;
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

static qn_status answer_all(struct qn_member *member, void *room)
{
    struct request request;
    for (;;) {
        QN_TRY(take(&member->transport, 0, &request, sizeof request));
        if (!request.bytes)
            break;
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
