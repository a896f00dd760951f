/* SPDX-License-Identifier: MIT
 *
 * Lists of names in a recipe: a, b, "c, d". A name with commas, or blanks at its ends, is quoted;
 * in it a doubled quote is one.
 */
#ifndef QUERN_TOOL_NAMES_H
#define QUERN_TOOL_NAMES_H

#include "recipe.h"

struct names {
    char text[RECIPE_VALUE_BYTES];
    const char *name[RECIPE_VALUE_BYTES / 2]; /* (count) in `text` */
    int count;
};

/* Gives NULL, or the reason why the text is none. */
const char *names_read(struct names *names, const char *text);

#endif
