/* SPDX-License-Identifier: MIT */
#include "option.h"
#include "settings.h"
#include "value.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    const char *value; /* what its value is called; NULL: it takes none */
    const char *key;   /* of the recipe; NULL: the option is the subcommand's own */
    const char *help;
} table[OPTION_COUNT] = {
    [OPTION_DATA] = {"--data", "PATH", "data.path", "file of text or tokens, or folder of images"},
    [OPTION_BUDGET] = {"--budget", "SIZE", "memory.budget", "device memory: " VALUE_SIZE_FORM},
    [OPTION_BUDGET_FILE] = {"--budget-file", "FILE", NULL,
                            "the budget stands there and may change while the training runs"},
    [OPTION_BATCH] = {"--batch", "N", "train.batch", "effective batch: samples of one update"},
    [OPTION_MICRO_BATCH] = {"--micro-batch", "N|auto", "memory.micro_batch",
                            "samples that are on the device at a time"},
    [OPTION_RECOMPUTE] = {"--recompute", "MODE", "memory.recompute",
                          "activations made again: auto, none, all, or names of nodes"},
    [OPTION_EFFORT] = {"--plan-effort", "MODE", "memory.effort",
                       "of the search for what to recompute: default, instant, thorough"},
    [OPTION_STORAGE] = {"--storage", "TYPE", "memory.storage", "of activations: f32, f16, bf16"},
    [OPTION_STEPS] = {"--steps", "N", "train.steps", "updates in all"},
    [OPTION_EPOCHS] = {"--epochs", "N", "train.epochs", "epochs in all"},
    [OPTION_SEED] = {"--seed", "N", "train.seed", "of everything random"},
    [OPTION_SET] = {"--set", "SECTION.KEY=VALUE", NULL, "any key of the recipe; may be repeated"},
    [OPTION_DEVICE] = {"--device", "TEXT", NULL,
                       "text in the name of the platform or device; else QN_DEVICE, else the best"},
    [OPTION_SHARE] = {"--share", "N:N:...|auto", "group.share",
                      "of several devices: how samples are split; auto: by speed (equally)"},
    [OPTION_SHARD] = {"--shard", "MODE", "group.shard",
                      "of several devices, what each has a part of: optimizer, none (optimizer)"},
    [OPTION_TIMEOUT] = {"--timeout", "SECONDS", "group.timeout",
                        "of several devices: one that waits longer for another gives up (600)"},
    [OPTION_OUT] = {"--out", "DIR", NULL, "save checkpoints and figures in this folder"},
    [OPTION_METRICS] = {"--metrics", "FILE", NULL, "write figures as lines of JSON"},
    [OPTION_TENSORBOARD] = {"--tensorboard", "DIR", NULL,
                            "write figures as an event file for TensorBoard"},
    [OPTION_PROFILE] = {"--profile", "FILE", NULL,
                        "write a trace of the third update, for chrome://tracing or Perfetto"},
    [OPTION_GRAD_NORMS] = {"--log-grad-norms", NULL, NULL,
                           "with the figures the norm of each layer's gradient"},
    [OPTION_QUIET] = {"--quiet", NULL, NULL, "print errors and warnings only"},
    [OPTION_JSON] = {"--json", NULL, NULL, "print JSON"},
    [OPTION_SVG] = {"--svg", "FILE", NULL,
                    "draw bytes over steps; of --members samples per second over members"},
    [OPTION_HTML] = {"--html", "FILE", NULL,
                     "a page with the map of the memory and what other budgets give"},
    [OPTION_CURVE] = {"--svg", "FILE", NULL, "draw the loss over the learning rate"},
    [OPTION_REPORT] = {"--report", "FILE.html", NULL, "write a page with classes and mistakes"},
    [OPTION_TOP] = {"--top", "N", NULL, "so many classes or tokens of each sample (1)"},
    [OPTION_CSV] = {"--csv", NULL, NULL, "print comma-separated values"},
    [OPTION_PREDICTIONS] = {"--out", "FILE.npy|FOLDER", NULL,
                            "write all probabilities, or masks: as one array, or as PNG files"},
    [OPTION_FROM] = {"--from", "LR", NULL, "the first learning rate (1e-7)"},
    [OPTION_TO] = {"--to", "LR", NULL, "the last one (10)"},
    [OPTION_UPDATES] = {"--updates", "N", NULL, "updates, each at a rate of its own (100)"},
    [OPTION_FRONTIER] = {"--frontier", NULL, NULL,
                         "print what other budgets would give, the fastest last"},
    [OPTION_EXPLAIN] = {"--explain", "TENSOR", NULL,
                        "print where the tensor of this node or parameter lives, and why"},
    [OPTION_FACTS] = {"--facts", "FILE", NULL,
                      "plan for the device of this file (quern devices --json) without having it"},
    [OPTION_MEMBERS] = {"--members", "FILE", NULL,
                        "predict updates of a team of many members with its devices and links"},
    [OPTION_WEIGHTS] = {"--weights", "FILE", NULL, "safetensors file, or a checkpoint's folder"},
    [OPTION_REPLAN] = {"--replan", NULL, NULL,
                       "make a new plan rather than the checkpoint's, at its micro-batch"},
    [OPTION_OP] = {"--op", "NAMES", NULL, "only these operators, separated by commas"},
    [OPTION_SMALL] = {"--small", NULL, NULL, "only tiny cases in two storage types: some minutes"},
    [OPTION_TUNE] = {"--tune", "MODE", "memory.tune",
                     "quick: time kernels that nobody timed yet; stored: use what is known; off"},
    [OPTION_SECONDS] = {"--seconds", "N", NULL, "stop after about so long; else when all is done"},
    [OPTION_ONLY] = {"--only", "TEXT", NULL,
                     "only works with this in operator and name; of a RECIPE: update"},
    [OPTION_ALL] = {"--all", NULL, NULL,
                    "every kernel that can run, not those alone that a plan takes"},
    [OPTION_CAPACITY] = {"--capacity", "SIZE", NULL, VALUE_SIZE_FORM "; else what lives at once"},
    [OPTION_KEYS] = {"--keys", NULL, NULL, "all keys of a recipe, with their defaults"},
    [OPTION_TOKENIZER] = {"--tokenizer", "PATH", NULL,
                          "tokenizer.json, vocab.json beside merges.txt, or a folder with either"},
    [OPTION_TOKENS] = {"--out", "FILE", NULL, "write there, not to standard output"},
    [OPTION_DECODE] = {"--decode", NULL, NULL, "FILE holds tokens: give their text"},
    [OPTION_TRAIN] = {"--train", "N", NULL,
                      "make a vocabulary of N tokens from FILE; --out is its tokenizer.json"},
    [OPTION_FIELD] = {"--field", "NAME", NULL, "FILE holds JSON lines: of their texts under NAME"},
    [OPTION_PROMPT] = {"--prompt", "TEXT", NULL, "the text that is continued"},
    [OPTION_PROMPT_FILE] = {"--prompt-file", "FILE", NULL, "the same from a file"},
    [OPTION_IDS] = {"--tokens", "N,N,...", NULL, "the same as numbers of tokens"},
    [OPTION_MAX_TOKENS] = {"--max-tokens", "N", NULL, "tokens to add at most (128)"},
    [OPTION_TEMPERATURE] = {"--temperature", "T", NULL,
                            "logits are divided by it; 0: always the best token (1)"},
    [OPTION_TOP_K] = {"--top-k", "K", NULL, "choose among the K most probable tokens"},
    [OPTION_TOP_P] = {"--top-p", "P", NULL,
                      "choose among the most probable tokens that have P together"},
    [OPTION_SAMPLE_SEED] = {"--seed", "N", NULL, "of the choices (0)"},
    [OPTION_STOP] = {"--stop", "TEXT", NULL, "end before this text; may be repeated"},
    [OPTION_WEIGHT_TYPE] = {"--storage", "TYPE", NULL, "of weights: f32, f16, bf16"},
    [OPTION_TABLE] = {"--out", "FILE", NULL, "write the table there, not to standard output"},
    [OPTION_PAGE] = {"--out", "FILE.html", NULL, "the page to write (report.html)"},
    [OPTION_VARY] = {"--vary", "KEY=V,V,...", NULL,
                     "a section.key and its values; may be repeated: all combinations"},
    [OPTION_MODES] = {"--modes", "V,V,...", NULL,
                      "the same of contrastive.mode: whole, gradcache, ..."},
    [OPTION_SEEDS] = {"--seeds", "N,N,...", NULL, "each variant once with each"},
    [OPTION_RUNS] = {"--out", "DIR", NULL, "a folder in it for each training (compare)"},
    [OPTION_SIDE_BY_SIDE] = {"--html", "FILE", NULL, "the page to write (DIR.html)"},
    [OPTION_EXPORT] = {"--out", "DIR", NULL, "the folder to write"},
    [OPTION_SPLIT] = {"--split", "NAME", NULL, "test or train (test, else what is evaluated)"},
    [OPTION_ADAPTERS] = {"--adapters", NULL, NULL, "low-rank adapters alone, as PEFT loads them"},
};

