/* SPDX-License-Identifier: MIT
 *
 * Where messages go. A qn_log is three fields that the caller owns; objects copy it when they
 * are made. All zero is a valid, silent log. And what a message about an unknown name can offer.
 */
#ifndef QUERN_LOG_H
#define QUERN_LOG_H

#include <quern/status.h>
#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum qn_log_level {
    QN_LOG_ERROR, /* the reason of the status that is about to be returned */
    QN_LOG_WARNING,
    QN_LOG_INFO,
    QN_LOG_DEBUG,
} qn_log_level;

/* `text` is one line without its newline, as qn_escape writes it, and lives until the function
 * returns.
 * Thread-safety: may be called from any thread that uses the object. */
typedef void (*qn_log_fn)(void *user, qn_log_level level, const char *text);

typedef struct qn_log {
    qn_log_fn fn; /* NULL: silent */
    void *user;
    qn_log_level level; /* messages above it are dropped; 0: errors only */
} qn_log;

/* Writes a text from outside, such as the name of a file, a class or a device, as part of one line:
 * bytes that are control characters, turn the direction of writing or are not UTF-8 as \n, \r, \t
 * or \x1b, all others as they are. A second time changes nothing. At most `capacity` bytes are
 * written, the NUL among them and no escape cut in two; gives the length of the whole, as snprintf.
 * `text` may be NULL. Thread-safety: Safe. */
QN_API size_t qn_escape(char *to, size_t capacity, const char *text);

enum { QN_NEAREST_NAMES = 3, QN_NEAREST_BYTES = 224 };

/* Whether one of the patterns matches the whole name: '*' is any characters, dots included, or
 * none,
 * '?' any one; patterns are separated by commas and blanks around them. NULL and "" match nothing.
 * Thread-safety: Safe. */
QN_API bool qn_matches(const char *patterns, const char *name);

/* The names nearest to a text that is none of those known. Zeroed but for `text`, it is offered the
 * names one after another. Texts are borrowed. Thread-safety: Unsafe. */
typedef struct qn_nearest {
    const char *text;                   /* what was written; as a pattern, '*' is any characters and
                                           '?' any one */
    const char *name[QN_NEAREST_NAMES]; /* equally near, in the order in which they were offered */
    int count, distance;
} qn_nearest;

/* Takes a name that is at least as near as those before it. The distance is the least number of
 * characters to insert, remove or replace, or of neighbours to exchange; lower and upper case are
 * the same. What needs more than one for every three characters is not near. */
QN_API void qn_nearest_offer(qn_nearest *nearest, const char *name);
/* "; did you mean this or that?", "" when nothing is near. Gives `text`. */
QN_API const char *qn_nearest_hint(const qn_nearest *nearest, char text[QN_NEAREST_BYTES]);

#ifdef __cplusplus
}
#endif
#endif
