/* SPDX-License-Identifier: MIT */
#include "norms.h"

#include <string.h>

struct norms norms_of(const qn_trainer *trainer, const struct train_settings *train)
{
    const qn_plan *plan = qn_trainer_plan(trainer);
    struct norms norms = {0};
    norms.count = qn_trainer_grad_norms(trainer, norms.norm, QN_MAX_NORM_GROUPS);
    for (int g = 0; g < norms.count; g++)
        norms.name[g] = qn_plan_norm_group(plan, g);
    norms.paired =
        norms.count == 2 && train->norm_groups && strcmp(train->norm_groups, "auto") != 0;
    norms.ratio = norms.paired ? norms.norm[1] / norms.norm[0] : 0;
    return norms;
}
