/* SPDX-License-Identifier: MIT
 *
 * Files of one array in NumPy's format, versions 1.0, 2.0 and 3.0 (numpy.lib.format), read without
 * Python: the header is a dictionary of three entries, and nothing else is understood. What is
 * wrong is told as `FILE: field: reason`.
 */
#ifndef QN_IO_NPY_H
#define QN_IO_NPY_H

#include <quern/log.h>
#include <quern/tensor.h>

/* 'f' floating point, 'i' and 'u' whole numbers with and without a sign, 'b' true or false. */
enum qn_npy_kind { QN_NPY_FLOAT = 'f', QN_NPY_INT = 'i', QN_NPY_UINT = 'u', QN_NPY_BOOL = 'b' };

/* A file under way. A zeroed struct is none. Thread-safety: Safe to read from several threads.
 * Lifetime: until qn_npy_close; `path` is borrowed. */
struct qn_npy {
    const char *path;
    int fd;
    enum qn_npy_kind kind;
    int size;              /* bytes of a number: 1, 2, 4 or 8, of floats 2 or more */
    struct qn_shape shape; /* of 1 or more dimensions, none of them 0 */
    int64_t count;         /* numbers, whose bytes can be counted */
    int64_t at;            /* bytes before the first one */
};

/* Reads the header. QN_ERR_IO: not readable; QN_ERR_FORMAT: it is none of these versions, the
 * header is not what NumPy writes or longer than 64 KiB, the numbers are big-endian, Python objects
 * or of a type that is not above, their order is that of Fortran where this makes a difference, the
 * array has no dimension, more than QN_MAX_DIMS or no number, or the file is not exactly as long as
 * it says. */
qn_status qn_npy_open(struct qn_npy *npy, const char *path, const struct qn_log *log);
/* Numbers first .. first + count - 1, last dimension fastest; there are as many. */
qn_status qn_npy_read(const struct qn_npy *npy, int64_t first, int64_t count, double *values,
                      const struct qn_log *log);
/* The same as they are in the file, `size` bytes each. */
qn_status qn_npy_read_bytes(const struct qn_npy *npy, int64_t first, int64_t count, void *bytes,
                            const struct qn_log *log);
void qn_npy_close(struct qn_npy *npy);

#endif
