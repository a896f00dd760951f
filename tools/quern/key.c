/* SPDX-License-Identifier: MIT */
#include "key.h"
#include "settings.h"
#include "value.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *key_text(const struct key *key, const char *text, void *to)
{
    (void)key;
    *(const char **)to = text;
    return NULL;
}

const char *key_count(const struct key *key, const char *text, void *to)
{
    return value_count(text, (int64_t)key->least, (int64_t)key->most, to);
}

const char *key_size(const struct key *key, const char *text, void *to)
{
    (void)key;
    return value_size(text, to);
}

const char *key_switch(const struct key *key, const char *text, void *to)
{
    (void)key;
    return value_switch(text, to);
}

const char *key_real(const struct key *key, const char *text, void *to)
{
    double value;
    const char *reason = value_single(text, &value);
    if (reason)
        return reason;
    if (value < key->least)
        return "is too small";
    if ((float)value >= (float)key->most)
        return "is too large";
    *(double *)to = value;
    return NULL;
}

const char *key_positive(const struct key *key, const char *text, void *to)
{
    double value;
    const char *reason = key_real(key, text, &value);
    if (reason)
        return reason;
    if (value <= 0)
        return "is too small";
    *(double *)to = value;
    return NULL;
}

const char *key_within(const struct key *key, const char *text, void *to)
{
    double value;
    const char *reason = value_single(text, &value);
    if (reason)
        return reason;
    if (value < key->least || value > key->most)
        return value < key->least ? "is too small" : "is too large";
    *(double *)to = value;
    return NULL;
}

const char *key_span(const struct key *key, const char *text, void *to)
{
    float values[2];
    int count;
    if (value_reals(text, values, 2, &count) || count != 2 || (double)values[0] <= key->least ||
        values[1] < values[0] || (double)values[1] > key->most)
        return "is not a least and a most, separated by a comma, above 0";
    for (int i = 0; i < 2; i++)
        ((double *)to)[i] = (double)values[i];
    return NULL;
}

const char *key_end(const struct key *key, const char *text, void *to)
{
    double value;
    const char *reason = key_real(key, text, &value);
    if (reason)
        return reason;
    *(double *)to = value == 0 ? -1 : value;
    return NULL;
}

const char *key_warmup(const struct key *key, const char *text, void *to)
{
    double value;
    const char *reason = key_end(key, text, &value);
    if (reason)
        return reason;
    if (value > 1 && value != (double)(int64_t)value)
        return "is neither a fraction below 1 nor a whole number of updates";
    *(double *)to = value;
    return NULL;
}

void key_add_optimizers(char *text, size_t room)
{
    for (int i = 0; qn_optimizer_name(i); i++) {
        const size_t length = strlen(text);
        snprintf(text + length, room - length, "%s%s", i ? ", " : "", qn_optimizer_name(i));
    }
}

const char *key_optimizer(const struct key *key, const char *text, void *to)
{
    static char reason[160];
    (void)key;
    for (int i = 0; qn_optimizer_name(i); i++)
        if (strcmp(text, qn_optimizer_name(i)) == 0) {
            *(const char **)to = qn_optimizer_name(i);
            return NULL;
        }
    snprintf(reason, sizeof reason, "is not one of them: ");
    key_add_optimizers(reason, sizeof reason);
    return reason;
}

const char *key_word(const struct key *key, const char *text, void *to)
{
    return value_word(text, key->words, to);
}

const char *key_channels(const struct key *key, const char *text, void *to)
{
    (void)key;
    struct channel_values *values = to;
    return value_reals(text, values->value, QN_MODEL_MAX_CHANNELS, &values->count);
}

const char *key_deviation(const struct key *key, const char *text, void *to)
{
    struct channel_values values;
    const char *reason = key_channels(key, text, &values);
    if (reason)
        return reason;
    for (int i = 0; i < values.count; i++)
        if (values.value[i] <= 0)
            return "has a number that is not above 0";
    *(struct channel_values *)to = values;
    return NULL;
}

