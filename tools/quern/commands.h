/* SPDX-License-Identifier: MIT
 *
 * The subcommands: one file each.
 */
#ifndef QUERN_TOOL_COMMANDS_H
#define QUERN_TOOL_COMMANDS_H

#include "option.h"

#define COMMAND_LIST(X)                                                                            \
    X(devices)                                                                                     \
    X(train)                                                                                       \
    X(resume)                                                                                      \
    X(eval)                                                                                        \
    X(plan)                                                                                        \
    X(check)                                                                                       \
    X(bench)                                                                                       \
    X(tune)                                                                                        \
    X(place)

#define COMMAND_DECLARE(name) extern const struct command command_##name;
COMMAND_LIST(COMMAND_DECLARE)
#undef COMMAND_DECLARE

#endif
