/* SPDX-License-Identifier: MIT
 *
 * quern: the command.
 */
#include "commands.h"
#include "ranks.h"
#include "ranks_library.h"

#include <quern/quern.h>
#include <stdio.h>
#include <string.h>

/* What rank 0 alone does. */
static void leave_to_first(struct arguments *arguments)
{
    static const enum option options[] = {OPTION_OUT, OPTION_METRICS, OPTION_TENSORBOARD,
                                          OPTION_PROFILE};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        arguments->value[options[i]] = NULL;
    arguments->value[OPTION_QUIET] = "";
}

/* What trains on several devices does so in several processes, too. */
static int run_ranks(const struct command *command, struct arguments *arguments, int code,
                     struct failure *failure)
{
    TRY(ranks_open(failure));
    TRY(ranks_agree(code, failure));
    if (!ranks_first())
        leave_to_first(arguments);
    return command->run(arguments, failure);
}

static int run(int argc, char **argv, struct failure *failure)
{
    const struct command *command;
    struct arguments arguments;
    TRY(command_find(&command, argv[1], failure));
    if (arguments_want_help(argc - 2, argv + 2)) {
        arguments_help(command);
        return CODE_DONE;
    }
    const int code = arguments_read(&arguments, command, argc - 2, argv + 2, failure);
    if (command_takes(command, OPTION_SHARE))
        return run_ranks(command, &arguments, code, failure);
    return code ? code : command->run(&arguments, failure);
}

int main(int argc, char **argv)
{
    struct failure failure = FAILURE_NONE;
    if (ranks_said() == 1) /* threads of several processes would stay on the same cores */
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
    ranks_end(&failure);
    if (failure.text[0])
        say("%s", failure.text);
    ranks_close(&failure);
    return failure.code;
}
