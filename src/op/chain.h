/* SPDX-License-Identifier: MIT
 *
 * Attributes of the operator chain: a program of elementwise steps, and the one list of what a step
 * can do. The numbers of values are those of the public qn_chain and of cl_kernels/chain.cl.
 */
#ifndef QN_OP_CHAIN_H
#define QN_OP_CHAIN_H

#include <quern/ops.h>

/* What the gradient of a step follows from, besides that of its result. */
enum qn_chain_needs { QN_CHAIN_NEEDS_NOTHING, QN_CHAIN_NEEDS_RESULT, QN_CHAIN_NEEDS_ARGUMENTS };

/* The operations, in the order of qn_chain_op. X(NAME, arguments, needs): QN_CHAIN_NAME takes so
 * many values; DO_NAME and UNDO_NAME of cl_kernels/chain.cl are its kernels. */
#define QN_CHAIN_LIST(X)                                                                           \
    X(RELU, 1, RESULT)                                                                             \
    X(LEAKY_RELU, 1, RESULT)                                                                       \
    X(SIGMOID, 1, RESULT)                                                                          \
    X(TANH, 1, RESULT)                                                                             \
    X(GELU, 1, ARGUMENTS)                                                                          \
    X(GELU_TANH, 1, ARGUMENTS)                                                                     \
    X(SILU, 1, ARGUMENTS)                                                                          \
    X(SCALE, 1, NOTHING)                                                                           \
    X(ADD, 2, NOTHING)                                                                             \
    X(MULTIPLY, 2, ARGUMENTS)                                                                      \
    X(HARDSWISH, 1, ARGUMENTS)

struct qn_chain_info {
    const char *name; /* as in the list */
    int arguments;
    enum qn_chain_needs needs;
};
/* By qn_chain_op. */
extern const struct qn_chain_info qn_chain_infos[];
#define COUNT(name, arguments, needs) +1
enum { QN_CHAIN_OPERATIONS = 0 QN_CHAIN_LIST(COUNT) };
#undef COUNT

struct qn_chain_attr {
    struct qn_chain_link {
        int op; /* enum qn_chain_op */
        int a, b;
        float value;
    } step[QN_CHAIN_STEPS]; /* the rest is zero */
    int count;
};

/* Whether the operation, which is one, takes two values. */
static inline bool qn_chain_is_binary(int op)
{
    return qn_chain_infos[op].arguments == 2;
}

#endif
