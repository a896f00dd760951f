/* SPDX-License-Identifier: MIT */
#include "ops/affine.h"

qn_status qn_affine_gradient(struct qn_emit *emit, const struct qn_call *call,
                             const struct qn_affine_sums *sums)
{
    struct qn_launch launch = {
        .program = "affine",
        .kernel = "affine_gradient",
        .args = {QN_BUF(sums->sum0), QN_BUF(sums->sum1), QN_BUF(&call->din[1]),
                 QN_BUF(&call->din[2]), QN_LONG(sums->parts), QN_LONG(sums->channels),
                 QN_INT(qn_present(&call->din[1])), QN_INT(qn_present(&call->din[2])),
                 QN_FLOAT(call->beta_in[1]), QN_FLOAT(call->beta_in[2])},
        .global = {sums->channels},
        .local = {64}};
    qn_launch_type(&launch, "DW", &call->din[1]);
    qn_launch_type(&launch, "DB", &call->din[2]);
    return qn_emit_launch(emit, &launch);
}
