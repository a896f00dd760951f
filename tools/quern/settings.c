/* SPDX-License-Identifier: MIT */
#include "settings.h"
#include "value.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static const int64_t most_updates = INT64_C(1) << 40, most_batch = 1 << 24;

struct key {
    const char *section, *name;
    /* Reads a value into the settings; gives NULL or a reason. */
    const char *(*read)(const struct key *key, const char *text, void *to);
    size_t offset;
    double least, most;
    const char *const *words;
    const char *help;
};

/* --- kinds of values --- */

static const char *read_text(const struct key *key, const char *text, void *to)
{
    (void)key;
    *(const char **)to = text;
    return NULL;
}

static const char *read_count(const struct key *key, const char *text, void *to)
{
    return value_count(text, (int64_t)key->least, (int64_t)key->most, to);
}

static const char *read_size(const struct key *key, const char *text, void *to)
{
    (void)key;
    return value_size(text, to);
}

static const char *read_switch(const struct key *key, const char *text, void *to)
{
    (void)key;
    return value_switch(text, to);
}

/* A number in [least, most), as f32, which it becomes on the device. */
static const char *read_real(const struct key *key, const char *text, void *to)
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

/* A number above 0 and below most. */
static const char *read_positive(const struct key *key, const char *text, void *to)
{
    double value;
    const char *reason = read_real(key, text, &value);
    if (reason)
        return reason;
    if (value <= 0)
        return "is too small";
    *(double *)to = value;
    return NULL;
}

/* A 0 that is written down is not the default of a schedule, but below 0. */
static const char *read_end(const struct key *key, const char *text, void *to)
{
    double value;
    const char *reason = read_real(key, text, &value);
    if (reason)
        return reason;
    *(double *)to = value == 0 ? -1 : value;
    return NULL;
}

static const char *read_warmup(const struct key *key, const char *text, void *to)
{
    double value;
    const char *reason = read_end(key, text, &value);
    if (reason)
        return reason;
    if (value > 1 && value != (double)(int64_t)value)
        return "is neither a fraction below 1 nor a whole number of updates";
    *(double *)to = value;
    return NULL;
}

/* Appends the names of all optimizers, comma-separated. */
static void add_optimizers(char *text, size_t room)
{
    for (int i = 0; qn_optimizer_name(i); i++) {
        const size_t length = strlen(text);
        snprintf(text + length, room - length, "%s%s", i ? ", " : "", qn_optimizer_name(i));
    }
}

static const char *read_optimizer(const struct key *key, const char *text, void *to)
{
    static char reason[160];
    (void)key;
    for (int i = 0; qn_optimizer_name(i); i++)
        if (strcmp(text, qn_optimizer_name(i)) == 0) {
            *(const char **)to = qn_optimizer_name(i);
            return NULL;
        }
    snprintf(reason, sizeof reason, "is not one of them: ");
    add_optimizers(reason, sizeof reason);
    return reason;
}

/* Indices of words are the values of the enum, which is as large as an int. */
static const char *read_word(const struct key *key, const char *text, void *to)
{
    return value_word(text, key->words, to);
}

static const char *read_channels(const struct key *key, const char *text, void *to)
{
    (void)key;
    struct channel_values *values = to;
    return value_reals(text, values->value, QN_MODEL_MAX_CHANNELS, &values->count);
}

static const char *read_deviation(const struct key *key, const char *text, void *to)
{
    struct channel_values values;
    const char *reason = read_channels(key, text, &values);
    if (reason)
        return reason;
    for (int i = 0; i < values.count; i++)
        if (values.value[i] <= 0)
            return "has a number that is not above 0";
    *(struct channel_values *)to = values;
    return NULL;
}

static const char *read_shape(const struct key *key, const char *text, void *to)
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

