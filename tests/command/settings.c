/* SPDX-License-Identifier: MIT
 *
 * Recipes: what they mean, what is refused and where, overriding, and writing them out again.
 */
#include "note.h"
#include "settings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HEAD "[model]\nname = mlp\n[data]\nname = fashion-mnist\n[train]\n"

static struct recipe recipe;
static struct settings settings;

static void accept(const char *text)
{
    struct failure failure = FAILURE_NONE;
    assert_int_equal(recipe_parse(&recipe, text, "r.ini", &failure), CODE_DONE);
    assert_int_equal(settings_read(&settings, &recipe, &failure), CODE_DONE);
    assert_string_equal(failure.text, "");
}

static void refuse(const char *text, const char *message)
{
    struct failure failure = FAILURE_NONE;
    if (recipe_parse(&recipe, text, "r.ini", &failure) == CODE_DONE)
        settings_read(&settings, &recipe, &failure);
    assert_int_equal(failure.code, CODE_USAGE);
    assert_string_equal(failure.text, message);
}

static void override(const char *name, const char *value)
{
    struct failure failure = FAILURE_NONE;
    assert_int_equal(settings_override(&recipe, name, value, "--set", &failure), CODE_DONE);
    assert_int_equal(settings_read(&settings, &recipe, &failure), CODE_DONE);
}

/* Texts of settings lie in the recipe's entries: those of the rest stay when one is removed, and
 * there is room for another in its place. */
static void removing(void **state)
{
    (void)state;
    struct failure failure = FAILURE_NONE;
    accept(HEAD "batch = 8\nsteps = 9\nseed = 3\nfreeze = first\n[group]\nshare = 3:1\n");
    const int count = recipe.count;
    for (int times = 0; times < 2; times++) {
        recipe_remove(&recipe, "train", "seed");
        assert_null(recipe_find(&recipe, "train", "seed"));
        assert_string_equal(settings.train.freeze, "first");
        assert_string_equal(settings.group.share, "3:1");
        int seen = 0;
        for (int i = 0; recipe_next(&recipe, &i);)
            seen++;
        assert_int_equal(seen, count - 1);
        char *text = note_text(&recipe, NULL, NULL);
        assert_null(strstr(text, "seed"));
        free(text);
        assert_int_equal(settings_read(&settings, &recipe, &failure), CODE_DONE);
        assert_int_equal(recipe_put(&recipe, "train", "seed", "4", "", &failure), CODE_DONE);
        assert_int_equal(recipe.count, count);
        assert_string_equal(settings.train.freeze, "first");
    }
}

static void shipped(void **state)
{
    (void)state;
    for (int i = 0; recipe_shipped(i); i++) {
        struct failure failure = FAILURE_NONE;
        assert_int_equal(recipe_read(&recipe, recipe_shipped(i), &failure), CODE_DONE);
        assert_int_equal(settings_read(&settings, &recipe, &failure), CODE_DONE);
    }
}

static void everything(void **state)
{
    (void)state;
    accept("; comment\n[model]\nname=cnn ; inline\n  width = 8\n# other\ngroup=4\n"
           "[data]\nimages = a\nlabels = b\nmean = 0.5, 0.25\ndeviation = 2\nshape=2,8,9\n"
           "classes = 7\n"
           "[train]\nbatch_schedule = 0:64,100:128,200:64\nsteps = 300\nseed = 0\n"
           "optimizer = adamw\nlr = 1e-2\nbeta1 = 0.8\nschedule = one-cycle\nwarmup = 0.25\n"
           "save_every = 10\neval_every = 20 updates\nclip = 1\n"
           "[memory]\nbudget = 1.5GiB\nmicro_batch = auto\nrecompute = conv1,bn1\n"
           "storage = bf16\nvariants = linear=cpu\nearly_updates = yes\n"
           "park = yes\n");
    assert_string_equal(settings.model, "cnn");
    assert_int_equal(settings.n_options, 2);
    assert_string_equal(settings.options[0].key, "width");
    assert_string_equal(settings.options[0].value, "8");
    assert_int_equal(settings.data.mean.count, 2);
    assert_true(settings.data.mean.value[1] == 0.25f);
    assert_int_equal(settings.data.shape[2], 9);
    assert_int_equal(settings.train.seed, 0);
    assert_string_equal(settings.train.optimizer.name, "adamw");
    assert_int_equal(settings.train.schedule.kind, QN_LR_ONE_CYCLE);
    assert_int_equal(settings.train.save_every.unit, EVERY_UPDATES);
    assert_int_equal(settings.train.eval_every.unit, EVERY_UPDATES);
    assert_int_equal(settings.train.eval_every.count, 20);
    assert_int_equal(settings.memory.budget, INT64_C(3) << 29);
    assert_int_equal(settings.memory.recompute, QN_RECOMPUTE_CHOSEN);
    assert_string_equal(settings.memory.chosen, "conv1,bn1");
    assert_int_equal(settings.memory.storage, QN_BF16);
    qn_plan_params plan = settings_plan(&settings);
    assert_int_equal(plan.batch[0], 128);
    assert_int_equal(plan.batch[1], 64);
    assert_int_equal(plan.batch[2], 0);
    assert_true(plan.park);
    assert_false(plan.early_updates); /* they do not wait for the norm that is clipped */
    override("train.clip", "0");
    assert_true(settings_plan(&settings).early_updates);
}

