/* SPDX-License-Identifier: MIT */
#include "check/pool.h"

void qn_check_pool_outputs(const struct qn_call *call, struct qn_operand out[QN_MAX_OUT])
{
    const struct qn_pool_attr *attr = call->attr;
    for (int i = 0; i < 2; i++) {
        const int64_t end = call->in[0].shape.dim[2 + i] + 2 * attr->padding[i];
        out[0].shape.dim[2 + i] = 0;
        for (int64_t last = attr->size[i]; last <= end; last += attr->stride[i])
            out[0].shape.dim[2 + i]++;
    }
}

double qn_check_pool_flops(const struct qn_call *call, const char *group)
{
    const struct qn_pool_attr *attr = call->attr;
    (void)group;
    return (double)(attr->size[0] * attr->size[1] * qn_operand_count(&call->out[0]));
}