/* --- reading --- */

static int unknown(const struct command *command, const char *text, struct failure *failure)
{
    char written[64], hint[QN_NEAREST_BYTES];
    qn_nearest nearest = {.text = written};
    snprintf(written, sizeof written, "%.*s", (int)strcspn(text, "="), text);
    for (const enum option *o = command->options; *o != OPTION_COUNT; o++)
        qn_nearest_offer(&nearest, table[*o].name);
    return failure_set(failure, CODE_USAGE, "%s: %s: unknown option; see quern help %s%s",
                       command->name, text, command->name, qn_nearest_hint(&nearest, hint));
}

static int find_option(const struct command *command, const char *text, size_t length)
{
    for (const enum option *o = command->options; *o != OPTION_COUNT; o++)
        if (strlen(table[*o].name) == length && strncmp(table[*o].name, text, length) == 0)
            return (int)*o;
    return OPTION_COUNT;
}

bool command_takes(const struct command *command, enum option option)
{
    const enum option *o = command->options;
    while (*o != OPTION_COUNT && *o != option)
        o++;
    return *o == option;
}

static int add_override(struct arguments *a, const char *option, const char *name, size_t length,
                        const char *value, struct failure *failure)
{
    if (a->n_overrides == MAX_OVERRIDES)
        return failure_set(failure, CODE_USAGE, "%s: more than %d keys are set", option,
                           MAX_OVERRIDES);
    struct override *to = &a->overrides[a->n_overrides++];
    if (length >= sizeof to->name)
        return failure_set(failure, CODE_USAGE, "%s: '%s' is not a key", option, name);
    *to = (struct override){.option = option, .value = value};
    memcpy(to->name, name, length);
    return CODE_DONE;
}

