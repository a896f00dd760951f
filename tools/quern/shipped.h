/* SPDX-License-Identifier: MIT
 *
 * The recipes that ship, as texts; the array is made from recipes/ by embed_recipes.py.
 */
#ifndef QUERN_TOOL_SHIPPED_H
#define QUERN_TOOL_SHIPPED_H

struct shipped_recipe {
    const char *name;
    const char *summary; /* the first line, a comment */
    const char *text;
};

/* Ended by an entry without a name. */
extern const struct shipped_recipe shipped_recipes[];

#endif