const char *key_shape(const struct key *key, const char *text, void *to)
{
    float values[3];
    int count;
    if (value_reals(text, values, 3, &count) || count != 3)
        return "is not channels,height,width";
    for (int i = 0; i < 3; i++)
        if (values[i] < key->least || values[i] > key->most || values[i] != floorf(values[i]))
            return "is not channels,height,width";
    for (int i = 0; i < 3; i++)
        ((int64_t *)to)[i] = (int64_t)values[i];
    return NULL;
}

const char *key_lengths(const struct key *key, const char *text, void *to)
{
    (void)key;
    return value_lengths(text, to);
}

/* Height and width, or one number alone. */
static const char *read_sides(const struct key *key, const char *text, int sides[2])
{
    float values[2];
    int count;
    if (value_reals(text, values, 2, &count))
        return "is neither height,width nor one number";
    for (int i = 0; i < count; i++)
        if (values[i] < key->least || values[i] > key->most || values[i] != floorf(values[i]))
            return "has a number that is not whole or out of range";
    for (int i = 0; i < count; i++)
        sides[i] = (int)values[i];
    return NULL;
}

const char *key_side(const struct key *key, const char *text, void *to)
{
    int sides[2] = {0};
    const char *reason = read_sides(key, text, sides);
    if (!reason)
        memcpy(to, sides, sizeof sides);
    return reason;
}

const char *key_square(const struct key *key, const char *text, void *to)
{
    int sides[2] = {0};
    const char *reason = read_sides(key, text, sides);
    if (reason)
        return reason;
    if (!sides[1])
        sides[1] = sides[0];
    memcpy(to, sides, sizeof sides);
    return NULL;
}

const char *key_batch(const struct key *key, const char *text, void *to)
{
    qn_batch_schedule read = {.count = 1};
    const char *reason = NULL;
    if (strcmp(text, "adaptive") == 0)
        read.count = 0;
    else
        reason = key_count(key, text, &read.step[0].batch);
    if (!reason)
        *(qn_batch_schedule *)to = read;
    return reason;
}

const char *key_batches(const struct key *key, const char *text, void *to)
{
    static const char *const form = "is not update:batch,update:batch, updates rising from 0";
    qn_batch_schedule read = {0};
    for (const char *at = text;; at++) {
        char *end;
        qn_batch_step step = {.update = strtoll(at, &end, 10)};
        if (end == at || *end != ':' || step.update >= KEY_MOST_UPDATES)
            return form;
        const char *number = end + 1;
        step.batch = strtoll(number, &end, 10);
        if (end == number || step.batch < key->least || step.batch > key->most)
            return form;
        if (read.count ? step.update <= read.step[read.count - 1].update : step.update != 0)
            return form;
        if (read.count == QN_MAX_BATCH_SIZES)
            return "has more steps than a plan has sizes";
        read.step[read.count++] = step;
        at = end;
        if (!*at)
            break;
        if (*at != ',')
            return form;
    }
    *(qn_batch_schedule *)to = read;
    return NULL;
}

/* Whether a checkpoint's state can be gone on from: batches and updates as keys may set them. */
static bool is_state(const struct adaptive *state)
{
    const qn_adaptive_batch *batch = &state->batch;
    const qn_gradient_norms *kept = &state->kept;
    const double numbers[] = {batch->signal, batch->noise, kept->batch_square, kept->micro_square};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!isfinite(numbers[i]))
            return false;
    return batch->batch >= 0 && batch->batch <= KEY_MOST_BATCH && batch->measured >= 0 &&
           batch->measured <= KEY_MOST_UPDATES && kept->batch >= 0 &&
           kept->batch <= KEY_MOST_BATCH && kept->micro_batch >= 0 &&
           kept->micro_batch <= KEY_MOST_BATCH;
}

const char *key_adaptive(const struct key *key, const char *text, void *to)
{
    struct adaptive read = *(struct adaptive *)to;
    qn_adaptive_batch *batch = &read.batch;
    qn_gradient_norms *kept = &read.kept;
    (void)key;
    if (sscanf(text, ADAPTIVE_SCAN, &batch->batch, &batch->measured, &batch->signal, &batch->noise,
               &kept->batch, &kept->micro_batch, &kept->batch_square, &kept->micro_square) != 8 ||
        !is_state(&read))
        return "is not the state of an adaptive batch";
    *(struct adaptive *)to = read;
    return NULL;
}

