/* SPDX-License-Identifier: MIT
 *
 * Inputs and attributes of the operator info_nce.
 */
#ifndef QN_OP_INFO_NCE_H
#define QN_OP_INFO_NCE_H

enum {
    QN_NCE_QUERIES,
    QN_NCE_PASSAGES,
    QN_NCE_IDS,
    QN_NCE_LOGIT_SCALE,
    QN_NCE_BANK_QUERIES,
    QN_NCE_BANK_PASSAGES,
    QN_NCE_BANK_IDS,
};

struct qn_info_nce_attr {
    float scale;    /* of scores, beside the exponential of the logit scale */
    int symmetric;  /* passages look for their queries, too */
    int local_mean; /* over the queries of the micro-step, not over those of the bank, too */
    int duplicates; /* passages of one id count as one: they are no negatives of each other */
};

#endif
