/* SPDX-License-Identifier: MIT
 *
 * What a recipe says of parameters by their names: train.freeze, train.rates, train.decays.
 */
#ifndef QUERN_TOOL_NAMED_H
#define QUERN_TOOL_NAMED_H

#include "settings.h"

/* Puts it into the graph. CODE_USAGE, with the line of the recipe: a pattern names no parameter. */
int named_apply(qn_graph *graph, const struct settings *settings, const struct recipe *recipe,
                struct failure *failure);

#endif
