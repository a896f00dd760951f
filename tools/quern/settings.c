/* SPDX-License-Identifier: MIT */
#include "settings.h"
#include "contrastive_settings.h"
#include "data_settings.h"
#include "key.h"
#include "value.h"

#include <quern/drift.h>
#include <string.h>

/* --- the table --- */

/* In the order of the enums. */
static const char *const channels[] = {"3", "1", NULL};
static const char *const types[] = {"llm.c", "u16", "u32", NULL};
static const char *const schedules[] = {"constant", "step", "cosine", "linear", "one-cycle", NULL};
static const char *const recomputes[] = {"auto", "none", "all", NULL};
static const char *const efforts[] = {"default", "instant", "thorough", NULL};
static const char *const tunings[] = {"quick", "stored", "off", NULL};
static const char *const shards[] = {"optimizer", "none", NULL};
static const char *const tasks[] = {"regression", "multi_label", NULL};
static const char *const figures[] = {
    "accuracy", "loss", "mean_iou", "perplexity", "bits_per_byte", "mse",        "mae",
    "r2",       "f1",   "mrr",      "recall_1",   "recall_10",     "recall_100", NULL};
static const char *const pairings[] = {"passages", "halves", NULL};
static const char *const modes[] = {"none",       "auto",      "whole", "gradcache",
                                    "accumulate", "contaccum", NULL};
static const char *const scores[] = {"cosine", "dot", NULL};
/* What intervals are counted in, the usual unit first. */
static const char *const save_units[] = {"updates", "seconds", "minutes", NULL};
static const char *const eval_units[] = {"epochs", "updates", NULL};

