/* SPDX-License-Identifier: MIT */
#include "commands.h"

#include <quern/log.h>
#include <string.h>

const struct command *const commands[] = {
#define ENTRY(name) &command_##name,
    COMMAND_LIST(ENTRY)
#undef ENTRY
        NULL,
};

int command_find(const struct command **command, const char *name, struct failure *failure)
{
    qn_nearest nearest = {.text = name};
    char hint[QN_NEAREST_BYTES];
    for (int i = 0; commands[i]; i++) {
        *command = commands[i];
        if (strcmp(commands[i]->name, name) == 0)
            return CODE_DONE;
        qn_nearest_offer(&nearest, commands[i]->name);
    }
    return failure_set(failure, CODE_USAGE, "%s: no such command; see quern help%s", name,
                       qn_nearest_hint(&nearest, hint));
}
