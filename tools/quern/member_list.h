/* SPDX-License-Identifier: MIT
 *
 * What a recipe says of several devices that train together, the key group.devices:
 * "DEVICE budget=SIZE micro_batch=N recompute=MODE | DEVICE ...".
 */
#ifndef QUERN_TOOL_MEMBER_LIST_H
#define QUERN_TOOL_MEMBER_LIST_H

#include "option.h"

enum { MEMBER_DEVICE_BYTES = 128 };

/* Puts what the command line says of devices into the recipe. A single device takes the place of
 * all that the recipe has. */
int member_list_override(const struct arguments *arguments, struct recipe *recipe,
                         struct failure *failure);
/* How many the recipe has; 0: it does not say. */
int member_list_count(const struct recipe *recipe);
/* Puts what it says of one into `own`, a copy of the recipe, and the text that its device matches
 * into `device`; "": any. */
int member_list_take(struct recipe *own, int member, char device[MEMBER_DEVICE_BYTES],
                     struct failure *failure);

#endif
