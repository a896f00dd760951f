/* SPDX-License-Identifier: MIT */
#include "commands.h"
#include "settings.h"
#include "shipped.h"
#include "value.h"

#include <inttypes.h>
#include <stdlib.h>

/* Column widths: name, budget, length of the training, what it is. */
static const char row[] = "%-23s  %8s  %12s  %s\n";

static int list(struct recipe *recipe, struct failure *failure)
{
    printf(row, "recipe", "budget", "length", "what it trains, and how long 2 CPU cores take");
    for (const struct shipped_recipe *r = shipped_recipes; r->name; r++) {
        struct settings settings;
        char budget[SIZE_TEXT_BYTES], length[32];
        TRY(recipe_parse(recipe, r->text, r->name, failure));
        TRY(settings_read(&settings, recipe, failure));
        snprintf(length, sizeof length, "%" PRId64 " %s",
                 settings.train.epochs ? settings.train.epochs : settings.train.steps,
                 settings.train.epochs ? "epochs" : "updates");
        printf(row, r->name, size_text(settings.memory.budget, budget), length, r->summary);
    }
    printf("\nquern train RECIPE trains it; --budget, --epochs and --set SECTION.KEY=VALUE change "
           "it.\n"
           "Your own is an INI file: quern recipes --keys tells all that it can say.\n");
    return CODE_DONE;
}

static int run(const struct arguments *a, struct failure *failure)
{
    if (a->value[OPTION_KEYS]) {
        printf("A recipe is an INI file (default in brackets). Its paths begin in its own folder,\n"
               "those of recipes that ship and of --set in the current one.\n");
        settings_help(stdout);
        return CODE_DONE;
    }
    struct recipe *recipe = calloc(1, sizeof *recipe);
    if (!recipe)
        return failure_set(failure, CODE_FAILED, "out of memory");
    int code = list(recipe, failure);
    free(recipe);
    return code;
}

const struct command command_recipes = {
    "recipes",
    NULL,
    "lists the recipes that ship, or all keys of a recipe",
    "Lists the recipes that ship: what each trains, inside how many bytes, and how long it takes.\n"
    "--keys prints what a recipe of your own can say.",
    false,
    run,
    {OPTION_KEYS, OPTION_COUNT},
};
