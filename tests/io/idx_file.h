/* SPDX-License-Identifier: MIT
 *
 * IDX files for tests, plain or compressed.
 */
#ifndef QN_TESTS_IO_IDX_FILE_H
#define QN_TESTS_IO_IDX_FILE_H

#include "scratch.h"

#include <zlib.h>

/* Magic, sizes and `size` bytes of data into `bytes`, which must have the room. Gives the length.
 */
static inline size_t idx_build(unsigned char *bytes, unsigned char type, int rank,
                               const uint32_t *dim, const void *data, size_t size)
{
    const unsigned char magic[4] = {0, 0, type, (unsigned char)rank};
    memcpy(bytes, magic, sizeof magic);
    for (int i = 0; i < rank; i++)
        for (int j = 0; j < 4; j++)
            bytes[4 + 4 * i + j] = (unsigned char)(dim[i] >> (24 - 8 * j));
    if (size)
        memcpy(bytes + 4 + 4 * rank, data, size);
    return 4 + 4 * (size_t)rank + size;
}

static inline const char *idx_put_gzip(struct scratch *scratch, const char *name, const void *bytes,
                                       size_t size)
{
    const char *path = scratch_path(scratch, name);
    gzFile file = gzopen(path, "wb6");
    assert_non_null(file);
    assert_int_equal(gzwrite(file, bytes, (unsigned)size), (int)size);
    assert_int_equal(gzclose(file), Z_OK);
    return path;
}

#endif