#define AT(member) offsetof(struct settings, member)
static const struct key keys[] = {
    {"model", "name", key_text, AT(model), .help = "the model; other keys are the model's own"},
    {"data", "kind", key_word, AT(data.kind), .words = data_kinds,
     .help =
         "idx; images: folders of PNG and JPEG files; text; tokens: a file of them; jsonl: JSON "
         "lines; csv: comma-separated values; npy: arrays of NumPy's; lines: a text a line, of "
         "pairs "
         "(idx)"},
    {"data", "name", key_text, AT(data.name), .help = "fashion-mnist, from its package"},
    {"data", "path", key_text, AT(data.path),
     .help = "folder of IDX files under the usual names, or of images; file of text, tokens, "
             "JSON lines or CSV"},
    {"data", "origin", key_text, AT(data.origin),
     .help = "where path comes from: told if it is missing"},
    {"data", "images", key_text, AT(data.images), .help = "IDX file, for training"},
    {"data", "labels", key_text, AT(data.labels),
     .help = "IDX or npy file of classes, for training"},
    {"data", "test_images", key_text, AT(data.test_images), .help = "IDX file, for evaluation"},
    {"data", "test_labels", key_text, AT(data.test_labels),
     .help = "IDX or npy file of classes, for evaluation"},
    {"data", "test_path", key_text, AT(data.test_path),
     .help = "folder of images, file of text, tokens, JSON lines or CSV, for evaluation"},
    {"data", "channels", key_word, AT(data.channels), .words = channels,
     .help = "images: 3 colours, or 1 grey (3)"},
    {"data", "size", key_side, AT(data.size), 1, 1 << 16,
     .help = "images: resized to height,width, or to one number on the shorter side"},
    {"data", "crop", key_square, AT(data.crop), 1, 1 << 16,
     .help = "images: then height,width is cut out of the middle; one number: both"},
    {"data", "random_crop", key_switch, AT(data.augment.random_crop),
     .help = "images: in training anywhere, not in the middle (no)"},
    {"data", "random_resized_crop", key_switch, AT(data.augment.random_resized_crop),
     .help = "images: in training a part of random size and ratio becomes as large as crop (no)"},
    {"data", "scale", key_span, AT(data.augment.scale), 0, 1,
     .help = "least,most of such a part, of the image's pixels (0.08,1)"},
    {"data", "ratio", key_span, AT(data.augment.ratio), 0, 1000,
     .help = "least,most of its width to its height (0.75,1.3333)"},
    {"data", "flip", key_switch, AT(data.augment.flip),
     .help = "images: in training half of them from left to right (no)"},
    {"data", "degrees", key_within, AT(data.augment.degrees), 0, 360,
     .help = "images: in training turned by an angle in [-degrees, degrees] (0)"},
    {"data", "brightness", key_within, AT(data.augment.brightness), 0, 1000,
     .help = "images: in training times a factor in [1 - brightness, 1 + brightness] (0)"},
    {"data", "contrast", key_within, AT(data.augment.contrast), 0, 1000, .help = "the same (0)"},
    {"data", "saturation", key_within, AT(data.augment.saturation), 0, 1000,
     .help = "the same (0)"},
    {"data", "hue", key_within, AT(data.augment.hue), 0, 0.5,
     .help = "images: in training moved by [-hue, hue] of the circle of colours (0)"},
    {"data", "mixup", key_within, AT(data.mixup), 0, 1000,
     .help = "images, idx: in training mixed with another, a share of Beta(mixup, mixup) each, and "
             "so are the labels (0: not)"},
    {"data", "cutmix", key_within, AT(data.cutmix), 0, 1000,
     .help = "images, idx: a rectangle of another is put in, sized by Beta(cutmix, cutmix); with "
             "mixup: one or the other (0: not)"},
    {"data", "mask", key_text, AT(data.mask),
     .help = "images: _mask: NAME_mask.png has the class of each pixel of NAME.jpg"},
    {"data", "mean", key_channels, AT(data.mean),
     .help = "of pixels in [0, 1], of npy files of floats as they are; one, or one a channel (0)"},
    {"data", "deviation", key_deviation, AT(data.deviation), .help = "the same (1)"},
    {"data", "type", key_word, AT(data.type), .words = types,
     .help = "tokens: llm.c, whose files have a header, or u16 or u32 without one (llm.c)"},
    {"data", "length", key_count, AT(data.length), 1, 1 << 24,
     .help = "text, tokens, jsonl: tokens of a sample"},
    {"data", "lengths", key_lengths, AT(data.lengths),
     .help = "64,128,256: instead, documents (separator) are samples, each padded to one of these"},
    {"data", "stride", key_count, AT(data.stride), 1, 1 << 24,
     .help = "text, tokens, jsonl: from one sample of the training to the next (length)"},
    {"data", "held_out", key_real, AT(data.held_out), 0, 1,
     .help = "text, tokens, jsonl, csv, npy: this fraction at the end of path is for evaluation "
             "(0.05)"},
    {"data", "separator", key_count, AT(data.separator), 0, 0x7ffffffe,
     .help =
         "text, tokens: between documents, 10: ends of lines; nothing is learned across; jsonl: "
         "put behind each text"},
    {"data", "tokenizer", key_text, AT(data.tokenizer),
     .help = "text, jsonl: tokenizer.json, vocab.json beside merges.txt, or a folder with either"},
    {"data", "vocabulary", key_count, AT(data.vocabulary), 257, 1 << 24,
     .help = "text, jsonl: instead, so many tokens of byte-level BPE are made of path (bytes are "
             "tokens)"},
    {"data", "tokens", key_count, AT(data.tokens), 1, 1 << 24,
     .help = "text, tokens, jsonl: that there are (of the tokenizer; of llm.c's 50257 or 128256)"},
    {"data", "field", key_text, AT(data.field), .help = "jsonl: where the text is (text)"},
    {"data", "label", key_text, AT(data.label),
     .help = "jsonl: where the class is, a number or a name; then each line is one sample, cut or "
             "padded to length; csv: the column of the class"},
    {"data", "target", key_text, AT(data.target),
     .help = "csv: NAME, NAME: instead of a class, the columns of numbers that are told"},
    {"data", "task", key_word, AT(data.task), .words = tasks,
     .help = "csv, npy: regression, or multi_label where targets are 0 or 1 (regression)"},
    {"data", "features", key_text, AT(data.features),
     .help = "csv: NAME, NAME: columns that the model looks at (all others); npy: file of samples: "
             "rows of numbers, or images (height, width) or (channels, height, width)"},
    {"data", "targets", key_text, AT(data.targets),
     .help = "npy: instead of labels, file of the numbers that are told"},
    {"data", "test_features", key_text, AT(data.test_features), .help = "npy: for evaluation"},
    {"data", "test_targets", key_text, AT(data.test_targets), .help = "npy: for evaluation"},
    {"data", "standardize", key_switch, AT(data.standardize),
     .help = "csv, npy: features have mean 0 and deviation 1 over the training samples (no)"},
    {"data", "mlm_probability", key_real, AT(data.mlm_probability), 0, 1,
     .help = "text, tokens, jsonl: of a token to be masked and asked for, BERT: 0.15; 0: the next "
             "one is (0)"},
    {"data", "mask_token", key_count, AT(data.mask_token), 0, 0x7ffffffe,
     .help = "in its place (of text the tokenizer's [MASK], else the last of the tokens)"},
    {"data", "bytes_per_token", key_positive, AT(data.bytes_per_token), 0, 1e6,
     .help = "tokens: of the text they were made of; evaluation tells bits per byte then"},
    {"data", "shape", key_shape, AT(data.shape), 1, 1 << 20,
     .help = "channels,height,width: with classes, plans need no data"},
    {"data", "classes", key_count, AT(data.classes), 1, 1 << 24,
     .help = "of samples (largest label + 1)"},
    {"data", "validation", key_real, AT(data.validation), 0, 1,
     .help = "idx, images, csv, npy, jsonl with a label: this fraction of the training samples, "
             "drawn by train.seed, is evaluated in training in the place of the test split (0)"},
    {"data", "pairs", key_word, AT(data.pairs), .words = pairings,
     .help = "dual encoders: passages: the section [passages]; halves: of images the left half is "
             "the query, the right one its passage (passages)"},
    {"contrastive", "mode", key_word, AT(contrastive.mode), .words = modes,
     .help = "of a dual encoder: whole: the pairs of the whole batch; gradcache: the same in "
             "micro-batches; auto: the first of them that fits; accumulate: the pairs of a "
             "micro-batch; contaccum: those and a bank; none (none)"},
    {"contrastive", "bank", key_count, AT(contrastive.bank), 0, 0x7fffffff,
     .help = "contaccum: earlier samples that are negatives, too; 0: none (train.batch)"},
    {"contrastive", "query_bank", key_switch, AT(contrastive.query_bank),
     .help = "contaccum: the bank's queries look for their passages, too (yes)"},
    {"contrastive", "bank_queries", key_count, AT(contrastive.bank_queries), 0, 0x7fffffff,
     .help =
         "contaccum: of how many of its samples, the newest, these are kept; 0: of none (bank)"},
    {"contrastive", "local_mean", key_switch, AT(contrastive.local_mean),
     .help = "contaccum: the loss is divided by the micro-batch's queries, not by all (no)"},
    {"contrastive", "forget", key_switch, AT(contrastive.forget),
     .help = "contaccum: the bank is emptied before each update (no)"},
    {"contrastive", "start", key_count, AT(contrastive.start), 0, 0x1p40,
     .help = "contaccum: updates before the bank is filled (0)"},
    {"contrastive", "drift_every", key_count, AT(contrastive.drift_every), 0, 0x1p40,
     .help =
         "contaccum: updates after which the bank is compared with what its samples are now; 0: "
         "never (100)"},
    {"contrastive", "drift_ages", key_count, AT(contrastive.drift_ages), 1, QN_DRIFT_AGES,
     .help = "ages into which it is divided for that (8)"},
    {"contrastive", "drift_entries", key_count, AT(contrastive.drift_entries), 1, 1 << 24,
     .help = "samples of each age that are looked at (16)"},
    {"contrastive", "drift_threshold", key_within, AT(contrastive.drift_threshold), 0.01, 1,
     .help = "mean cosine of the oldest age below which there is a warning (0.995)"},
    {"contrastive", "cap", key_switch, AT(contrastive.cap),
     .help = "contaccum: ages below it count no more (no)"},
    {"contrastive", "temperature", key_positive, AT(contrastive.temperature), 0, 1e6,
     .help = "scores are divided by it (0.05; of dot 1)"},
    {"contrastive", "learned", key_switch, AT(contrastive.learned),
     .help = "the temperature is trained (no)"},
    {"contrastive", "score", key_word, AT(contrastive.score), .words = scores,
     .help = "cosine, or dot product of the vectors as they are (cosine)"},
    {"contrastive", "dim", key_count, AT(contrastive.dim), 1, 1 << 16,
     .help = "numbers of a vector (128)"},
    {"contrastive", "tied", key_switch, AT(contrastive.tied),
     .help = "both towers have the same parameters (no)"},
    {"contrastive", "symmetric", key_switch, AT(contrastive.symmetric),
     .help = "half of the loss is that of passages which look for their queries (no)"},
    {"contrastive", "duplicates", key_switch, AT(contrastive.duplicates),
     .help = "the same sample, met again in the bank, is no negative (no)"},
    {"train", "batch", key_batch, AT(train.batches), 1, 1 << 24,
     .help = "effective batch, or adaptive: as the noise of the gradient says (64)"},
    {"train", "batch_min", key_count, AT(train.adaptive.batch.least), 2, 1 << 24,
     .help = "of an adaptive batch: the least, doubled up to"},
    {"train", "batch_max", key_count, AT(train.adaptive.batch.most), 2, 1 << 24,
     .help = "the most"},
    {"train", "batch_schedule", key_batches, AT(train.batches), 1, 1 << 24,
     .help = "instead: update:batch,update:batch from update 0 on"},
    {"train", "epochs", key_count, AT(train.epochs), 1, 1 << 24, .help = "length of training, or"},
    {"train", "steps", key_count, AT(train.steps), 1, 0x1p40, .help = "the same in updates"},
    {"train", "seed", key_count, AT(train.seed), 0, 0x1p62, .help = "of everything random (1)"},
    {"train", "optimizer", key_optimizer, AT(train.optimizer.name), .help = "by name (sgd): "},
    {"train", "lr", key_positive, AT(train.schedule.lr), 0, 1e6, .help = "learning rate (0.001)"},
    {"train", "momentum", key_real, AT(train.optimizer.momentum), 0, 1, .help = "of sgd (0)"},
    {"train", "nesterov", key_switch, AT(train.optimizer.nesterov), .help = "of sgd (no)"},
    {"train", "no_master", key_switch, AT(train.optimizer.no_master),
     .help = "parameters in 16 bits are updated themselves, rounded stochastically (no)"},
    {"train", "beta1", key_positive, AT(train.optimizer.beta1), 0, 1,
     .help = "(the optimizer's own: adam, lion 0.9)"},
    {"train", "beta2", key_positive, AT(train.optimizer.beta2), 0, 1,
     .help = "(the optimizer's own: adam 0.999, lion 0.99)"},
    {"train", "eps", key_positive, AT(train.optimizer.eps), 0, 1,
     .help = "(the optimizer's own: adam 1e-8, adafactor 1e-30)"},
    {"train", "ema", key_real, AT(train.optimizer.ema), 0, 1,
     .help = "decay of a moving average of the weights, which is evaluated and exported: 0.999 "
             "(0: none)"},
    {"train", "weight_decay", key_real, AT(train.weight_decay), 0, 1e6, .help = "(0)"},
    {"train", "clip", key_real, AT(train.clip), 0, 1e30,
     .help = "largest norm of the gradient; 0: none (0)"},
    {"train", "freeze", key_text, AT(train.freeze),
     .help =
         "PATTERN, PATTERN: of names of parameters that are not trained, * and ? as in a shell"},
    {"train", "rates", key_factors, AT(train.rates),
     .help = "PATTERN:FACTOR, ...: factors of lr for some parameters; the last that matches holds"},
    {"train", "decays", key_factors, AT(train.decays),
     .help = "the same of weight_decay (*:1, and 0 for biases and scales)"},
    {"train", "norm_groups", key_text, AT(train.norm_groups),
     .help = "auto: with the figures comes the norm of each layer's gradient; or PATTERN, PATTERN: "
             "of these parameters, of two with their ratio (none)"},
    {"train", "schedule", key_word, AT(train.schedule.kind), .words = schedules,
     .help = "constant, step, cosine, linear or one-cycle (constant)"},
    {"train", "warmup", key_warmup, AT(train.schedule.warmup), 0, 0x1p40,
     .help = "updates, or a fraction of all below 1 (0; one-cycle: 0.3)"},
    {"train", "step_every", key_count, AT(train.schedule.every), 1, 0x1p40,
     .help = "of the schedule step: updates (1000)"},
    {"train", "step_factor", key_positive, AT(train.schedule.factor), 0, 1e6,
     .help = "of the schedule step (0.1)"},
    {"train", "lr_end", key_end, AT(train.schedule.end), 0, 1e6,
     .help = "last learning rate of cosine, linear (0), one-cycle (lr / 250000)"},
    {"train", "weights", key_text, AT(train.weights),
     .help = "to begin with: a safetensors file, or a folder with config.json beside it"},
    {"train", "adapters", key_text, AT(train.adapters),
     .help = "of PEFT to begin with: a folder of adapter_config.json, adapter_model.safetensors"},
    {"train", "save_every", key_interval, AT(train.save_every), 0, 0x1p40, .words = save_units,
     .help = "N updates, seconds or minutes, besides the ends of epochs; 0: these alone (0)"},
    {"train", "eval_every", key_interval, AT(train.eval_every), 0, 0x1p40, .words = eval_units,
     .help = "N epochs or N updates; 0: at the end alone (1 epoch)"},
    {"train", "keep", key_count, AT(train.keep), 0, 1 << 20,
     .help = "newest checkpoints that stay; the last and the best do anyhow (0)"},
    {"train", "best", key_word, AT(train.best), .words = figures,
     .help = "figure by which the best checkpoint is told (perplexity of tokens, else accuracy)"},
    {"train", "patience", key_count, AT(train.improvement.patience), 0, 0x1p40,
     .help = "the training ends after so many evaluations without a better one; 0: never (0)"},
    {"train", "plateau_patience", key_count, AT(train.improvement.plateau_patience), 0, 0x1p40,
     .help = "the same after which lr is made smaller, whatever the schedule; 0: never (0)"},
    {"train", "plateau_factor", key_positive, AT(train.improvement.plateau_factor), 0, 1,
     .help = "by this factor (0.1)"},
    {"memory", "budget", key_size, AT(memory.budget),
     .help = VALUE_SIZE_FORM " (three quarters of the device's memory)"},
    {"memory", "micro_batch", key_micro_batch, AT(memory.micro_batch), 1, 1 << 24,
     .help = "samples at a time, or auto (auto)"},
    {"memory", "recompute", key_recompute, AT(memory), .words = recomputes,
     .help = "auto, none, all, or names of nodes (auto)"},
    {"memory", "early_updates", key_switch, AT(memory.early_updates),
     .help = "no clip: parameters change as their gradients complete, where it helps (no)"},
    {"memory", "park", key_switch, AT(memory.park),
     .help = "activations may go to host memory and back, where it helps (no)"},
    {"memory", "effort", key_word, AT(memory.effort), .words = efforts,
     .help = "of the search for it: default, instant or thorough (default)"},
    {"memory", "storage", key_storage, AT(memory.storage), .words = value_floats,
     .help = "of activations: f32, f16 or bf16 (f32)"},
    {"memory", "parameter_storage", key_storage, AT(memory.parameter_storage),
     .words = value_floats,
     .help = "of weights of rank 2 or more: f32, f16 or bf16, of f32 masters (the optimizer's own: "
             "f32, flash_adamw bf16)"},
    {"memory", "variants", key_text, AT(memory.variants),
     .help = "kernels to prefer: linear=clblast,..."},
    {"memory", "tune", key_word, AT(memory.tune), .words = tunings,
     .help = "kernels: quick times those nobody timed yet, stored, off (quick)"},
    {"group", "devices", key_text, AT(group.devices),
     .help = "DEVICE budget=SIZE micro_batch=N recompute=MODE | DEVICE ...: they train together"},
    {"group", "share", key_text, AT(group.share),
     .help = "N:N:... how samples are split among them; auto: by speed (equally)"},
    {"group", "shard", key_word, AT(group.shard), .words = shards,
     .help = "what each has a part of, optimizer: its states and masters; or none (optimizer)"},
    {"group", "same_device", key_switch, AT(group.same_device),
     .help = "two of them may be one device (no)"},
    {"group", "timeout", key_count, AT(group.timeout), 1, 1 << 30,
     .help = "seconds after which one that waits for another gives up (600)"},
};
#undef AT
enum { N_KEYS = sizeof keys / sizeof *keys };

