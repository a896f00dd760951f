/* SPDX-License-Identifier: MIT */
#include "base/log.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { LINE_BYTES = 4096 };

static _Thread_local char last_error[LINE_BYTES];

const char *qn_last_error(void)
{
    return last_error;
}

/* The line is complete before it replaces the last error, which may be one of its arguments. */
static void write_line(const struct qn_log *log, qn_log_level level, const char *format,
                       va_list args)
{
    const bool heard = log && log->fn && level <= log->level;
    if (!heard && level != QN_LOG_ERROR)
        return;
    char line[LINE_BYTES], shown[LINE_BYTES];
    vsnprintf(line, sizeof line, format, args);
    qn_escape(shown, sizeof shown, line);
    if (level == QN_LOG_ERROR)
        memcpy(last_error, shown, strlen(shown) + 1);
    if (heard)
        log->fn(log->user, level, shown);
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
