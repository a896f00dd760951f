/* SPDX-License-Identifier: MIT
 *
 * Writing to a qn_log, and passing statuses up.
 */
#ifndef QN_BASE_LOG_H
#define QN_BASE_LOG_H

#include <quern/log.h>

/* Formats one line and escapes it, so that what comes from outside may stand in it as it is: for
 * the log, unless that is NULL, silent or less talkative than `level`, and an error for
 * qn_last_error in any case. */
void qn_log_write(const struct qn_log *log, qn_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Logs an error and gives `status`: `return qn_fail(log, QN_ERR_IO, "%s: %s", path, why);` */
qn_status qn_fail(const struct qn_log *log, qn_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#define QN_TRY(call)                                                                               \
    do {                                                                                           \
        qn_status qn_try_ = (call);                                                                \
        if (qn_try_ != QN_OK)                                                                      \
            return qn_try_;                                                                        \
    } while (0)

/* Checks an argument of a public function. */
#define QN_REQUIRE(log, condition)                                                                 \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return qn_fail((log), QN_ERR_ARGUMENT, "%s: not true: %s", __func__, #condition);      \
    } while (0)

#endif