/* Height and width, or one number alone. */
static const char *read_lengths(const struct key *key, const char *text, int lengths[2])
{
    float values[2];
    int count;
    if (value_reals(text, values, 2, &count))
        return "is neither height,width nor one number";
    for (int i = 0; i < count; i++)
        if (values[i] < key->least || values[i] > key->most || values[i] != floorf(values[i]))
            return "has a number that is not whole or out of range";
    for (int i = 0; i < count; i++)
        lengths[i] = (int)values[i];
    return NULL;
}

/* One number: of the shorter side. */
static const char *read_side(const struct key *key, const char *text, void *to)
{
    int lengths[2] = {0};
    const char *reason = read_lengths(key, text, lengths);
    if (!reason)
        memcpy(to, lengths, sizeof lengths);
    return reason;
}

/* One number: of both sides. */
static const char *read_square(const struct key *key, const char *text, void *to)
{
    int lengths[2] = {0};
    const char *reason = read_lengths(key, text, lengths);
    if (reason)
        return reason;
    if (!lengths[1])
        lengths[1] = lengths[0];
    memcpy(to, lengths, sizeof lengths);
    return NULL;
}

static const char *read_batch(const struct key *key, const char *text, void *to)
{
    qn_batch_schedule read = {.count = 1};
    const char *reason = NULL;
    if (strcmp(text, "adaptive") == 0)
        read.count = 0;
    else
        reason = read_count(key, text, &read.step[0].batch);
    if (!reason)
        *(qn_batch_schedule *)to = read;
    return reason;
}

