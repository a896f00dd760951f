/* SPDX-License-Identifier: MIT */
#include "failure.h"
#include "line.h"

#include <stdarg.h>
#include <stdio.h>

int failure_set(struct failure *failure, int code, const char *format, ...)
{
    if (failure->code)
        return failure->code;
    va_list args;
    va_start(args, format);
    vsnprintf(failure->text, sizeof failure->text, format, args);
    va_end(args);
    return failure->code = code;
}

static int code_of(qn_status status)
{
    switch (status) {
    case QN_ERR_BUDGET:
        return CODE_NO_PLAN;
    case QN_ERR_NO_DEVICE:
        return CODE_NO_DEVICE;
    case QN_ERR_ARGUMENT:
    case QN_ERR_SHAPE:
        return CODE_USAGE;
    default:
        return CODE_FAILED;
    }
}

int failure_library(struct failure *failure, qn_status status, const char *context)
{
    pthread_mutex_lock(&failure->lock);
    const char *text = failure->logged[0] ? failure->logged : qn_status_text(status);
    int code = failure_set(failure, code_of(status), "%s%s%s", context ? context : "",
                           context ? ": " : "", text);
    pthread_mutex_unlock(&failure->lock);
    return code;
}

int failure_status(struct failure *failure, qn_status status)
{
    pthread_mutex_lock(&failure->lock);
    failure->others |= !failure->code && status == QN_ERR_MEMBER;
    int code = failure_set(failure, code_of(status), "%s", qn_last_error());
    pthread_mutex_unlock(&failure->lock);
    return code;
}

void failure_clear(struct failure *failure)
{
    pthread_mutex_lock(&failure->lock);
    failure->logged[0] = 0;
    pthread_mutex_unlock(&failure->lock);
}

static void receive(void *user, qn_log_level level, const char *text)
{
    struct failure *failure = user;
    if (level != QN_LOG_ERROR) {
        say("warning: %s", text);
        return;
    }
    pthread_mutex_lock(&failure->lock);
    if (!failure->logged[0])
        snprintf(failure->logged, sizeof failure->logged, "%s", text);
    pthread_mutex_unlock(&failure->lock);
}

qn_log failure_log(struct failure *failure)
{
    return (qn_log){.fn = receive, .user = failure, .level = QN_LOG_WARNING};
}

static char speaker[40]; /* "rank 1: "; "": the program is alone */

void say_as(const char *who)
{
    snprintf(speaker, sizeof speaker, "%s: ", who);
}

void say(const char *format, ...)
{
    char line[FAILURE_BYTES + 64];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    line_print(stderr, "quern: %s%s", speaker, line);
}
