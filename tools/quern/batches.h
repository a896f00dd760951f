/* SPDX-License-Identifier: MIT
 *
 * The effective batch of each update: as a schedule says, or as the noise of the gradient does.
 */
#ifndef QUERN_TOOL_BATCHES_H
#define QUERN_TOOL_BATCHES_H

#include "settings.h"

/* The batch of update u rests on the metrics of updates up to u - 2: these are there in time,
 * whether or not somebody waited for the device in between. */
struct batches {
    const struct train_settings *train;
    struct adaptive adaptive;
    int64_t now;     /* the batch of the update that began last */
    double scale[2]; /* the noise scale when updates began, even ones and odd ones; NAN: unknown */
};

/* Begins as the settings say, which hold what a checkpoint kept. */
struct batches batches_open(const struct train_settings *train);
bool batches_adapt(const struct batches *batches);
/* The batch of an update that begins. */
int64_t batches_next(struct batches *batches, int64_t update);
/* Takes what the step of an update told of the one before. */
void batches_learn(struct batches *batches, const qn_metrics *previous);
/* Keeps what waiting for the last update told of it, until the next one has begun. */
void batches_keep(struct batches *batches, const qn_metrics *last);
/* What [resume] adaptive holds. Gives `text`. */
enum { BATCHES_TEXT_BYTES = 256 };
const char *batches_text(const struct batches *batches, char text[BATCHES_TEXT_BYTES]);

#endif
