/* SPDX-License-Identifier: MIT
 *
 * Evaluations of members that have parts of the averages: all put theirs into the place of their
 * parameters and send them, as after an update; and the parameters back.
 */
#include "base/log.h"
#include "group/member.h"
#include "run/trainer.h"

static qn_status show(struct qn_member *member)
{
    QN_TRY(qn_averages_cover(member->trainer));
    return qn_exchange_parameters(&member->exchange, member->trainer);
}

static qn_status hide(struct qn_member *member)
{
    QN_TRY(qn_averages_uncover(member->trainer));
    return qn_exchange_parameters(&member->exchange, member->trainer);
}

qn_status qn_group_show_averages(qn_group *group, bool shown)
{
    QN_REQUIRE(NULL, group);
    const struct qn_trainer *first = group->members[0].trainer;
    if (group->averages == shown || !first || !qn_averages_are_parted(first))
        return QN_OK;
    group->averages = shown;
    return qn_members_do(group, shown ? show : hide);
}

qn_status qn_group_check_averages(const struct qn_device_group *group)
{
    return group->averages ? qn_fail(&group->log, QN_ERR_ARGUMENT,
                                     "group: averages are in the place of parameters; "
                                     "qn_group_show_averages")
                           : QN_OK;
}
