/* SPDX-License-Identifier: MIT
 *
 * Text of kernel programs: embedded by tools/embed.py, or read from a folder.
 */
#ifndef QN_CL_SOURCE_H
#define QN_CL_SOURCE_H

#include <quern/log.h>
#include <stddef.h>

struct qn_embedded_kernel {
    const char *stem;
    const unsigned char *bytes;
    size_t length;
};

/* Ended by an entry without a stem. */
extern const struct qn_embedded_kernel qn_embedded_kernels[];

struct qn_source {
    const char *bytes;
    size_t length;
    char *owned; /* to free, or NULL */
};

/* The text of program `stem` with its includes inlined: of the embedded one, or with `dir` of
 * dir/stem.cl. Released by qn_source_free. Thread-safety: Safe. */
qn_status qn_source_open(struct qn_source *source, const char *dir, const char *stem,
                         const qn_log *log);
void qn_source_free(struct qn_source *source);

#endif