static void images(void **state)
{
    (void)state;
    accept("[model]\nname = cnn\n[data]\nkind = images\npath = a\ntest_path = b\nsize = 256\n"
           "crop = 224\nrandom_crop = yes\nflip = on\nmask = _m\nclasses = 3\nchannels = 1\n"
           "[train]\nsteps = 1\n");
    assert_int_equal(settings.data.kind, DATA_IMAGES);
    assert_string_equal(settings.data.path, "a");
    assert_string_equal(settings.data.test_path, "b");
    assert_int_equal(settings.data.size[0], 256);
    assert_int_equal(settings.data.size[1], 0);
    assert_int_equal(settings.data.crop[0], 224);
    assert_int_equal(settings.data.crop[1], 224);
    assert_true(settings.data.augment.random_crop && settings.data.augment.flip);
    assert_string_equal(settings.data.mask, "_m");
    assert_int_equal(settings.data.channels, IMAGE_GREY);
    override("data.size", "30, 40");
    override("data.crop", "20,24");
    assert_int_equal(settings.data.size[1], 40);
    assert_int_equal(settings.data.crop[0], 20);
    assert_int_equal(settings.data.crop[1], 24);
    override("data.random_resized_crop", "yes");
    override("data.ratio", "0.5, 2");
    override("data.hue", "0.5");
    assert_true(settings.data.augment.random_resized_crop && !settings.data.augment.random_crop);
    assert_true(settings.data.augment.ratio[0] == 0.5 && settings.data.augment.ratio[1] == 2);
    assert_true(settings.data.augment.hue == 0.5);
    refuse(HEAD "steps = 1\n[data]\nflip = yes\n",
           "r.ini:8: data.flip: goes with data.kind = images");
    refuse("[model]\nname = cnn\n[data]\nkind = images\n[train]\nsteps = 1\n",
           "r.ini: data.path: missing");
}

/* Without a word about it parameters are of the type that the optimizer is made for. */
static void parameters(void **state)
{
    (void)state;
    accept(
        "[model]\nname = gpt\n[data]\nkind = text\npath = a\nlength = 128\n[train]\nsteps = 1\n");
    assert_int_equal(settings.memory.parameter_storage, QN_F32);
    override("train.optimizer", "adamw8");
    assert_int_equal(settings.memory.parameter_storage, QN_F32);
    override("train.optimizer", "flash_adamw");
    assert_int_equal(settings.memory.parameter_storage, QN_BF16);
    override("memory.parameter_storage", "f32");
    assert_int_equal(settings.memory.parameter_storage, QN_F32);
}

