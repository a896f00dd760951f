/* SPDX-License-Identifier: MIT */
#include "check/verdict.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

bool qn_verdict_fail(struct qn_verdict *verdict, const char *format, ...)
{
    if (verdict->failed)
        return false;
    va_list args;
    va_start(args, format);
    vsnprintf(verdict->text, sizeof verdict->text, format, args);
    va_end(args);
    verdict->failed = true;
    return false;
}

static bool stop(struct qn_verdict *verdict, qn_status status, const char *what, const char *why)
{
    if (!verdict->failed)
        verdict->status = status;
    return qn_verdict_fail(verdict, "%s: %s (%s)", what, qn_status_name(status), why);
}

bool qn_verdict_stop(struct qn_verdict *verdict, qn_status status, const char *what)
{
    return stop(verdict, status, what, qn_last_error());
}

bool qn_verdict_no_memory(struct qn_verdict *verdict, const char *what)
{
    return stop(verdict, QN_ERR_MEMORY, what, qn_status_text(QN_ERR_MEMORY));
}

static bool agree(double got, double want, double tolerance)
{
    return got == want || (isnan(got) && isnan(want)) || fabs(got - want) <= tolerance;
}

bool qn_compare(struct qn_verdict *verdict, const char *what, const double *got, const double *want,
                int64_t count, double tolerance)
{
    for (int64_t i = 0; i < count; i++)
        if (!agree(got[i], want[i], tolerance))
            return qn_verdict_fail(verdict,
                                   "%s: element %" PRId64 " of %" PRId64
                                   " is %.9g, wanted %.9g (within %.2g)",
                                   what, i, count, got[i], want[i], tolerance);
    return true;
}

bool qn_compare_finite(struct qn_verdict *verdict, const char *what, const double *got,
                       int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(got[i]))
            return qn_verdict_fail(
                verdict, "%s: element %" PRId64 " of %" PRId64 " is %.9g, wanted a finite number",
                what, i, count, got[i]);
    return true;
}

double qn_largest(const double *values, int64_t count)
{
    double largest = 0;
    for (int64_t i = 0; i < count; i++)
        largest = isfinite(values[i]) ? fmax(largest, fabs(values[i])) : largest;
    return largest;
}
