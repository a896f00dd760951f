/* SPDX-License-Identifier: MIT
 *
 * Where messages go. A qn_log is three fields that the caller owns; objects copy it when they
 * are made. All zero is a valid, silent log.
 */
#ifndef QUERN_LOG_H
#define QUERN_LOG_H

#include <quern/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum qn_log_level {
    QN_LOG_ERROR, /* the reason of the status that is about to be returned */
    QN_LOG_WARNING,
    QN_LOG_INFO,
    QN_LOG_DEBUG,
} qn_log_level;

/* `text` is one line without its newline and lives until the function returns.
 * Thread-safety: may be called from any thread that uses the object. */
typedef void (*qn_log_fn)(void *user, qn_log_level level, const char *text);

typedef struct qn_log {
    qn_log_fn fn; /* NULL: silent */
    void *user;
    qn_log_level level; /* messages above it are dropped; 0: errors only */
} qn_log;

#ifdef __cplusplus
}
#endif
#endif
