/* SPDX-License-Identifier: MIT */
#include "check/pair.h"

void qn_pair_outputs(const struct qn_call *call, struct qn_operand out[QN_MAX_OUT])
{
    (void)call;
    out[0].dtype = QN_F32;
}

const struct qn_check_case qn_pair_refused[] = {
    {"two shapes", {{.rank = 2, .dim = {3, 4}}, {.rank = 2, .dim = {4, 3}}}},
    {"two ranks", {{.rank = 2, .dim = {3, 4}}, {.rank = 1, .dim = {12}}}},
    {"integers",
     {{.rank = 1, .dim = {4}}, {.role = QN_ROLE_FIXED, .dtype = QN_U8, .rank = 1, .dim = {4}}}},
    {0},
};