static void text(void **state)
{
    (void)state;
    accept(
        "[model]\nname = gpt\n[data]\nkind = text\npath = a\nlength = 128\n[train]\nsteps = 1\n");
    assert_int_equal(settings.data.kind, DATA_TEXT);
    assert_true(settings_learns_tokens(&settings));
    assert_true(settings.data.held_out == 0.05 && settings.data.bytes_per_token == 1);
    assert_int_equal(settings.data.tokens, 256);
    assert_int_equal(settings.data.classes, 0);
    assert_int_equal(settings.data.separator, -1);
    assert_int_equal(settings.data.shape[0], 1);
    assert_int_equal(settings.data.shape[2], 128);
    override("data.test_path", "b");
    assert_true(settings.data.held_out == 0);
    override("data.held_out", "0.25");
    assert_null(settings.data.test_path);
    assert_true(settings.data.held_out == 0.25);
    override("data.separator", "10");
    assert_int_equal(settings.data.separator, 10);
    override("data.kind", "tokens");
    override("data.type", "u32");
    override("data.stride", "7");
    assert_int_equal(settings.data.type, TOKEN_FILE_U32);
    assert_int_equal(settings.data.stride, 7);
    assert_int_equal(settings.data.tokens, 0);
    assert_true(settings.data.bytes_per_token == 0);
    refuse(HEAD "steps = 1\n[data]\nlength = 8\n",
           "r.ini:8: data.length: goes with data.kind = text, tokens, jsonl or lines");
    refuse(HEAD "steps = 1\n[data]\ntest_path = a\n",
           "r.ini:8: data.test_path: goes with data.kind = images, text, tokens, jsonl, csv or "
           "lines");
    refuse("[model]\nname = gpt\n[data]\nkind = text\npath = a\n[train]\nsteps = 1\n",
           "r.ini: data.length: missing: the tokens of a sample");
    refuse("[model]\nname = gpt\n[data]\nkind = text\ntest_path = a\nheld_out = 0.1\n",
           "r.ini:6: data.held_out: and data.test_path exclude each other");
    refuse("[data]\nkind = text\nheld_out = 1\n",
           "r.ini:3: data.held_out: '1' is too large; from 0, below 1");
}

#define LINES "[model]\nname = bert\n[data]\nkind = jsonl\npath = a\nlength = 8\n"

static void json_lines(void **state)
{
    (void)state;
    accept(LINES "label = kind\n[train]\nsteps = 1\n");
    assert_false(settings_learns_tokens(&settings));
    assert_string_equal(settings.data.field, "text");
    assert_int_equal(settings.data.tokens, 256);
    assert_true(settings.data.bytes_per_token == 0);
    override("data.vocabulary", "300");
    assert_int_equal(settings.data.tokens, 300);
    accept(LINES "separator = 0\nmlm_probability = 0.15\n[train]\nsteps = 1\n");
    assert_true(settings_learns_tokens(&settings));
    assert_int_equal(settings.data.tokens, 257);
    refuse(LINES, "r.ini: data.separator: missing: the token behind each text");
    refuse(LINES "classes = 2\nseparator = 0\n", "r.ini: data.classes: needs data.label");
    refuse(LINES "label = a\nstride = 2\n", "r.ini:8: data.stride: goes without data.label");
    refuse(LINES "label = a\nseparator = 2\n", "r.ini:8: data.separator: goes without data.label");
    refuse(LINES "label = a\nmlm_probability = 0.1\n",
           "r.ini:8: data.mlm_probability: goes without data.label");
    refuse(LINES "type = u16\n", "r.ini:7: data.type: goes with data.kind = tokens");
    refuse("[model]\nname = gpt\n[data]\nkind = text\nlabel = a\n",
           "r.ini:5: data.label: goes with data.kind = jsonl or csv");
    refuse("[model]\nname = gpt\n[data]\nkind = text\nclasses = 2\n",
           "r.ini:5: data.classes: goes with data.kind = idx, images, jsonl, csv or npy");
}

/* All are offered. */
static void an_unknown_optimizer(void **state)
{
    (void)state;
    char message[256] = "r.ini:6: train.optimizer: 'rmsprop' is not one of them: sgd";
    for (int i = 1; qn_optimizer_name(i); i++) {
        const size_t length = strlen(message);
        snprintf(message + length, sizeof message - length, ", %s", qn_optimizer_name(i));
    }
    refuse(HEAD "optimizer = rmsprop\n", message);
}

#define ADAPTIVE HEAD "batch = adaptive\nbatch_min = 48\nbatch_max = 200\n"

static void adaptive(void **state)
{
    (void)state;
    accept(ADAPTIVE "steps = 9\n");
    assert_int_equal(settings.train.batches.count, 0);
    qn_plan_params plan = settings_plan(&settings);
    assert_int_equal(plan.batch[0], 192);
    assert_int_equal(plan.batch[2], 48);
    assert_int_equal(plan.batch[3], 0);
    assert_int_equal(plan.micro_batch, 24);
    override("memory.micro_batch", "16");
    assert_int_equal(settings_plan(&settings).micro_batch, 16);
    refuse(ADAPTIVE "epochs = 9\n", "r.ini: train.batch: adaptive needs train.steps: nobody knows "
                                    "how many updates epochs take");
    refuse(ADAPTIVE "steps = 9\n[memory]\nmicro_batch = 25\n",
           "r.ini: memory.micro_batch: an adaptive batch needs at most half of train.batch_min");
    refuse(HEAD "batch = adaptive\nbatch_min = 8\nsteps = 9\n",
           "r.ini: train.batch: adaptive needs train.batch_min and a train.batch_max not below it");
    refuse(HEAD "batch_max = 8\nsteps = 9\n",
           "r.ini: train.batch_min, train.batch_max: go with train.batch = adaptive");
    refuse(HEAD "batch = adapted\n",
           "r.ini:6: train.batch: 'adapted' is not a whole number; from 1 to 16777216");
}

