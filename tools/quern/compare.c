/* SPDX-License-Identifier: MIT */
#include "commands.h"
#include "compare_page.h"
#include "compare_runs.h"
#include "compare_table.h"
#include "file.h"
#include "line.h"
#include "signals.h"
#include "waiting.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Where the trainings and the page go. */
struct places {
    char folder[PATH_MAX];
    char page[PATH_MAX + 8];
};

/* The page lies beside the folder, so that `quern report DIR/` and all that is in it works. */
static int find_places(struct places *p, const struct arguments *a, struct failure *failure)
{
    const char *folder = a->value[OPTION_RUNS] ? a->value[OPTION_RUNS] : "compare";
    const char *page = a->value[OPTION_SIDE_BY_SIDE];
    if (!*folder || (page && !*page))
        return failure_set(failure, CODE_USAGE, "%s: needs the name of a %s",
                           *folder ? "--html" : "--out", *folder ? "file" : "folder");
    if (strlen(folder) >= PATH_MAX || (page && strlen(page) >= PATH_MAX))
        return failure_set(failure, CODE_USAGE, "%s: the path is too long",
                           strlen(folder) < PATH_MAX ? "--html" : "--out");
    strcpy(p->folder, folder);
    for (size_t end = strlen(folder); end > 1 && p->folder[end - 1] == '/'; end--)
        p->folder[end - 1] = 0;
    snprintf(p->page, sizeof p->page, "%s%s", page ? page : p->folder, page ? "" : ".html");
    return CODE_DONE;
}

/* Before hours of training: that the folder is there and the page can be written. */
static int make_places(const struct places *p, struct failure *failure)
{
    struct file_part part;
    const bool made = mkdir(p->folder, 0777) == 0;
    if (!made && (errno != EEXIST || !file_is_folder(p->folder)))
        return failure_set(failure, CODE_FAILED, "%s: %s", p->folder, strerror(errno));
    TRY(file_begin(&part, p->page, failure));
    file_drop(&part);
    return CODE_DONE;
}

/* --- the trainings --- */

static int train(struct comparison *c, int run, bool quiet, struct failure *failure)
{
    struct waiting waiting;
    char text[256], shown[sizeof text];
    snprintf(text, sizeof text, "%.200s (%d of %d) ...", c->runs[run].name, run + 1,
             c->variants.n_runs);
    qn_escape(shown, sizeof shown, text);
    waiting_begin(&waiting, quiet ? NULL : shown);
    const int code = comparison_train(c, run, failure);
    waiting_end(&waiting);
    return code;
}

/* The page grows with each of them. */
static int train_all(struct comparison *c, const struct places *p, bool quiet,
                     struct failure *failure)
{
    for (int i = 0; i < c->variants.n_runs; i++) {
        const bool before = c->runs[i].state == RUN_DONE;
        if (!before)
            TRY(train(c, i, quiet, failure));
        if (!before)
            TRY(compare_page(c, p->page, failure));
        if (!quiet && !compare_print_run(c, i))
            return failure_set(failure, CODE_FAILED, "out of memory");
        fflush(stdout);
        if (signals_received())
            return signals_code(failure);
    }
    return CODE_DONE;
}

/* That some do not fit is what a comparison may be for; that none does is no comparison. */
static int check_plans(const struct comparison *c, struct failure *failure)
{
    for (int i = 0; i < c->variants.n_runs; i++)
        if (c->runs[i].state != RUN_NO_PLAN)
            return CODE_DONE;
    return failure_set(failure, CODE_NO_PLAN, "compare: no plan fits the budget for any variant");
}

/* Whether any run wrote figures, or that no plan fits. */
static bool any_told(const struct comparison *c)
{
    bool told = false;
    for (int i = 0; i < c->variants.n_runs; i++)
        told |= c->report.trainings[i].history.n_figures || c->runs[i].state == RUN_NO_PLAN;
    return told;
}

/* Also after a failure or a signal: of what is there. */
static int tell(const struct comparison *c, const struct places *p, bool quiet,
                struct failure *failure)
{
    struct failure own = FAILURE_NONE;
    if (compare_page(c, p->page, &own))
        return failure_set(failure, own.code, "%s", own.text);
    if (quiet)
        return CODE_DONE;
    if (!compare_print(c))
        return failure_set(failure, CODE_FAILED, "out of memory");
    if (signals_received())
        line_print(stdout, "stopped by a signal; the same command goes on");
    line_print(stdout, "%s", p->page);
    return CODE_DONE;
}

static int compare(struct comparison *c, const struct arguments *a, struct failure *failure)
{
    struct places places;
    const bool quiet = a->value[OPTION_QUIET] != NULL;
    TRY(find_places(&places, a, failure));
    TRY(comparison_open(c, places.folder, a, failure));
    TRY(comparison_plan(c, failure));
    TRY(make_places(&places, failure));
    train_all(c, &places, quiet, failure);
    if (any_told(c))
        TRY(tell(c, &places, quiet, failure));
    return failure->code ? failure->code : check_plans(c, failure);
}

static int run(const struct arguments *a, struct failure *failure)
{
    struct comparison comparison = {0};
    signals_catch();
    const int code = compare(&comparison, a, failure);
    comparison_free(&comparison);
    return code;
}

const struct command command_compare = {
    "compare",
    "RECIPE",
    "trains variants of a recipe, and a page that shows them side by side",
    "Trains the recipe once for each combination of the values of --vary, each with all --seeds, "
    "one\n"
    "after another as `quern train --out DIR/NAME` does, and writes an HTML page that needs no\n"
    "network: losses, evaluations and gradients over samples and seconds, bytes and times; of "
    "several\n"
    "seeds mean and standard deviation. With commas in a value, | separates the values:\n\n"
    "  --vary memory.micro_batch=auto,8 --vary memory.recompute=none,all\n"
    "  --vary memory.storage=f32,bf16   --vary \"train.norm_groups=fc1.*, *|auto\"\n\n"
    "The same command goes on with what is missing; what is done is not trained again. A variant "
    "for\n"
    "which no plan fits is told, the others go on; status 3: none fits.",
    true,
    run,
    {OPTION_VARY,       OPTION_MODES,  OPTION_SEEDS, OPTION_RUNS,        OPTION_SIDE_BY_SIDE,
     OPTION_DATA,       OPTION_BUDGET, OPTION_BATCH, OPTION_MICRO_BATCH, OPTION_RECOMPUTE,
     OPTION_STEPS,      OPTION_EPOCHS, OPTION_SEED,  OPTION_DEVICE,      OPTION_STORAGE,
     OPTION_GRAD_NORMS, OPTION_SET,    OPTION_TUNE,  OPTION_QUIET,       OPTION_COUNT},
};
