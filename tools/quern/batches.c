/* SPDX-License-Identifier: MIT */
#include "batches.h"

#include <inttypes.h>
#include <math.h>

struct batches batches_open(const struct train_settings *train)
{
    return (struct batches){.train = train, .adaptive = train->adaptive, .scale = {NAN, NAN}};
}

bool batches_adapt(const struct batches *b)
{
    return b->train->batches.count == 0;
}

int64_t batches_next(struct batches *b, int64_t update)
{
    b->scale[update % 2] = qn_noise_scale(&b->adaptive.batch);
    b->now = batches_adapt(b) ? qn_batch_adapt(&b->adaptive.batch, NULL)
                              : qn_schedule_batch(&b->train->batches, update);
    return b->now;
}

static qn_gradient_norms norms_of(const qn_metrics *m)
{
    return (qn_gradient_norms){.batch = m->samples,
                               .micro_batch = m->micro_samples,
                               .batch_square = m->grad_norm * m->grad_norm,
                               .micro_square = m->micro_norm * m->micro_norm};
}

void batches_learn(struct batches *b, const qn_metrics *previous)
{
    const qn_gradient_norms norms = previous->valid ? norms_of(previous) : b->adaptive.kept;
    b->adaptive.kept = (qn_gradient_norms){0};
    if (batches_adapt(b))
        qn_batch_adapt(&b->adaptive.batch, &norms);
}

/* Norms that are not finite tell nothing, and are no numbers for a file. */
void batches_keep(struct batches *b, const qn_metrics *last)
{
    const qn_gradient_norms norms = norms_of(last);
    if (last->valid && isfinite(norms.batch_square) && isfinite(norms.micro_square))
        b->adaptive.kept = norms;
}

const char *batches_text(const struct batches *b, char text[BATCHES_TEXT_BYTES])
{
    const qn_adaptive_batch *batch = &b->adaptive.batch;
    const qn_gradient_norms *kept = &b->adaptive.kept;
    snprintf(text, BATCHES_TEXT_BYTES, ADAPTIVE_PRINT, batch->batch, batch->measured, batch->signal,
             batch->noise, kept->batch, kept->micro_batch, kept->batch_square, kept->micro_square);
    return text;
}