static void refusals(void **state)
{
    (void)state;
    refuse("name = x\n", "r.ini:1: .name: no such section");
    refuse("[modle]\nname = x\n", "r.ini:2: modle.name: unknown section; did you mean model?");
    refuse("[data]\nshape = 1,1e30,2\n",
           "r.ini:2: data.shape: '1,1e30,2' is not channels,height,width; from 1 to 1048576");
    refuse(HEAD "stepz = 1\n", "r.ini:6: train.stepz: unknown key; did you mean steps?");
    refuse(HEAD "steps = 1\nsteps = 2\n", "r.ini:7: train.steps: given twice, first in line 6");
    refuse(HEAD "steps\n", "r.ini:6: neither a [section] nor a key = value nor a comment");
    refuse(HEAD "[train\n", "r.ini:6: neither a [section] nor a key = value nor a comment");
    refuse(HEAD "steps =\n", "r.ini:6: train.steps: has no value");
    refuse(HEAD "steps = 0\n", "r.ini:6: train.steps: '0' is too small; from 1 to 1099511627776");
    refuse(HEAD "steps = 1\nepochs = 2\n",
           "r.ini:6: train.steps: and train.epochs exclude each other");
    refuse(HEAD "lr = 0\n", "r.ini:6: train.lr: '0' is too small; above 0, below 1000000");
    refuse(HEAD "eps = 1e-300\n",
           "r.ini:6: train.eps: '1e-300' is outside the range of f32, 1.2e-38 "
           "to 3.4e38; above 0, below 1");
    refuse(HEAD "clip = 1e-40\n",
           "r.ini:6: train.clip: '1e-40' is outside the range of f32, 1.2e-38 "
           "to 3.4e38; from 0, below 1e+30");
    refuse(HEAD "beta1 = 0.99999999999\n",
           "r.ini:6: train.beta1: '0.99999999999' is too large; above 0, below 1");
    refuse(HEAD "momentum = 1\n", "r.ini:6: train.momentum: '1' is too large; from 0, below 1");
    refuse(HEAD "rates = fc*\n",
           "r.ini:6: train.rates: 'fc*' is not PATTERN:FACTOR, PATTERN:FACTOR, factors from 0 to "
           "1e6");
    refuse(HEAD "decays = fc*:1,\n",
           "r.ini:6: train.decays: 'fc*:1,' is not PATTERN:FACTOR, PATTERN:FACTOR, factors from 0 "
           "to 1e6");
    refuse(HEAD "decays = fc*:-1\n",
           "r.ini:6: train.decays: 'fc*:-1' is not PATTERN:FACTOR, PATTERN:FACTOR, factors from 0 "
           "to 1e6");
    refuse(HEAD "warmup = 1.5\n", "r.ini:6: train.warmup: '1.5' is neither a fraction below 1 nor "
                                  "a whole number of updates; from 0, below 1099511627776");
    refuse(HEAD "batch_schedule = 1:64\n",
           "r.ini:6: train.batch_schedule: '1:64' is not update:batch,update:batch, updates "
           "rising from 0");
    refuse(HEAD "steps = 1\nnesterov = yes\n", "r.ini: train.nesterov: needs train.momentum");
    refuse(HEAD "steps = 1\nno_master = yes\n",
           "r.ini: train.no_master: needs memory.parameter_storage = f16 or bf16");
    refuse(HEAD "seed = 1\n", "r.ini: train.epochs: missing, and train.steps too");
    refuse(HEAD "steps = 1\n[memory]\nbudget = 0\n",
           "r.ini:8: memory.budget: '0' is no size above nothing");
    refuse(HEAD "steps = 1\n[resume]\nbest_score = 1\n",
           "r.ini:8: resume.best_score: unknown section");
    refuse("[train]\nsteps = 1\n", "r.ini: model.name: missing");
    refuse("", "r.ini: model.name: missing");
    refuse("[model]\nname = mlp\n[data]\nimages = a\n[train]\nsteps = 1\n",
           "r.ini: data.images: goes with data.labels");
    refuse("[model]\nname = mlp\n[data]\ndeviation = 0\n",
           "r.ini:4: data.deviation: '0' has a number that is not above 0");
}