static const char *read_batches(const struct key *key, const char *text, void *to)
{
    static const char *const form = "is not update:batch,update:batch, updates rising from 0";
    qn_batch_schedule read = {0};
    for (const char *at = text;; at++) {
        char *end;
        qn_batch_step step = {.update = strtoll(at, &end, 10)};
        if (end == at || *end != ':' || step.update >= most_updates)
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
    return batch->batch >= 0 && batch->batch <= most_batch && batch->measured >= 0 &&
           batch->measured <= most_updates && kept->batch >= 0 && kept->batch <= most_batch &&
           kept->micro_batch >= 0 && kept->micro_batch <= most_batch;
}

static const char *read_adaptive(const struct key *key, const char *text, void *to)
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

static const char *read_interval(const struct key *key, const char *text, void *to)
{
    static const char *const units[] = {"", "epoch", "epochs", "update", "updates", NULL};
    int unit;
    char *end;
    long long count = strtoll(text, &end, 10);
    if (end == text || value_word(end + strspn(end, " "), units, &unit))
        return "is not a number of epochs or updates";
    if (count < (int64_t)key->least || count > (int64_t)key->most)
        return "is out of range";
    *(struct interval *)to = (struct interval){.count = count, .epochs = unit < 3};
    return NULL;
}

static const char *read_micro_batch(const struct key *key, const char *text, void *to)
{
    if (strcmp(text, "auto") != 0)
        return read_count(key, text, to);
    *(int64_t *)to = 0;
    return NULL;
}

static const char *read_recompute(const struct key *key, const char *text, void *to)
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

static const char *read_storage(const struct key *key, const char *text, void *to)
{
    int word;
    const char *reason = value_word(text, key->words, &word);
    if (!reason)
        *(qn_dtype *)to = (qn_dtype)(QN_F32 + word);
    return reason;
}

/* --- the table --- */

/* In the order of the enums. */
static const char *const kinds[] = {"idx", "images", "text", "tokens", NULL};
static const char *const channels[] = {"3", "1", NULL};
static const char *const types[] = {"llm.c", "u16", "u32", NULL};
static const char *const schedules[] = {"constant", "step", "cosine", "linear", "one-cycle", NULL};
static const char *const recomputes[] = {"auto", "none", "all", NULL};
static const char *const efforts[] = {"default", "instant", "thorough", NULL};
static const char *const tunings[] = {"quick", "stored", "off", NULL};
static const char *const storages[] = {"f32", "f16", "bf16", NULL};

#define AT(member) offsetof(struct settings, member)
static const struct key keys[] = {
    {"model", "name", read_text, AT(model), .help = "the model; other keys are the model's own"},
    {"data", "kind", read_word, AT(data.kind), .words = kinds,
     .help = "idx; images: folders of PNG and JPEG files; text; tokens: a file of them (idx)"},
    {"data", "name", read_text, AT(data.name), .help = "fashion-mnist, from its package"},
    {"data", "path", read_text, AT(data.path),
     .help = "folder of IDX files under the usual names, or of images; file of text or tokens"},
    {"data", "origin", read_text, AT(data.origin),
     .help = "where path comes from: told if it is missing"},
    {"data", "images", read_text, AT(data.images), .help = "IDX file, for training"},
    {"data", "labels", read_text, AT(data.labels), .help = "IDX file, for training"},
    {"data", "test_images", read_text, AT(data.test_images), .help = "IDX file, for evaluation"},
    {"data", "test_labels", read_text, AT(data.test_labels), .help = "IDX file, for evaluation"},
    {"data", "test_path", read_text, AT(data.test_path),
     .help = "folder of images, file of text or tokens, for evaluation"},
    {"data", "channels", read_word, AT(data.channels), .words = channels,
     .help = "images: 3 colours, or 1 grey (3)"},
    {"data", "size", read_side, AT(data.size), 1, 1 << 16,
     .help = "images: resized to height,width, or to one number on the shorter side"},
    {"data", "crop", read_square, AT(data.crop), 1, 1 << 16,
     .help = "images: then height,width is cut out of the middle; one number: both"},
    {"data", "random_crop", read_switch, AT(data.random_crop),
     .help = "images: in training anywhere, not in the middle (no)"},
    {"data", "flip", read_switch, AT(data.flip),
     .help = "images: in training half of them from left to right (no)"},
    {"data", "mask", read_text, AT(data.mask),
     .help = "images: _mask: NAME_mask.png has the class of each pixel of NAME.jpg"},
    {"data", "mean", read_channels, AT(data.mean),
     .help = "of pixels in [0, 1]; one, or one a channel (0)"},
    {"data", "deviation", read_deviation, AT(data.deviation), .help = "the same (1)"},
    {"data", "type", read_word, AT(data.type), .words = types,
     .help = "tokens: llm.c, whose files have a header, or u16 or u32 without one (llm.c)"},
    {"data", "length", read_count, AT(data.length), 1, 1 << 24,
     .help = "text, tokens: tokens of a sample, of text bytes"},
    {"data", "stride", read_count, AT(data.stride), 1, 1 << 24,
     .help = "text, tokens: from one sample of the training to the next (length)"},
    {"data", "held_out", read_real, AT(data.held_out), 0, 1,
     .help = "text, tokens: this fraction at the end of path is for evaluation (0.05)"},
    {"data", "separator", read_count, AT(data.separator), 0, 0x7ffffffe,
     .help = "text, tokens: between documents, 10: ends of lines; nothing is learned across"},
    {"data", "bytes_per_token", read_positive, AT(data.bytes_per_token), 0, 1e6,
     .help = "tokens: of the text they were made of; evaluation tells bits per byte then"},
    {"data", "shape", read_shape, AT(data.shape), 1, 1 << 20,
     .help = "channels,height,width: with classes, plans need no data"},
    {"data", "classes", read_count, AT(data.classes), 1, 1 << 24,
     .help = "(largest label + 1; of text 256; of llm.c's tokens 50257 or 128256)"},
    {"train", "batch", read_batch, AT(train.batches), 1, 1 << 24,
     .help = "effective batch, or adaptive: as the noise of the gradient says (64)"},
    {"train", "batch_min", read_count, AT(train.adaptive.batch.least), 2, 1 << 24,
     .help = "of an adaptive batch: the least, doubled up to"},
    {"train", "batch_max", read_count, AT(train.adaptive.batch.most), 2, 1 << 24,
     .help = "the most"},
    {"train", "batch_schedule", read_batches, AT(train.batches), 1, 1 << 24,
     .help = "instead: update:batch,update:batch from update 0 on"},
    {"train", "epochs", read_count, AT(train.epochs), 1, 1 << 24, .help = "length of training, or"},
    {"train", "steps", read_count, AT(train.steps), 1, 0x1p40, .help = "the same in updates"},
    {"train", "seed", read_count, AT(train.seed), 0, 0x1p62, .help = "of everything random (1)"},
    {"train", "optimizer", read_optimizer, AT(train.optimizer.name), .help = "by name (sgd): "},
    {"train", "lr", read_positive, AT(train.schedule.lr), 0, 1e6, .help = "learning rate (0.001)"},
    {"train", "momentum", read_real, AT(train.optimizer.momentum), 0, 1, .help = "of sgd (0)"},
    {"train", "nesterov", read_switch, AT(train.optimizer.nesterov), .help = "of sgd (no)"},
    {"train", "no_master", read_switch, AT(train.optimizer.no_master),
     .help = "parameters in 16 bits are updated themselves, rounded stochastically (no)"},
    {"train", "beta1", read_positive, AT(train.optimizer.beta1), 0, 1,
     .help = "(the optimizer's own: adam, lion 0.9)"},
    {"train", "beta2", read_positive, AT(train.optimizer.beta2), 0, 1,
     .help = "(the optimizer's own: adam 0.999, lion 0.99)"},
    {"train", "eps", read_positive, AT(train.optimizer.eps), 0, 1, .help = "of adam (1e-8)"},
    {"train", "weight_decay", read_real, AT(train.weight_decay), 0, 1e6, .help = "(0)"},
    {"train", "clip", read_real, AT(train.clip), 0, 1e30,
     .help = "largest norm of the gradient; 0: none (0)"},
    {"train", "schedule", read_word, AT(train.schedule.kind), .words = schedules,
     .help = "constant, step, cosine, linear or one-cycle (constant)"},
    {"train", "warmup", read_warmup, AT(train.schedule.warmup), 0, 0x1p40,
     .help = "updates, or a fraction of all below 1 (0; one-cycle: 0.3)"},
    {"train", "step_every", read_count, AT(train.schedule.every), 1, 0x1p40,
     .help = "of the schedule step: updates (1000)"},
    {"train", "step_factor", read_positive, AT(train.schedule.factor), 0, 1e6,
     .help = "of the schedule step (0.1)"},
    {"train", "lr_end", read_end, AT(train.schedule.end), 0, 1e6,
     .help = "last learning rate of cosine, linear (0), one-cycle (lr / 250000)"},
    {"train", "weights", read_text, AT(train.weights),
     .help = "to begin with: a safetensors file, or a folder with config.json beside it"},
    {"train", "save_every", read_count, AT(train.save_every), 0, 0x1p40,
     .help = "updates, besides the ends of epochs; 0: these alone (0)"},
    {"train", "eval_every", read_interval, AT(train.eval_every), 0, 0x1p40,
     .help = "N epochs or N updates; 0: at the end alone (1 epoch)"},
    {"memory", "budget", read_size, AT(memory.budget),
     .help = VALUE_SIZE_FORM " (three quarters of the device's memory)"},
    {"memory", "micro_batch", read_micro_batch, AT(memory.micro_batch), 1, 1 << 24,
     .help = "samples at a time, or auto (auto)"},
    {"memory", "recompute", read_recompute, AT(memory), .words = recomputes,
     .help = "auto, none, all, or names of nodes (auto)"},
    {"memory", "early_updates", read_switch, AT(memory.early_updates),
     .help = "no clip: parameters change as their gradients complete, where it helps (no)"},
    {"memory", "park", read_switch, AT(memory.park),
     .help = "activations may go to host memory and back, where it helps (no)"},
    {"memory", "effort", read_word, AT(memory.effort), .words = efforts,
     .help = "of the search for it: default, instant or thorough (default)"},
    {"memory", "storage", read_storage, AT(memory.storage), .words = storages,
     .help = "of activations: f32, f16 or bf16 (f32)"},
    {"memory", "parameter_storage", read_storage, AT(memory.parameter_storage), .words = storages,
     .help = "of weights of rank 2 or more: f32, f16 or bf16, of f32 masters (f32)"},
    {"memory", "variants", read_text, AT(memory.variants),
     .help = "kernels to prefer: linear=clblast,..."},
    {"memory", "tune", read_word, AT(memory.tune), .words = tunings,
     .help = "kernels: quick times those nobody timed yet, stored, off (quick)"},
};
#undef AT
enum { N_KEYS = sizeof keys / sizeof *keys };

/* What a checkpoint's recipe has besides. */
static const struct key resumed[] = {
    {"resume", "best_score", read_real, offsetof(struct settings, best_score), -1, 2},
    {"resume", "samples", read_text, offsetof(struct settings, samples)},
    {"resume", "adaptive", read_adaptive, offsetof(struct settings, train.adaptive)},
};
enum { N_RESUMED = sizeof resumed / sizeof *resumed };

/* Keys of which one takes the place of the other. */
static const struct rivals {
    const char *section, *key[2];
} rivals[] = {
    {"train", {"epochs", "steps"}},
    {"train", {"batch", "batch_schedule"}},
    {"data", {"test_path", "held_out"}},
};
enum { N_RIVALS = sizeof rivals / sizeof *rivals };

static const struct key *find_among(const struct key *among, int count, const char *section,
                                    const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(among[i].section, section) == 0 && strcmp(among[i].name, name) == 0)
            return &among[i];
    return NULL;
}

