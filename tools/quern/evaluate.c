/* SPDX-License-Identifier: MIT */
#include "evaluate.h"
#include "overlap.h"

#include <math.h>
#include <string.h>

/* `rows` are those of the micro-batch under way. */
struct tally {
    qn_loader *loader;
    struct rows rows;
    qn_dtype logits; /* how they are stored */
    int classes;
    int64_t pixels; /* with a label of their own: 1, or those of a mask */
    int64_t correct;
    double loss;
    struct overlap overlap; /* with masks */
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

/* The class of a pixel by its logits, of which there are (samples, classes, pixels). */
static int largest(const struct tally *tally, const void *logits, int64_t sample, int64_t pixel)
{
    int64_t first = sample * tally->classes * tally->pixels + pixel;
    int best = 0;
    for (int c = 1; c < tally->classes; c++)
        if (element(logits, first + c * tally->pixels, tally->logits) >
            element(logits, first + best * tally->pixels, tally->logits))
            best = c;
    return best;
}

static void count_correct(struct tally *tally, const void *logits, int64_t samples)
{
    const qn_batch *batch = &tally->rows.batch;
    for (int64_t i = 0; i < samples * tally->pixels; i++) {
        int label = batch->masks ? batch->masks[i] : batch->labels[i];
        int best = largest(tally, logits, i / tally->pixels, i % tally->pixels);
        tally->correct += best == label;
        if (batch->masks)
            overlap_add(&tally->overlap, (uint8_t)label, (uint8_t)best);
    }
}

/* The inputs of a micro-batch are asked for one after another. */
static qn_status fetch(void *user, const char *input, int64_t first, int64_t count, void *to)
{
    struct tally *tally = user;
    if (first == qn_loader_position(tally->loader)) {
        qn_status status = qn_loader_next(tally->loader, count, &tally->rows.batch);
        if (status != QN_OK)
            return status;
    }
    return data_fetch(&tally->rows, input, first - tally->rows.batch.position, count, to);
}

static qn_status receive(void *user, const char *name, int64_t first, int64_t count,
                         const void *rows)
{
    struct tally *tally = user;
    (void)first;
    if (strcmp(name, "loss") == 0)
        for (int64_t i = 0; i < count * tally->pixels; i++)
            tally->loss += ((const float *)rows)[i];
    if (strcmp(name, "logits") == 0)
        count_correct(tally, rows, count);
    return QN_OK;
}

static int measure(struct session *s, struct tally *tally)
{
    const qn_loader_params params = {.log = failure_log(s->failure),
                                     .max_samples = qn_plan_facts(session_running(s))->micro_batch,
                                     .sequential = true};
    TRY_LIBRARY(s->failure, NULL, qn_loader_open(&tally->loader, s->data.test, &params));
    TRY_LIBRARY(s->failure, NULL,
                qn_trainer_evaluate(s->trainer, tally->rows.facts->count, fetch, receive, tally));
    return CODE_DONE;
}

int evaluate(struct session *s, struct evaluation *evaluation)
{
    const qn_dataset_facts *facts = qn_dataset_describe(s->data.test);
    struct tally tally = {.rows.facts = facts,
                          .logits = s->settings.memory.storage,
                          .classes = s->data.model.classes,
                          .pixels = facts->labels ? 1 : facts->label_bytes};
    int code = measure(s, &tally);
    qn_loader_close(&tally.loader);
    if (code)
        return code;
    const double labels = (double)(facts->count * tally.pixels);
    *evaluation = (struct evaluation){.samples = facts->count,
                                      .accuracy = (double)tally.correct / labels,
                                      .loss = tally.loss / labels,
                                      .masks = !facts->labels,
                                      .overlap = overlap_mean(&tally.overlap)};
    return CODE_DONE;
}

const char *evaluation_text(const struct evaluation *evaluation, char text[EVALUATION_TEXT_BYTES])
{
    int length = snprintf(text, EVALUATION_TEXT_BYTES, "test accuracy %.2f %%  test loss %.4f",
                          100 * evaluation->accuracy, evaluation->loss);
    if (evaluation->masks)
        snprintf(text + length, (size_t)(EVALUATION_TEXT_BYTES - length), "  mean IoU %.4f",
                 evaluation->overlap);
    return text;
}