const char *key_improvement(const struct key *key, const char *text, void *to)
{
    qn_improvement read = *(qn_improvement *)to;
    int seen;
    (void)key;
    if (sscanf(text, IMPROVEMENT_SCAN, &seen, &read.best, &read.waited, &read.flat,
               &read.reductions) != 5 ||
        !isfinite(read.best) || read.waited < 0 || read.flat < 0 || read.reductions < 0)
        return "is not the state of a figure that is watched";
    read.seen = seen != 0;
    *(qn_improvement *)to = read;
    return NULL;
}

const char *key_best_score(const struct key *key, const char *text, void *to)
{
    qn_improvement *improvement = to;
    const char *reason = key_real(key, text, &improvement->best);
    improvement->seen = !reason && improvement->best >= 0;
    return reason;
}

const char *key_factors(const struct key *key, const char *text, void *to)
{
    struct factor factor;
    const char *at = text;
    do {
        const char *reason = value_factor(&at, &factor);
        if (reason)
            return reason;
    } while (*at);
    return key_text(key, text, to);
}

/* The unit that a word names, of those that the key takes, with or without its last letter. */
static bool find_unit(const struct key *key, const char *word, enum interval_unit *unit)
{
    static const struct {
        const char *name, *one;
    } units[] = {[EVERY_EPOCHS] = {"epochs", "epoch"},
                 [EVERY_UPDATES] = {"updates", "update"},
                 [EVERY_SECONDS] = {"seconds", "second"},
                 [EVERY_MINUTES] = {"minutes", "minute"}};
    for (const char *const *taken = key->words; *taken; taken++)
        for (size_t i = 0; i < sizeof units / sizeof *units; i++)
            if (strcmp(*taken, units[i].name) == 0 &&
                (strcmp(word, units[i].name) == 0 || strcmp(word, units[i].one) == 0)) {
                *unit = (enum interval_unit)i;
                return true;
            }
    return false;
}

const char *key_interval(const struct key *key, const char *text, void *to)
{
    struct interval interval;
    char *end;
    interval.count = strtoll(text, &end, 10);
    const char *word = end + strspn(end, " ");
    if (end == text || !find_unit(key, *word ? word : key->words[0], &interval.unit))
        return "is not a number with a unit";
    if (interval.count < (int64_t)key->least || interval.count > (int64_t)key->most)
        return "is out of range";
    *(struct interval *)to = interval;
    return NULL;
}

const char *key_micro_batch(const struct key *key, const char *text, void *to)
{
    if (strcmp(text, "auto") != 0)
        return key_count(key, text, to);
    *(int64_t *)to = 0;
    return NULL;
}

const char *key_recompute(const struct key *key, const char *text, void *to)
{
    struct memory_settings *memory = to;
    int mode;
    memory->chosen = NULL;
    memory->recompute = QN_RECOMPUTE_CHOSEN;
    if (!value_word(text, key->words, &mode))
        memory->recompute = (qn_recompute_mode)mode;
    else
        memory->chosen = text;
    return NULL;
}

const char *key_storage(const struct key *key, const char *text, void *to)
{
    int word;
    const char *reason = value_word(text, key->words, &word);
    if (!reason)
        *(qn_dtype *)to = (qn_dtype)(QN_F32 + word);
    return reason;
}

const char *key_range(const struct key *key, char text[KEY_RANGE_BYTES])
{
    *text = 0;
    for (int i = 0; key->words && key->words[i]; i++)
        snprintf(text + strlen(text), KEY_RANGE_BYTES - strlen(text), "%s%s", i ? ", " : ": ",
                 key->words[i]);
    if (key->most > 0 && key->read != key_batches)
        snprintf(text + strlen(text), KEY_RANGE_BYTES - strlen(text),
                 key->read == key_positive                          ? "; above %.15g, below %.15g"
                 : key->read == key_real || key->read == key_warmup ? "; from %.15g, below %.15g"
                                                                    : "; from %.15g to %.15g",
                 key->least, key->most);
    return text;
}
