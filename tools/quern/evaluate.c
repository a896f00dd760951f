/* SPDX-License-Identifier: MIT */
#include "evaluate.h"

#include <math.h>
#include <string.h>

struct tally {
    struct rows rows;
    qn_dtype logits; /* how they are stored */
    int classes;
    int64_t correct;
    double loss;
};

static float from_half(uint16_t bits)
{
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    float magnitude = exponent == 31 ? (fraction ? NAN : INFINITY)
                      : exponent     ? ldexpf((float)(1024 + fraction), exponent - 25)
                                     : ldexpf((float)fraction, -24);
    return bits >> 15 ? -magnitude : magnitude;
}

static float element(const void *values, int64_t index, qn_dtype dtype)
{
    if (dtype == QN_F32)
        return ((const float *)values)[index];
    uint16_t bits = ((const uint16_t *)values)[index];
    if (dtype == QN_F16)
        return from_half(bits);
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

static int largest(const struct tally *tally, const void *logits, int64_t row)
{
    int best = 0;
    for (int c = 1; c < tally->classes; c++)
        if (element(logits, row * tally->classes + c, tally->logits) >
            element(logits, row * tally->classes + best, tally->logits))
            best = c;
    return best;
}

static qn_status fetch(void *user, const char *input, int64_t first, int64_t count, void *to)
{
    struct tally *tally = user;
    return data_fetch(&tally->rows, input, first, count, to);
}

static qn_status receive(void *user, const char *name, int64_t first, int64_t count,
                         const void *rows)
{
    struct tally *tally = user;
    if (strcmp(name, "loss") == 0)
        for (int64_t i = 0; i < count; i++)
            tally->loss += ((const float *)rows)[i];
    if (strcmp(name, "logits") == 0)
        for (int64_t i = 0; i < count; i++)
            tally->correct += largest(tally, rows, i) == tally->rows.labels[first + i];
    return QN_OK;
}

int evaluate(struct session *s, struct evaluation *evaluation)
{
    const qn_dataset_facts *facts = qn_dataset_describe(s->data.test);
    struct tally tally = {.rows = {facts->images, facts->labels, facts->image_bytes},
                          .logits = s->settings.memory.storage,
                          .classes = s->data.model.classes};
    TRY_LIBRARY(s->failure, NULL,
                qn_trainer_evaluate(s->trainer, facts->count, fetch, receive, &tally));
    *evaluation = (struct evaluation){.samples = facts->count,
                                      .accuracy = (double)tally.correct / (double)facts->count,
                                      .loss = tally.loss / (double)facts->count};
    return CODE_DONE;
}
