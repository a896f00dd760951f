/* SPDX-License-Identifier: MIT
 *
 * The samples of an evaluation that a model of classes is most wrong about: those whose own class
 * it holds for least probable, or of masks those with the most wrong pixels.
 */
#ifndef QUERN_TOOL_MISTAKES_H
#define QUERN_TOOL_MISTAKES_H

#include "session.h"

enum { MOST_MISTAKES = 24 };

struct mistake {
    int64_t sample;
    double wrong; /* 1 - the probability of its class; of masks the fraction of pixels */
    /* Of classes: its own, the one it was taken for, and how probable that seemed. */
    int label, guess;
    double sure;
    uint8_t *image;        /* u8 (channels, height, width); NULL: samples are no images */
    uint8_t *truth, *mask; /* (height, width); NULL: samples have one class */
};

struct mistakes {
    qn_model_data data;
    qn_dtype dtype; /* of the logits */
    struct failure *failure;
    struct mistake worst[MOST_MISTAKES]; /* (count), the worst first */
    int count;
    int64_t wrong;          /* samples with a mistake in all */
    double *logits, *share; /* of the sample at hand */
    uint8_t *mask;
};

/* The session has its graph. */
int mistakes_open(struct mistakes *mistakes, const struct session *session);
/* Takes logits of samples first .. first + count - 1 of the batch, as qn_metric_update; other
 * outputs are QN_OK and change nothing. */
qn_status mistakes_take(struct mistakes *mistakes, const char *output, int64_t first, int64_t count,
                        const void *rows, const qn_batch *batch);
void mistakes_close(struct mistakes *mistakes);

#endif
