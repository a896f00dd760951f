/* SPDX-License-Identifier: MIT
 *
 * quern: the command.
 */
#include "commands.h"

#include <quern/quern.h>
#include <stdio.h>
#include <string.h>

static int run(int argc, char **argv, struct failure *failure)
{
    const struct command *command;
    struct arguments arguments;
    TRY(command_find(&command, argv[1], failure));
    if (arguments_want_help(argc - 2, argv + 2)) {
        arguments_help(command);
        return CODE_DONE;
    }
    TRY(arguments_read(&arguments, command, argc - 2, argv + 2, failure));
    return command->run(&arguments, failure);
}

int main(int argc, char **argv)
{
    struct failure failure = FAILURE_NONE;
    qn_device_hints();
    if (argc < 2) {
        help_overview(stderr);
        return CODE_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        help_overview(stdout);
    else if (strcmp(argv[1], "--version") == 0)
        printf("quern %s\n", QN_VERSION);
    else if (qn_abi_check() != QN_OK) /* an older library that lies in the way */
        failure_set(&failure, CODE_FAILED, "%s", qn_last_error());
    else
        run(argc, argv, &failure);
    if (fflush(stdout))
        failure_set(&failure, CODE_FAILED, "standard output: it could not be written");
    if (failure.text[0])
        say("%s", failure.text);
    return failure.code;
}
