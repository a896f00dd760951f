/* SPDX-License-Identifier: MIT */
#include "check/rows.h"

const struct qn_control qn_check_start = {.loss_scale = 1};
const struct qn_control qn_check_ninth = {.position = {9}, .loss_scale = 1};
const struct qn_control qn_check_late = {.sample = 2, .position = {0, 45}, .loss_scale = 1};

double qn_check_no_flops(const struct qn_call *call, const char *group)
{
    (void)call;
    (void)group;
    return 0;
}
