/* SPDX-License-Identifier: MIT
 *
 * Samples that the command line names, to be predicted: pictures, a file of images, texts or rows.
 */
#ifndef QUERN_TOOL_SAMPLES_H
#define QUERN_TOOL_SAMPLES_H

#include "prompts.h"
#include "session.h"

struct samples {
    qn_dataset *dataset;
    const char *file;       /* that all of them are in; borrowed. NULL: each has its own */
    bool lines;             /* they are its lines */
    struct prompts prompts; /* of models of tokens, which have a sample for each asked token */
};

/* Opens `count` files or folders as the model of the session reads its data; session->data.model
 * and session->settings are there, and the model is told what is asked of it. Borrows the files'
 * names. */
int samples_open(struct samples *samples, struct session *session, char *const *files, int count);
void samples_close(struct samples *samples);

/* What people call a sample: "cat.png", "t10k-images-idx3-ubyte[12]", "reviews.txt:3"; cut off if
 * it is longer. Gives `name`. */
enum { SAMPLE_NAME_BYTES = 4352 };
const char *samples_name(const struct samples *samples, int64_t sample,
                         char name[SAMPLE_NAME_BYTES]);
/* Of samples that are masks in lines: its number in the line, from 1; 0 of others. */
int samples_mask(const struct samples *samples, int64_t sample);

#endif
