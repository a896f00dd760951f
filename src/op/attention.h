/* SPDX-License-Identifier: MIT
 *
 * Attributes of the operator attention.
 */
#ifndef QN_OP_ATTENTION_H
#define QN_OP_ATTENTION_H

struct qn_attention_attr {
    int heads, kv_heads;
    int causal;
    float scale; /* 0: 1 / sqrt(head size) */
    float dropout;
};

#endif
