/* SPDX-License-Identifier: MIT */
#include "commands.h"

void help_overview(FILE *out)
{
    fprintf(out, "Usage: quern COMMAND [options]\n\n"
                 "Trains neural networks on any OpenCL device inside the bytes you name.\n\n");
    for (int i = 0; commands[i]; i++)
        fprintf(out, "  %-8s %-11s %s\n", commands[i]->name,
                commands[i]->operand ? commands[i]->operand : "", commands[i]->summary);
    fprintf(out, "\nquern help COMMAND tells more; quern --version names the version.\n");
}

static int run(const struct arguments *a, struct failure *failure)
{
    const struct command *command;
    if (!a->operand) {
        help_overview(stdout);
        return CODE_DONE;
    }
    TRY(command_find(&command, a->operand, failure));
    arguments_help(command);
    return CODE_DONE;
}

const struct command command_help = {
    "help",
    "[COMMAND]",
    "what a command does, and its options",
    "Prints what a command does with all its options, as quern COMMAND --help; without a COMMAND\n"
    "what commands there are.",
    false,
    run,
    {OPTION_COUNT},
};
