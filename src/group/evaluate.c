/* SPDX-License-Identifier: MIT
 *
 * Evaluations: each member sees its own samples, and nobody waits for another.
 */
#include "base/log.h"
#include "group/member.h"

/* What the members' threads do of the present evaluation. */
struct qn_evaluating {
    qn_part_fn fn;
    void *user;
};

static qn_status evaluate(struct qn_member *member)
{
    const struct qn_device_group *group = member->group;
    const struct qn_evaluating *evaluating = group->evaluating;
    const qn_group_part part = {.member = (int)(member - group->members),
                                .trainer = member->trainer,
                                .first = qn_member_first(member),
                                .count = group->counts[member->transport.member]};
    return part.count ? evaluating->fn(evaluating->user, &part) : QN_OK;
}

qn_status qn_group_evaluate(qn_group *group, int64_t samples, qn_part_fn fn, void *user)
{
    const struct qn_evaluating evaluating = {fn, user};
    QN_REQUIRE(NULL, group);
    QN_REQUIRE(&group->log, samples > 0 && fn);
    QN_TRY(qn_group_deal(samples, 1, group->shares, group->all, group->counts));
    group->evaluating = &evaluating;
    const qn_status status = qn_members_do(group, evaluate);
    group->evaluating = NULL;
    return status;
}
