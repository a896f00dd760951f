/* SPDX-License-Identifier: MIT
 *
 * Attributes of the operator chain: a program of elementwise steps. The numbers of operations and
 * values are those of the public qn_chain_op and qn_chain, and of cl_kernels/chain.cl.
 */
#ifndef QN_OP_CHAIN_H
#define QN_OP_CHAIN_H

#include <quern/ops.h>

struct qn_chain_attr {
    struct qn_chain_link {
        int op; /* enum qn_chain_op */
        int a, b;
        float value;
    } step[QN_CHAIN_STEPS]; /* the rest is zero */
    int count;
};

/* Whether the operation takes two values. */
static inline bool qn_chain_is_binary(int op)
{
    return op == QN_CHAIN_ADD || op == QN_CHAIN_MULTIPLY;
}

#endif
