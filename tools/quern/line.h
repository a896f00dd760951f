/* SPDX-License-Identifier: MIT
 *
 * One line for people. What comes from outside (names of files, devices, classes, keys and values)
 * is escaped in it, so that it cannot pretend to be another line of ours.
 */
#ifndef QUERN_TOOL_LINE_H
#define QUERN_TOOL_LINE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* The line and its newline. */
__attribute__((format(printf, 2, 3))) void line_print(FILE *out, const char *format, ...);
void line_print_args(FILE *out, const char *format, va_list args);

/* A text of several lines, with their control characters escaped, for a terminal, which would obey
 * them; a NUL stands behind the text. False: out of memory. */
bool line_show(const char *text, size_t size);

#endif