static int take_set(struct arguments *a, const char *text, struct failure *failure)
{
    const char *equals = strchr(text, '=');
    if (!equals)
        return failure_set(failure, CODE_USAGE, "--set: '%s' is not section.key=value", text);
    return add_override(a, "--set", text, (size_t)(equals - text), equals + 1, failure);
}

static int add_varied(struct arguments *a, const char *option, const char *name, size_t length,
                      const char *values, struct failure *failure)
{
    if (a->n_varied == MAX_VARIED)
        return failure_set(failure, CODE_USAGE, "%s: more than %d keys are varied", option,
                           MAX_VARIED);
    struct override *to = &a->varied[a->n_varied++];
    if (!length || length >= sizeof to->name)
        return failure_set(failure, CODE_USAGE, "%s: '%s' is not section.key=value,value", option,
                           name);
    *to = (struct override){.option = option, .value = values};
    memcpy(to->name, name, length);
    return CODE_DONE;
}

static int take_vary(struct arguments *a, const char *text, struct failure *failure)
{
    const size_t length = strcspn(text, "=");
    if (!text[length])
        return failure_set(failure, CODE_USAGE, "--vary: '%s' is not section.key=value,value",
                           text);
    return add_varied(a, "--vary", text, length, text + length + 1, failure);
}

