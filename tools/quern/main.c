/* SPDX-License-Identifier: MIT
 *
 * quern: the command.
 */
#include "commands.h"

#include <quern/quern.h>
#include <stdio.h>
#include <string.h>

static const struct command *const commands[] = {
#define ENTRY(name) &command_##name,
    COMMAND_LIST(ENTRY)
#undef ENTRY
};
enum { N_COMMANDS = sizeof commands / sizeof *commands };

static void print_help(FILE *out)
{
    fprintf(out, "Usage: quern COMMAND [options]\n\n"
                 "Trains neural networks on any OpenCL device inside the bytes you name.\n\n");
    for (int i = 0; i < N_COMMANDS; i++)
        fprintf(out, "  %-8s %-11s %s\n", commands[i]->name,
                commands[i]->operand ? commands[i]->operand : "", commands[i]->summary);
    fprintf(out, "\nquern COMMAND --help tells more; quern --version names the version.\n");
}

static const struct command *find_command(const char *name)
{
    for (int i = 0; i < N_COMMANDS; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

static int run(int argc, char **argv, struct failure *failure)
{
    const struct command *command = find_command(argv[1]);
    struct arguments arguments;
    if (!command)
        return failure_set(failure, CODE_USAGE, "%s: no such command; see quern --help", argv[1]);
    if (arguments_want_help(argc - 2, argv + 2)) {
        command_help(command);
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
        print_help(stderr);
        return CODE_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        print_help(stdout);
    else if (strcmp(argv[1], "--version") == 0)
        printf("quern %s\n", QN_VERSION);
    else
        run(argc, argv, &failure);
    if (fflush(stdout))
        failure_set(&failure, CODE_FAILED, "standard output: it could not be written");
    if (failure.text[0])
        say("%s", failure.text);
    return failure.code;
}
