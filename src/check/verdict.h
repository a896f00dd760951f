/* SPDX-License-Identifier: MIT
 *
 * The verdict of a check: passed, or the first failure, in one line.
 */
#ifndef QN_CHECK_VERDICT_H
#define QN_CHECK_VERDICT_H

#include <quern/status.h>
#include <stdbool.h>
#include <stdint.h>

struct qn_verdict {
    bool failed;
    qn_status status; /* not QN_OK: a call failed with it, so that the check could not be made */
    char text[1024];
};

/* Notes the first failure; later ones are dropped. Gives false, so that a check can return it. */
bool qn_verdict_fail(struct qn_verdict *verdict, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Notes that the check could not be made, as the call that makes `what` failed with `status` and
 * the line that qn_last_error gives. Gives false. */
bool qn_verdict_stop(struct qn_verdict *verdict, qn_status status, const char *what);
/* The same where the harness itself has no memory for `what`. */
bool qn_verdict_no_memory(struct qn_verdict *verdict, const char *what);

/* Compares element by element: |got - want| <= tolerance; an infinity equals the same infinity, NaN
 * equals NaN. `what` names the operand. */
bool qn_compare(struct qn_verdict *verdict, const char *what, const double *got, const double *want,
                int64_t count, double tolerance);
bool qn_compare_finite(struct qn_verdict *verdict, const char *what, const double *got,
                       int64_t count);

/* The largest finite magnitude. */
double qn_largest(const double *values, int64_t count);

#endif