static int add_stop(struct arguments *a, const char *text, struct failure *failure)
{
    if (!*text || a->n_stops == MAX_STOPS)
        return failure_set(failure, CODE_USAGE, "--stop: %s",
                           *text ? "there are more than 16" : "the text is empty");
    a->stops[a->n_stops++] = text;
    return CODE_DONE;
}

static int add_device(struct arguments *a, const char *name, struct failure *failure)
{
    if (a->n_devices == MAX_MEMBERS)
        return failure_set(failure, CODE_USAGE, "--device: more than %d are named", MAX_MEMBERS);
    a->devices[a->n_devices++] = (struct device_options){.name = name};
    return CODE_DONE;
}

/* What the option says of the device that was named last; NULL: it says nothing of devices. */
static const char **of_device(struct arguments *a, enum option option)
{
    struct device_options *last = &a->devices[a->n_devices - 1];
    switch (option) {
    case OPTION_BUDGET:
        return &last->budget;
    case OPTION_BUDGET_FILE:
        return &last->budget_file;
    case OPTION_MICRO_BATCH:
        return &last->micro_batch;
    case OPTION_RECOMPUTE:
        return &last->recompute;
    default:
        return NULL;
    }
}

static int take(struct arguments *a, enum option option, const char *value, struct failure *failure)
{
    const char **own = a->n_devices ? of_device(a, option) : NULL;
    if (own) {
        *own = value;
        return CODE_DONE;
    }
    a->value[option] = value;
    if (option == OPTION_DEVICE)
        return add_device(a, value, failure);
    if (option == OPTION_STOP)
        return add_stop(a, value, failure);
    if (option == OPTION_SET)
        return take_set(a, value, failure);
    if (option == OPTION_VARY)
        return take_vary(a, value, failure);
    const char *varied = option == OPTION_MODES   ? "contrastive.mode"
                         : option == OPTION_SEEDS ? "train.seed"
                                                  : NULL;
    if (varied)
        return add_varied(a, table[option].name, varied, strlen(varied), value, failure);
    const char *key = table[option].key;
    return key ? add_override(a, table[option].name, key, strlen(key), value, failure) : CODE_DONE;
}

/* Reads the option at argv[0] and gives the number of arguments it used through `used`. */
static int read_option(struct arguments *a, const struct command *command, char **argv, int *used,
                       struct failure *failure)
{
    const char *text = argv[0], *value = "";
    size_t length = strcspn(text, "=");
    int option = find_option(command, text, length);
    *used = 1;
    if (option == OPTION_COUNT)
        return unknown(command, text, failure);
    if (!table[option].value && text[length])
        return failure_set(failure, CODE_USAGE, "%s: %s takes no value", command->name,
                           table[option].name);
    if (table[option].value && text[length]) {
        value = text + length + 1;
    } else if (table[option].value) {
        value = argv[1];
        *used = 2;
    }
    if (!value)
        return failure_set(failure, CODE_USAGE, "%s: %s: needs a value (%s)", command->name, text,
                           table[option].value);
    return take(a, (enum option)option, value, failure);
}

static bool takes_many(const struct command *command)
{
    return command->operand && strstr(command->operand, "...");
}

/* `to` is where the operands of the command line are gathered. */
static int take_operand(struct arguments *a, const struct command *command, char *text, char **to,
                        struct failure *failure)
{
    if (!command->operand || (a->operand && !takes_many(command)))
        return failure_set(failure, CODE_USAGE, "%s: %s: one argument too many; see quern help %s",
                           command->name, text, command->name);
    to[a->n_operands++] = text;
    a->operands = to;
    a->operand = to[0];
    return CODE_DONE;
}