static const struct key *find_key(const struct recipe *recipe, const char *section,
                                  const char *name)
{
    const struct key *key = find_among(keys, N_KEYS, section, name);
    return key || !recipe->resumed ? key : find_among(resumed, N_RESUMED, section, name);
}

/* --- reading --- */

static int add_option(struct settings *s, const struct recipe *recipe,
                      const struct recipe_entry *entry, struct failure *failure)
{
    if (s->n_options == MAX_MODEL_OPTIONS)
        return recipe_refuse(recipe, entry, failure, "a model has at most %d keys",
                             MAX_MODEL_OPTIONS);
    s->options[s->n_options++] = (qn_model_option){entry->key, entry->value};
    return CODE_DONE;
}

/* With what the key could have been: one of the section, or a section. */
static int refuse_key(const struct recipe *recipe, const struct recipe_entry *entry,
                      struct failure *failure)
{
    qn_nearest key = {.text = entry->key}, section = {.text = entry->section};
    char hint[QN_NEAREST_BYTES];
    bool known = false;
    for (int i = 0; i < N_KEYS; i++) {
        if (i == 0 || strcmp(keys[i].section, keys[i - 1].section) != 0)
            qn_nearest_offer(&section, keys[i].section);
        if (strcmp(keys[i].section, entry->section) != 0)
            continue;
        known = true;
        qn_nearest_offer(&key, keys[i].name);
    }
    return recipe_refuse(recipe, entry, failure, "unknown %s%s", known ? "key" : "section",
                         qn_nearest_hint(known ? &key : &section, hint));
}

