/* SPDX-License-Identifier: MIT
 *
 * Attributes of the operator `loss`, which graph functions make and src/ops/loss.c reads.
 */
#ifndef QN_OP_LOSS_H
#define QN_OP_LOSS_H

struct qn_loss_attr {
    int index; /* its place in the control block: loss[index], loss_seed[index] */
};

#endif