static int count_words(const char *text)
{
    int words = 1;
    for (const char *blank = strchr(text, ' '); blank; blank = strchr(blank + 1, ' '))
        words++;
    return words;
}

/* Of a single device everything is said, wherever it stands. */
static int take_single(struct arguments *a, struct failure *failure)
{
    static const enum option options[] = {OPTION_BUDGET, OPTION_BUDGET_FILE, OPTION_MICRO_BATCH,
                                          OPTION_RECOMPUTE};
    const struct device_options said = a->devices[0];
    if (a->n_devices != 1)
        return CODE_DONE;
    a->n_devices = 0;
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        struct arguments copy = {.n_devices = 1, .devices = {said}};
        const char *value = *of_device(&copy, options[i]);
        if (value)
            TRY(take(a, options[i], value, failure));
    }
    return CODE_DONE;
}

static int check(const struct arguments *a, const struct command *command, struct failure *failure)
{
    if (command->operand && command->operand[0] != '[' &&
        a->n_operands < count_words(command->operand))
        return failure_set(failure, CODE_USAGE, "%s: needs a %s; see quern help %s", command->name,
                           command->operand, command->name);
    if (a->n_devices > 1 && !command_takes(command, OPTION_SHARE))
        return failure_set(failure, CODE_USAGE, "%s: --device: takes one", command->name);
    if (a->value[OPTION_BUDGET] && a->value[OPTION_BUDGET_FILE])
        return failure_set(failure, CODE_USAGE, "%s: --budget and --budget-file exclude each other",
                           command->name);
    if (a->value[OPTION_STEPS] && a->value[OPTION_EPOCHS])
        return failure_set(failure, CODE_USAGE, "%s: --steps and --epochs exclude each other",
                           command->name);
    return CODE_DONE;
}

int arguments_read(struct arguments *a, const struct command *command, int argc, char **argv,
                   struct failure *failure)
{
    bool options = true;
    *a = (struct arguments){0};
    for (int i = 0, used = 1; i < argc; i += used, used = 1) {
        if (options && strcmp(argv[i], "--") == 0)
            options = false;
        else if (options && argv[i][0] == '-' && argv[i][1])
            TRY(read_option(a, command, argv + i, &used, failure));
        else
            TRY(take_operand(a, command, argv[i], argv, failure));
    }
    TRY(take_single(a, failure));
    return check(a, command, failure);
}

int arguments_override(const struct arguments *a, struct recipe *recipe, struct failure *failure)
{
    for (int i = 0; i < a->n_overrides; i++)
        TRY(settings_override(recipe, a->overrides[i].name, a->overrides[i].value,
                              a->overrides[i].option, failure));
    if (a->value[OPTION_GRAD_NORMS] && !recipe_find(recipe, "train", "norm_groups"))
        return recipe_put(recipe, "train", "norm_groups", "auto", "--log-grad-norms", failure);
    return CODE_DONE;
}

/* --- help --- */

bool arguments_want_help(int argc, char **argv)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return true;
    return false;
}

static void print_options(const struct command *command)
{
    printf("\nOptions:\n");
    for (const enum option *o = command->options; *o != OPTION_COUNT; o++) {
        char left[64];
        snprintf(left, sizeof left, "%s%s%s", table[*o].name, table[*o].value ? " " : "",
                 table[*o].value ? table[*o].value : "");
        printf("  %-24s %s\n", left, table[*o].help);
    }
    printf("  %-24s %s\n", "--help", "print this");
}

void arguments_help(const struct command *command)
{
    printf("Usage: quern %s%s%s [options]\n\n%s\n", command->name, command->operand ? " " : "",
           command->operand ? command->operand : "", command->details);
    print_options(command);
    if (command->recipe)
        printf("\nRECIPE: quern recipes lists those that ship, quern recipes --keys all keys.\n");
    printf("\nExit status: 0 done, 1 failed, 2 usage, 3 no plan fits the budget, 4 no device,\n"
           "130 or 143 ended by SIGINT or SIGTERM after saving.\n");
}