static void long_line(void **state)
{
    char text[512] = HEAD "variants = ";
    size_t length = strlen(text);
    (void)state;
    memset(text + length, 'x', 300);
    strcpy(text + length + 300, "\n");
    refuse(text, "r.ini:6: the line is longer than 198 characters");
}

static void overriding(void **state)
{
    struct failure failure = FAILURE_NONE;
    (void)state;
    accept(HEAD "epochs = 3\nbatch = 10\n");
    assert_int_equal(settings_total(&settings.train, 99), 30);
    override("train.steps", "7");
    assert_int_equal(settings_total(&settings.train, 99), 7);
    override("train.epochs", "1");
    assert_int_equal(settings_total(&settings.train, 99), 10);
    override("train.batch_schedule", "0:10,5:20");
    assert_int_equal(qn_schedule_batch(&settings.train.batches, 4), 10);
    assert_int_equal(qn_schedule_batch(&settings.train.batches, 5), 20);
    assert_int_equal(settings_total(&settings.train, 50), 5);
    assert_int_equal(settings_total(&settings.train, 99), 8);
    assert_int_equal(settings_total(&settings.train, 51), 6);
    assert_true(settings.train.schedule.warmup == 0 && settings.train.schedule.end == 0);
    override("train.warmup", "0"); /* not the default of one-cycle */
    override("train.lr_end", "0");
    assert_true(settings.train.schedule.warmup < 0 && settings.train.schedule.end < 0);
    assert_int_equal(settings_override(&recipe, "steps", "7", "--set", &failure), CODE_USAGE);
    assert_string_equal(failure.text, "--set: 'steps' is not section.key");
}

static void accept_note(const char *text)
{
    struct failure failure = FAILURE_NONE;
    assert_int_equal(note_read(&recipe, text, "dir", &failure), CODE_DONE);
    assert_int_equal(settings_read(&settings, &recipe, &failure), CODE_DONE);
    assert_string_equal(failure.text, "");
}

static void refuse_note(const char *text, const char *message)
{
    struct failure failure = FAILURE_NONE;
    if (note_read(&recipe, text, "dir", &failure) == CODE_DONE)
        settings_read(&settings, &recipe, &failure);
    assert_string_equal(failure.text, message);
}

/* What is written reads back the same, twice. */
static void round_trip(void **state)
{
    (void)state;
    accept(HEAD "epochs = 3\nlr = 0.25\n[memory]\nbudget = 3MiB\n");
    override("train.batch", "12");
    override("model.hidden1", "99");
    char *first = note_text(&recipe, NULL, NULL);
    accept_note(first);
    assert_int_equal(settings.train.batches.count, 1);
    assert_int_equal(settings.train.batches.step[0].batch, 12);
    assert_int_equal(settings.memory.budget, 3 << 20);
    assert_true(settings.train.schedule.lr == 0.25);
    assert_string_equal(settings.options[0].value, "99");
    char *second = note_text(&recipe, NULL, NULL);
    assert_string_equal(first, second);
    free(first);
    free(second);
}

/* No value is lost, whatever is in it. */
static void any_value(void **state)
{
    static char values[][RECIPE_VALUE_BYTES] = {"a\nb", "a ; b", " \"\\", "\t;\xc3\xa4\xff",
                                                "long"};
    (void)state;
    memset(values[4], 'x', RECIPE_VALUE_BYTES - 1);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        accept(HEAD "epochs = 3\n");
        override("data.path", values[i]);
        char *text = note_text(&recipe, NULL, NULL);
        accept_note(text);
        assert_string_equal(settings.data.path, values[i]);
        free(text);
    }
}

