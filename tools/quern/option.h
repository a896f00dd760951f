/* SPDX-License-Identifier: MIT
 *
 * The command line: all options of all subcommands in one table; each subcommand lists those it
 * takes. Many only set a key of the recipe.
 */
#ifndef QUERN_TOOL_OPTION_H
#define QUERN_TOOL_OPTION_H

#include "recipe.h"

#include <stdbool.h>

enum option {
    OPTION_DATA,
    OPTION_BUDGET,
    OPTION_BUDGET_FILE,
    OPTION_BATCH,
    OPTION_MICRO_BATCH,
    OPTION_RECOMPUTE,
    OPTION_EFFORT,
    OPTION_STORAGE,
    OPTION_STEPS,
    OPTION_EPOCHS,
    OPTION_SEED,
    OPTION_SET,
    OPTION_DEVICE,
    OPTION_SHARE,
    OPTION_SHARD,
    OPTION_TIMEOUT,
    OPTION_OUT,
    OPTION_METRICS,
    OPTION_TENSORBOARD,
    OPTION_PROFILE,
    OPTION_GRAD_NORMS,
    OPTION_QUIET,
    OPTION_JSON,
    OPTION_SVG,
    OPTION_HTML,
    OPTION_CURVE,
    OPTION_REPORT,
    OPTION_TOP,
    OPTION_CSV,
    OPTION_PREDICTIONS,
    OPTION_FROM,
    OPTION_TO,
    OPTION_UPDATES,
    OPTION_FRONTIER,
    OPTION_EXPLAIN,
    OPTION_FACTS,
    OPTION_MEMBERS,
    OPTION_WEIGHTS,
    OPTION_REPLAN,
    OPTION_OP,
    OPTION_SMALL,
    OPTION_TUNE,
    OPTION_SECONDS,
    OPTION_ONLY,
    OPTION_ALL,
    OPTION_CAPACITY,
    OPTION_TABLE,
    OPTION_EXPORT,
    OPTION_ADAPTERS,
    OPTION_KEYS,
    OPTION_TOKENIZER,
    OPTION_TOKENS,
    OPTION_DECODE,
    OPTION_TRAIN,
    OPTION_FIELD,
    OPTION_PROMPT,
    OPTION_PROMPT_FILE,
    OPTION_IDS,
    OPTION_MAX_TOKENS,
    OPTION_TEMPERATURE,
    OPTION_TOP_K,
    OPTION_TOP_P,
    OPTION_SAMPLE_SEED,
    OPTION_STOP,
    OPTION_WEIGHT_TYPE,
    OPTION_PAGE,
    OPTION_SPLIT,
    OPTION_VARY,
    OPTION_MODES,
    OPTION_SEEDS,
    OPTION_RUNS,
    OPTION_SIDE_BY_SIDE,
    OPTION_COUNT,
};

enum { MAX_OVERRIDES = 64, MAX_MEMBERS = 16, MAX_STOPS = 16, MAX_VARIED = 8 };

/* A key of the recipe that the command line sets. */
struct override {
    const char *option; /* as it was written: "--budget", "--set" */
    char name[64];      /* "memory.budget" */
    const char *value;
};

/* A --device, and what was said of it behind its name, up to the next one. NULL: nothing. */
struct device_options {
    const char *name, *budget, *budget_file, *micro_batch, *recompute;
};

struct arguments {
    const char *operand;   /* the first one; NULL: there is none */
    char *const *operands; /* (n_operands), all of them */
    int n_operands;
    const char *value[OPTION_COUNT]; /* NULL: not given; "" for options without a value */
    struct override overrides[MAX_OVERRIDES];
    int n_overrides;
    struct device_options devices[MAX_MEMBERS];
    int n_devices;
    const char *stops[MAX_STOPS];
    int n_stops;
    struct override varied[MAX_VARIED]; /* keys with lists of values, as they were written */
    int n_varied;
};

struct command {
    const char *name;
    const char *operand; /* "RECIPE"; "[RECIPE]": may be left out; "DIR FILE...": at least as many
                            as there are words; NULL: takes none */
    const char *summary; /* half a line */
    const char *details; /* paragraphs of --help, which is one screen */
    bool recipe;         /* --help tells where recipes are explained */
    int (*run)(const struct arguments *arguments, struct failure *failure);
    enum option options[OPTION_COUNT + 1]; /* ended by OPTION_COUNT */
};

/* Reads what follows the name of the subcommand, and puts the operands to the front of `argv`,
 * where they stay borrowed. */
int arguments_read(struct arguments *arguments, const struct command *command, int argc,
                   char **argv, struct failure *failure);
/* Applies what the command line says about the recipe. */
int arguments_override(const struct arguments *arguments, struct recipe *recipe,
                       struct failure *failure);
bool command_takes(const struct command *command, enum option option);
/* Whether `--help` is among the arguments. */
bool arguments_want_help(int argc, char **argv);
void arguments_help(const struct command *command);

#endif
