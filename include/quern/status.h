/* SPDX-License-Identifier: MIT
 *
 * What every function answers. The status says which class of thing went wrong; the log and
 * qn_last_error say which tensor, file, kernel or OpenCL call. The library never exits, aborts or
 * prints.
 */
#ifndef QUERN_STATUS_H
#define QUERN_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define QN_API
#else
#define QN_API __attribute__((visibility("default")))
#endif

/* X(name, text) */
#define QN_STATUS_MAP(X)                                                                           \
    X(OK, "done")                                                                                  \
    X(ERR_ARGUMENT, "an argument is not usable")                                                   \
    X(ERR_SHAPE, "shapes do not fit")                                                              \
    X(ERR_BUDGET, "no plan fits the budget")                                                       \
    X(ERR_MEMORY, "memory was refused")                                                            \
    X(ERR_NO_DEVICE, "no such OpenCL device")                                                      \
    X(ERR_DEVICE, "the device failed")                                                             \
    X(ERR_BUILD, "a kernel does not build or cannot be launched")                                  \
    X(ERR_IO, "a file could not be read or written")                                               \
    X(ERR_FORMAT, "a file is not what it should be")                                               \
    X(ERR_INTERNAL, "a mistake of the library's own")                                              \
    X(ERR_MEMBER, "another member of the group has failed")

typedef enum qn_status {
#define QN_STATUS_ENUM(name, text) QN_##name,
    QN_STATUS_MAP(QN_STATUS_ENUM)
#undef QN_STATUS_ENUM
} qn_status;

/* The name ("QN_ERR_SHAPE") and the text of a status; never NULL. Thread-safety: Safe. */
QN_API const char *qn_status_name(qn_status status);
QN_API const char *qn_status_text(qn_status status);

/* Why the last call that failed on this thread did: the line that its log gets as QN_LOG_ERROR, be
 * there a log or not. "" before the first failure. To be read after a call gave another status than
 * QN_OK, or NULL or no tensor for an error: a call that succeeds need not clear it, and may leave
 * the line of something it could do without. Never NULL; borrowed until the next call on this
 * thread. Thread-safety: Safe; each thread has its own. */
QN_API const char *qn_last_error(void);

/* Frees a text that a function of this library gave to its caller; NULL is nothing. In C free()
 * does the same; other languages, and programs with another C library than this one has, need
 * qn_free. Thread-safety: Safe. */
QN_API void qn_free(void *text);

#ifdef __cplusplus
}
#endif
#endif