/* What the key takes: one of its words, or a number in its range. */
static int refuse_value(const struct key *key, const struct recipe *recipe,
                        const struct recipe_entry *entry, const char *reason,
                        struct failure *failure)
{
    char range[128] = "";
    for (int i = 0; key->words && key->words[i]; i++)
        snprintf(range + strlen(range), sizeof range - strlen(range), "%s%s", i ? ", " : ": ",
                 key->words[i]);
    if (key->most > 0 && key->read != read_batches)
        snprintf(range, sizeof range,
                 key->read == read_positive                           ? "; above %.15g, below %.15g"
                 : key->read == read_real || key->read == read_warmup ? "; from %.15g, below %.15g"
                                                                      : "; from %.15g to %.15g",
                 key->least, key->most);
    return recipe_refuse(recipe, entry, failure, "'%s' %s%s", entry->value, reason, range);
}

static int read_entry(struct settings *s, const struct recipe *recipe,
                      const struct recipe_entry *entry, struct failure *failure)
{
    const struct key *key = find_key(recipe, entry->section, entry->key);
    if (!key && strcmp(entry->section, "model") == 0)
        return add_option(s, recipe, entry, failure);
    if (!key)
        return refuse_key(recipe, entry, failure);
    const char *reason = key->read(key, entry->value, (char *)s + key->offset);
    return reason ? refuse_value(key, recipe, entry, reason, failure) : CODE_DONE;
}

