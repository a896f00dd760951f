/* SPDX-License-Identifier: MIT */
#include "line.h"

#include <quern/log.h>

enum { LINE_BYTES = 1 << 14 };

void line_print_args(FILE *out, const char *format, va_list args)
{
    char line[LINE_BYTES], shown[LINE_BYTES];
    vsnprintf(line, sizeof line, format, args);
    qn_escape(shown, sizeof shown, line);
    fprintf(out, "%s\n", shown);
}

void line_print(FILE *out, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    line_print_args(out, format, args);
    va_end(args);
}
