/* SPDX-License-Identifier: MIT
 *
 * Files of NumPy's format for tests.
 */
#ifndef QN_TESTS_IO_NPY_FILE_H
#define QN_TESTS_IO_NPY_FILE_H

#include "scratch.h"

/* The mark, a version, the header's length, its text and `size` bytes of data into `bytes`, which
 * must have the room. Gives the length. */
static inline size_t npy_build(unsigned char *bytes, int version, const char *header,
                               const void *data, size_t size)
{
    const size_t text = strlen(header), field = version == 1 ? 2 : 4;
    memcpy(bytes, "\x93NUMPY", 6);
    bytes[6] = (unsigned char)version;
    bytes[7] = 0;
    for (size_t i = 0; i < field; i++)
        bytes[8 + i] = (unsigned char)(text >> 8 * i);
    memcpy(bytes + 8 + field, header, text);
    if (size)
        memcpy(bytes + 8 + field + text, data, size);
    return 8 + field + text + size;
}

/* A file of version 1.0 as NumPy writes it; `shape` as "(2, 3)". */
static inline const char *npy_put(struct scratch *scratch, const char *name, const char *descr,
                                  const char *shape, const void *data, size_t size)
{
    unsigned char bytes[4096];
    char header[256];
    snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': %s, } \n",
             descr, shape);
    return scratch_put(scratch, name, bytes, npy_build(bytes, 1, header, data, size));
}

#endif