static int check_rivals(const struct recipe *recipe, struct failure *failure)
{
    for (const struct rivals *r = rivals; r < rivals + N_RIVALS; r++) {
        const struct recipe_entry *entry = recipe_find(recipe, r->section, r->key[1]);
        if (entry && recipe_find(recipe, r->section, r->key[0]))
            return recipe_refuse(recipe, entry, failure, "and %s.%s exclude each other", r->section,
                                 r->key[0]);
    }
    return CODE_DONE;
}

static int need(const struct recipe *recipe, bool there, const char *what, struct failure *failure)
{
    return there ? CODE_DONE : failure_set(failure, CODE_USAGE, "%s: %s", recipe->name, what);
}

/* Keys of [data] that belong to some kinds. */
enum {
    OF_IDX = 1 << DATA_IDX,
    OF_IMAGES = 1 << DATA_IMAGES,
    OF_TEXT = 1 << DATA_TEXT,
    OF_TOKENS = 1 << DATA_TOKENS,
};
static const struct {
    const char *name;
    unsigned kinds;
} owned[] = {
    {"name", OF_IDX},
    {"images", OF_IDX},
    {"labels", OF_IDX},
    {"test_images", OF_IDX},
    {"test_labels", OF_IDX},
    {"test_path", OF_IMAGES | OF_TEXT | OF_TOKENS},
    {"channels", OF_IMAGES},
    {"size", OF_IMAGES},
    {"crop", OF_IMAGES},
    {"flip", OF_IMAGES},
    {"mask", OF_IMAGES},
    {"random_crop", OF_IMAGES},
    {"mean", OF_IDX | OF_IMAGES},
    {"deviation", OF_IDX | OF_IMAGES},
    {"shape", OF_IDX | OF_IMAGES},
    {"type", OF_TOKENS},
    {"length", OF_TEXT | OF_TOKENS},
    {"stride", OF_TEXT | OF_TOKENS},
    {"held_out", OF_TEXT | OF_TOKENS},
    {"separator", OF_TEXT | OF_TOKENS},
    {"bytes_per_token", OF_TOKENS},
};

/* "images, text or tokens". */
static void name_kinds(unsigned among, char text[64])
{
    *text = 0;
    for (int i = 0; kinds[i]; i++)
        if (among >> i & 1)
            snprintf(text + strlen(text), 64 - strlen(text), "%s%s",
                     !*text            ? ""
                     : among >> i >> 1 ? ", "
                                       : " or ",
                     kinds[i]);
}

static int check_kind(const struct data_settings *data, const struct recipe *recipe,
                      struct failure *failure)
{
    char names[64];
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++) {
        const struct recipe_entry *entry = recipe_find(recipe, "data", owned[i].name);
        if (!entry || owned[i].kinds >> data->kind & 1)
            continue;
        name_kinds(owned[i].kinds, names);
        return recipe_refuse(recipe, entry, failure, "goes with data.kind = %s", names);
    }
    return CODE_DONE;
}

