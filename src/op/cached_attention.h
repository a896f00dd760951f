/* SPDX-License-Identifier: MIT
 *
 * Attributes of the operator cached_attention.
 */
#ifndef QN_OP_CACHED_ATTENTION_H
#define QN_OP_CACHED_ATTENTION_H

struct qn_cached_attention_attr {
    int heads, kv_heads;
};

#endif
