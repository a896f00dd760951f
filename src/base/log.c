/* SPDX-License-Identifier: MIT */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

enum { LINE_BYTES = 4096 };

static void write_line(const struct qn_log *log, qn_log_level level, const char *format,
                       va_list args)
{
    if (!log || !log->fn || level > log->level)
        return;
    char line[LINE_BYTES];
    vsnprintf(line, sizeof line, format, args);
    log->fn(log->user, level, line);
}

void qn_log_write(const struct qn_log *log, qn_log_level level, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    write_line(log, level, format, args);
    va_end(args);
}

qn_status qn_fail(const struct qn_log *log, qn_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    write_line(log, QN_LOG_ERROR, format, args);
    va_end(args);
    return status;
}