static int check_images(const struct data_settings *data, const struct recipe *recipe,
                        struct failure *failure)
{
    TRY(need(recipe, data->path, "data.path: missing", failure));
    TRY(need(recipe, !data->random_crop || data->crop[0], "data.random_crop: needs data.crop",
             failure));
    return need(recipe, !data->mask || (data->classes && data->classes <= 256),
                "data.mask: needs data.classes, at most 256", failure);
}

static int check_idx(const struct data_settings *data, const struct recipe *recipe,
                     struct failure *failure)
{
    TRY(need(recipe, data->name || data->path || data->images,
             "data.name: missing, and neither data.path nor data.images is there", failure));
    TRY(need(recipe, !data->images == !data->labels, "data.images: goes with data.labels",
             failure));
    TRY(need(recipe, !data->test_images == !data->test_labels,
             "data.test_images: goes with data.test_labels", failure));
    return need(recipe, !data->test_images || data->images, "data.images: missing", failure);
}

static int check_tokens(const struct data_settings *data, const struct recipe *recipe,
                        struct failure *failure)
{
    TRY(need(recipe, data->path, "data.path: missing; --data names the file", failure));
    return need(recipe, data->length, "data.length: missing: the tokens of a sample", failure);
}

/* What follows from other keys, or is the default of the kind. */
static void complete_data(struct data_settings *data)
{
    const int64_t row[3] = {1, 1, data->length};
    const bool text = data->kind == DATA_TEXT;
    if (data->held_out < 0)
        data->held_out = data->test_path ? 0 : 0.05;
    if (text && !data->classes)
        data->classes = 256;
    if (text)
        data->bytes_per_token = 1;
    if (data->length)
        memcpy(data->shape, row, sizeof row);
}

/* Micro-steps are compared with whole cycles. */
static int check_adaptive(const struct settings *s, const struct recipe *recipe,
                          struct failure *failure)
{
    const qn_adaptive_batch *batch = &s->train.adaptive.batch;
    const bool adaptive = s->train.batches.count == 0;
    TRY(need(recipe, adaptive || (!batch->least && !batch->most),
             "train.batch_min, train.batch_max: go with train.batch = adaptive", failure));
    TRY(need(recipe, !adaptive || (batch->least && batch->most >= batch->least),
             "train.batch: adaptive needs train.batch_min and a train.batch_max not below it",
             failure));
    TRY(need(recipe, !adaptive || s->train.steps,
             "train.batch: adaptive needs train.steps: nobody knows how many updates epochs take",
             failure));
    return need(recipe, !adaptive || s->memory.micro_batch <= batch->least / 2,
                "memory.micro_batch: an adaptive batch needs at most half of train.batch_min",
                failure);
}

static int check_whole(const struct settings *s, const struct recipe *recipe,
                       struct failure *failure)
{
    static int (*const checks[])(const struct data_settings *, const struct recipe *,
                                 struct failure *) = {
        [DATA_IDX] = check_idx,
        [DATA_IMAGES] = check_images,
        [DATA_TEXT] = check_tokens,
        [DATA_TOKENS] = check_tokens,
    };
    TRY(check_rivals(recipe, failure));
    TRY(need(recipe, s->model, "model.name: missing", failure));
    TRY(check_kind(&s->data, recipe, failure));
    TRY(checks[s->data.kind](&s->data, recipe, failure));
    TRY(need(recipe, s->train.epochs || s->train.steps,
             "train.epochs: missing, and train.steps too", failure));
    TRY(check_adaptive(s, recipe, failure));
    TRY(need(recipe, !s->train.optimizer.nesterov || s->train.optimizer.momentum > 0,
             "train.nesterov: needs train.momentum", failure));
    return need(recipe, !s->train.optimizer.no_master || s->memory.parameter_storage != QN_F32,
                "train.no_master: needs memory.parameter_storage = f16 or bf16", failure);
}

