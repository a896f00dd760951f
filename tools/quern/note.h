/* SPDX-License-Identifier: MIT
 *
 * The recipe as a checkpoint keeps it: JSON, {"SECTION": {"KEY": "VALUE"}}, which takes any value
 * of any length.
 */
#ifndef QUERN_TOOL_NOTE_H
#define QUERN_TOOL_NOTE_H

#include "recipe.h"

/* Freed by the caller. NULL: out of memory. */
char *note_text(const struct recipe *recipe);
/* The recipe again; `name` is for messages. */
int note_read(struct recipe *recipe, const char *text, const char *name, struct failure *failure);

#endif
