/* SPDX-License-Identifier: MIT
 *
 * Masked language modelling (Devlin et al., "BERT: pre-training of deep bidirectional
 * transformers", 2019): which tokens of a sample are asked for, and what stands in their place.
 */
#ifndef QN_DATA_MASKING_H
#define QN_DATA_MASKING_H

#include <quern/data.h>

struct qn_masking {
    double probability; /* of a token to be chosen; 0: none is */
    int64_t mask;       /* the token that takes the place of most */
    int64_t classes;    /* the vocabulary */
    int64_t spared;     /* a token that is never chosen; below 0: there is none */
};

/* Chooses some of `count` tokens of a sample: `labels` gets the token where one is chosen, else
 * QN_IGNORED_LABEL, and `tokens`, in the place of a chosen one, in eight cases of ten the mask, in
 * one any token, in one what it was. A function of the draw and of the position in the sample. */
void qn_masking_apply(const struct qn_masking *masking, const struct qn_draw *draw, int32_t *tokens,
                      int32_t *labels, int64_t count);

#endif