static void bad_values(void **state)
{
    static char longest[RECIPE_VALUE_BYTES + 1];
    (void)state;
    memset(longest, 'x', RECIPE_VALUE_BYTES);
    accept(HEAD "epochs = 3\n");
    for (int i = 0; i < 2; i++) {
        struct failure failure = FAILURE_NONE;
        assert_int_equal(
            settings_override(&recipe, "data.path", i ? longest : "", "--set", &failure),
            CODE_USAGE);
    }
    refuse_note("[model]\nname = mlp\n", "dir: recipe: is not JSON");
    refuse_note("{\"model\": 1}", "dir: recipe: model: is no section");
    refuse_note("{\"model\": {\"name\": 1}}", "dir: recipe: model.name: is no text");
    refuse_note("{\"train\": {\"lr\": \"x\"}}",
                "dir: train.lr: 'x' is not a number; above 0, below 1000000");
    recipe.resumed = true;
    refuse_note("{\"resume\": {\"adaptive\": \"8 1 0.5\"}}",
                "dir: resume.adaptive: '8 1 0.5' is not the state of an adaptive batch");
    recipe.resumed = false;
}

static void intervals(void **state)
{
    static const struct {
        const char *line;
        enum interval_unit save, eval;
    } cases[] = {
        {"save_every = 5\neval_every = 5\n", EVERY_UPDATES, EVERY_EPOCHS},
        {"save_every = 5 seconds\neval_every = 5 update\n", EVERY_SECONDS, EVERY_UPDATES},
        {"save_every = 5minutes\neval_every = 5 epoch\n", EVERY_MINUTES, EVERY_EPOCHS},
    };
    char text[256];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(text, sizeof text, "%ssteps = 9\n%s", HEAD, cases[i].line);
        accept(text);
        assert_int_equal(settings.train.save_every.unit, cases[i].save);
        assert_int_equal(settings.train.eval_every.unit, cases[i].eval);
        assert_int_equal(settings.train.save_every.count, 5);
        assert_int_equal(settings.train.eval_every.count, 5);
    }
}

/* What is watched goes on from what a checkpoint says, an older one too. */
static void improvement(void **state)
{
    const qn_improvement *is = &settings.train.improvement;
    (void)state;
    recipe.resumed = true;
    accept_note(
        "{\"model\": {\"name\": \"mlp\"}, \"data\": {\"name\": \"d\"}, \"train\": {\"steps\": "
        "\"9\"}, \"resume\": {\"improvement\": \"1 -0.25 3 2 1\"}}");
    assert_true(is->seen && is->best == -0.25);
    assert_true(is->waited == 3 && is->flat == 2 && is->reductions == 1);
    override("resume.best_score", "0.5");
    assert_true(is->seen && is->best == 0.5);
    refuse_note(
        "{\"resume\": {\"improvement\": \"1 nan 0 0 0\"}}",
        "dir: resume.improvement: '1 nan 0 0 0' is not the state of a figure that is watched");
    recipe.resumed = false;
}

/* The state of an adaptive batch goes on from what it says. */
static void bad_states(void **state)
{
    static const char *const states[] = {
        "-8 1 0.5 0.5  0 0 0 0",    "99999999 1 0.5 0.5  0 0 0 0",
        "8 -1 0.5 0.5  0 0 0 0",    "8 9223372036854775807 0.5 0.5  8 2 1 1",
        "8 1 nan 0.5  0 0 0 0",     "8 1 0.5 inf  0 0 0 0",
        "8 1 0.5 0.5  -8 -9 0 0",   "8 1 0.5 0.5  8 99999999 0 0",
        "8 1 0.5 0.5  8 2 1e999 0", "8 1 0.5 0.5  8 2 0 -inf",
    };
    (void)state;
    recipe.resumed = true;
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        char text[256], message[256];
        snprintf(text, sizeof text, "{\"resume\": {\"adaptive\": \"%s\"}}", states[i]);
        snprintf(message, sizeof message,
                 "dir: resume.adaptive: '%s' is not the state of an adaptive batch", states[i]);
        refuse_note(text, message);
    }
    recipe.resumed = false;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(removing),
        cmocka_unit_test(shipped),
        cmocka_unit_test(everything),
        cmocka_unit_test(images),
        cmocka_unit_test(parameters),
        cmocka_unit_test(text),
        cmocka_unit_test(json_lines),
        cmocka_unit_test(adaptive),
        cmocka_unit_test(an_unknown_optimizer),
        cmocka_unit_test(refusals),
        cmocka_unit_test(long_line),
        cmocka_unit_test(overriding),
        cmocka_unit_test(round_trip),
        cmocka_unit_test(any_value),
        cmocka_unit_test(bad_values),
        cmocka_unit_test(intervals),
        cmocka_unit_test(improvement),
        cmocka_unit_test(bad_states),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
