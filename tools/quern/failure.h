/* SPDX-License-Identifier: MIT
 *
 * Why a command ends badly: one exit code and one line. The first reason stands; whatever follows
 * from it says nothing.
 */
#ifndef QUERN_TOOL_FAILURE_H
#define QUERN_TOOL_FAILURE_H

#include <pthread.h>
#include <quern/log.h>
#include <stdbool.h>
#include <stddef.h>

enum { CODE_DONE, CODE_FAILED, CODE_USAGE, CODE_NO_PLAN, CODE_NO_DEVICE };
enum { CODE_SIGNAL = 128 }; /* and the number of the signal that ended a run in good order */

enum { FAILURE_BYTES = 2048 };

struct failure {
    pthread_mutex_t lock;
    int code;
    bool others; /* another member failed before: it has the reason */
    char text[FAILURE_BYTES];
    char logged[FAILURE_BYTES]; /* first error of the library since failure_clear */
};

#define FAILURE_NONE                                                                               \
    {                                                                                              \
        .lock = PTHREAD_MUTEX_INITIALIZER                                                          \
    }

/* Leaves the calling function with the exit code of a call that failed. */
#define TRY(call)                                                                                  \
    do {                                                                                           \
        int try_code = (call);                                                                     \
        if (try_code)                                                                              \
            return try_code;                                                                       \
    } while (0)

/* The same for a call of the library; `context` ("recipe.ini: model") or NULL goes before its text.
 */
#define TRY_LIBRARY(failure, context, call)                                                        \
    do {                                                                                           \
        failure_clear(failure);                                                                    \
        qn_status try_status = (call);                                                             \
        if (try_status)                                                                            \
            return failure_library(failure, try_status, context);                                  \
    } while (0)

/* Sets code and text unless something failed before. Gives the code. */
__attribute__((format(printf, 3, 4))) int failure_set(struct failure *failure, int code,
                                                      const char *format, ...);
/* A call of the library failed: the text is what it logged first, the code follows from the
 * status. */
int failure_library(struct failure *failure, qn_status status, const char *context);
/* The same of a call that is made by several threads: the text is that of qn_last_error. */
int failure_status(struct failure *failure, qn_status status);
/* Forgets what the library logged: it may log errors that it then recovers from. */
void failure_clear(struct failure *failure);

/* A log that remembers errors and prints warnings. */
qn_log failure_log(struct failure *failure);

/* Who speaks in all lines from now on, "rank 1"; before, nobody is named. */
void say_as(const char *who);
/* One line on standard error, escaped, with the prefix that all of them have. */
__attribute__((format(printf, 1, 2))) void say(const char *format, ...);

#endif
