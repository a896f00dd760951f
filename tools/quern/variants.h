/* SPDX-License-Identifier: MIT
 *
 * What a comparison trains: every combination of the values of the keys that vary is a variant, and
 * each of them runs once with each seed. Run r is variant r / n_seeds with seed r % n_seeds.
 */
#ifndef QUERN_TOOL_VARIANTS_H
#define QUERN_TOOL_VARIANTS_H

#include "option.h"

enum { MOST_VALUES = 32, MOST_RUNS = 32 };

struct varied_key {
    const char *option; /* "--vary" */
    const char *key;    /* "memory.micro_batch" */
    char *text;         /* where the values stand */
    const char *value[MOST_VALUES];
    int count;
};

struct variants {
    struct varied_key keys[MAX_VARIED];
    int n_keys;
    struct varied_key seeds; /* train.seed; without an option: as the recipe says */
    int n_variants, n_seeds, n_runs;
};

/* Reads --vary, --modes and --seeds of a command line, which is borrowed. Values are separated by
 * commas, or, where there is one, by |; blanks around them do not count. CODE_USAGE: no two runs or
 * more than MOST_RUNS, an empty value, one that comes twice, a key that is set or varied elsewhere.
 * Also after a failure the variants are freed by the caller. */
int variants_read(struct variants *variants, const struct arguments *arguments,
                  struct failure *failure);
void variants_free(struct variants *variants);

/* "micro_batch=8,recompute=all", with its section where another key is called the same; "" where
 * only the seed varies. Freed by the caller; NULL when out of memory. */
char *variants_name(const struct variants *variants, int variant);
/* The same of a run, with its seed. */
char *variants_run_name(const struct variants *variants, int run);
/* The name of a run's folder: its own name where that is short and plain, else what is left of it
 * with a hash. */
enum { RUN_FOLDER_BYTES = 128 };
void variants_folder(const char *name, char folder[RUN_FOLDER_BYTES]);

/* The command line that trains a run: `arguments`, and the values of the keys that vary. */
int variants_arguments(const struct variants *variants, int run, struct arguments *arguments,
                       struct failure *failure);

#endif