/* What a checkpoint's recipe has besides. */
static const struct key resumed[] = {
    {"resume", "best_score", key_best_score, offsetof(struct settings, train.improvement), -1, 2},
    {"resume", "improvement", key_improvement, offsetof(struct settings, train.improvement)},
    {"resume", "samples", key_text, offsetof(struct settings, samples)},
    {"resume", "targets", key_count, offsetof(struct settings, n_targets), 1, 1 << 30},
    {"resume", "real", key_switch, offsetof(struct settings, real)},
    {"resume", "adaptive", key_adaptive, offsetof(struct settings, train.adaptive)},
};
enum { N_RESUMED = sizeof resumed / sizeof *resumed };

/* Keys of which one takes the place of the other. */
static const struct rivals {
    const char *section, *key[2];
} rivals[] = {
    {"train", {"epochs", "steps"}},
    {"train", {"batch", "batch_schedule"}},
    {"data", {"test_path", "held_out"}},
    {"data", {"length", "lengths"}},
    {"data", {"random_crop", "random_resized_crop"}},
    {"data", {"tokenizer", "vocabulary"}},
    {"data", {"label", "target"}},
    {"data", {"labels", "targets"}},
    {"data", {"test_features", "held_out"}},
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

static int add_option(qn_model_option options[MAX_MODEL_OPTIONS], int *count,
                      const struct recipe *recipe, const struct recipe_entry *entry,
                      struct failure *failure)
{
    if (*count == MAX_MODEL_OPTIONS)
        return recipe_refuse(recipe, entry, failure, "a model has at most %d keys",
                             MAX_MODEL_OPTIONS);
    options[(*count)++] = (qn_model_option){entry->key, entry->value};
    return CODE_DONE;
}

static bool is_in(const struct recipe_entry *entry, const char *section)
{
    return strcmp(entry->section, section) == 0;
}

/* With what the key could have been: one of the section, or a section. */
static int refuse_key(const struct recipe *recipe, const struct recipe_entry *entry,
                      struct failure *failure)
{
    qn_nearest key = {.text = entry->key}, section = {.text = entry->section};
    const bool data = is_in(entry, "passages") || is_in(entry, "negatives");
    const char *of = data ? "data" : entry->section;
    char hint[QN_NEAREST_BYTES];
    bool known = false;
    for (int i = 0; i < N_KEYS; i++) {
        if (i == 0 || strcmp(keys[i].section, keys[i - 1].section) != 0)
            qn_nearest_offer(&section, keys[i].section);
        if (strcmp(keys[i].section, of) != 0)
            continue;
        known = true;
        qn_nearest_offer(&key, keys[i].name);
    }
    return recipe_refuse(recipe, entry, failure, "unknown %s%s", known ? "key" : "section",
                         qn_nearest_hint(known ? &key : &section, hint));
}

static int read_key(struct settings *s, const struct recipe *recipe,
                    const struct recipe_entry *entry, const struct key *key, ptrdiff_t moved,
                    struct failure *failure)
{
    char range[KEY_RANGE_BYTES];
    const char *reason = key->read(key, entry->value, (char *)s + key->offset + moved);
    return reason ? recipe_refuse(recipe, entry, failure, "'%s' %s%s", entry->value, reason,
                                  key_range(key, range))
                  : CODE_DONE;
}

static int read_entry(struct settings *s, const struct recipe *recipe,
                      const struct recipe_entry *entry, struct failure *failure)
{
    const struct key *key = find_key(recipe, entry->section, entry->key);
    if (!key && is_in(entry, "model"))
        return add_option(s->options, &s->n_options, recipe, entry, failure);
    return key ? read_key(s, recipe, entry, key, 0, failure) : refuse_key(recipe, entry, failure);
}

/* Sections of passages alone: [passages] and [negatives] have the keys of [data], [passage_model]
 * those of [model]. */
static bool is_of_passages(const struct recipe_entry *entry)
{
    return is_in(entry, "passages") || is_in(entry, "negatives") || is_in(entry, "passage_model");
}

static int read_passage_model(struct settings *s, const struct recipe *recipe,
                              const struct recipe_entry *entry, struct failure *failure)
{
    struct model_settings *model = &s->passage_model;
    if (strcmp(entry->key, "name") != 0)
        return add_option(model->options, &model->n_options, recipe, entry, failure);
    model->name = entry->value;
    return CODE_DONE;
}

/* The entries of one of those sections; data that is `moved` from that of [data]. */
static int read_section(struct settings *s, const struct recipe *recipe, const char *section,
                        ptrdiff_t moved, bool *there, struct failure *failure)
{
    const struct recipe_entry *entry;
    for (int i = 0; (entry = recipe_next(recipe, &i));) {
        const struct key *key = find_key(recipe, "data", entry->key);
        if (!is_in(entry, section))
            continue;
        *there = true;
        if (!s->contrastive.mode)
            return recipe_refuse(recipe, entry, failure, "needs contrastive.mode");
        if (!moved)
            TRY(read_passage_model(s, recipe, entry, failure));
        else
            TRY(key ? read_key(s, recipe, entry, key, moved, failure)
                    : refuse_key(recipe, entry, failure));
    }
    return CODE_DONE;
}

/* What [passages] does not say is as in [data], what [negatives] does not say as in [passages]. */
static int read_entries(struct settings *s, const struct recipe *recipe, struct failure *failure)
{
    const ptrdiff_t data = offsetof(struct settings, data);
    const struct recipe_entry *entry;
    bool there;
    for (int i = 0; (entry = recipe_next(recipe, &i));)
        if (!is_of_passages(entry))
            TRY(read_entry(s, recipe, entry, failure));
    s->passages = s->data;
    TRY(read_section(s, recipe, "passages", offsetof(struct settings, passages) - data, &there,
                     failure));
    s->negatives = s->passages;
    TRY(read_section(s, recipe, "negatives", offsetof(struct settings, negatives) - data,
                     &s->has_negatives, failure));
    return read_section(s, recipe, "passage_model", 0, &there, failure);
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

/* Micro-steps are compared with whole cycles. */
static int check_adaptive(const struct settings *s, const struct recipe *recipe,
                          struct failure *failure)
{
    const qn_adaptive_batch *batch = &s->train.adaptive.batch;
    const bool adaptive = s->train.batches.count == 0;
    TRY(recipe_need(recipe, adaptive || (!batch->least && !batch->most),
                    "train.batch_min, train.batch_max: go with train.batch = adaptive", failure));
    TRY(recipe_need(
        recipe, !adaptive || (batch->least && batch->most >= batch->least),
        "train.batch: adaptive needs train.batch_min and a train.batch_max not below it", failure));
    TRY(recipe_need(
        recipe, !adaptive || s->train.steps,
        "train.batch: adaptive needs train.steps: nobody knows how many updates epochs take",
        failure));
    return recipe_need(
        recipe, !adaptive || s->memory.micro_batch <= batch->least / 2,
        "memory.micro_batch: an adaptive batch needs at most half of train.batch_min", failure);
}

static int check_whole(const struct settings *s, const struct recipe *recipe,
                       struct failure *failure)
{
    TRY(check_rivals(recipe, failure));
    TRY(recipe_need(recipe, s->model, "model.name: missing", failure));
    if (s->contrastive.mode)
        TRY(contrastive_check(s, recipe, failure));
    else
        TRY(data_settings_check(&s->data, recipe, failure));
    TRY(recipe_need(recipe, s->train.epochs || s->train.steps,
                    "train.epochs: missing, and train.steps too", failure));
    TRY(check_adaptive(s, recipe, failure));
    TRY(recipe_need(recipe, s->train.batches.count || !s->data.lengths.count,
                    "data.lengths: go with no adaptive batch: short samples come first in a cycle",
                    failure));
    TRY(recipe_need(recipe, !s->train.optimizer.nesterov || s->train.optimizer.momentum > 0,
                    "train.nesterov: needs train.momentum", failure));
    return recipe_need(recipe,
                       !s->train.optimizer.no_master || s->memory.parameter_storage != QN_F32,
                       "train.no_master: needs memory.parameter_storage = f16 or bf16", failure);
}

static void add_graph(qn_model_option *options, int *count, const char *text)
{
    if (text && *count < MAX_MODEL_OPTIONS)
        options[(*count)++] = (qn_model_option){"text", text};
}

int settings_read(struct settings *s, const struct recipe *recipe, struct failure *failure)
{
    *s = (struct settings){
        .train = {.seed = 1,
                  .eval_every = {1, EVERY_EPOCHS},
                  .best = -1,
                  .batches = {1, {{0, 64}}},
                  .schedule = {.lr = 1e-3}},
        .data = {.separator = -1, .mask_token = -1, .held_out = -1, .field = "text"},
        .memory = {.storage = QN_F32},
        .contrastive =
            {.bank = -1, .bank_queries = -1, .query_bank = true, .dim = 128, .drift_every = 100},
    };
    TRY(read_entries(s, recipe, failure));
    add_graph(s->options, &s->n_options, recipe->graph[GRAPH_OF_MODEL]);
    add_graph(s->passage_model.options, &s->passage_model.n_options,
              recipe->graph[GRAPH_OF_PASSAGES]);
    if (!s->memory.parameter_storage)
        s->memory.parameter_storage = qn_optimizer_storage(s->train.optimizer.name);
    TRY(check_whole(s, recipe, failure));
    data_settings_complete(&s->data);
    if (s->contrastive.mode)
        contrastive_complete(s);
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
        if (keys[i].read == key_optimizer)
            key_add_optimizers(names, sizeof names);
        fprintf(out, "    %-15s %s%s\n", keys[i].name, keys[i].help, names);
    }
    for (int i = 0; qn_model_name(i); i++) {
        fprintf(out, "  [model] with name = %s\n", qn_model_name(i));
        print_lines(out, qn_model_help(qn_model_name(i)));
    }
    fputs("  [passages], [passage_model], [negatives]\n"
          "    of dual encoders: keys of [data] and [model] where passages differ from queries, "
          "and of\n"
          "    [data] where hard negatives, one or more for each pair, differ from passages\n",
          out);
    fputs("  [model] of all models with linear layers\n", out);
    print_lines(out, qn_model_help(NULL));
}

/* --- what follows from them --- */

bool settings_learns_tokens(const struct settings *s)
{
    return s->data.kind == DATA_TEXT || s->data.kind == DATA_TOKENS ||
           (s->data.kind == DATA_JSONL && !s->data.label && !s->contrastive.mode);
}

const char *settings_option(const struct settings *settings, const char *key)
{
    for (int i = 0; i < settings->n_options; i++)
        if (strcmp(settings->options[i].key, key) == 0)
            return settings->options[i].value;
    return NULL;
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
        .norm_groups = s->train.norm_groups,
    };
    if (s->train.batches.count)
        qn_schedule_sizes(&s->train.batches, params.batch);
    else
        qn_adaptive_sizes(&s->train.adaptive.batch, params.batch);
    if (!s->train.batches.count && !params.micro_batch)
        params.micro_batch = s->train.adaptive.batch.least / 2;
    return params;
}
