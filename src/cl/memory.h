/* SPDX-License-Identifier: MIT
 *
 * The inside of a slab, for the files of cl/.
 */
#ifndef QN_CL_MEMORY_H
#define QN_CL_MEMORY_H

#include "cl/private.h"
#include "cl/slab.h"

struct qn_slab {
    struct qn_device *device;
    cl_kernel fill;
    cl_mem buffer[QN_MAX_BUFFERS]; /* NULL: none */
    int64_t bytes[QN_MAX_BUFFERS];
    int count;
};

/* Whether bytes [offset, offset + size) lie in a buffer that was made. */
bool qn_slab_has(const struct qn_slab *slab, int buffer, int64_t offset, int64_t size);

/* Copies to a buffer through a mapping, or with `host` NULL only tells the device that the host has
 * written these bytes. Blocks. For QN_QUIRK_WRITE_BY_MAP. */
cl_int qn_slab_write_mapped(struct qn_slab *slab, int buffer, int64_t offset, const void *host,
                            int64_t size);

#endif
