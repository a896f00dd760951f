/* SPDX-License-Identifier: MIT */
#include "line.h"

#include <quern/log.h>
#include <stdlib.h>
#include <string.h>

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

/* A line, or its part before a NUL. */
static bool show_part(const char *text, size_t length)
{
    char *line = strndup(text, length);
    const size_t room = line ? qn_escape(NULL, 0, line) + 1 : 0;
    char *shown = line ? malloc(room) : NULL;
    if (shown) {
        qn_escape(shown, room, line);
        fputs(shown, stdout);
    }
    free(shown);
    free(line);
    return shown != NULL;
}

bool line_show(const char *text, size_t size)
{
    for (size_t at = 0, length; at < size; at += length + 1) {
        length = strcspn(text + at, "\n");
        length = length < size - at ? length : size - at;
        if (!show_part(text + at, length))
            return false;
        if (at + length < size)
            fputs(text[at + length] ? "\n" : "\\x00", stdout);
    }
    return true;
}
