/* SPDX-License-Identifier: MIT
 *
 * IDX files, the format of the MNIST family, plain or compressed with gzip.
 */
#ifndef QN_IO_IDX_H
#define QN_IO_IDX_H

#include <quern/log.h>
#include <quern/tensor.h>

/* A whole file in memory. Lifetime: until qn_idx_free; a zeroed struct is none. */
struct qn_idx {
    qn_dtype dtype; /* QN_U8 or QN_I32 */
    struct qn_shape shape;
    int64_t bytes;
    void *data; /* in the machine's byte order */
};

/* Reads a file of 1 to 4 dimensions. QN_ERR_IO: missing or not readable; QN_ERR_FORMAT: anything in
 * it that does not hold together, one line `FILE: field: reason`. Allocates no more than the file
 * can hold. Thread-safety: Safe. */
qn_status qn_idx_read(struct qn_idx *idx, const char *path, const struct qn_log *log);
void qn_idx_free(struct qn_idx *idx);

#endif
