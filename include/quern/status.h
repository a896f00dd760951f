/* SPDX-License-Identifier: MIT
 *
 * What every function answers. The status says which class of thing went wrong; the log says which
 * tensor, file, kernel or OpenCL call. The library never exits, aborts or prints.
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
    X(ERR_BUILD, "a kernel did not build")                                                         \
    X(ERR_IO, "a file could not be read or written")                                               \
    X(ERR_FORMAT, "a file is not what it should be")                                               \
    X(ERR_INTERNAL, "a mistake of the library's own")

typedef enum qn_status {
#define QN_STATUS_ENUM(name, text) QN_##name,
    QN_STATUS_MAP(QN_STATUS_ENUM)
#undef QN_STATUS_ENUM
} qn_status;

/* The name ("QN_ERR_SHAPE") and the text of a status; never NULL. Thread-safety: Safe. */
QN_API const char *qn_status_name(qn_status status);
QN_API const char *qn_status_text(qn_status status);

#ifdef __cplusplus
}
#endif
#endif
