/* SPDX-License-Identifier: MIT
 *
 * The trainings of a comparison, each in a folder of its own as `quern train --out` writes it, with
 * the recipe that it was begun with beside it. What the folders hold decides what is still to be
 * done.
 */
#ifndef QUERN_TOOL_COMPARE_RUNS_H
#define QUERN_TOOL_COMPARE_RUNS_H

#include "reported.h"
#include "variants.h"

enum run_state {
    RUN_NEW,     /* to be trained from its beginning */
    RUN_BEGUN,   /* to go on from its newest checkpoint */
    RUN_DONE,    /* came to its end */
    RUN_NO_PLAN, /* no plan fits its budget; is tried again each time */
};

struct compare_run {
    char *name;   /* "micro_batch=8,seed=1" */
    char *folder; /* DIR/NAME */
    char *recipe; /* as note_text writes it */
    int variant;
    enum run_state state;
};

struct comparison {
    const struct arguments *arguments; /* borrowed */
    struct variants variants;
    char **variant_names;     /* (n_variants) */
    struct compare_run *runs; /* (n_runs) */
    struct report report;     /* what the runs wrote so far, one training each; n_runs of them */
};

/* Reads the variants, and checks all there is without a device: every recipe with its network, and
 * that the folders hold the same trainings. Nothing is written. Also after a failure the comparison
 * is freed by the caller. */
int comparison_open(struct comparison *comparison, const char *folder,
                    const struct arguments *arguments, struct failure *failure);
/* Whether there is a device, and what it makes of the recipes that are still to be trained: of
 * names of nodes and micro-batches only a plan can tell whether they are any. That none fits the
 * budget is no failure. */
int comparison_plan(const struct comparison *comparison, struct failure *failure);
void comparison_free(struct comparison *comparison);

/* Trains what is still to be done of a run, and reads what it wrote. CODE_DONE also where no plan
 * fits; another failure names the run. */
int comparison_train(struct comparison *comparison, int run, struct failure *failure);

#endif