int settings_read(struct settings *s, const struct recipe *recipe, struct failure *failure)
{
    *s = (struct settings){
        .train = {.seed = 1,
                  .eval_every = {1, true},
                  .batches = {1, {{0, 64}}},
                  .schedule = {.lr = 1e-3}},
        .data = {.separator = -1, .held_out = -1},
        .memory = {.storage = QN_F32, .parameter_storage = QN_F32},
        .best_score = -1,
    };
    for (int i = 0; i < recipe->count; i++)
        TRY(read_entry(s, recipe, &recipe->entries[i], failure));
    TRY(check_whole(s, recipe, failure));
    complete_data(&s->data);
    return CODE_DONE;
}

/* --- overriding --- */

static void remove_rival(struct recipe *recipe, const char *section, const char *key)
{
    for (const struct rivals *r = rivals; r < rivals + N_RIVALS; r++)
        for (int side = 0; side < 2; side++)
            if (strcmp(r->section, section) == 0 && strcmp(r->key[side], key) == 0)
                recipe_remove(recipe, section, r->key[!side]);
}

int settings_override(struct recipe *recipe, const char *name, const char *value,
                      const char *option, struct failure *failure)
{
    const char *dot = strchr(name, '.');
    char section[32] = "";
    if (!dot || dot == name || dot - name >= (int)sizeof section)
        return failure_set(failure, CODE_USAGE, "%s: '%s' is not section.key", option, name);
    memcpy(section, name, (size_t)(dot - name));
    remove_rival(recipe, section, dot + 1);
    return recipe_put(recipe, section, dot + 1, value, option, failure);
}

static void print_lines(FILE *out, const char *text)
{
    while (text && *text) {
        int length = (int)strcspn(text, "\n");
        fprintf(out, "    %.*s\n", length, text);
        text += length + (text[length] == '\n');
    }
}

void settings_help(FILE *out)
{
    const char *section = "";
    for (int i = 0; i < N_KEYS; i++) {
        if (strcmp(keys[i].section, section) != 0)
            fprintf(out, "  [%s]\n", section = keys[i].section);
        char names[160] = "";
        if (keys[i].read == read_optimizer)
            add_optimizers(names, sizeof names);
        fprintf(out, "    %-15s %s%s\n", keys[i].name, keys[i].help, names);
    }
    for (int i = 0; qn_model_name(i); i++) {
        fprintf(out, "  [model] with name = %s\n", qn_model_name(i));
        print_lines(out, qn_model_help(qn_model_name(i)));
    }
}

/* --- what follows from them --- */

bool settings_has_tokens(const struct settings *s)
{
    return s->data.kind == DATA_TEXT || s->data.kind == DATA_TOKENS;
}

int64_t settings_total(const struct train_settings *train, int64_t samples_per_epoch)
{
    return train->steps ? train->steps
                        : qn_schedule_updates(&train->batches, train->epochs * samples_per_epoch);
}

qn_plan_params settings_plan(const struct settings *s)
{
    qn_plan_params params = {
        .budget = s->memory.budget,
        .micro_batch = s->memory.micro_batch,
        .recompute = s->memory.recompute,
        .effort = s->memory.effort,
        .chosen = s->memory.chosen,
        .variants = s->memory.variants,
        .optimizer = s->train.optimizer,
        .early_updates = s->memory.early_updates && s->train.clip == 0,
        .park = s->memory.park,
    };
    if (s->train.batches.count)
        qn_schedule_sizes(&s->train.batches, params.batch);
    else
        qn_adaptive_sizes(&s->train.adaptive.batch, params.batch);
    if (!s->train.batches.count && !params.micro_batch)
        params.micro_batch = s->train.adaptive.batch.least / 2;
    return params;
}
