/* SPDX-License-Identifier: MIT
 *
 * A training that goes on, or is looked at, where its data have other places than where it began:
 * on another machine, or on another rank.
 */
#ifndef QUERN_TOOL_MOVED_H
#define QUERN_TOOL_MOVED_H

#include "recipe.h"

/* Of the recipe of a checkpoint in `folder`: a folder of data that a name stands for is that of
 * QN_DATA_DIR if the noted one is not here, or is empty; a tokenizer that was made of the data is
 * one that lies with the checkpoint or with its training. What the command line says goes before.
 */
int moved_find(struct recipe *recipe, const char *folder, struct failure *failure);

#endif
