/* SPDX-License-Identifier: MIT
 *
 * The subcommands: one file each.
 */
#ifndef QUERN_TOOL_COMMANDS_H
#define QUERN_TOOL_COMMANDS_H

#include "option.h"

#include <stdio.h>

#define COMMAND_LIST(X)                                                                            \
    X(devices)                                                                                     \
    X(train)                                                                                       \
    X(resume)                                                                                      \
    X(find_lr)                                                                                     \
    X(eval)                                                                                        \
    X(predict)                                                                                     \
    X(embed)                                                                                       \
    X(export)                                                                                      \
    X(generate)                                                                                    \
    X(model)                                                                                       \
    X(plan)                                                                                        \
    X(compare)                                                                                     \
    X(report)                                                                                      \
    X(check)                                                                                       \
    X(bench)                                                                                       \
    X(tune)                                                                                        \
    X(tokenize)                                                                                    \
    X(place)                                                                                       \
    X(recipes)                                                                                     \
    X(help)

#define COMMAND_DECLARE(name) extern const struct command command_##name;
COMMAND_LIST(COMMAND_DECLARE)
#undef COMMAND_DECLARE

/* All of them, in the order in which help lists them; NULL ends. */
extern const struct command *const commands[];
int command_find(const struct command **command, const char *name, struct failure *failure);
/* What there is, for people. */
void help_overview(FILE *out);

#endif
