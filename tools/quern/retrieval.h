/* SPDX-License-Identifier: MIT
 *
 * How well a dual encoder finds the passages of what is evaluated, each among all.
 */
#ifndef QUERN_TOOL_RETRIEVAL_H
#define QUERN_TOOL_RETRIEVAL_H

#include "evaluate.h"

/* The vectors of a dataset of pairs, in f32, in the order of its samples. */
struct vectors {
    float *rows[2]; /* (samples, dim) of queries and of passages */
    int32_t *ids;   /* (samples): numbers of the pairs */
    int64_t samples, dim;
};
/* Encodes all pairs, each member its share; the vectors of all ranks are those of rank 0. Freed by
 * vectors_free whatever it gives. */
int vectors_make(struct vectors *vectors, struct session *session, const qn_dataset *pairs);
void vectors_free(struct vectors *vectors);

/* Fills in the figures of retrieval; all ranks call it. */
int retrieval_evaluate(struct session *session, struct evaluation *evaluation);

#endif
